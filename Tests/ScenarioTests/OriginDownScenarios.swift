import Support
import Testing

/// An origin that is known to be down: copies serve at once, and one request now and then looks
/// whether it is back.
struct OriginDownScenarios {
  /// How many attempts to connect make an origin one that is down.
  private static let failures = 5

  private func attempts(_ proxy: TestProxy) throws -> Int {
    try proxy.statistics().origin.requests
  }

  @Test func aCopyServesWithoutAskingAnOriginThatIsKnownToBeDown() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("v1"))
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      origin.stop()
      for count in 1...Self.failures {
        expect(try proxy.get("/a"), "v1", .copy("stale", nil))
        #expect(try attempts(proxy) == 1 + count)
      }
      for _ in 0..<10 { expect(try proxy.get("/a"), "v1", .hit) }
      #expect(try attempts(proxy) == 1 + Self.failures)
      #expect(try proxy.statistics().upstreams["origin"] == .init(isDown: true))
      // Who has no copy has nothing to lose.
      expect(try proxy.get("/b"), "", status: 502, .failed)
      #expect(try attempts(proxy) == 2 + Self.failures)
      // One looks after a while, and finds it down.
      proxy.advance(seconds: 6)
      expect(try proxy.get("/a"), "v1", .copy("stale", nil))
      for _ in 0..<10 { expect(try proxy.get("/a"), "v1", .hit) }
      #expect(try attempts(proxy) == 3 + Self.failures)
      // It recovers by itself.
      try origin.restart()
      origin.on("/a", .text("v2"))
      expect(try proxy.get("/a"), "v1", .hit)
      proxy.advance(seconds: 6)
      expect(try proxy.get("/a"), "v2", .stored("stale"))
      #expect(try proxy.statistics().upstreams["origin"] == .init())
    }
  }

  @Test func anyAnswerTellsThatItIsBack() throws {
    try scenario(NetworkFirstScenarios.route()) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      origin.on("/b", .text("b"))
      _ = try proxy.get("/a")
      origin.stop()
      for _ in 0..<Self.failures { expect(try proxy.get("/a"), "v1", .copy("bypass", nil)) }
      for _ in 0..<3 { expect(try proxy.get("/a"), "v1", .hit) }
      try origin.restart()
      expect(try proxy.get("/a"), "v1", .hit)
      expectText(try proxy.get("/b"), "b")
      expect(try proxy.get("/a"), "v2", .stored("bypass"))
    }
  }

  @Test func anotherAddressIsAnotherOrigin() throws {
    let other = try ScriptedOrigin()
    defer { other.stop() }
    try scenario(NetworkFirstScenarios.route()) { origin, proxy in
      for origin in [origin, other] { origin.on("/a", .text("from \(origin.port)")) }
      _ = try proxy.get("/a")
      let text = "from \(origin.port)"
      origin.stop()
      for _ in 0..<Self.failures { expect(try proxy.get("/a"), text, .copy("bypass", nil)) }
      expect(try proxy.get("/a"), text, .hit)
      let policies = scenarioPolicies(NetworkFirstScenarios.route())
      #expect(try proxy.rewrite(policies: policies, origin: other)?.status == 200)
      expect(try proxy.get("/a"), "from \(other.port)", .stored("bypass"))
    }
  }

  @Test func refreshesDoNotAskEither() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      for index in 0..<20 {
        origin.on("/\(index)", .text("v1"))
        _ = try proxy.get("/\(index)")
      }
      proxy.advance(seconds: Age.stale)
      origin.stop()
      for index in 0..<20 {
        expect(try proxy.get("/\(index)"), "v1", .hit)
        try proxy.settle()
      }
      #expect(try attempts(proxy) == 20 + Self.failures)
    }
  }
}
