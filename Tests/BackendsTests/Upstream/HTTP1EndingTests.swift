internal import CachePolicy
import Testing

@testable import Backends

/// How exchanges end before their answers do: by time, by a reload, with the client, by who asked;
/// and that nothing is left of them.
struct HTTP1EndingTests {
  private static let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

  enum State: String, CaseIterable, Sendable {
    case connecting, inLine, waitingForHead, withinHead, withinBody, withinEndlessBody, paused
    case waitingForRequestBody
  }

  /// An exchange that has come to a state and stays there, and what stands beside it.
  private struct Held {
    let fixture: OriginFixture
    let exchanged: Exchanged
    var origin: OriginSide?
    var others: [Exchanged] = []
    var otherOrigins: [OriginSide] = []
  }

  private func hold(_ state: State, _ timeoutMilliseconds: Int64 = 60_000) throws -> Held {
    var limits = OriginFixture.Limits()
    limits.firstByteTimeoutMilliseconds = timeoutMilliseconds
    limits.stallTimeoutMilliseconds = timeoutMilliseconds
    if state == .connecting { limits.connector = ScriptedConnector() }
    if state == .inLine { limits.connectionsMax = 1 }
    let fixture = try OriginFixture(limits)
    if state == .connecting {
      let exchanged = fixture.start()
      #expect(limits.connector?.waitForAsked(1) == true)
      return Held(fixture: fixture, exchanged: exchanged)
    }
    if state == .inLine {
      let other = fixture.start()
      let origin = try #require(fixture.accept())
      origin.readHead()
      return Held(
        fixture: fixture, exchanged: fixture.start(), others: [other], otherOrigins: [origin])
    }
    let body = state == .waitingForRequestBody ? ScriptedBody(.bytes("a")) : nil
    let exchanged = fixture.start(
      body == nil ? .get : .put, body: body, length: body == nil ? nil : 9)
    let origin = try #require(fixture.accept())
    origin.readHead()
    switch state {
    case .withinHead: origin.send("HTTP/1.1 200 OK\r\nA: ")
    case .withinBody: origin.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi")
    case .withinEndlessBody: origin.send("HTTP/1.1 200 OK\r\n\r\nhi")
    case .paused:
      origin.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi")
      fixture.onLoop { exchanged.transfer?.pause() }
      origin.send("there")
    default: break
    }
    return Held(fixture: fixture, exchanged: exchanged, origin: origin)
  }

  @Test(arguments: State.allCases)
  func timeEndsWhatKeepsAClientWaiting(_ state: State) throws {
    let held = try hold(state, 1)
    defer { held.fixture.stop() }
    held.fixture.tick(afterMilliseconds: 2)
    switch state {
    case .paused, .waitingForRequestBody:
      // It is not the origin that is waited for.
      #expect(held.exchanged.now.endCount == 0)
    case .withinBody, .withinEndlessBody:
      #expect(held.exchanged.ending == .failed(.timedOut("no progress in the body")))
    default:
      #expect(held.exchanged.ending == .failed(.timedOut("no answer in time")))
      #expect(held.exchanged.now.events.count == 1)
    }
    if held.exchanged.now.endCount > 0, let origin = held.origin {
      #expect(origin.readToEnd() == [], "a late answer would be somebody else's")
    }
  }

  @Test func bytesOfALineAreNoProgressAndLinesAre() throws {
    var limits = OriginFixture.Limits()
    limits.firstByteTimeoutMilliseconds = 400
    let fixture = try OriginFixture(limits)
    defer { fixture.stop() }
    let exchanged = fixture.start()
    let origin = try #require(fixture.accept())
    origin.readHead()
    origin.send("HTTP/1.1 200 OK\r\nA: ")
    // However many come.
    while exchanged.now.endCount == 0 {
      origin.send("a")
      fixture.onLoop { fixture.client.tick() }
    }
    #expect(exchanged.ending == .failed(.timedOut("no answer in time")))
  }

  @Test(arguments: State.allCases)
  func whoCancelsHearsNothingMoreAndLeavesNoConnection(_ state: State) throws {
    let held = try hold(state)
    defer { held.fixture.stop() }
    held.fixture.onLoop { held.exchanged.cancel() }
    if let origin = held.origin {
      #expect(origin.readToEnd() != nil)
    }
    for (other, origin) in zip(held.others, held.otherOrigins) {
      origin.send(Self.answer)
      #expect(other.ending == .finished)
    }
    held.fixture.onLoop {
      held.exchanged.transfer?.pause()
      held.exchanged.transfer?.resume()
      held.exchanged.transfer?.bodyBecameAvailable()
      held.exchanged.transfer?.cancel()
    }
    #expect(held.exchanged.now.endCount == 0)
    #expect(held.exchanged.now.lateCount == 0)
  }

  @Test(arguments: State.allCases)
  func aReloadThatTakesTheOriginAwayLeavesWhatRuns(_ state: State) throws {
    let held = try hold(state)
    let fixture = held.fixture
    defer { fixture.stop() }
    fixture.onLoop { fixture.client.use(endpoints: [], connectionsMax: 8, idleConnectionsMax: 8) }
    for (other, origin) in zip(held.others, held.otherOrigins) {
      origin.send(Self.answer)
      #expect(other.ending == .finished)
      #expect(origin.readToEnd() == [], "nothing is kept")
    }
    switch state {
    case .connecting, .waitingForRequestBody: break
    case .inLine:
      let origin = try #require(fixture.accept())
      origin.readHead()
      origin.send(Self.answer)
      #expect(held.exchanged.ending == .finished)
    case .waitingForHead: held.origin?.send(Self.answer)
    case .withinHead: held.origin?.send("b\r\nContent-Length: 0\r\n\r\n")
    case .withinBody: held.origin?.send("1234567")
    case .withinEndlessBody: held.origin?.finishSending()
    case .paused:
      fixture.onLoop { held.exchanged.transfer?.resume() }
      held.origin?.send("!!")
    }
    if state != .connecting, state != .waitingForRequestBody {
      #expect(held.exchanged.ending == .finished)
      if let origin = held.origin { #expect(origin.readToEnd() == []) }
    }
  }

  /// What a reload has taken away has a line of its own, that is left as well.
  @Test(arguments: ["cancelled", "late"], [true, false])
  func whoLeavesTheLineOfAnOriginThatWasTakenAwayIsNotSent(_ how: String, _ connects: Bool) throws {
    var limits = OriginFixture.Limits()
    limits.firstByteTimeoutMilliseconds = how == "late" ? 1 : 60_000
    let connector = ScriptedConnector()
    limits.connector = connector
    let fixture = try OriginFixture(limits)
    defer { fixture.stop() }
    fixture.onLoop { fixture.client.use(endpoints: [], connectionsMax: 1, idleConnectionsMax: 1) }
    let exchanged = fixture.start()
    #expect(connector.waitForAsked(1))
    if how == "late" {
      fixture.tick(afterMilliseconds: 2)
      #expect(exchanged.ending == .failed(.timedOut("no answer in time")))
    } else {
      fixture.onLoop { exchanged.cancel() }
    }
    if connects {
      let descriptor = try ScriptedConnector.descriptor(fixture)
      let origin = try #require(fixture.accept())
      fixture.onLoop { connector.completeNext(.success(descriptor)) }
      #expect(origin.readToEnd() == [], "nothing is sent")
    } else {
      fixture.onLoop { connector.completeNext(.failure(.unreachable("nobody there"))) }
    }
    #expect(exchanged.now.lateCount == 0)
    #expect(exchanged.now.endCount == (how == "late" ? 1 : 0))
  }

  @Test(arguments: State.allCases)
  func theClientsEndEndsEverything(_ state: State) throws {
    let held = try hold(state)
    held.fixture.onLoop { held.fixture.client.close() }
    for exchanged in held.others + [held.exchanged] {
      #expect(exchanged.ending == .failed(.unreachable("the proxy is stopping")))
      #expect(exchanged.now.lateCount == 0)
    }
    // No descriptor is left: each connection has ended.
    for origin in held.otherOrigins + [held.origin].compactMap({ $0 }) {
      #expect(origin.readToEnd() != nil)
    }
    let late = held.fixture.start()
    #expect(late.ending == .failed(.unreachable("the proxy is stopping")))
    held.fixture.stop()
  }

  // MARK: From within

  enum Action: String, CaseIterable, Sendable {
    case cancel, pauseAndResume, startAnother, cancelAnother
  }

  @Test(
    arguments: Action.allCases,
    [
      Exchanged.Event.interim(103), .head(200), .body, .finished,
      .failed(.broken("malformed chunk size")),
    ])
  func aReceiverMayActFromWithin(_ action: Action, _ when: Exchanged.Event) throws {
    let fixture = try OriginFixture()
    defer { fixture.stop() }
    let another = fixture.start()
    let beside = try #require(fixture.accept())
    beside.readHead()
    let started = Unique<Exchanged>()
    let exchanged = fixture.start { [unowned fixture] exchanged, event in
      guard event == when else { return }
      switch action {
      case .cancel: exchanged.cancel()
      case .pauseAndResume:
        exchanged.transfer?.pause()
        exchanged.transfer?.resume()
      case .startAnother:
        guard started.value == nil else { return }
        let more = Exchanged()
        more.begin(fixture.client, fixture.endpoint, .get, nil, nil)
        started.value = more
      case .cancelAnother: another.cancel()
      }
    }
    let origin = try #require(fixture.accept())
    origin.readHead()
    let end = when == .failed(.broken("malformed chunk size")) ? "x\r\n" : "0\r\n\r\n"
    origin.send(
      "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n1\r\n!\r\n"
        + end)
    let isTold = action != .cancel || when == .finished || end.hasPrefix("x")
    if isTold { #expect(exchanged.wait()?.events.last == (end.hasPrefix("x") ? when : .finished)) }
    let record = exchanged.now
    #expect(record.endCount == (isTold ? 1 : 0))
    if action != .cancel { #expect(record.lateCount == 0 && record.body == Array("hi!".utf8)) }
    if action == .startAnother {
      let more = try #require(fixture.onLoop { started.value })
      // At the turn's end, when this one has let go of its connection.
      if !end.hasPrefix("x") {
        #expect(origin.readHead() != nil)
        origin.send(Self.answer)
      } else {
        let next = try #require(fixture.accept())
        next.readHead()
        next.send(Self.answer)
      }
      #expect(more.ending == .finished)
    }
    if action == .cancelAnother {
      #expect(beside.readToEnd() == [])
    } else {
      beside.send(Self.answer)
      #expect(another.ending == .finished)
    }
  }

  private final class Unique<Value>: @unchecked Sendable {
    // @unchecked Sendable: touched on the loop alone.
    var value: Value?
  }

  // MARK: Nothing is left

  private struct Leftovers {
    weak var transfer: AnyObject?
    weak var connection: AnyObject?
    weak var receiver: AnyObject?
  }

  @Test(arguments: State.allCases)
  func nothingOfAnExchangeOutlivesItsEnd(_ state: State) throws {
    var left = Leftovers()
    let fixture: OriginFixture
    do {
      let held = try hold(state)
      fixture = held.fixture
      left.receiver = held.exchanged
      left.transfer = held.exchanged.weakTransfer
      left.connection = fixture.onLoop {
        (held.exchanged.transfer as? HTTP1Transfer)?.connection
      }
      #expect(left.transfer != nil)
      #expect((left.connection != nil) == (held.origin != nil))
      fixture.onLoop { held.exchanged.cancel() }
      fixture.onLoop { held.exchanged.transfer = nil }
    }
    fixture.settle()
    if state != .inLine && state != .connecting { #expect(left.transfer == nil) }
    #expect(left.connection == nil)
    fixture.stop()
    #expect(left.transfer == nil)
    #expect(left.receiver == nil)
  }

  @Test func aConnectionThatWasKeptGoesWithTheClient() throws {
    let fixture = try OriginFixture()
    let exchanged = fixture.start()
    let origin = try #require(fixture.accept())
    origin.readHead()
    origin.send(Self.answer)
    #expect(exchanged.ending == .finished)
    fixture.onLoop { fixture.client.close() }
    #expect(origin.readToEnd() == [])
    fixture.stop()
  }
}
