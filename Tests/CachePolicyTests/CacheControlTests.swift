import CachePolicy
import Testing

struct ResponseDirectiveTests {
  static let table: [(String, [String], @Sendable (inout ResponseDirectives) -> Void)] = [
    ("nothing", [""], { _ in }),
    (
      "every flag, in any case",
      [
        "No-Store, PRIVATE, public", "must-revalidate,Proxy-Revalidate , immutable",
        "no-cache, must-understand, no-transform",
      ],
      {
        $0.noStore = true
        $0.isPrivate = true
        $0.isPublic = true
        $0.mustRevalidate = true
        $0.proxyRevalidate = true
        $0.immutable = true
        $0.noCache = true
        $0.mustUnderstand = true
        $0.noTransform = true
      }
    ),
    (
      "numbers",
      ["max-age=1, s-maxage=2, stale-while-revalidate=3, stale-if-error=4"],
      {
        $0.maxAgeSeconds = 1
        $0.sharedMaxAgeSeconds = 2
        $0.staleWhileRevalidateSeconds = 3
        $0.staleIfErrorSeconds = 4
      }
    ),
    ("quoted number", ["max-age=\"60\""], { $0.maxAgeSeconds = 60 }),
    ("leading zeros", ["max-age=0060"], { $0.maxAgeSeconds = 60 }),
    ("too large", ["max-age=99999999999999999999"], { $0.maxAgeSeconds = 2_147_483_648 }),
    ("decimal", ["max-age=3600.0"], { $0.maxAgeSeconds = 0 }),
    ("negative", ["max-age=-3600"], { $0.maxAgeSeconds = 0 }),
    ("plus sign", ["max-age=+3600"], { $0.maxAgeSeconds = 0 }),
    ("single quotes", ["max-age='3600'"], { $0.maxAgeSeconds = 0 }),
    (
      "letters", ["max-age=a3600, s-maxage=3600a"],
      {
        $0.maxAgeSeconds = 0
        $0.sharedMaxAgeSeconds = 0
      }
    ),
    (
      "no value", ["max-age, s-maxage="],
      {
        $0.maxAgeSeconds = 0
        $0.sharedMaxAgeSeconds = 0
      }
    ),
    ("space beside the sign", ["max-age = 3600"], { $0.maxAgeSeconds = 0 }),
    ("space after the sign", ["s-maxage= 3600"], { $0.sharedMaxAgeSeconds = 0 }),
    ("a quoted decimal", ["max-age=\"1.0\""], { $0.maxAgeSeconds = 0 }),
    ("a quote that does not close", ["max-age=\"60"], { $0.maxAgeSeconds = 0 }),
    ("the largest number", ["max-age=2147483647"], { $0.maxAgeSeconds = 2_147_483_647 }),
    ("one more", ["max-age=2147483649"], { $0.maxAgeSeconds = 2_147_483_648 }),
    (
      "any case", ["MaX-aGe=60, S-MAXAGE=5"],
      {
        $0.maxAgeSeconds = 60
        $0.sharedMaxAgeSeconds = 5
      }
    ),
    ("empty members", [",, max-age=60 ,", "", ","], { $0.maxAgeSeconds = 60 }),
    ("semicolons do not separate", ["max-age=60; no-store"], { $0.maxAgeSeconds = 0 }),
    (
      "windows twice", ["stale-if-error=9, stale-if-error=4", "stale-while-revalidate=x"],
      {
        $0.staleIfErrorSeconds = 4
        $0.staleWhileRevalidateSeconds = 0
      }
    ),
    (
      "with names and without", ["private=\"x-a\", private", "no-cache, no-cache=\"x-b\""],
      {
        $0.isPrivate = true
        $0.noCache = true
        $0.fieldsNotStored = ["x-a", "x-b"].map { Array($0.utf8) }
      }
    ),
    (
      "public and private", ["public, private"],
      {
        $0.isPublic = true
        $0.isPrivate = true
      }
    ),
    ("two values", ["max-age=60, max-age=10"], { $0.maxAgeSeconds = 10 }),
    ("two lines", ["max-age=10", "max-age=60"], { $0.maxAgeSeconds = 10 }),
    ("one of them unreadable", ["max-age=60, max-age=x"], { $0.maxAgeSeconds = 0 }),
    (
      "words in quotes", ["extension=\"no-store, max-age=3600\", max-age=1"],
      { $0.maxAgeSeconds = 1 }
    ),
    ("escaped quote", ["x=\"a\\\", no-store\", public"], { $0.isPublic = true }),
    ("a quote that never closes hides nothing", ["x=\"a, no-store"], { $0.noStore = true }),
    ("unknown ones", ["max-agee=1, xmax-age=2, foo, no_store, no-store2"], { _ in }),
    (
      "an argument where none belongs", ["no-store=1, must-revalidate=\"\""],
      {
        $0.noStore = true
        $0.mustRevalidate = true
      }
    ),
    (
      "field names", ["private=\"X-A, set-cookie\", no-cache=\"x-B\""],
      { $0.fieldsNotStored = ["x-a", "set-cookie", "x-b"].map { Array($0.utf8) } }
    ),
    ("field names that the copy needs", ["private=\"x-a, ETag\""], { $0.isPrivate = true }),
    (
      "field names without quotes", ["private=x-a, no-cache=x-b"],
      {
        $0.isPrivate = true
        $0.noCache = true
      }
    ),
    (
      "no field names", ["private=\"\", no-cache=\" , \""],
      {
        $0.isPrivate = true
        $0.noCache = true
      }
    ),
    ("not field names", ["no-cache=\"a b\""], { $0.noCache = true }),
  ]

  @Test(arguments: table.indices)
  func aResponseSays(_ row: Int) {
    let (name, lines, change) = Self.table[row]
    var expected = ResponseDirectives()
    change(&expected)
    let found = ResponseDirectives(Fields(lines.map { ("Cache-Control", $0) }))
    #expect(found == expected, "\(name)")
  }

  @Test func pragmaMeansNothingInAResponse() {
    #expect(ResponseDirectives(Fields([("Pragma", "no-cache")])) == ResponseDirectives())
  }
}

struct RequestDirectiveTests {
  static let table: [(String, [(String, String)], @Sendable (inout RequestDirectives) -> Void)] = [
    ("nothing", [("Accept", "no-cache")], { _ in }),
    (
      "flags", [("Cache-Control", "NO-CACHE, no-store, only-if-cached, no-transform")],
      {
        $0.noCache = true
        $0.noStore = true
        $0.onlyIfCached = true
        $0.noTransform = true
      }
    ),
    (
      "numbers", [("Cache-Control", "max-age=1, max-stale=2, min-fresh=3")],
      {
        $0.maxAgeSeconds = 1
        $0.maxStaleSeconds = 2
        $0.minFreshSeconds = 3
      }
    ),
    (
      "max-stale without a value", [("Cache-Control", "max-stale")],
      { $0.maxStaleSeconds = 2_147_483_648 }
    ),
    ("max-stale twice", [("Cache-Control", "max-stale=5, max-stale")], { $0.maxStaleSeconds = 5 }),
    (
      "max-stale twice, reversed", [("Cache-Control", "max-stale, max-stale=5")],
      { $0.maxStaleSeconds = 5 }
    ),
    ("max-stale unreadable", [("Cache-Control", "max-stale=x")], { $0.maxStaleSeconds = 0 }),
    (
      "min-fresh twice", [("Cache-Control", "min-fresh=5, min-fresh=7")],
      { $0.minFreshSeconds = 7 }
    ),
    (
      "min-fresh unreadable", [("Cache-Control", "min-fresh=1.5")],
      { $0.minFreshSeconds = 2_147_483_648 }
    ),
    (
      "among unknown words, on several lines",
      [
        ("Cache-Control", "foo, bar=\"no-store, max-age=1\", Only-If-Cached"),
        ("Accept", "x"), ("Cache-Control", "baz=1, MAX-STALE=7,, qux"),
      ],
      {
        $0.onlyIfCached = true
        $0.maxStaleSeconds = 7
      }
    ),
    (
      "words that only begin alike", [("Cache-Control", "no-cachee, xno-store, max-ages=1")],
      { _ in }
    ),
    (
      "max-stale with an empty value", [("Cache-Control", "max-stale=")], { $0.maxStaleSeconds = 0 }
    ),
    ("max-stale in quotes", [("Cache-Control", "max-stale=\"7\"")], { $0.maxStaleSeconds = 7 }),
    ("max-age twice", [("Cache-Control", "max-age=9, max-age=3")], { $0.maxAgeSeconds = 3 }),
    (
      "max-age too large", [("Cache-Control", "max-age=99999999999999999999")],
      {
        $0.maxAgeSeconds = 2_147_483_648
      }
    ),
    ("two lines of pragma", [("Pragma", "x"), ("Pragma", "no-cache=1")], { $0.noCache = true }),
    ("pragma that says something else", [("Pragma", "\"no-cache\", no-store")], { _ in }),
    ("max-age unreadable", [("Cache-Control", "max-age=x")], { $0.maxAgeSeconds = 0 }),
    ("pragma", [("Pragma", "x, No-Cache")], { $0.noCache = true }),
    (
      "pragma beside Cache-Control", [("Pragma", "no-cache"), ("Cache-Control", "max-age=5")],
      { $0.maxAgeSeconds = 5 }
    ),
    (
      "pragma beside an empty Cache-Control", [("Pragma", "no-cache"), ("Cache-Control", "")],
      { _ in }
    ),
  ]

  @Test(arguments: table.indices)
  func aRequestAsks(_ row: Int) {
    let (name, lines, change) = Self.table[row]
    var expected = RequestDirectives()
    change(&expected)
    #expect(RequestDirectives(Fields(lines)) == expected, "\(name)")
  }

  @Test(arguments: ClientWords.named.indices)
  func onlyTheWordsThatTheRouteAllowsCount(_ index: Int) {
    let all = RequestDirectives(
      Fields([
        (
          "Cache-Control",
          "no-cache, no-store, max-age=1, max-stale=2, min-fresh=3, only-if-cached"
        )
      ]))
    let (name, word) = ClientWords.named[index]
    let value = ["max-age": "=1", "max-stale": "=2", "min-fresh": "=3"][name] ?? ""
    #expect(all.keeping(word) == RequestDirectives(Fields([("Cache-Control", name + value)])))
    #expect(all.keeping([]) == RequestDirectives())
    #expect(all.keeping(.all) == all)
  }
}

struct TargetedCacheControlTests {
  @Test(
    arguments: [
      ("the first of the list wins", "max-age=10", "max-age=20", 10, true),
      ("the second where the first is absent", nil, "max-age=20", 20, true),
      ("empty counts as absent", "", "", 1, false),
      ("malformed is passed over", "max-age=10,", "max-age=20", 20, true),
      ("upper case is malformed", "Max-Age=10", nil, 1, false),
      ("parameters do not count", "max-age=10;a=\"x\";b, foo=(1 2);c", nil, 10, true),
      ("a wrong type is 0", "max-age=\"x\"", nil, 0, true),
      ("a number in quotes is a wrong type", "max-age=\"10\"", nil, 0, true),
      ("a decimal is 0", "max-age=1.5", nil, 0, true),
      (
        "other values pass", "a=?1, b=:YQ==:, c=tok/en, d=-1, max-age=9, e=\"a\\\"b\"", nil, 9, true
      ),
      ("spaces beside the sign are malformed", "max-age = 10", nil, 1, false),
      ("an open string is malformed", "a=\"x, max-age=10", nil, 1, false),
      ("of two members of one key the last counts", "max-age=10, a, max-age=30", nil, 30, true),
      ("the last one, of a wrong type, counts too", "max-age=10, max-age=x", nil, 0, true),
      ("a date passes", "a=@1659578233, max-age=9, b=@-1", nil, 9, true),
      ("a date is no decimal", "a=@1.5, max-age=9", nil, 1, false),
      ("a date needs digits", "a=@, max-age=9", nil, 1, false),
      ("a display string passes", "a=%\"f%c3%bc, b\", max-age=9", nil, 9, true),
      ("a display string in capitals is malformed", "a=%\"%C3\", max-age=9", nil, 1, false),
      ("an open display string is malformed", "a=%\"x, max-age=9", nil, 1, false),
      ("bytes are base64", "a=:YQ*=:, max-age=9", nil, 1, false),
      ("an integer has at most 15 digits", "a=1234567890123456, max-age=9", nil, 1, false),
      ("a decimal has at most 12 before the point", "a=1234567890123.1, max-age=9", nil, 1, false),
      ("a decimal has at most 3 behind it", "a=1.2345, max-age=9", nil, 1, false),
      ("a boolean is 0 or 1", "a=?2, max-age=9", nil, 1, false),
      ("a key begins with a small letter", "1a, max-age=9", nil, 1, false),
      ("an escape is of a quote or a backslash", "a=\"\\x\", max-age=9", nil, 1, false),
      ("members are parted by commas", "a max-age=9", nil, 1, false),
      ("tabs may stand beside a comma", "a\t,\tmax-age=9", nil, 9, true),
      ("a sign alone is no number", "a=-, max-age=9", nil, 1, false),
      ("too large a lifetime saturates", "max-age=99999999999", nil, 2_147_483_648, true),
      ("an open list is malformed", "a=(1 2, max-age=10", nil, 1, false),
    ] as [(String, String?, String?, Int64, Bool)])
  func aTargetedFieldTakesThePlaceOfCacheControl(
    _ name: String, _ larder: String?, _ cdn: String?, _ maxAge: Int64, _ targeted: Bool
  ) {
    var fields = Fields([("Cache-Control", "max-age=1, no-store")])
    if let larder { fields.append("Larder-Cache-Control", larder) }
    if let cdn { fields.append("CDN-Cache-Control", cdn) }
    let found = ResponseDirectives(
      fields, targeted: ["larder-cache-control", "CDN-Cache-Control"])
    #expect(found.maxAgeSeconds == maxAge)
    #expect(found.isTargeted == targeted)
    #expect(found.noStore == !targeted)
  }

  /// RFC 9213 §2.1: a dictionary is read over all its lines.
  @Test func severalLinesAreOneDictionary() {
    let fields = Fields([
      ("CDN-Cache-Control", "max-age=10, private=\"x-a\""), ("Cache-Control", "max-age=1"),
      ("cdn-cache-control", "max-age=20"),
    ])
    let found = ResponseDirectives(fields, targeted: ["CDN-Cache-Control"])
    #expect(found.maxAgeSeconds == 20)
    #expect(found.fieldsNotStored == [Array("x-a".utf8)])
    #expect(!found.isPrivate)
  }
}
