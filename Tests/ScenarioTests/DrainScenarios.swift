import Foundation
import Proxy
import Support
import Testing

/// The orderly end: what runs finishes, what is new is refused.
struct DrainScenarios {
  /// Drains on a thread of its own; returns when the listener is closed.
  private func beginDrain(_ proxy: TestProxy) throws -> DispatchSemaphore {
    let idle = try proxy.connect()
    idle.send("OPTIONS", "*")
    _ = try idle.readAnswer()
    let server = try #require(proxy.server)
    let done = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      server.drain()
      done.signal()
    }
    // On the one loop the listener goes before idle connections do.
    #expect(try idle.isClosedByPeer())
    return done
  }

  @Test func aRunningExchangeFinishesAndNewOnesAreRefused() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let gate = Gate()
      origin.on("/a", OriginAnswer.text("v1").waiting(for: gate))
      let busy = try proxy.connect()
      busy.send("GET", "/a")
      #expect(gate.waitUntilReached())
      let done = try beginDrain(proxy)
      #expect(throws: SocketError.self) { _ = try proxy.connect() }
      gate.open()
      let answer = try busy.readAnswer()
      expect(answer, "v1", .stored("uri-miss"))
      #expect(answer.first("Connection") == "close")
      #expect(try busy.isClosedByPeer())
      busy.close()
      #expect(done.wait(timeout: .now() + 60) == .success)
    }
  }

  @Test func aBodyThatIsOnItsWayIsSentToItsEnd() throws {
    try scenario(NetworkOnlyScenarios.route) { origin, proxy in
      let gate = Gate()
      let body = testBytes(500_000)
      origin.on("/a", OriginAnswer.bytes(body).framed(.chunked).pausing(after: 10, for: gate))
      let busy = try proxy.connect()
      busy.send("GET", "/a")
      try busy.readHead()
      let done = try beginDrain(proxy)
      gate.open()
      let answer = try busy.finishAnswer()
      #expect(answer.body == body && !answer.isCut)
      #expect(try busy.isClosedByPeer())
      busy.close()
      #expect(done.wait(timeout: .now() + 60) == .success)
    }
  }

  @Test func anExchangeThatDoesNotEndIsCutWhenItsTimeIsOver() throws {
    try scenario(windowedRoute("cache-first"), limits: #""drain": "200ms""#) { origin, proxy in
      let gate = Gate()
      origin.on("/a", OriginAnswer.text("never whole").pausing(after: 5, for: gate))
      let busy = try proxy.connect()
      busy.send("GET", "/a")
      try busy.readHead()
      let done = try beginDrain(proxy)
      #expect(try busy.finishAnswer().isCut)
      #expect(done.wait(timeout: .now() + 60) == .success)
      gate.open()
    }
  }
}
