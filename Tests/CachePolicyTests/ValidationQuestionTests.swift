import CachePolicy
import Testing

/// What an origin is asked about stored copies, and which of them its answer means.
struct ValidationQuestionTests {
  typealias Candidate = ValidationQuestion.Candidate

  /// "1 \"a\" =m": entry 1 with this tag and date, selectable where a star stands behind the number.
  private static func candidate(_ text: String) -> Candidate {
    let parts = text.split(separator: " ")
    let number = parts[0]
    let tag = parts.dropFirst().first { !$0.hasPrefix("=") } ?? ""
    let date = parts.first { $0.hasPrefix("=") }?.dropFirst() ?? ""
    return Candidate(
      entryID: UInt64(number.filter(\.isNumber))!, isSelectable: number.hasSuffix("*"),
      entityTag: Array(tag.utf8), lastModified: Array(date.utf8))
  }

  private static func question(
    _ copies: [String], tagsMax: Int = 3, tagBytesMax: Int = 40
  ) -> ValidationQuestion? {
    ValidationQuestion(
      about: copies.map(candidate), tagsMax: tagsMax, tagBytesMax: tagBytesMax)
  }

  @Test(
    arguments: [
      ("a tag", ["1* \"a\""], [1], "\"a\"", nil),
      ("a weak tag", ["1* W/\"a\""], [1], "W/\"a\"", nil),
      ("a date", ["1* =m"], [1], nil, "m"),
      ("both", ["1* \"a\" =m"], [1], "\"a\"", "m"),
      ("another variant", ["1 \"a\" =m"], [1], "\"a\"", nil),
      ("another's date means nothing", ["1 =m"], nil, nil, nil),
      ("the selected one first", ["3 \"c\"", "1* \"a\" =m"], [1, 3], "\"a\", \"c\"", "m"),
      (
        "the most recent others", ["5* \"e\"", "4 \"d\"", "3 \"c\"", "2 \"b\""], [5, 4, 3],
        "\"e\", \"d\", \"c\"", nil
      ),
      (
        "one tag of two copies", ["3* \"a\"", "2 \"a\"", "1 \"b\""], [3, 2, 1], "\"a\", \"b\"", nil
      ),
      ("weak and strong are two", ["3* \"a\"", "2* W/\"a\""], [3, 2], "\"a\", W/\"a\"", nil),
      ("a weak tag of another variant", ["3* \"a\"", "2 W/\"b\""], [3], "\"a\"", nil),
      ("a weak tag of another variant alone", ["2 W/\"b\""], nil, nil, nil),
      ("a date alone stays alone", ["2* =m", "1 \"a\""], [2], nil, "m"),
      ("a tag without quotes stays alone", ["2* a", "1 \"b\""], [2], "a", nil),
      ("another's without quotes", ["2* \"a\"", "1 b"], [2], "\"a\"", nil),
      ("no validator at all", ["1*", "2"], nil, nil, nil),
      ("no validator of the selected", ["2*", "1 \"a\""], [1], "\"a\"", nil),
      ("none", [], nil, nil, nil),
      (
        "a second selectable one counts as another", ["2* \"b\" =m", "1* \"a\" =n"], [2, 1],
        "\"b\", \"a\"", "m"
      ),
    ] as [(String, [String], [UInt64]?, String?, String?)])
  func anOriginIsAskedByTheValidatorsOfWhatIsStored(
    _ name: String, _ copies: [String], _ asked: [UInt64]?, _ tags: String?, _ since: String?
  ) {
    let question = Self.question(copies)
    #expect(question?.entryIDs == asked)
    var request = Fields([
      ("If-None-Match", "\"client\""), ("If-Modified-Since", "client"), ("Range", "bytes=0-1"),
      ("If-Range", "x"), ("Accept", "a"),
    ])
    guard let question else { return }
    question.apply(to: &request)
    #expect(request["If-None-Match"] == tags)
    #expect(request["If-Modified-Since"] == since)
    #expect(request["Range"] == nil && request["If-Range"] == nil && request["Accept"] == "a")
  }

  @Test func aQuestionIsBoundedInBytes() {
    let copies = ["3* \"aaaaaaaaaa\"", "2 \"bbbbbbbbbbbbbbbbbbbb\"", "1 \"cc\""]
    // 12 bytes, a comma and a space, 22 bytes; then two more and 4.
    #expect(Self.question(copies, tagBytesMax: 42)?.entryIDs == [3, 2, 1])
    #expect(Self.question(copies, tagBytesMax: 41)?.entryIDs == [3, 2])
    #expect(Self.question(copies, tagBytesMax: 35)?.entryIDs == [3, 1])
    #expect(Self.question(copies, tagBytesMax: 1)?.entryIDs == [3])
    #expect(Self.question(copies, tagBytesMax: 1)?.entityTags == Array("\"aaaaaaaaaa\"".utf8))
  }

  private static let rows: [(String, [String], [(String, String)], Int?, [Int])] = [
    // Strong tags.
    ("the same tag", ["1* \"a\""], [("ETag", "\"a\"")], 0, [0]),
    ("another tag", ["1* \"a\""], [("ETag", "\"b\"")], nil, []),
    ("case of a tag", ["1* \"a\""], [("ETag", "\"A\"")], nil, []),
    (
      "every selectable copy with it", ["3* \"a\"", "2* \"b\"", "1* \"a\""], [("ETag", "\"a\"")], 0,
      [0, 2]
    ),
    ("another variant", ["2* \"b\"", "1 \"a\""], [("ETag", "\"a\"")], 1, []),
    ("the selectable one of two", ["2 \"a\"", "1* \"a\""], [("ETag", "\"a\"")], 1, [1]),
    ("a weak copy for a strong tag", ["1* W/\"a\""], [("ETag", "\"a\"")], 0, [0]),
    ("a strong one goes before it", ["2* W/\"a\"", "1* \"a\""], [("ETag", "\"a\"")], 1, [1]),
    // Weak tags.
    ("weakly the same", ["1* \"a\""], [("ETag", "W/\"a\"")], 0, [0]),
    ("the most recent", ["2* W/\"a\"", "1* W/\"a\""], [("ETag", "W/\"a\"")], 0, [0]),
    ("the selectable one", ["2 W/\"a\"", "1* W/\"a\""], [("ETag", "W/\"a\"")], 1, [1]),
    (
      "a weak tag of another variant", ["2* \"b\"", "1 W/\"a\""], [("ETag", "W/\"a\"")], nil, []
    ),
    ("weakly the same of another", ["2* \"b\"", "1 \"a\""], [("ETag", "W/\"a\"")], nil, []),
    // Tags that are none.
    ("the same without quotes", ["1* a"], [("ETag", "a")], 0, [0]),
    ("another without quotes", ["1* a"], [("ETag", "b")], nil, []),
    ("a tag for a copy without", ["1* =m"], [("ETag", "\"b\"")], nil, []),
    ("an empty tag says nothing", ["1* \"a\""], [("ETag", "")], 0, [0]),
    // Dates.
    ("the same date", ["1* =m"], [("Last-Modified", "m")], 0, [0]),
    ("another date", ["1* =m"], [("Last-Modified", "n")], nil, []),
    ("the most recent with it", ["2* =m", "1* =m"], [("Last-Modified", "m")], 0, [0]),
    ("the older one with it", ["2* =n", "1* =m"], [("Last-Modified", "m")], 1, [1]),
    ("a date means no other variant", ["1 \"a\" =m"], [("Last-Modified", "m")], nil, []),
    ("a date beside a tag of the copy's", ["1* \"a\""], [("Last-Modified", "n")], 0, [0]),
    ("another date beside a tag", ["1* \"a\" =m"], [("Last-Modified", "n")], nil, []),
    (
      "a tag goes before a date", ["2* \"b\" =m", "1* \"a\" =n"],
      [("ETag", "\"a\""), ("Last-Modified", "m")], 1, [1]
    ),
    // Nothing said.
    ("the one asked about", ["1* \"a\""], [], 0, [0]),
    ("one of two, nobody knows which", ["2* \"b\"", "1 \"a\""], [], nil, []),
    ("another variant needs its tag", ["1 \"a\""], [], nil, []),
  ]

  @Test(arguments: rows)
  func aNotModifiedMeansTheCopiesWithItsValidators(
    _ name: String, _ copies: [String], _ notModified: [(String, String)], _ answer: Int?,
    _ updated: [Int]
  ) throws {
    let question = try #require(Self.question(copies))
    let found = question.confirmed(
      by: Fields(notModified), among: copies.map(Self.candidate))
    #expect(found?.answer == answer)
    #expect(found?.updated ?? [] == updated)
  }

  @Test func aCopyThatLandedMeanwhileMayBeMeantByItsTagAlone() throws {
    let question = try #require(Self.question(["1* \"a\""]))
    let landed = [Self.candidate("2* \"b\"")]
    let byTag = question.confirmed(by: Fields([("ETag", "\"b\"")]), among: landed)
    #expect(byTag == ValidationQuestion.Confirmed(answer: 0, updated: [0]))
    #expect(question.confirmed(by: Fields(), among: landed) == nil)
  }

  @Test(
    arguments: [
      ("nothing to compare", [], nil, [], .same),
      ("the length", [], 5, [], .same), ("another length", [], 6, [], .differs),
      ("the tag", [("ETag", "\"a\"")], 5, [("ETag", "\"a\"")], .same),
      ("weakly the tag", [("ETag", "W/\"a\"")], nil, [("ETag", "\"a\"")], .same),
      ("a tag without quotes", [("ETag", "a")], nil, [("ETag", "a")], .same),
      ("another tag", [("ETag", "\"b\"")], 5, [("ETag", "\"a\"")], .differs),
      ("a tag of a copy without", [("ETag", "\"b\"")], 5, [], .differs),
      ("the tag and another length", [("ETag", "\"a\"")], 6, [("ETag", "\"a\"")], .differs),
      ("the date", [("Last-Modified", "m")], nil, [("Last-Modified", "m")], .same),
      ("another date", [("Last-Modified", "n")], 5, [("Last-Modified", "m")], .differs),
      (
        "the tag and another date", [("ETag", "\"a\""), ("Last-Modified", "n")], nil,
        [("ETag", "\"a\""), ("Last-Modified", "m")], .differs
      ),
      (
        "the tag without the date", [("ETag", "\"a\"")], nil,
        [("ETag", "\"a\""), ("Last-Modified", "m")], .same
      ),
      (
        "the tag, in another coding", [("ETag", "\"a\"")], 9,
        [("ETag", "W/\"a\""), ("Content-Encoding", "gzip")], .same
      ),
      ("another coding alone", [], 5, [("Content-Encoding", "gzip")], .unknown),
      (
        "another length in the same coding", [("Content-Encoding", "gzip")], 6,
        [("Content-Encoding", "gzip")], .differs
      ),
      ("a validator not shown", [], nil, [("ETag", "\"a\"")], .unknown),
      ("a validator not shown, the length", [], 5, [("Last-Modified", "m")], .unknown),
    ] as [(String, [(String, String)], UInt64?, [(String, String)], ValidationQuestion.HeadVerdict)]
  )
  func aHeadFreshensOrContradictsACopy(
    _ name: String, _ head: [(String, String)], _ length: UInt64?, _ stored: [(String, String)],
    _ verdict: ValidationQuestion.HeadVerdict
  ) {
    let found = ValidationQuestion.head(
      Fields(head), contentLength: length, stored: Fields(stored), bodyLength: 5)
    #expect(found == verdict)
  }
}
