import CachePolicy
import Testing

/// Reading `Range` and fitting it to a body (RFC 9110 §14.1, §14.2).
struct ByteRangeTests {
  static func parse(_ value: String, rangesMax: Int = 16) -> [ByteRange]? {
    let bytes = Array(value.utf8)
    return ByteRange.parse(bytes.span, rangesMax: rangesMax)
  }

  @Test(
    arguments: [
      ("bytes=0-4", [0..<5]), ("BYTES=0-0", [0..<1]), ("bytes=5-", [5..<10]),
      ("bytes=-3", [7..<10]), ("bytes=-30", [0..<10]), ("bytes=0-99", [0..<10]),
      ("bytes=9-9", [9..<10]), ("bytes=10-", []), ("bytes=10-20", []), ("bytes=-0", []),
      ("bytes=0-1, 4-5 ,-1", [0..<2, 4..<6, 9..<10]), ("bytes=0-1,,20-30", [0..<2]),
      ("bytes=99999999999999999999999-", []), ("bytes=1-99999999999999999999999", [1..<10]),
      ("bytes=-99999999999999999999999", [0..<10]), (" bytes=1-2 ", [1..<3]),
    ] as [(String, [Range<UInt64>])])
  func rangesFitTheBody(_ value: String, _ ranges: [Range<UInt64>]) throws {
    let parsed = try #require(Self.parse(value))
    #expect(parsed.compactMap { $0.resolved(length: 10) } == ranges)
  }

  @Test(arguments: [
    "", "bytes", "bytes=", "bytes=,", "bytes=-", "bytes=a-b", "bytes=1", "bytes=5-4", "items=0-1",
    "bytes 0-1", "bytes=0-1-2", "bytes=+0-1", "bytes=0 - 1", "bytes=0-1;5-6", "bytes=0-1, x",
    "bytes=" + (0...16).map { "\($0)-\($0)" }.joined(separator: ","),
  ])
  func whatIsNotUnderstoodIsIgnored(_ value: String) {
    #expect(Self.parse(value) == nil)
  }

  @Test func asManyRangesAsTheLimitAreRead() {
    let value = "bytes=" + (0..<16).map { "\($0)-\($0)" }.joined(separator: ",")
    #expect(Self.parse(value)?.count == 16)
    #expect(Self.parse(value, rangesMax: 15) == nil)
  }

  @Test(
    arguments: [
      ([], nil), (["bytes=0-1"], [.closed(first: 0, last: 1)]),
      (["bytes=0-1", "bytes=0-1"], nil), (["bytes=0-1", "bytes=4-5"], nil), (["x=0-1"], nil),
    ] as [([String], [ByteRange]?)])
  func oneLineCountsAndSeveralAreNone(_ values: [String], _ ranges: [ByteRange]?) {
    let request = Fields(values.map { ("Range", $0) })
    #expect(ByteRange.requested(in: request, rangesMax: 16) == ranges)
  }

  @Test func anEmptyBodyHasNoRange() {
    let all: [ByteRange] = [.from(first: 0), .closed(first: 0, last: 0), .suffix(count: 1)]
    #expect(all.compactMap { $0.resolved(length: 0) }.isEmpty)
  }

  @Test func theLargestNumbersDoNotOverflow() {
    let last = ByteRange.closed(first: 0, last: .max).resolved(length: .max)
    #expect(last == 0..<UInt64.max)
    #expect(last?.byteCount == .max)
  }
}

/// Reading and writing `Content-Range` (RFC 9110 §14.4).
struct ContentRangeTests {
  static func read(_ value: String) -> ContentRange? {
    let bytes = Array(value.utf8)
    return ContentRange(bytes.span)
  }

  @Test(
    arguments: [
      ("bytes 7-9/10", 7..<10, 10), ("bytes 0-0/1", 0..<1, 1), ("BYTES 0-0/*", 0..<1, nil),
      ("bytes 0-18446744073709551613/*", 0..<18_446_744_073_709_551_614, nil),
    ] as [(String, Range<UInt64>, UInt64?)])
  func aPartSaysWhatItIs(_ value: String, _ bytes: Range<UInt64>, _ length: UInt64?) {
    let found = Self.read(value)
    #expect(found == ContentRange(bytes: bytes, completeLength: length))
    #expect(found?.value.lowercased() == value.lowercased())
  }

  @Test(arguments: [
    "", "bytes", "bytes */10", "bytes 0-4", "bytes 0-4/", "bytes 4-0/10", "bytes 0-10/10",
    "bytes 0-4/x", "bytes a-4/10", "bytes -4/10", "bytes 0-/10", "bytes=0-4/10", "items 0-4/10",
    "bytes  0-4/10", "bytes 0-4/10 ", "bytes 0-4/10/11", "bytes 0-4/**",
    "bytes 0-99999999999999999999999/*",
  ])
  func whatIsNoPartIsNotRead(_ value: String) { #expect(Self.read(value) == nil) }

  @Test func anUnsatisfiedRangeNamesTheWhole() {
    #expect(ContentRange.unsatisfied(length: 10) == "bytes */10")
  }
}
