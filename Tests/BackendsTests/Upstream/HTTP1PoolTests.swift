internal import CachePolicy
import Testing

@testable import Backends

/// Who rides on which connection to an origin, how many there are, and what a dead one means.
struct HTTP1PoolTests {
  private static let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

  /// Has an exchange answered on a connection, and leaves that open.
  private func answered(_ fixture: OriginFixture, on open: OriginSide? = nil) throws -> OriginSide {
    let exchanged = fixture.start()
    let origin = try #require(open ?? fixture.accept())
    origin.readHead()
    origin.send(Self.answer)
    #expect(exchanged.ending == .finished)
    return origin
  }

  // MARK: The line

  @Test func whoFindsNoRoomIsServedInTheOrderOfComing() throws {
    var limits = OriginFixture.Limits()
    limits.connectionsMax = 1
    let fixture = try OriginFixture(limits)
    defer { fixture.stop() }
    let exchanges = (0..<5).map { _ in fixture.start() }
    let origin = try #require(fixture.accept())
    for (index, exchanged) in exchanges.enumerated() {
      #expect(origin.readHead() != nil)
      for later in exchanges[index...] { #expect(later.now.events.isEmpty) }
      origin.send(Self.answer)
      #expect(exchanged.ending == .finished)
    }
    #expect(fixture.counters.connectionsOpened == 1)
  }

  @Test func whoLeavesTheLineIsNotSent() throws {
    var limits = OriginFixture.Limits()
    limits.connectionsMax = 1
    let fixture = try OriginFixture(limits)
    defer { fixture.stop() }
    // More than the line keeps unsorted.
    let exchanges = (0..<200).map { _ in fixture.start() }
    let origin = try #require(fixture.accept())
    origin.readHead()
    fixture.onLoop { for exchanged in exchanges[1..<199] { exchanged.cancel() } }
    origin.send(Self.answer)
    #expect(exchanges[0].ending == .finished)
    #expect(origin.readHead() != nil)
    origin.send(Self.answer)
    #expect(exchanges[199].ending == .finished)
    #expect(exchanges[1..<199].allSatisfy { $0.now.events.isEmpty })
  }

  @Test func whenOneOfTheLineEndsAConnectionTheNextGetsANewOne() throws {
    var limits = OriginFixture.Limits()
    limits.connectionsMax = 1
    let fixture = try OriginFixture(limits)
    defer { fixture.stop() }
    let (first, second) = (fixture.start(), fixture.start())
    let origin = try #require(fixture.accept())
    origin.readHead()
    fixture.onLoop { first.cancel() }
    #expect(origin.readToEnd() == [])
    let next = try #require(fixture.accept())
    #expect(next.readHead() != nil)
    next.send(Self.answer)
    #expect(second.ending == .finished)
    #expect(first.now.lateCount == 0)
  }

  // MARK: Connections that fail

  @Test(arguments: [1, 3])
  func allInLineFailWhereNobodyListens(_ connectionsMax: Int) throws {
    var limits = OriginFixture.Limits()
    limits.connectionsMax = connectionsMax
    limits.retriesMax = 1
    limits.isClosed = true
    let fixture = try OriginFixture(limits)
    defer { fixture.stop() }
    let exchanges = (0..<20).map { _ in fixture.start() }
    for exchanged in exchanges {
      guard case .failed(.unreachable) = exchanged.ending else {
        Issue.record("\(exchanged.now.events)")
        return
      }
    }
    #expect(fixture.counters.requests == 40, "each was tried twice")
    #expect(fixture.counters.failures == 20)
    #expect(fixture.counters.connectionsOpened == 0)
  }

  /// The stack does not grow with the line.
  @Test func aLongLineFailsWhereConnectingFailsAtOnce() throws {
    var limits = OriginFixture.Limits()
    limits.connectionsMax = 1
    let connector = ScriptedConnector()
    limits.connector = connector
    let fixture = try OriginFixture(limits)
    defer { fixture.stop() }
    let exchanges = (0..<20_000).map { _ in Exchanged() }
    fixture.onLoop {
      for exchanged in exchanges {
        exchanged.begin(fixture.client, fixture.endpoint, .get, nil, nil)
      }
    }
    #expect(connector.waitForAsked(1))
    fixture.onLoop {
      connector.failsAtOnce = true
      connector.completeNext(.failure(.unreachable("nobody there")))
    }
    let failure = Exchanged.Event.failed(.unreachable("nobody there"))
    #expect(exchanges.allSatisfy { $0.ending == failure })
    #expect(connector.askedCount == exchanges.count)
  }

  /// A port that takes connections and ends each, as a balancer without servers does, or that speaks
  /// another protocol and first: who waits is told, instead of one connection after the other.
  @Test(arguments: ["an end", "a reset", "a greeting", "an answer"], [Method.get, .post])
  func aConnectionThatIsOfNoUseFromTheBeginIsAFailure(_ what: String, _ method: Method) throws {
    var limits = OriginFixture.Limits()
    limits.retriesMax = 1
    let connector = ScriptedConnector()
    limits.connector = connector
    let fixture = try OriginFixture(limits)
    defer { fixture.stop() }
    let exchanged = fixture.start(method)
    for attempt in 1...2 {
      #expect(connector.waitForAsked(attempt))
      let descriptor = try ScriptedConnector.descriptor(fixture)
      let origin = try #require(fixture.accept())
      switch what {
      case "an end": origin.finishSending()
      case "a reset": origin.reset()
      case "a greeting": origin.send("220 mail\r\n")
      default: origin.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      }
      #expect(exchanged.now.events.isEmpty)
      fixture.onLoop { connector.completeNext(.success(descriptor)) }
      if what != "a reset" { #expect(origin.readToEnd() == [], "nothing was sent") }
    }
    guard case .failed(.unreachable) = exchanged.ending else {
      Issue.record("\(exchanged.now.events)")
      return
    }
    #expect(connector.askedCount == 2)
  }

  /// One that has got another connection meanwhile does not leave its failure to the next.
  @Test func aConnectionThatFailsIsNobodysWhereAsManyAreOnTheirWayAsAreWaitedFor() throws {
    var limits = OriginFixture.Limits()
    let connector = ScriptedConnector()
    limits.connector = connector
    let fixture = try OriginFixture(limits)
    defer { fixture.stop() }
    let first = fixture.start()
    #expect(connector.waitForAsked(1))
    fixture.onLoop { first.cancel() }
    let second = fixture.start()
    #expect(fixture.onLoop { connector.askedCount } == 1, "the one on its way is taken")
    let third = fixture.start()
    #expect(connector.waitForAsked(2))
    fixture.onLoop { third.cancel() }
    fixture.onLoop { connector.completeNext(.failure(.unreachable("not this one"))) }
    #expect(second.now.endCount == 0)
    let descriptor = try ScriptedConnector.descriptor(fixture)
    fixture.onLoop { connector.completeNext(.success(descriptor)) }
    let origin = try #require(fixture.accept())
    origin.readHead()
    origin.send(Self.answer)
    #expect(second.ending == .finished)
  }

  // MARK: Kept connections

  @Test(arguments: ["an end", "a reset", "bytes"])
  func anIdleConnectionThatSpeaksOrEndsIsNotUsedAgain(_ what: String) throws {
    let fixture = try OriginFixture()
    defer { fixture.stop() }
    let origin = try answered(fixture)
    switch what {
    case "an end": origin.finishSending()
    case "a reset": origin.reset()
    default: origin.send("HTTP/1.1 408 Too late\r\nContent-Length: 0\r\n\r\n")
    }
    if what != "a reset" { #expect(origin.readToEnd() == []) }
    _ = try answered(fixture)
    #expect(fixture.counters.connectionsOpened == 2)
    #expect(fixture.counters.failures == 0)
  }

  @Test func aRequestOnADeadKeptConnectionGoesOutOnceMoreOnANewOne() throws {
    let fixture = try OriginFixture()
    defer { fixture.stop() }
    let origin = try answered(fixture)
    let exchanged = fixture.start()
    #expect(origin.readHead() != nil)
    origin.reset()
    let second = try #require(fixture.accept())
    #expect(second.readHead() != nil)
    // And not a third time: that one had not carried anything before.
    second.reset()
    #expect(exchanged.ending == .failed(.broken("no answer")))
    #expect(fixture.counters.requests == 2)
  }

  @Test func aChangeOnADeadKeptConnectionIsNotSentTwice() throws {
    let fixture = try OriginFixture()
    defer { fixture.stop() }
    let origin = try answered(fixture)
    fixture.onLoop { fixture.client.http1.recentMilliseconds = 1_000_000 }
    let exchanged = fixture.start(.post)
    #expect(origin.readHead() != nil)
    origin.reset()
    #expect(exchanged.ending == .failed(.broken("no answer")))
    #expect(fixture.waitingConnections == 0)
  }

  /// An answer that has begun says that the origin took the request.
  @Test func nothingIsSentTwiceOnceAnAnswerHasBegun() throws {
    let fixture = try OriginFixture()
    defer { fixture.stop() }
    let origin = try answered(fixture)
    let exchanged = fixture.start()
    origin.readHead()
    origin.send("H")
    origin.reset()
    #expect(
      exchanged.ending == .failed(.broken("the connection broke within the answer")))
    #expect(fixture.waitingConnections == 0)
  }

  /// RFC 9112 §9.3.1: a repetition is not repeated, so it is to have the best chance there is.
  @Test func aRepetitionTakesANewConnectionThoughAKeptOneIsFreeBefore() throws {
    var limits = OriginFixture.Limits()
    limits.connectionsMax = 2
    let connector = ScriptedConnector()
    limits.connector = connector
    let fixture = try OriginFixture(limits)
    defer { fixture.stop() }
    // Two that are kept.
    let begun = [fixture.start(), fixture.start()]
    var kept: [OriginSide] = []
    for _ in begun {
      let descriptor = try ScriptedConnector.descriptor(fixture)
      kept.append(try #require(fixture.accept()))
      fixture.onLoop { connector.completeNext(.success(descriptor)) }
    }
    for origin in kept {
      origin.readHead()
      origin.send(Self.answer)
    }
    for exchanged in begun { #expect(exchanged.ending == .finished) }
    // The last is used first.
    let (repeated, other, waiting) = (fixture.start(), fixture.start(), fixture.start())
    #expect(kept[1].readHead() != nil && kept[0].readHead() != nil)
    kept[1].reset()
    #expect(connector.waitForAsked(3))
    kept[0].send(Self.answer)
    #expect(other.ending == .finished)
    // It has waited for longer, and still it is the other that gets what became free.
    #expect(kept[0].readHead() != nil)
    kept[0].send(Self.answer)
    #expect(waiting.ending == .finished)
    #expect(repeated.now.endCount == 0)
    let descriptor = try ScriptedConnector.descriptor(fixture)
    let new = try #require(fixture.accept())
    fixture.onLoop { connector.completeNext(.success(descriptor)) }
    #expect(new.readHead() != nil)
    new.send(Self.answer)
    #expect(repeated.ending == .finished)
  }

  @Test func aChangeTakesANewConnectionWhereTheKeptOneIsOldThoughThereIsNoRoom() throws {
    var limits = OriginFixture.Limits()
    limits.connectionsMax = 1
    let fixture = try OriginFixture(limits)
    defer { fixture.stop() }
    fixture.onLoop { fixture.client.http1.recentMilliseconds = 0 }
    let kept = try answered(fixture)
    fixture.tick(afterMilliseconds: 1)
    let change = fixture.start(.post)
    #expect(kept.readToEnd() == [])
    let new = try #require(fixture.accept())
    #expect(new.readHead() != nil)
    new.send(Self.answer)
    #expect(change.ending == .finished)
    #expect(fixture.counters.connectionsOpened == 2)
  }

  @Test func idleConnectionsHaveALimitAndTheOldestGoes() throws {
    var limits = OriginFixture.Limits()
    limits.idleConnectionsMax = 2
    let fixture = try OriginFixture(limits)
    defer { fixture.stop() }
    let exchanges = (0..<3).map { _ in fixture.start() }
    let origins = try (0..<3).map { _ in try #require(fixture.accept()) }
    // None is free before each carries one.
    for origin in origins { #expect(origin.readHead() != nil) }
    for origin in origins { origin.send(Self.answer) }
    for exchanged in exchanges { #expect(exchanged.ending == .finished) }
    #expect(origins[0].readToEnd() == [])
    // The one that was used last is used first.
    _ = try answered(fixture, on: origins[2])
  }

  @Test func theOldestIdleConnectionGoesWhicheverOriginItIsTo() throws {
    let other = try OriginFixture()
    defer { other.stop() }
    let fixture = try OriginFixture()
    defer { fixture.stop() }
    fixture.onLoop {
      fixture.client.use(
        endpoints: [fixture.endpoint, other.endpoint], connectionsMax: 8, idleConnectionsMax: 1)
    }
    let old = try answered(fixture)
    fixture.tick(afterMilliseconds: 1)
    let first = fixture.start(to: other.endpoint)
    let origin = try #require(other.accept())
    origin.readHead()
    origin.send(Self.answer)
    #expect(first.ending == .finished)
    #expect(old.readToEnd() == [])
    // It is the newer one that was kept.
    let second = fixture.start(to: other.endpoint)
    #expect(origin.readHead() != nil)
    origin.send(Self.answer)
    #expect(second.ending == .finished)
  }

  @Test func moreConnectionsAreMadeOnceMoreAreAllowed() throws {
    var limits = OriginFixture.Limits()
    limits.connectionsMax = 1
    let fixture = try OriginFixture(limits)
    defer { fixture.stop() }
    let (first, second) = (fixture.start(), fixture.start())
    let origin = try #require(fixture.accept())
    origin.readHead()
    fixture.onLoop {
      fixture.client.use(endpoints: [fixture.endpoint], connectionsMax: 2, idleConnectionsMax: 2)
    }
    let new = try #require(fixture.accept())
    new.readHead()
    new.send(Self.answer)
    #expect(second.ending == .finished)
    origin.send(Self.answer)
    #expect(first.ending == .finished)
  }
}
