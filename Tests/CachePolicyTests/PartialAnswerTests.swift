import CachePolicy
import Testing

/// Whether an origin's 206 answers what it was asked (RFC 9110 §15.3.7).
struct PartialAnswerTests {
  private static func fault(
    _ range: String?, _ response: [(String, String)], method: Method = .get, length: UInt64? = nil
  ) -> PartialAnswer.Fault? {
    PartialAnswer.fault(
      method: method, request: Fields(range.map { [("Range", $0)] } ?? []),
      response: Fields(response), contentLength: length)
  }

  @Test(
    arguments: [
      ("bytes=2-5", "bytes 2-5/9", nil), ("bytes=2-5", "bytes 2-5/*", nil),
      // Less than was asked for, and more: the client reads Content-Range.
      ("bytes=2-5", "bytes 2-3/9", nil), ("bytes=2-5", "bytes 0-8/9", nil),
      ("bytes=2-5", "bytes 5-5/9", nil), ("bytes=2-5", "bytes 6-8/9", .otherRange),
      ("bytes=2-5", "bytes 0-1/9", .otherRange),
      ("bytes=2-", "bytes 2-8/9", nil), ("bytes=2-", "bytes 0-1/9", .otherRange),
      ("bytes=-3", "bytes 6-8/9", nil), ("bytes=-3", "bytes 0-5/9", .otherRange),
      ("bytes=-30", "bytes 0-8/9", nil), ("bytes=-3", "bytes 0-5/*", nil),
      ("bytes=0-0,8-8", "bytes 8-8/9", nil), ("bytes=0-0,8-8", "bytes 3-4/9", .otherRange),
      ("bytes=2-5", "bytes 5-2/9", .noContentRange), ("bytes=2-5", "bytes */9", .noContentRange),
      ("bytes=2-5", "", .noContentRange), ("bytes=2-5", "items 2-5/9", .noContentRange),
      ("bytes=0-", "bytes 0-18446744073709551613/*", nil),
      // What nobody here understands is for the two of them.
      ("items=2-5", "items 2-5/9", nil), ("bytes=5-2", "bytes 0-1/9", nil),
    ] as [(String, String, PartialAnswer.Fault?)])
  func aPartAnswersItsRange(_ asked: String, _ part: String, _ expected: PartialAnswer.Fault?) {
    #expect(Self.fault(asked, [("Content-Range", part)]) == expected)
  }

  @Test func aPartIsAskedForAndSaysWhatItIsOnce() {
    let part = ("Content-Range", "bytes 2-5/9")
    #expect(Self.fault(nil, [part]) == .unasked)
    #expect(Self.fault("bytes=2-5", []) == .noContentRange)
    #expect(Self.fault("bytes=2-5", [part, part]) == .noContentRange)
    #expect(Self.fault("bytes=2-5", [part], length: 4) == nil)
    #expect(Self.fault("bytes=2-5", [part], length: 5) == .otherLength)
    #expect(Self.fault("bytes=2-5", [], method: .head) == nil)
  }

  @Test(
    arguments: [
      ("bytes=2-5", .multipartForOneRange), ("bytes=0-0,8-8", nil), ("bytes=0-0,", nil),
    ] as [(String, PartialAnswer.Fault?)])
  func severalPartsAreForSeveralRanges(_ asked: String, _ expected: PartialAnswer.Fault?) {
    let expected = asked.hasSuffix(",") ? .multipartForOneRange : expected
    for type in ["multipart/byteranges; boundary=x", "Multipart/ByteRanges;boundary=\"a;b\""] {
      #expect(Self.fault(asked, [("Content-Type", type)], length: 99) == expected)
    }
  }
}
