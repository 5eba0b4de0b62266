import CachePolicy
import Testing

@testable import Backends

struct ResponseHeadReaderTests {
  /// Feeds lines as libcurl does, each with its end; stops at the first outcome other than `more`.
  private static func read(
    _ lines: [String], _ reader: inout ResponseHeadReader
  ) -> ResponseHeadReader.Outcome {
    for line in lines {
      let outcome = Array((line + "\r\n").utf8).withUnsafeBytes { reader.read($0) }
      if outcome != .more { return outcome }
    }
    return .more
  }

  private static func read(_ lines: [String]) -> ResponseHeadReader.Outcome {
    var reader = ResponseHeadReader()
    return read(lines, &reader)
  }

  @Test func aHeadIsReadWhole() {
    var reader = ResponseHeadReader()
    let outcome = Self.read(
      ["HTTP/1.1 200 Fine", "X-A:  b \t", "x-a:", "Content-Length: 12", ""], &reader)
    #expect(outcome == .final)
    #expect(reader.status == 200)
    #expect(reader.contentLength == 12)
    #expect(!reader.isChunked)
    #expect(reader.version == .http11)
    #expect(reader.fields.count == 3)
    #expect(reader.fields["X-A"] == "b, ")
  }

  @Test(
    arguments: [
      ("HTTP/1.1 204", 204, .http11), ("HTTP/1.0 200 ", 200, .http10),
      ("HTTP/2 301", 301, .http2), ("HTTP/1.1 599 x", 599, .http11),
      ("HTTP/1.3 299 x", 299, .http11),
    ] as [(String, UInt16, ReceivedVersion)])
  func statusLinesOfEveryVersionAreRead(
    _ line: String, _ status: UInt16, _ version: ReceivedVersion
  ) {
    var reader = ResponseHeadReader()
    #expect(Self.read([line, ""], &reader) == .final)
    #expect(reader.status == status)
    #expect(reader.version == version)
  }

  @Test func aChunkedAnswerIsKnownAsSuch() {
    var reader = ResponseHeadReader()
    #expect(Self.read(["HTTP/1.1 200 OK", "Transfer-Encoding: Chunked", ""], &reader) == .final)
    #expect(reader.isChunked)
    #expect(reader.contentLength == nil)
  }

  @Test func interimAnswersAreForgottenBeforeTheFinalOne() {
    var reader = ResponseHeadReader()
    #expect(
      Self.read(["HTTP/1.1 103 Early", "Link: </a>", "Content-Length: 7", ""], &reader)
        == .interim(status: 103))
    #expect(reader.fields["Link"] == "</a>")
    reader.beginNext()
    #expect(Self.read(["HTTP/1.1 200 OK", "A: b", ""], &reader) == .final)
    #expect(reader.status == 200)
    #expect(reader.fields["Link"] == nil)
    #expect(reader.contentLength == nil)
  }

  @Test func linesBehindTheHeadAreTrailers() {
    var reader = ResponseHeadReader()
    #expect(Self.read(["HTTP/1.1 200 OK", ""], &reader) == .final)
    #expect(Self.read(["Content-Length: 3"], &reader) == .trailer)
    #expect(reader.contentLength == nil)
    #expect(reader.fields.count == 0)
  }

  @Test(
    arguments: [
      ("no status", ["HTTP/1.1"]),
      ("another protocol", ["ICY 200 OK"]),
      ("no protocol", ["200 OK"]),
      ("the protocol in lower case", ["http/1.1 200 OK"]),
      ("HTTP/2 with a minor version", ["HTTP/2.0 200"]),
      ("no minor version", ["HTTP/1 200 OK"]),
      ("a minor version of two digits", ["HTTP/1.10 200 OK"]),
      ("an empty line first", [""]),
      ("a space first", [" HTTP/1.1 200 OK"]),
      ("a status of four digits", ["HTTP/1.1 2000 OK"]),
      ("two spaces before the status", ["HTTP/1.1  200 OK"]),
      ("a CR before the line's end", ["HTTP/1.1 200 OK", "A: b\r"]),
      ("a status of two digits", ["HTTP/1.1 20"]),
      ("a status of letters", ["HTTP/1.1 2x0 OK"]),
      ("a status below 100", ["HTTP/1.1 099 x"]),
      ("a folded line", ["HTTP/1.1 200 OK", "A: b", " c"]),
      ("a line folded by a tab", ["HTTP/1.1 200 OK", "A: b", "\tc"]),
      ("no colon", ["HTTP/1.1 200 OK", "A"]),
      ("no name", ["HTTP/1.1 200 OK", ": a"]),
      ("a space before the colon", ["HTTP/1.1 200 OK", "A : b"]),
      ("a name that is no token", ["HTTP/1.1 200 OK", "A(b): c"]),
      ("NUL in a value", ["HTTP/1.1 200 OK", "A: b\u{0}c"]),
      ("a bare CR in a value", ["HTTP/1.1 200 OK", "A: b\rc: d"]),
      ("differing lengths", ["HTTP/1.1 200 OK", "Content-Length: 1", "Content-Length: 2"]),
      ("a length that is no number", ["HTTP/1.1 200 OK", "Content-Length: 1x"]),
      ("an empty length", ["HTTP/1.1 200 OK", "Content-Length:"]),
      ("a signed length", ["HTTP/1.1 200 OK", "Content-Length: +1"]),
      ("a length that overflows", ["HTTP/1.1 200 OK", "Content-Length: 18446744073709551617"]),
      (
        "a length beside chunked",
        ["HTTP/1.1 200 OK", "Content-Length: 1", "Transfer-Encoding: chunked", ""]
      ),
      (
        "chunked beside a length",
        ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Content-Length: 1", ""]
      ),
      ("gzip below chunked", ["HTTP/1.1 200 OK", "Transfer-Encoding: gzip, chunked"]),
      ("gzip alone", ["HTTP/1.1 200 OK", "Transfer-Encoding: gzip"]),
      (
        "chunked twice",
        ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"]
      ),
      ("a switch of protocols", ["HTTP/1.1 101 Switching", "Upgrade: x", ""]),
    ])
  func whatIsAmbiguousBreaksTheAnswer(_ name: String, _ lines: [String]) {
    guard case .broken = Self.read(lines) else {
      Issue.record("accepted: \(lines)")
      return
    }
  }

  @Test(arguments: [(100, true), (101, false)])
  func theNumberOfFieldsIsLimited(_ count: Int, _ isAccepted: Bool) {
    let lines = ["HTTP/1.1 200 OK"] + (0..<count).map { "A\($0): b" } + [""]
    #expect((Self.read(lines) == .final) == isAccepted)
  }

  @Test(arguments: [(60_000, true), (70_000, false)])
  func theBlocksSizeIsLimited(_ bytes: Int, _ isAccepted: Bool) {
    let value = String(repeating: "a", count: bytes / 10)
    let lines = ["HTTP/1.1 200 OK"] + (0..<10).map { "A\($0): \(value)" } + [""]
    #expect((Self.read(lines) == .final) == isAccepted)
  }

  @Test func interimAnswersCountTowardsTheLimit() {
    var reader = ResponseHeadReader()
    let value = String(repeating: "a", count: 6000)
    var outcome = ResponseHeadReader.Outcome.more
    for _ in 0..<20 where outcome == .more || outcome == .interim(status: 103) {
      outcome = Self.read(["HTTP/1.1 103 Early", "Link: \(value)", ""], &reader)
      reader.beginNext()
    }
    guard case .broken = outcome else {
      Issue.record("interim answers without end: \(outcome)")
      return
    }
  }

  @Test(
    arguments: [
      ("0", 0), ("12", 12), ("000", 0), ("999999999999999999", 999_999_999_999_999_999),
      ("1000000000000000000", nil), ("", nil), (" 1", nil), ("1 ", nil), ("-1", nil), ("1e3", nil),
    ] as [(String, UInt64?)])
  func lengthsAreDigitsAlone(_ text: String, _ value: UInt64?) {
    #expect(Array(text.utf8).withUnsafeBytes { ResponseHeadReader.decimal($0) } == value)
  }
}
