import CachePolicy
import Support
import Testing

/// What a request for parts gets (RFC 9110 §14.2, §15.3.7, §15.5.17).
struct RangeAnswerTests {
  @Test(
    arguments: [
      ("0-4", .part(0..<5)), ("0-", .part(0..<100)), ("-1", .part(99..<100)),
      ("100-", .unsatisfiable), ("-0", .unsatisfiable), ("100-200,-0", .unsatisfiable),
      // Of several, one is left.
      ("0-4,100-", .part(0..<5)), ("100-,-1", .part(99..<100)),
      // Overlapping, touching, within each other, the same.
      ("0-4,3-9", .part(0..<10)), ("0-4,5-9", .part(0..<10)), ("5-9,0-4", .part(0..<10)),
      ("0-,5-9,-3", .part(0..<100)), ("7-7,7-7,7-7", .part(7..<8)),
      // A gap of one byte is a gap.
      ("0-4,6-9", .parts([0..<5, 6..<10])),
      // In the order asked for; what is put together goes where its first member was.
      ("50-59,0-4", .parts([50..<60, 0..<5])), ("0-4,50-59,3-9", .parts([0..<10, 50..<60])),
      ("50-59,0-4,58-70,90-", .parts([50..<71, 0..<5, 90..<100])),
      ("-1,0-0", .parts([99..<100, 0..<1])), ("0-0,200-,-1", .parts([0..<1, 99..<100])),
    ] as [(String, RangeAnswer)])
  func aBodyOfAHundredBytes(_ asked: String, _ answer: RangeAnswer) throws {
    let ranges = try #require(ByteRangeTests.parse("bytes=" + asked))
    #expect(RangeAnswer.decide(ranges, length: 100) == answer)
  }

  @Test(
    arguments: [
      ("0-", .unsatisfiable), ("0-0", .unsatisfiable), ("-0", .unsatisfiable), ("-5", .whole),
      ("0-0,-5", .whole),
    ] as [(String, RangeAnswer)])
  func anEmptyBody(_ asked: String, _ answer: RangeAnswer) throws {
    let ranges = try #require(ByteRangeTests.parse("bytes=" + asked))
    #expect(RangeAnswer.decide(ranges, length: 0) == answer)
  }

  @Test(
    arguments: [
      ("0-4", 5, .part(0..<5), .part(0..<5)), ("0-4", 4, .wait, .whole), ("0-4", 0, .wait, .whole),
      ("3-3", 100, .part(3..<4), .part(3..<4)), ("0-99999999999999999999", 100, .wait, .whole),
      ("0-", 100, .whole, .whole), ("50-", 10, .whole, .whole), ("-5", 100, .whole, .whole),
      ("0-1,4-5", 100, .whole, .whole),
    ] as [(String, UInt64, RangeAnswer.WhileGrowing, RangeAnswer.WhileGrowing)])
  func aBodyThatStillGrows(
    _ asked: String, _ arrived: UInt64, _ patient: RangeAnswer.WhileGrowing,
    _ impatient: RangeAnswer.WhileGrowing
  ) throws {
    let ranges = try #require(ByteRangeTests.parse("bytes=" + asked))
    #expect(RangeAnswer.decide(ranges, arrivedBytes: arrived, mayWait: true) == patient)
    #expect(RangeAnswer.decide(ranges, arrivedBytes: arrived, mayWait: false) == impatient)
  }

  /// Against a plain model: every byte that was asked for is there once, and no other.
  @Test func partsHoldWhatWasAskedForOnce() {
    var dice = Dice(seed: 14)
    for _ in 0..<2_000 {
      let length = UInt64.random(in: 0..<40, using: &dice)
      let ranges: [ByteRange] = (0..<Int.random(in: 1..<7, using: &dice)).map { _ in
        let first = UInt64.random(in: 0..<45, using: &dice)
        switch Int.random(in: 0..<3, using: &dice) {
        case 0: return .from(first: first)
        case 1: return .suffix(count: first)
        default: return .closed(first: first, last: first + UInt64.random(in: 0..<10, using: &dice))
        }
      }
      let wanted = Set(ranges.flatMap { Array($0.resolved(length: length) ?? 0..<0) })
      let parts: [Range<UInt64>]
      switch RangeAnswer.decide(ranges, length: length) {
      case .part(let part): parts = [part]
      case .parts(let several):
        #expect(several.count > 1)
        parts = several
      case .whole, .unsatisfiable: parts = []
      }
      #expect(parts.flatMap(Array.init).sorted() == wanted.sorted())
    }
  }
}

/// The frame around several parts (RFC 9110 §14.6).
struct MultipartByteRangesTests {
  static func multipart(_ contentType: String) -> MultipartByteRanges {
    let type = Array(contentType.utf8)
    return MultipartByteRanges(
      parts: [0..<2, 8..<10], completeLength: 10, contentType: type.span,
      randomness: (0xAB, .max))
  }

  @Test func eachPartHasItsHead() {
    let multipart = Self.multipart("text/plain")
    let boundary = "00000000000000abffffffffffffffff"
    let texts = (0...2).map { String(decoding: multipart.delimiter(before: $0), as: UTF8.self) }
    #expect(
      texts == [
        "--\(boundary)\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n",
        "\r\n--\(boundary)\r\nContent-Type: text/plain\r\nContent-Range: bytes 8-9/10\r\n\r\n",
        "\r\n--\(boundary)--\r\n",
      ])
    let type = String(decoding: multipart.mediaType, as: UTF8.self)
    #expect(type == "multipart/byteranges; boundary=\(boundary)")
    #expect(multipart.partBytes == 4)
    #expect(multipart.contentLength == UInt64(texts.joined().utf8.count + 4))
  }

  @Test func aBodyWithoutATypeHasPartsWithoutOne() {
    let first = String(decoding: Self.multipart("").delimiter(before: 0), as: UTF8.self)
    #expect(
      first == "--00000000000000abffffffffffffffff\r\nContent-Range: bytes 0-1/10\r\n\r\n")
  }
}
