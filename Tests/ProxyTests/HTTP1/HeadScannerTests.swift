import Testing

@testable import Proxy

struct HeadScannerTests {
  private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  @Test(
    arguments: [
      ("a whole head", get, .complete(27)),
      ("without fields", "GET / HTTP/1.0\r\n\r\n", .complete(18)),
      ("what follows the head is not its own", get + "GET /next", .complete(27)),
      ("an empty line first is a line", "\r\nGET / HTTP/1.1\r\n\r\n", .complete(20)),
      ("nothing yet", "", .more),
      ("a request line without its end", "GET / HTTP/1.1", .more),
      ("a CR that waits for its LF", "GET / HTTP/1.1\r", .more),
      ("fields without the empty line", "GET / HTTP/1.1\r\nHost: a\r\n", .more),
      ("half an empty line", "GET / HTTP/1.1\r\nHost: a\r\n\r", .more),
      ("a request line that ends with LF", "GET / HTTP/1.1\nHost: a\r\n\r\n", .refused(400)),
      ("a field that ends with LF", "GET / HTTP/1.1\r\nHost: a\n\r\n", .refused(400)),
      ("an empty line of LF", "GET / HTTP/1.1\r\nHost: a\r\n\n", .refused(400)),
      ("LF first", "\nGET / HTTP/1.1\r\n\r\n", .refused(400)),
      ("a double CR is a CR in the line", "GET / HTTP/1.1\r\r\n\r\n", .complete(19)),
    ] as [(String, String, HeadReading)])
  func theEndIsFoundWhereverTheBytesAreSplit(
    _ name: String, _ text: String, _ expected: HeadReading
  ) {
    let bytes = Array(text.utf8)
    #expect(HeadReading.scan(bytes) == expected)
    let differing = bytes.indices.filter { HeadReading.scan(bytes, ends: [$0]) != expected }
    #expect(differing.isEmpty, "split at these places")
    #expect(HeadReading.scan(bytes, ends: 0..<bytes.count) == expected, "byte by byte")
  }

  private static var limits: Limits {
    var limits = Limits()
    limits.requestLineBytes = 32
    limits.headerBytes = 64
    limits.headerFields = 3
    return limits
  }

  /// A head with this much in its request line and in its field lines, line ends not counted for
  /// the first and counted for the others.
  private static func head(line: Int, fields: [Int]) -> String {
    "GET /" + String(repeating: "a", count: line - 14) + " HTTP/1.1\r\n"
      + fields.map { "a:" + String(repeating: "b", count: $0 - 4) + "\r\n" }.joined() + "\r\n"
  }

  @Test(
    arguments: [
      ("a request line at its limit", head(line: 32, fields: [10]), .complete(46)),
      ("a request line over it", head(line: 33, fields: [10]), .refused(414)),
      ("an endless request line", String(repeating: "a", count: 500), .refused(414)),
      ("a header block at its limit", head(line: 20, fields: [30, 34]), .complete(88)),
      ("a header block over it", head(line: 20, fields: [30, 35]), .refused(431)),
      ("one line over it", head(line: 20, fields: [65]), .refused(431)),
      ("a long request line takes nothing from it", head(line: 32, fields: [64]), .complete(100)),
      ("a short request line adds nothing to it", head(line: 14, fields: [65]), .refused(431)),
      (
        "an endless field line", "GET / HTTP/1.1\r\na: " + String(repeating: "a", count: 500),
        .refused(431)
      ),
      ("as many fields as may be", head(line: 20, fields: [6, 6, 6]), .complete(42)),
      ("one field more", head(line: 20, fields: [6, 6, 6, 6]), .refused(431)),
    ] as [(String, String, HeadReading)])
  func limitsHoldWhereverTheBytesAreSplit(
    _ name: String, _ text: String, _ expected: HeadReading
  ) {
    let bytes = Array(text.utf8)
    #expect(HeadReading.scan(bytes, limits: Self.limits) == expected)
    let differing = bytes.indices.filter {
      HeadReading.scan(bytes, ends: [$0], limits: Self.limits) != expected
    }
    #expect(differing.isEmpty, "split at these places")
    #expect(HeadReading.scan(bytes, ends: 0..<bytes.count, limits: Self.limits) == expected)
  }

  @Test func aScannerIsUsedAgainAfterAReset() {
    var scanner = HeadScanner()
    let first = Array("GET /aa HTTP/1.1\r\n\r\n".utf8)
    let second = Array("GET / HTTP/1.0\r\n\r\n".utf8)
    #expect(first.withUnsafeBytes { scanner.scan($0, limits: Limits()) } == .complete(first.count))
    scanner.reset()
    #expect(
      second.withUnsafeBytes { scanner.scan($0, limits: Limits()) } == .complete(second.count))
  }

  /// The head that was read before may save looking, and changes nothing.
  @Test func theEndIsTheSameWhereAHeaderBlockComesAgain() throws {
    let blocks = ["Host: a\r\n\r\n", "Host: ab\r\n\r\n", "Host: a\r\nX: y\r\n\r\n", "\r\n"]
    var differing: [String] = []
    for known in blocks {
      let head = RequestHead()
      let isRead =
        (try? HeadReading.parse(Array("GET / HTTP/1.1\r\n\(known)".utf8), into: head)) != nil
      #expect(isRead == known.hasPrefix("Host"))
      for block in blocks {
        for line in ["GET /b HTTP/1.1\r\n", "GET /" + String(repeating: "a", count: 40) + "\r\n"] {
          let bytes = Array((line + block + "GET /next").utf8)
          for end in bytes.indices {
            let ends = [end, bytes.count]
            let plain = Self.outcomes(bytes, ends, nil)
            if Self.outcomes(bytes, ends, head) != plain {
              differing.append("\(line)\(block)\(end)")
            }
          }
        }
      }
    }
    #expect(differing.isEmpty)
  }

  private static func outcomes(
    _ bytes: [UInt8], _ ends: [Int], _ previous: RequestHead?
  ) -> [HeadScanner.Outcome] {
    var scanner = HeadScanner()
    var outcomes: [HeadScanner.Outcome] = []
    for end in ends {
      let outcome = bytes.withUnsafeBytes {
        scanner.scan(
          UnsafeRawBufferPointer(rebasing: $0[0..<end]), limits: limits, previous: previous)
      }
      outcomes.append(outcome)
      guard outcome == .more else { break }
    }
    return outcomes
  }

  @Test func aForgottenBlockIsLookedAtAgain() throws {
    let head = RequestHead()
    let block = "Host: a\r\n\r\n"
    try HeadReading.parse(Array("GET / HTTP/1.1\r\n\(block)".utf8), into: head)
    let length = Array(block.utf8).withUnsafeBytes { head.blockLength(beginning: $0) }
    #expect(length == block.utf8.count)
    head.forgetBlock()
    #expect(Array(block.utf8).withUnsafeBytes { head.blockLength(beginning: $0) } == nil)
  }
}
