internal import CachePolicy
import Testing

@testable import Backends

/// How a request and its body go out, and what early answers and broken connections do to them.
struct HTTP1RequestBodyTests {
  private static let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

  @Test(
    arguments: [
      ("a length", 5, "Content-Length: 5", "hello"),
      ("chunks", nil, "Transfer-Encoding: chunked", "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"),
    ] as [(String, Int64?, String, String)])
  func aBodyGoesOutInItsFramingAndTheConnectionStays(
    _ name: String, _ length: Int64?, _ framing: String, _ wire: String
  ) throws {
    let fixture = try OriginFixture()
    defer { fixture.stop() }
    let body = ScriptedBody(.bytes("hel"), .wait)
    let exchanged = fixture.start(.put, body: body, length: length)
    let origin = try #require(fixture.accept())
    let head = try #require(origin.readHead())
    #expect(head == "PUT / HTTP/1.1\r\nHost: origin\r\n" + framing)
    fixture.onLoop { body.add(.bytes("lo"), .end) }
    #expect(origin.read(wire.utf8.count) == wire)
    origin.send(Self.answer)
    #expect(exchanged.ending == .finished)
    let next = fixture.start()
    #expect(origin.readHead() == "GET / HTTP/1.1\r\nHost: origin")
    origin.send(Self.answer)
    #expect(next.ending == .finished)
  }

  @Test(
    arguments: [
      ("the source fails", [.bytes("hel"), .failed], 5),
      ("the source fails at once", [.failed], 5),
      ("too few bytes", [.bytes("hel"), .end], 5),
      ("too many bytes", [.bytes("hello!"), .end], 5),
      ("chunks that fail", [.bytes("hel"), .failed], nil),
    ] as [(String, [ScriptedBody.Piece], Int64?)])
  func aBodyThatBreaksEndsTheConnectionWithIt(
    _ name: String, _ pieces: [ScriptedBody.Piece], _ length: Int64?
  ) throws {
    let fixture = try OriginFixture()
    defer { fixture.stop() }
    let body = ScriptedBody()
    let exchanged = fixture.start(.put, body: body, length: length)
    let origin = try #require(fixture.accept())
    origin.readHead()
    fixture.onLoop { for piece in pieces { body.add(piece) } }
    #expect(exchanged.ending == .failed(.requestBodyFailed))
    // Nothing that could be taken for the whole.
    let sent = String(decoding: try #require(origin.readToEnd()), as: UTF8.self)
    #expect(sent.hasSuffix("hel") || sent.hasSuffix("hel\r\n") || sent.isEmpty)
  }

  @Test(arguments: [
    ("413, and the connection closes", "413 No\r\nConnection: close", true),
    ("413, and it stays", "413 No", false),
    ("200, and it closes", "200 OK\r\nConnection: close", true),
    ("200, and it stays", "200 OK", false),
  ])
  func anAnswerBeforeTheRequestIsWholeCountsAndEndsTheConnection(
    _ name: String, _ start: String, _ closes: Bool
  ) throws {
    let fixture = try OriginFixture()
    defer { fixture.stop() }
    let body = ScriptedBody(.bytes("hel"))
    let exchanged = fixture.start(.post, body: body, length: 500)
    let origin = try #require(fixture.accept())
    origin.readHead()
    #expect(origin.read(3) == "hel")
    origin.send("HTTP/1.1 \(start)\r\nContent-Length: 2\r\n\r\nhi")
    if closes { origin.finishSending() }
    let record = try #require(exchanged.wait())
    #expect(record.body == Array("hi".utf8))
    #expect(record.events.last == .finished)
    #expect(origin.readToEnd() == [])
    #expect(fixture.counters.connectionsOpened == 1)
  }

  /// Nobody need say so: an empty body's source never does.
  @Test(arguments: ["", "hi"])
  func aBodyOfAKnownLengthIsWholeWithItsLastByte(_ text: String) throws {
    var limits = OriginFixture.Limits()
    limits.firstByteTimeoutMilliseconds = 1
    let fixture = try OriginFixture(limits)
    defer { fixture.stop() }
    let body = { text.isEmpty ? ScriptedBody() : ScriptedBody(.bytes(text)) }
    let exchanged = fixture.start(.put, body: body(), length: Int64(text.utf8.count))
    let origin = try #require(fixture.accept())
    origin.readHead()
    #expect(origin.read(text.utf8.count) == text)
    origin.send(Self.answer)
    #expect(exchanged.ending == .finished)
    // The connection is free, and it is the origin that is waited for.
    let late = fixture.start(.put, body: body(), length: Int64(text.utf8.count))
    #expect(origin.readHead() != nil)
    fixture.tick(afterMilliseconds: 2)
    #expect(late.ending == .failed(.timedOut("no answer in time")))
  }

  @Test func anAnswerThatWaitsIsReadWhereTheOriginTakesNoMore() throws {
    let fixture = try OriginFixture()
    defer { fixture.stop() }
    // Far more than the sockets hold: the rest cannot be written once the origin has gone.
    let text = String(repeating: "a", count: 1 << 20)
    let body = ScriptedBody()
    // Nothing is read before the origin has answered and gone.
    let exchanged = fixture.start(.put, body: body, length: 64 << 20)
    let origin = try #require(fixture.accept())
    origin.readHead()
    fixture.onLoop { exchanged.transfer?.pause() }
    fixture.settle()
    origin.send("HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nhi")
    origin.close()
    // The first write is answered by a reset, the second one fails.
    fixture.onLoop { body.add(.bytes(text)) }
    fixture.settle()
    fixture.onLoop { body.add(.bytes(text)) }
    fixture.settle()
    fixture.onLoop { exchanged.transfer?.resume() }
    let record = try #require(exchanged.wait())
    #expect(record.events == [.head(413), .finished])
    #expect(record.body == Array("hi".utf8))
  }

  @Test func aLargeBodyWaitsForAnOriginThatIsSlowToRead() throws {
    let fixture = try OriginFixture()
    defer { fixture.stop() }
    let bytes = 16 << 20
    let body = ScriptedBody(.bytes(String(repeating: "a", count: bytes)), .end)
    let exchanged = fixture.start(.put, body: body, length: Int64(bytes))
    let origin = try #require(fixture.accept())
    origin.readHead()
    fixture.settle()
    #expect(exchanged.now.events.isEmpty)
    #expect(origin.read(bytes).utf8.count == bytes)
    origin.send(Self.answer)
    #expect(exchanged.ending == .finished)
  }

  @Test func aSourceMayTellOfBytesWhileItIsRead() throws {
    let fixture = try OriginFixture()
    defer { fixture.stop() }
    let body = ScriptedBody(.bytes("a"), .bytes("b"), .bytes("c"), .end)
    body.whileRead = { $0.transfer?.bodyBecameAvailable() }
    let exchanged = fixture.start(.put, body: body, length: 3)
    let origin = try #require(fixture.accept())
    origin.readHead()
    #expect(origin.read(3) == "abc")
    origin.send(Self.answer)
    #expect(exchanged.ending == .finished)
  }

  @Test func aSourceMayCancelWhileItIsRead() throws {
    let fixture = try OriginFixture()
    defer { fixture.stop() }
    let body = ScriptedBody(.wait, .bytes("a"))
    let exchanged = fixture.start(.put, body: body, length: 3)
    let origin = try #require(fixture.accept())
    origin.readHead()
    fixture.onLoop {
      body.whileRead = { _ in exchanged.cancel() }
      body.add()
    }
    #expect(origin.readToEnd() == [])
    #expect(exchanged.now.endCount == 0)
    #expect(exchanged.now.lateCount == 0)
  }

  @Test func aBodyThatHasBeenReadIsNotSentTwice() throws {
    var limits = OriginFixture.Limits()
    limits.retriesMax = 3
    let fixture = try OriginFixture(limits)
    defer { fixture.stop() }
    let exchanged = fixture.start(.put, body: ScriptedBody(.bytes("hi"), .end), length: 2)
    let origin = try #require(fixture.accept())
    origin.readHead()
    #expect(origin.read(2) == "hi")
    origin.close()
    #expect(exchanged.ending == .failed(.broken("no answer")))
    #expect(fixture.counters.requests == 1)
    #expect(fixture.waitingConnections == 0)
  }
}
