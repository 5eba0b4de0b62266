import Backends
import Testing

struct BodyDecoderTests {
  private struct Decoded: Equatable {
    var body = ""
    var consumed = 0
    var outcome = BodyDecoder.Outcome.more
  }

  /// Feeds the bytes piece by piece, as reads would bring them.
  private static func decode(
    _ text: String, _ framing: MessageFraming, ends: some Sequence<Int> = []
  ) -> Decoded {
    let bytes = Array(text.utf8)
    var decoder = BodyDecoder(framing)
    var result = Decoded()
    if decoder.isComplete { result.outcome = .complete }
    var start = 0
    for end in Array(ends) + [bytes.count] where result.outcome == .more {
      let (consumed, outcome) = bytes.withUnsafeBytes { all in
        decoder.decode(UnsafeRawBufferPointer(rebasing: all[start..<end])) {
          result.body += String(decoding: $0, as: UTF8.self)
        }
      }
      result.consumed += consumed
      result.outcome = outcome
      start = end
    }
    if case .refused = result.outcome { result.consumed = 0 }
    return result
  }

  /// The same whole, split at every place, and byte by byte.
  private static func decodeEveryWay(_ text: String, _ framing: MessageFraming) -> Decoded {
    let whole = decode(text, framing)
    let count = text.utf8.count
    let differing = (0..<count).filter { decode(text, framing, ends: [$0]) != whole }
    #expect(differing.isEmpty, "split at these places")
    #expect(decode(text, framing, ends: 0..<count) == whole, "byte by byte")
    return whole
  }

  @Test(
    arguments: [
      ("none", .none, "GET /next", "", 0),
      ("a length of zero", .length(0), "GET /next", "", 0),
      ("a length", .length(5), "helloGET /next", "hello", 5),
      ("an empty chunked body", .chunked, "0\r\n\r\nGET /next", "", 5),
      ("one chunk", .chunked, "5\r\nhello\r\n0\r\n\r\nGET", "hello", 15),
      ("several chunks", .chunked, "1\r\nh\r\n2\r\nel\r\n02\r\nlo\r\n00\r\n\r\n", "hello", 27),
      (
        "sizes in either case", .chunked, "a\r\n0123456789\r\nB\r\n0123456789a\r\n0\r\n\r\n",
        "01234567890123456789a", 36
      ),
      (
        "chunk data that looks like framing", .chunked, "7\r\n0\r\n\r\n\r\n\r\n0\r\n\r\n",
        "0\r\n\r\n\r\n", 17
      ),
      ("extensions are dropped", .chunked, "1;a=\"b c\";d\r\nh\r\n0;x\r\n\r\n", "h", 23),
      ("white space before an extension", .chunked, "1 \t;a=b\r\nh\r\n0 ;x\r\n\r\n", "h", 20),
      ("trailer fields are dropped", .chunked, "1\r\nh\r\n0\r\nA: b\r\nC:\r\n\r\nG", "h", 21),
    ] as [(String, MessageFraming, String, String, Int)])
  func aBodyEndsWhereItsFramingSays(
    _ name: String, _ framing: MessageFraming, _ text: String, _ body: String,
    _ consumed: Int
  ) {
    #expect(
      Self.decodeEveryWay(text, framing)
        == Decoded(body: body, consumed: consumed, outcome: .complete))
  }

  @Test(
    arguments: [
      ("a length", .length(5), "hell", "hell"),
      ("a chunk's data", .chunked, "5\r\nhell", "hell"),
      ("a chunk's end", .chunked, "5\r\nhello", "hello"),
      ("half a chunk's end", .chunked, "5\r\nhello\r", "hello"),
      ("a size", .chunked, "5\r\nhello\r\n0", "hello"),
      ("a size line's end", .chunked, "0\r", ""),
      ("the last empty line", .chunked, "0\r\n", ""),
      ("half the last empty line", .chunked, "0\r\n\r", ""),
      ("a trailer field", .chunked, "0\r\nA: b\r\n", ""),
    ] as [(String, MessageFraming, String, String)])
  func anUnfinishedBodyWaitsForMore(
    _ name: String, _ framing: MessageFraming, _ text: String, _ body: String
  ) {
    #expect(
      Self.decodeEveryWay(text, framing)
        == Decoded(body: body, consumed: text.utf8.count, outcome: .more))
  }

  @Test(
    arguments: [
      ("no size", "\r\n\r\n", ""),
      ("a size that is no number", "x\r\n", ""),
      ("a signed size", "+5\r\nhello\r\n", ""),
      ("a negative size", "-1\r\n", ""),
      ("a size with a prefix", "0x5\r\nhello\r\n", ""),
      ("a space before the size", " 5\r\nhello\r\n", ""),
      ("a space behind the size", "5 \r\nhello\r\n", ""),
      ("a size without CR", "5\nhello\r\n", ""),
      ("CR without LF behind the size", "5\rhello\r\n", ""),
      ("a size of 16 digits", "fffffffffffffff0\r\n", ""),
      ("a size that overflows", "10000000000000005\r\nhello", ""),
      ("zeros without end", String(repeating: "0", count: 40), ""),
      ("data longer than its size", "4\r\nhello\r\n0\r\n\r\n", "hell"),
      ("data ended by LF alone", "5\r\nhello\n0\r\n\r\n", "hello"),
      ("CR without LF behind data", "5\r\nhello\r0\r\n\r\n", "hello"),
      ("an extension without CR", "5;a\nhello\r\n", ""),
      ("a control in an extension", "5;a\u{0}\r\n", ""),
      ("a trailer field that begins with a space", "0\r\n a: b\r\n\r\n", ""),
      ("LF for the last line", "0\r\n\n", ""),
      ("a trailer line without CR", "0\r\nA: b\n\r\n", ""),
      ("a control in a trailer field", "0\r\nA: \u{1}\r\n\r\n", ""),
    ])
  func malformedChunksAreRefused(_ name: String, _ text: String, _ body: String) {
    let decoded = Self.decodeEveryWay(text, .chunked)
    #expect(decoded.body == body)
    guard case .refused(let fault) = decoded.outcome else {
      Issue.record("not refused: \(decoded)")
      return
    }
    #expect(fault == .malformed || fault == .malformedSize)
  }

  /// White space alone behind a size is no grammar, and harmless.
  @Test(arguments: [
    ("spaces", "1  \r\nh\r\n0 \r\n\r\n", true), ("a tab", "1\t\r\nh\r\n0\r\n\r\n", true),
    ("not before", " 1\r\nh\r\n0\r\n\r\n", false), ("not within", "1 0\r\nh\r\n0\r\n\r\n", false),
    ("not without a size", " \r\n\r\n", false), ("not before LF", "0 \n\r\n", false),
    ("not without end", "0" + String(repeating: " ", count: 1025) + "\r\n\r\n", false),
  ])
  func sizesOfAnAnswerMayBePadded(_ name: String, _ text: String, _ isRead: Bool) {
    for byteCountMax in [1, 4000] {
      var decoder = BodyDecoder(.chunked, acceptsPaddedSizes: true)
      var outcome = BodyDecoder.Outcome.more
      Array(text.utf8).withUnsafeBytes { all in
        var rest = all[...]
        while !rest.isEmpty, outcome == .more {
          let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(byteCountMax))
          outcome = decoder.decode(piece) { _ in }.outcome
          rest = rest.dropFirst(byteCountMax)
        }
      }
      #expect((outcome == .complete) == isRead)
    }
  }

  @Test(
    arguments: [
      ("an extension at its limit", "0;" + String(repeating: "a", count: 1024) + "\r\n\r\n", nil),
      ("an extension over it", "0;" + String(repeating: "a", count: 1025) + "\r\n\r\n", .malformed),
      (
        "trailers over their limit", "0\r\na: " + String(repeating: "a", count: 9000),
        .trailerTooLarge
      ),
      (
        "many small trailers over it",
        "0\r\n" + String(repeating: "a: b\r\n", count: 4000) + "\r\n", .trailerTooLarge
      ),
    ] as [(String, String, ChunkedBodyFault?)])
  func extensionsAndTrailersHaveLimits(
    _ name: String, _ text: String, _ fault: ChunkedBodyFault?
  ) {
    let outcome = Self.decode(text, .chunked).outcome
    #expect(outcome == fault.map { .refused($0) } ?? .complete)
  }

  @Test func aHugeLengthIsCountedDownWithoutOverflow() {
    var decoder = BodyDecoder(.length(999_999_999_999_999_999))
    let bytes = [UInt8](repeating: 1, count: 1000)
    let (consumed, outcome) = bytes.withUnsafeBytes { decoder.decode($0) { _ in } }
    #expect(consumed == 1000)
    #expect(outcome == .more)
    #expect(!decoder.isComplete)
  }
}
