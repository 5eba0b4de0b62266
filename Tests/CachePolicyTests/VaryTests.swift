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
}
