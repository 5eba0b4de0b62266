import CachePolicy
import Testing

struct VaryTests {
  private static func block(
    _ vary: [String], _ request: [(String, String)], ignore: Bool = false
  ) -> [UInt8]? {
    Vary.selectingBlock(
      response: Fields(vary.map { ("Vary", $0) }), request: Fields(request), ignore: ignore)
  }

  @Test(
    arguments: [
      ("nothing varies", [], [("A", "1")], [("A", "2")], true),
      ("an empty list", [" , "], [("A", "1")], [("A", "2")], true),
      ("the same value", ["a"], [("A", "1")], [("a", "1")], true),
      ("another value", ["a"], [("A", "1")], [("A", "2")], false),
      ("case of a value", ["a"], [("A", "x")], [("A", "X")], false),
      ("absent in both", ["a"], [], [("B", "1")], true),
      ("absent in one", ["a"], [("A", "")], [], false),
      ("absent in the other", ["a"], [], [("A", "")], false),
      ("a longer value", ["a"], [("A", "1")], [("A", "12")], false),
      ("a shorter value", ["a"], [("A", "12")], [("A", "1")], false),
      ("lines or one list", ["a"], [("A", "1"), ("A", "2")], [("A", "1, 2")], true),
      ("one list or lines", ["a"], [("A", "1, 2")], [("A", "1"), ("A", "2")], true),
      ("one line of two", ["a"], [("A", "1"), ("A", "2")], [("A", "1")], false),
      ("order of lines", ["a"], [("A", "1"), ("A", "2")], [("A", "2"), ("A", "1")], false),
      ("all of several", ["a, B"], [("A", "1"), ("B", "2")], [("B", "2"), ("A", "1")], true),
      ("one of several", ["a", "b"], [("A", "1"), ("B", "2")], [("A", "1"), ("B", "3")], false),
      (
        "values do not run over", ["a, b"], [("A", "1"), ("B", "")], [("A", ""), ("B", "1")], false
      ),
      ("known fields", ["Origin"], [("Origin", "https://a")], [("Origin", "https://b")], false),
      ("other fields do not count", ["a"], [("A", "1"), ("C", "1")], [("A", "1")], true),
    ] as [(String, [String], [(String, String)], [(String, String)], Bool)])
  func aCopyIsForRequestsWithTheSameFields(
    _ name: String, _ vary: [String], _ first: [(String, String)], _ second: [(String, String)],
    _ same: Bool
  ) throws {
    let block = try #require(Self.block(vary, first))
    let other = try #require(Self.block(vary, second))
    let matches = Vary.matches(block: block.span, request: Fields(second))
    let matchesItself = Vary.matches(block: block.span, request: Fields(first))
    #expect(matches == same)
    #expect(matchesItself)
    #expect((block == other) == same)
  }

  @Test(arguments: [
    ("gzip", "gzip", true), ("gzip, br", "br;q=0.5,GZIP", true), ("gzip", "x-gzip", true),
    ("gzip", "gzip, br", false), ("gzip, br", "gzip", false), ("gzip", "", false),
    ("", "identity", true), ("gzip", "gzip, identity;q=0.5", true),
    ("gzip", "gzip, identity;q=0", false), ("gzip", "gzip, br;q=0", true),
    ("gzip", "gzip, br;q=0.000", true), ("gzip, br", "gzip, br;q=0.001", true),
    ("gzip, deflate, br, zstd", "zstd, br, deflate, gzip", true), ("gzip", "*", false),
    ("*", "*", true), ("*", "*;q=0.5", false), ("gzip, foo", "gzip", false),
    ("gzip, foo", "gzip, foo", true), ("gzip;q=2", "gzip", false),
    ("gzip;q=0.0001", "gzip", false), ("gzip;q=1.001", "gzip", false), ("gzip;q=", "gzip", false),
    ("gzip;level=1", "gzip", false), ("gzip ; Q=1.000", "gzip", true), ("gzip;q=1.", "gzip", true),
    ("gzip, gzip;q=0", "", true),
  ])
  func acceptEncodingIsTheSetOfCodingsItTakes(_ one: String, _ other: String, _ same: Bool) throws {
    let (first, second) = ([("Accept-Encoding", one)], [("accept-encoding", other)])
    let block = try #require(Self.block(["Accept-Encoding"], first))
    let found = Vary.matches(block: block.span, request: Fields(second))
    #expect(found == same)
    let back = try #require(Self.block(["Accept-Encoding"], second))
    #expect((back == block) == same)
  }

  private static let languages: [(String, String, Bool)] = [
    ("en", "en", true), ("en", "de", false), ("en, de", "EN,DE", true), ("en, de", "de, en", true),
    ("en,de", " en ,\tde ", true), ("en, de;q=0.5", "de ; Q=0.50, en;q=1", true),
    ("en, de;q=0.5", "de, en;q=0.5", false), ("en, de;q=0.5", "en, de", false),
    ("en, de;q=0.5", "en, de;q=0.501", false), ("en, de", "en", false), ("en", "en, de", false),
    ("en, en", "en", true), ("en", "en, , en", true), ("en-GB", "en", false), ("en", "e", false),
    ("en, *;q=0.1", "*;q=0.1, en", true), ("*", "en", false), ("en;q=0", "en", false),
    ("en;q=0", "", false), ("", " , ", true), ("", "en", false), ("en_GB", "en_GB", true),
    ("en_GB, de", "de, en_GB", false), ("en;q=2", "en;q=2", true), ("en;q=2", "en", false),
    ("en;q=1.001", "en", false), ("en;level=1", "en", false), ("en;q=0.0001", "en;q=0", false),
  ]

  @Test(arguments: languages)
  func acceptLanguageIsTheSetOfItsRangesAndWeights(
    _ one: String, _ other: String, _ same: Bool
  ) throws {
    for (left, right) in [(one, other), (other, one)] {
      let (first, second) = ([("Accept-Language", left)], [("accept-language", right)])
      let block = try #require(Self.block(["Accept-Language"], first))
      let found = Vary.matches(block: block.span, request: Fields(second))
      #expect(found == same)
      let itself = Vary.matches(block: block.span, request: Fields(first))
      #expect(itself)
      let back = try #require(Self.block(["Accept-Language"], second))
      #expect((back == block) == same)
    }
  }

  @Test(arguments: [(24, true), (25, false)])
  func moreLanguagesThanABrowserSendsAreComparedAsText(_ count: Int, _ same: Bool) throws {
    let names = (0..<count).map { "x-\($0)" }
    let one = names.joined(separator: ", ")
    let other = names.reversed().joined(separator: ", ")
    let block = try #require(Self.block(["Accept-Language"], [("Accept-Language", one)]))
    let found = Vary.matches(block: block.span, request: Fields([("Accept-Language", other)]))
    #expect(found == same)
    let itself = Vary.matches(block: block.span, request: Fields([("Accept-Language", one)]))
    #expect(itself)
  }

  private static let media: [(String, String, Bool)] = [
    ("text/html", "text/html", true), ("text/html", "text/plain", false),
    ("text/html, */*", "*/* , TEXT/HTML", true),
    ("text/html,*/*;q=0.8", "*/*; Q=0.80,text/html", true),
    ("text/html, */*;q=0.8", "text/html, */*;q=0.9", false), ("a/b", "a/b, a/b", true),
    ("a/b;q=1", "a/b", true), ("a/b;q=0", "a/b", false), ("a/b", "a/b, c/d", false),
    ("a/b;Level=1", "a/b ; level=1", true), ("a/b;v=x", "a/b;v=X", false),
    ("a/b;v=1", "a/b", false), ("a/b;v=1;w=2", "a/b;w=2;v=1", false),
    ("a/b;v=1;q=0.5", "a/b;V=1;q=0.5", true), ("a/b;v=1;q=0.5", "a/b;v=1", false),
    ("a/bc", "a/b", false), ("a/b;v=12", "a/b;v=1", false), ("", " , ", true), ("", "a/b", false),
    // Beyond the grammar: as text.
    ("a/b;v=\"x\"", "a/b;v=\"x\"", true), ("a/b;v=\"x\", c/d", "c/d, a/b;v=\"x\"", false),
    ("a/b;q=0.5;x=1", "a/b;q=0.5;X=1", false), ("html", "HTML", false), ("a/b;v", "a/b;V", false),
    ("a/b;", "a/b", false), ("a/b;v =1", "a/b;v=1", false), ("a/b/c", "a/b", false),
    ("a/b;q=2", "a/b", false), ("a b/c", "ab/c", false),
  ]

  @Test(arguments: media)
  func acceptIsTheSetOfItsRangesAndWeights(
    _ one: String, _ other: String, _ same: Bool
  ) throws {
    for (left, right) in [(one, other), (other, one)] {
      let (first, second) = ([("Accept", left)], [("accept", right)])
      let block = try #require(Self.block(["Accept"], first))
      let found = Vary.matches(block: block.span, request: Fields(second))
      #expect(found == same)
      let itself = Vary.matches(block: block.span, request: Fields(first))
      #expect(itself)
      let back = try #require(Self.block(["Accept"], second))
      #expect((back == block) == same)
    }
  }

  @Test(arguments: [(24, true), (25, false)])
  func moreMediaRangesThanABrowserSendsAreComparedAsText(_ count: Int, _ same: Bool) throws {
    let names = (0..<count).map { "x/\($0)" }
    let block = try #require(
      Self.block(["Accept"], [("Accept", names.joined(separator: ", "))]))
    let other = Fields([("Accept", names.reversed().joined(separator: ", "))])
    let found = Vary.matches(block: block.span, request: other)
    #expect(found == same)
  }

  @Test func anAcceptThatIsAbsentIsNotOneThatIsEmpty() throws {
    let block = try #require(Self.block(["Accept"], [("Accept", "")]))
    let absent = Vary.matches(block: block.span, request: Fields())
    #expect(!absent)
  }

  @Test(arguments: ["User-Agent", "Origin", "X-Any"])
  func otherFieldsAreComparedByteForByte(_ name: String) throws {
    let block = try #require(Self.block([name], [(name, "A, b")]))
    for other in ["a, b", "A,b", "b, A"] {
      let found = Vary.matches(block: block.span, request: Fields([(name, other)]))
      #expect(!found)
    }
  }

  /// Whether a copy for the first request may be asked about on behalf of the second.
  @Test(
    arguments: [
      ("another language", ["accept-language"], [("Accept-Language", "en")], [], true),
      ("nothing varies", [], [], [("Cookie", "a")], true),
      ("another cookie", ["cookie"], [("Cookie", "a")], [("Cookie", "b")], false),
      ("no cookie", ["cookie"], [("Cookie", "a")], [], false),
      ("the same cookie", ["cookie"], [("Cookie", "a")], [("Cookie", "a")], true),
      ("another coding", ["accept-encoding"], [("Accept-Encoding", "gzip")], [], false),
      (
        "the same codings", ["accept-encoding"], [("Accept-Encoding", "gzip, br")],
        [("Accept-Encoding", "br,gzip")], true
      ),
      ("another site", ["origin"], [("Origin", "https://a")], [("Origin", "https://b")], false),
      ("another browser", ["user-agent"], [("User-Agent", "a")], [("User-Agent", "b")], true),
      ("another token", ["authorization"], [("Authorization", "a")], [], false),
      ("another unknown field", ["x-key"], [("X-Key", "a")], [("X-Key", "b")], false),
      (
        "the same user in another language", ["cookie, accept"],
        [("Cookie", "a"), ("Accept", "x/y")], [("Cookie", "a"), ("Accept", "z/y")], true
      ),
    ] as [(String, [String], [(String, String)], [(String, String)], Bool)])
  func onlyNegotiationMayDifferWhereATagBringsACopyIntoPlay(
    _ name: String, _ vary: [String], _ first: [(String, String)], _ second: [(String, String)],
    _ may: Bool
  ) throws {
    let block = try #require(Self.block(vary, first))
    let found = Vary.differsInNegotiationAlone(block: block.span, request: Fields(second))
    #expect(found == may)
  }

  @Test func acceptLanguageOfSeveralLinesIsOneSet() throws {
    let block = try #require(
      Self.block(["Accept-Language"], [("Accept-Language", "en"), ("Accept-Language", "de")]))
    let found = Vary.matches(block: block.span, request: Fields([("Accept-Language", "DE, en")]))
    #expect(found)
    let absent = Vary.matches(block: block.span, request: Fields())
    #expect(!absent)
    let empty = try #require(Self.block(["Accept-Language"], [("Accept-Language", "")]))
    let foundAbsent = Vary.matches(block: empty.span, request: Fields())
    #expect(!foundAbsent)
  }

  @Test func acceptEncodingThatIsAbsentIsNotOneThatIsEmpty() throws {
    let block = try #require(Self.block(["Accept-Encoding"], [("Accept-Encoding", "")]))
    let found = Vary.matches(block: block.span, request: Fields())
    #expect(!found)
  }

  @Test(arguments: [["*"], ["accept, *"], ["accept", " * "], ["a b"], ["\"x\""], ["accept;q=1"]])
  func whatNoRequestShowsGivesNoBlock(_ vary: [String]) {
    let response = Fields(vary.map { ("Vary", $0) })
    #expect(Self.block(vary, []) == nil)
    #expect(Vary.isAny(response))
    #expect(Self.block(vary, [], ignore: true) == [])
  }

  @Test func namesAreSortedAndUnique() throws {
    let request = [("A", "1"), ("B", "2")]
    let block = try #require(Self.block(["B, a", "A"], request))
    #expect(block == Self.block(["a, b"], request))
    #expect(!Vary.isAny(Fields([("Vary", "a")])))
  }

  @Test func aDamagedBlockMatchesNothing() throws {
    let request = Fields([("A", "1")])
    let block = try #require(Self.block(["a"], [("A", "1")]))
    for count in 1..<block.count {
      let part = Array(block[..<count])
      let found = Vary.matches(block: part.span, request: request)
      #expect(!found, "the first \(count) bytes")
    }
    let languages = Fields([("Accept-Language", "en, de;q=0.5")])
    let whole = try #require(
      Self.block(["Accept-Language"], [("Accept-Language", "en, de;q=0.5")]))
    for index in whole.indices {
      var changed = whole
      changed[index] ^= 0x41
      let found = Vary.matches(block: changed.span, request: languages)
      #expect(!found, "byte \(index)")
    }
    let media = Fields([("Accept", "a/b;v=1, */*;q=0.5")])
    let wholeMedia = try #require(
      Self.block(["Accept"], [("Accept", "a/b;v=1, */*;q=0.5")]))
    for index in wholeMedia.indices {
      var changed = wholeMedia
      changed[index] ^= 0x41
      let found = Vary.matches(block: changed.span, request: media)
      #expect(!found, "byte \(index)")
    }
    let tooLong: [UInt8] = [1, 0, 0x61, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0x31]
    let found = Vary.matches(block: tooLong.span, request: request)
    #expect(!found)
  }

  @Test func theHashIsZeroForTheEmptyBlockOnly() throws {
    let empty: [UInt8] = []
    let one = try #require(Self.block(["a"], [("A", "1")]))
    let two = try #require(Self.block(["a"], [("A", "2")]))
    let hashes = [Vary.variantHash(empty.span), Vary.variantHash(one.span)]
    #expect(hashes[0] == 0 && hashes[1] != 0)
    let other = Vary.variantHash(two.span)
    #expect(other != hashes[1])
  }

  @Test(arguments: [(64, true), (65, false)])
  func moreNamesThanAnyOriginNeedsAreTakenForAll(_ count: Int, _ isRead: Bool) {
    let value = (0..<count).map { "x-\($0)" }.joined(separator: ", ")
    #expect(Vary.isAny(Fields([("Vary", value)])) == !isRead)
  }
}
