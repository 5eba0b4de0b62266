import CachePolicy
import Testing

struct EntityTagTests {
  @Test(arguments: [
    ("\"a\"", "\"a\"", true, true), ("\"a\"", "\"b\"", false, false),
    ("W/\"a\"", "\"a\"", true, false), ("\"a\"", "W/\"a\"", true, false),
    ("W/\"a\"", "W/\"a\"", true, false), ("\"\"", "\"\"", true, true),
    ("\"A\"", "\"a\"", false, false), ("a", "a", false, false), ("w/\"a\"", "\"a\"", false, false),
    ("\"a", "\"a", false, false), ("\"a b\"", "\"a b\"", false, false),
    ("\"a,b\"", "\"a,b\"", true, true), ("\"a\\\"", "\"a\\\"", true, true),
    ("*", "*", false, false), ("", "", false, false), ("W/", "W/", false, false),
  ])
  func tagsCompareWeaklyAndStrongly(
    _ one: String, _ other: String, _ weakly: Bool, _ strongly: Bool
  ) {
    let (left, right) = (Array(one.utf8), Array(other.utf8))
    let foundWeakly = EntityTag.list(left.span, hasWeakly: right.span)
    let foundStrongly = EntityTag.equalStrongly(left.span, right.span)
    #expect(foundWeakly == weakly)
    #expect(foundStrongly == strongly)
  }

  @Test(arguments: [
    ("\"x\", W/\"a\" ,\"y\"", true), ("\"x\",,\"a\"", true), ("x, \"a\"", true),
    ("\"x, \"a\"", false), ("\"x\\\", \"a\"", true), (" \"a\" ", true), ("\"b\", \"c\"", false),
  ])
  func aListIsSearchedToItsEnd(_ list: String, _ has: Bool) {
    let (left, right) = (Array(list.utf8), Array("\"a\"".utf8))
    let found = EntityTag.list(left.span, hasWeakly: right.span)
    #expect(found == has)
  }
}

struct ByteRangeTests {
  @Test(
    arguments: [
      ("bytes=0-4", [0..<5]), ("BYTES=0-0", [0..<1]), ("bytes=5-", [5..<10]),
      ("bytes=-3", [7..<10]), ("bytes=-30", [0..<10]), ("bytes=0-99", [0..<10]),
      ("bytes=9-9", [9..<10]), ("bytes=10-", []), ("bytes=10-20", []), ("bytes=-0", []),
      ("bytes=0-1, 4-5 ,-1", [0..<2, 4..<6, 9..<10]), ("bytes=0-1,,20-30", [0..<2]),
      ("bytes=99999999999999999999999-", []), ("bytes=1-99999999999999999999999", [1..<10]),
      (" bytes=1-2 ", [1..<3]),
    ] as [(String, [Range<UInt64>])])
  func rangesFitTheBody(_ value: String, _ ranges: [Range<UInt64>]) throws {
    let bytes = Array(value.utf8)
    let found = ByteRange.parse(bytes.span)
    let parsed = try #require(found)
    #expect(ByteRange.resolve(parsed, length: 10) == ranges)
  }

  @Test(arguments: [
    "", "bytes", "bytes=", "bytes=,", "bytes=-", "bytes=a-b", "bytes=1", "bytes=5-4", "items=0-1",
    "bytes 0-1", "bytes=0-1-2", "bytes=+0-1", "bytes=0 - 1", "bytes=0-1;5-6", "bytes=0-1, x",
    "bytes=" + (0...16).map { "\($0)-\($0)" }.joined(separator: ","),
  ])
  func whatIsNotUnderstoodIsIgnored(_ value: String) {
    let bytes = Array(value.utf8)
    #expect(ByteRange.parse(bytes.span) == nil)
  }

  @Test func anEmptyBodyHasNoRange() {
    let all: [ByteRange] = [.from(first: 0), .closed(first: 0, last: 0), .suffix(count: 1)]
    #expect(ByteRange.resolve(all, length: 0).isEmpty)
  }

  @Test func contentRangeNamesBothEndsAndTheWhole() {
    #expect(ByteRange.contentRange(7..<10, length: 10) == "bytes 7-9/10")
    #expect(ByteRange.contentRangeUnsatisfied(length: 10) == "bytes */10")
    let last = ByteRange.closed(first: 0, last: .max).resolved(length: .max)
    #expect(last == 0..<UInt64.max)
  }
}
