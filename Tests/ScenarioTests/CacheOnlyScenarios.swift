import Support
import Testing

/// The row `cache-only` of the strategies' table: the network is never asked.
struct CacheOnlyScenarios {
  /// A copy that another strategy brought, behind a route that may only read now.
  private func withCopy(
    age: Int64, _ body: (ScriptedOrigin, TestProxy) throws -> Void
  ) throws {
    try scenario(windowedRoute("network-and-store")) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: age)
      try proxy.restart(
        policies: scenarioPolicies(windowedRoute("cache-only")), origin: origin)
      try body(origin, proxy)
      #expect(origin.requestCount("/a") == 1)
      #expect(try proxy.statistics().origin.requests == 0)
    }
  }

  @Test func withoutACopyItIs504AndTheNetworkIsNotAsked() throws {
    try scenario(windowedRoute("cache-only")) { origin, proxy in
      origin.on("/a", .text("v1"))
      expect(try proxy.get("/a"), "", status: 504, .failed)
      expect(try proxy.get("/a"), "", status: 504, .failed)
      #expect(origin.requestCount("/a") == 0)
      #expect(try proxy.counts("r") == .init(errors: 2))
    }
  }

  @Test func aFreshCopyServes() throws {
    try withCopy(age: Age.fresh) { origin, proxy in
      let answer = try proxy.get("/a")
      expect(answer, "v1", .hit)
      #expect(answer.cacheStatus.detail == "cache-only")
      #expect(try proxy.counts("r") == .init(hits: 1))
    }
  }

  @Test(arguments: [("staleWhileRevalidate", Age.stale), ("staleIfError", Age.older)])
  func aStaleCopyServesWithinItsWindows(_ name: String, _ age: Int64) throws {
    try withCopy(age: age) { origin, proxy in
      expect(try proxy.get("/a"), "v1", .hit)
      #expect(try proxy.counts("r") == .init(stale: 1))
    }
  }

  @Test func aCopyBeyondItsWindowsIs504() throws {
    try withCopy(age: Age.beyondAll) { origin, proxy in
      expect(try proxy.get("/a"), "", status: 504, .failed)
      #expect(try proxy.counts("r") == .init(errors: 1))
    }
  }

  @Test func aStoppedOriginChangesNothing() throws {
    try withCopy(age: Age.stale) { origin, proxy in
      origin.stop()
      expect(try proxy.get("/a"), "v1", .hit)
      expect(try proxy.get("/b"), "", status: 504, .failed)
      #expect(try proxy.counts("r") == .init(stale: 1, errors: 1))
    }
  }
}
