import Support
import Testing

/// Keys whose answers turned out not to be for sharing: remembered for a while, without a body, and
/// looked at anew when they change.
struct UnshareableScenarios {
  static let route = windowedRoute("cache-first")

  @Test func aKeyThatBecomesStorableAgainIsNoticed() throws {
    try scenario(Self.route) { origin, proxy in
      let gate = Gate()
      origin.on("/a", inTurn: [.text("v1", "Cache-Control: no-store"), .text("v2")])
      expect(try proxy.get("/a"), "v1", .notStored("uri-miss"))
      // The mark has no body in the store.
      #expect(try proxy.statistics().store.entries == 0)
      expect(try proxy.get("/a"), "v2", .stored("uri-miss"))
      expect(try proxy.get("/a"), "v2", .hit)
      // And requests share fetches again.
      origin.on("/a", OriginAnswer.text("v3").waiting(for: gate))
      proxy.advance(seconds: Age.older)
      let clients = try (0..<5).map { _ in try proxy.connect() }
      for client in clients { client.send("GET", "/a") }
      #expect(gate.waitUntilReached())
      try proxy.settle()
      gate.open()
      for client in clients { expectText(try client.readAnswer(), "v3") }
      #expect(origin.requestCount("/a") == 3)
    }
  }

  @Test func theMemoryOfItEnds() throws {
    try scenario(Self.route) { origin, proxy in
      let (first, second) = (Gate(), Gate())
      origin.on("/a") { request in
        let answer = OriginAnswer.text("v\(request.number)", "Cache-Control: no-store")
        return switch request.number {
        case 1: answer
        case 2...4: answer.waiting(for: first)
        default: answer.waiting(for: second)
        }
      }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 119)
      var clients = try (0..<3).map { _ in try proxy.connect() }
      for client in clients { client.send("GET", "/a") }
      #expect(first.waitUntilReached(3))
      first.open()
      for client in clients { _ = try client.readAnswer() }
      // Those have renewed it.
      proxy.advance(seconds: 121)
      clients = try (0..<3).map { _ in try proxy.connect() }
      for client in clients { client.send("GET", "/a") }
      #expect(second.waitUntilReached())
      try proxy.settle()
      #expect(origin.requestCount("/a") == 5)
      second.open()
      for client in clients { _ = try client.readAnswer() }
      #expect(origin.requestCount("/a") == 7)
    }
  }

  @Test func anErrorThatManyWaitedForIsStoredForItsTimeOnly() throws {
    let route = """
      { "name": "r", "match": "/**", "strategy": "cache-first", "ttl": "1h",
        "negative": { "404": "30s" } }
      """
    try scenario(route, top: CoalescingScenarios.twoLoops) { origin, proxy in
      let gate = Gate()
      origin.on(
        "/a",
        inTurn: [
          .text("v1"), OriginAnswer.text("gone", status: 404).waiting(for: gate), .text("v3"),
        ])
      _ = try proxy.get("/a")
      proxy.advance(seconds: 3_700)
      let clients = try (0..<10).map { _ in try proxy.connect() }
      for client in clients { client.send("GET", "/a") }
      #expect(gate.waitUntilReached())
      try proxy.settle()
      gate.open()
      for client in clients { expectText(try client.readAnswer(), "gone", status: 404) }
      try proxy.settle()
      proxy.advance(seconds: 29)
      expect(try proxy.get("/a"), "gone", status: 404, .hit)
      proxy.advance(seconds: 2)
      expect(try proxy.get("/a"), "v3", .stored("stale"))
      #expect(origin.requestCount("/a") == 3)
    }
  }

  /// What is not stored waits at the origin, not in memory.
  @Test func aClientThatTakesNothingHoldsTheOriginBack() throws {
    try scenario(Self.route, limits: #""bodyStall": "5m""#) { origin, proxy in
      let body = testBytes(48 * 1024 * 1024)
      origin.on("/a", .bytes(body, "Cache-Control: no-store"))
      let client = try proxy.connect(receiveBufferBytes: 4096)
      client.send("GET", "/a")
      try client.readHead()
      var arrived = -1
      var unchanged = 0
      while unchanged < 50 {
        let now = try proxy.statistics().bytes.fromOrigin
        unchanged = now == arrived ? unchanged + 1 : 0
        arrived = now
      }
      // The kernel's buffers are full of it; all of it would be more than they hold.
      #expect(arrived < body.count / 2, "\(arrived)")
      #expect(try client.finishAnswer().body == body)
    }
  }
}
