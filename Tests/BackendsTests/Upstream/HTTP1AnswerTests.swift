internal import CachePolicy
import Testing

@testable import Backends

/// What our HTTP/1.1 makes of an origin's bytes, however they are cut into segments (RFC 9112).
struct HTTP1AnswerTests {
  enum Then { case stay, end, reset }

  struct Row: CustomTestStringConvertible, Sendable {
    let name: String
    var method = Method.get
    let answer: String
    var then = Then.stay
    var interims: [UInt16] = []
    /// nil: it broke before the head was whole.
    var status: UInt16? = 200
    var body = ""
    /// nil: the answer is whole.
    var fault: String?
    var isReused = false

    var testDescription: String { name }
  }

  private static let ok = "HTTP/1.1 200 OK\r\n"

  static let whole: [Row] = [
    Row(
      name: "a length", answer: ok + "Content-Length: 5\r\n\r\nhello", body: "hello", isReused: true
    ),
    Row(name: "a length of zero", answer: ok + "Content-Length: 0\r\n\r\n", isReused: true),
    Row(
      name: "the same length twice",
      answer: ok + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi", body: "hi", isReused: true),
    Row(
      name: "lines ended by LF alone", answer: "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
      body: "hi",
      isReused: true),
    Row(
      name: "no reason", answer: "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi", body: "hi",
      isReused: true),
    Row(
      name: "chunks",
      answer: ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
      body: "hello", isReused: true),
    Row(
      name: "no chunks", answer: ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", isReused: true),
    Row(
      name: "extensions, padding and trailers",
      answer: ok
        + "Transfer-Encoding: chunked\r\n\r\n2 \r\nhi\r\n1 ;a=b\r\n!\r\n0\t \r\nA: b\r\n\r\n",
      body: "hi!", isReused: true),
    Row(
      name: "the answer to HEAD", method: .head, answer: ok + "Content-Length: 5\r\n\r\n",
      isReused: true),
    Row(
      name: "the chunked answer to HEAD", method: .head,
      answer: ok + "Transfer-Encoding: chunked\r\n\r\n", isReused: true),
    Row(name: "the endless answer to HEAD", method: .head, answer: ok + "\r\n", isReused: true),
    Row(
      name: "204 with a length", answer: "HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n",
      status: 204,
      isReused: true),
    Row(
      name: "304 with a length", answer: "HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\n",
      status: 304,
      isReused: true),
    Row(
      name: "interim answers",
      answer: "HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 103 Early\r\nContent-Length: 9\r\n\r\n" + ok
        + "Content-Length: 2\r\n\r\nhi", interims: [100, 103], body: "hi", isReused: true),
    Row(
      name: "close", answer: ok + "Connection: close\r\nContent-Length: 2\r\n\r\nhi", body: "hi"),
    Row(
      name: "close among others",
      answer: ok + "Connection: keep-alive, Close\r\nContent-Length: 2\r\n\r\nhi", body: "hi"),
    Row(
      name: "an interim answer's close is not the final one's",
      answer: "HTTP/1.1 103 Early\r\nConnection: close\r\n\r\n" + ok
        + "Content-Length: 2\r\n\r\nhi",
      interims: [103], body: "hi", isReused: true),
    Row(
      name: "HTTP/1.0", answer: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", body: "hi"),
    Row(
      name: "HTTP/1.0 kept alive",
      answer: "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nhi",
      body: "hi",
      isReused: true),
    Row(
      name: "HTTP/1.0 kept alive and closed",
      answer: "HTTP/1.0 200 OK\r\nConnection: keep-alive, close\r\nContent-Length: 2\r\n\r\nhi",
      body: "hi"),
    Row(
      name: "chunks in HTTP/1.0",
      answer: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
        + "2\r\nhi\r\n0\r\n\r\n", body: "hi"),
    Row(name: "a body up to the end", answer: ok + "\r\nhello", then: .end, body: "hello"),
    Row(name: "an empty body up to the end", answer: ok + "\r\n", then: .end),
    Row(
      name: "a later minor version", answer: "HTTP/1.9 200 OK\r\nContent-Length: 2\r\n\r\nhi",
      body: "hi", isReused: true),
  ]

  /// What comes behind an answer is nobody's: the answer counts, and the connection goes.
  static let followed: [Row] = [
    Row(
      name: "bytes behind a length", answer: ok + "Content-Length: 2\r\n\r\nhiHTTP/1.1", body: "hi"),
    Row(
      name: "an answer behind an answer",
      answer: ok + "Content-Length: 2\r\n\r\nhi" + ok + "Content-Length: 3\r\n\r\nbad", body: "hi"),
    Row(name: "an empty line behind", answer: ok + "Content-Length: 2\r\n\r\nhi\r\n", body: "hi"),
    Row(
      name: "bytes behind the last chunk",
      answer: ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nx"),
    Row(name: "a body to HEAD", method: .head, answer: ok + "Content-Length: 2\r\n\r\nhi"),
    Row(name: "a body with 204", answer: "HTTP/1.1 204 No\r\n\r\nhi", status: 204),
    Row(
      name: "chunks with 304",
      answer: "HTTP/1.1 304 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", status: 304),
    Row(
      name: "an interim answer behind",
      answer: ok + "Content-Length: 0\r\n\r\nHTTP/1.1 100 x\r\n\r\n"),
    Row(
      name: "bytes behind close",
      answer: ok + "Connection: close\r\nContent-Length: 2\r\n\r\nhi there", body: "hi"),
  ]

  static let broken: [Row] = [
    Row(name: "nothing", answer: "", then: .end, status: nil, fault: "no answer"),
    Row(name: "a reset", answer: "", then: .reset, status: nil, fault: "no answer"),
    Row(
      name: "half a version", answer: "HTT", then: .end, status: nil, fault: "the head broke off"),
    Row(
      name: "half a head", answer: ok + "A: b\r\n", then: .end, status: nil,
      fault: "the head broke off"),
    Row(
      name: "a head that is reset", answer: ok + "A: b\r\n", then: .reset, status: nil,
      fault: "the connection broke within the answer"),
    Row(
      name: "an interim answer alone", answer: "HTTP/1.1 100 Go on\r\n\r\n", then: .end,
      interims: [100], status: nil, fault: "the head broke off"),
    Row(
      name: "another protocol", answer: "SSH-2.0-x\r\n", status: nil, fault: "not an answer of HTTP"
    ),
    Row(name: "no line's end", answer: "220 mail", status: nil, fault: "not an answer of HTTP"),
    Row(name: "HTTP/0.9", answer: "<html>", status: nil, fault: "not an answer of HTTP"),
    Row(
      name: "an empty line first", answer: "\r\n" + ok, status: nil, fault: "not an answer of HTTP"),
    Row(
      name: "HTTP/2", answer: "HTTP/2 200\r\n\r\n", status: nil,
      fault: "HTTP/2 where HTTP/1.1 was spoken"),
    Row(
      name: "an interim answer of HTTP/2", answer: "HTTP/2 103\r\n\r\n", status: nil,
      fault: "HTTP/2 where HTTP/1.1 was spoken"),
    Row(
      name: "a switch of protocols", answer: "HTTP/1.1 101 Switch\r\nUpgrade: x\r\n\r\n",
      status: nil,
      fault: "protocol switch that was not asked for"),
    Row(
      name: "two lengths", answer: ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!",
      status: nil, fault: "differing Content-Length"),
    Row(
      name: "a list of lengths", answer: ok + "Content-Length: 2, 2\r\n\r\nhi", status: nil,
      fault: "malformed Content-Length"),
    Row(
      name: "a length beside chunks",
      answer: ok + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n", status: nil,
      fault: "Content-Length beside Transfer-Encoding"),
    Row(
      name: "another coding", answer: ok + "Transfer-Encoding: gzip, chunked\r\n\r\n", status: nil,
      fault: "transfer coding other than chunked"),
    Row(
      name: "a huge length", answer: ok + "Content-Length: 99999999999999999999\r\n\r\n",
      status: nil,
      fault: "malformed Content-Length"),
    Row(
      name: "a line without a name", answer: ok + "\r\r\n", status: nil,
      fault: "field line without a name"),
    Row(
      name: "a folded line", answer: ok + "A: b\r\n c\r\n", status: nil, fault: "folded field line"),
    Row(
      name: "a short body", answer: ok + "Content-Length: 5\r\n\r\nhell", then: .end, body: "hell",
      fault: "the body broke off"),
    Row(
      name: "a short body that is reset", answer: ok + "Content-Length: 5\r\n\r\nhell",
      then: .reset,
      body: "hell", fault: "the connection broke within the answer"),
    Row(
      name: "chunks without the last", answer: ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n",
      then: .end, body: "hi", fault: "the body broke off"),
    Row(
      name: "a last chunk without its empty line",
      answer: ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n", then: .end, body: "hi",
      fault: "the body broke off"),
    Row(
      name: "a chunk longer than its size",
      answer: ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi!\r\n", body: "hi",
      fault: "malformed chunked body"),
    Row(
      name: "a huge chunk", answer: ok + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
      fault: "malformed chunk size"),
    Row(
      name: "a body up to a reset", answer: ok + "\r\nhello", then: .reset, body: "hello",
      fault: "the connection broke within the answer"),
  ]

  @Test(arguments: whole + followed + broken)
  func anAnswerIsReadTheSameHoweverItIsCut(_ row: Row) throws {
    let fixture = try OriginFixture()
    defer { fixture.stop() }
    let bytes = Array(row.answer.utf8)
    var cuts: [[Int]] = [[], Array(bytes.indices.dropFirst())]
    cuts += bytes.indices.dropFirst().map { [$0] }
    // What one exchange leaves open carries the next one.
    var open: OriginSide?
    for cut in cuts {
      let exchanged = fixture.start(row.method)
      guard let origin = open ?? fixture.accept() else {
        Issue.record("no connection")
        return
      }
      #expect(origin.readHead() != nil)
      var start = 0
      for end in cut + [bytes.count] where end > start {
        origin.send(Array(bytes[start..<end]))
        start = end
      }
      if row.then == .end { origin.finishSending() }
      if row.then == .reset { origin.reset() }
      expect(exchanged, row, cut)
      if row.isReused {
        open = origin
      } else if row.then != .reset {
        #expect(origin.readToEnd() == [], "closed, nothing more was sent: cut at \(cut)")
      }
    }
    let counters = fixture.counters
    #expect(counters.connectionsOpened == (row.isReused ? 1 : UInt64(cuts.count)))
    #expect(counters.connectionsReused == (row.isReused ? UInt64(cuts.count - 1) : 0))
    #expect(counters.failures == (row.fault == nil ? 0 : UInt64(cuts.count)))
  }

  private func expect(_ exchanged: Exchanged, _ row: Row, _ cut: [Int]) {
    guard let record = exchanged.wait() else {
      Issue.record("never ended, cut at \(cut)")
      return
    }
    var events: [Exchanged.Event] = row.interims.map { .interim($0) }
    if let status = row.status { events.append(.head(status)) }
    events.append(row.fault.map { .failed(.broken($0)) } ?? .finished)
    #expect(record.events == events, "cut at \(cut)")
    #expect(String(decoding: record.body, as: UTF8.self) == row.body, "cut at \(cut)")
    #expect(record.endCount == 1)
    #expect(record.lateCount == 0)
  }

  @Test(arguments: [
    ("one field", ["A: " + String(repeating: "a", count: 65_000)], true),
    ("one field too large", ["A: " + String(repeating: "a", count: 66_000)], false),
    ("many fields", (0..<100).map { "A\($0): b" }, true),
    ("too many fields", (0..<101).map { "A\($0): b" }, false),
  ])
  func aHeadHasLimitsHoweverItComes(_ name: String, _ fields: [String], _ isRead: Bool) throws {
    let fixture = try OriginFixture()
    defer { fixture.stop() }
    let head = Self.ok + fields.joined(separator: "\r\n") + "\r\n"
    // Without the end of the head, which would make it whole: the limit does not wait for it.
    for sizeMax in [1 << 20, 1000] {
      let exchanged = fixture.start()
      let origin = try #require(fixture.accept())
      origin.readHead()
      let bytes = Array(head.utf8)
      for start in stride(from: 0, to: bytes.count, by: sizeMax) {
        origin.send(Array(bytes[start..<min(start + sizeMax, bytes.count)]))
      }
      if isRead { origin.send("\r\n") }
      origin.finishSending()
      let record = try #require(exchanged.wait())
      #expect(record.events.contains(.head(200)) == isRead)
      #expect((record.events.last == .finished) == isRead)
    }
  }

  @Test func interimAnswersWithoutEndAreAnError() throws {
    let fixture = try OriginFixture()
    defer { fixture.stop() }
    let exchanged = fixture.start()
    let origin = try #require(fixture.accept())
    origin.readHead()
    let interim = "HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n"
    let count = ResponseHeadReader.bytesMax / interim.utf8.count
    origin.send(String(repeating: interim, count: count))
    #expect(exchanged.now.events.count == count)
    origin.send(interim)
    #expect(exchanged.ending == .failed(.broken("header block too large")))
  }

  @Test func aPausedAnswerComesWhenItGoesOn() throws {
    let fixture = try OriginFixture()
    defer { fixture.stop() }
    let exchanged = fixture.start { exchanged, event in
      if case .head = event { exchanged.transfer?.pause() }
    }
    let origin = try #require(fixture.accept())
    origin.readHead()
    origin.send(Self.ok + "Content-Length: 5\r\n\r\n")
    origin.send("hello")
    #expect(exchanged.now.body.isEmpty)
    fixture.onLoop { exchanged.transfer?.resume() }
    let record = try #require(exchanged.wait())
    #expect(record.events == [.head(200), .finished])
    #expect(record.body == Array("hello".utf8))
    // The next one is not paused by it.
    let next = fixture.start()
    #expect(origin.readHead() != nil)
    origin.send(Self.ok + "Content-Length: 0\r\n\r\n")
    #expect(next.ending == .finished)
  }
}
