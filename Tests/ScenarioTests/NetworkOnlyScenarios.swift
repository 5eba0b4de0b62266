import Support
import Testing

/// The row `network-only` of the strategies' table: never stored, never read, never shared.
struct NetworkOnlyScenarios {
  static let route = #"{ "name": "r", "match": "/**", "strategy": "network-only" },"#

  /// An origin whose first answer is in the store as a copy of the given age, behind a route that
  /// is network-only now.
  private func withCopy(
    age: Int64, upstream: String = "\"retries\": 0",
    _ body: (ScriptedOrigin, TestProxy) throws -> Void
  ) throws {
    try scenario(windowedRoute("cache-first"), upstream: upstream) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: age)
      try proxy.restart(
        policies: scenarioPolicies(NetworkOnlyScenarios.route, upstream: upstream), origin: origin)
      try body(origin, proxy)
      // Whatever happened, the copy is what it was.
      try proxy.restart(
        policies: scenarioPolicies(
          #"{ "name": "r", "match": "/**", "strategy": "cache-only", "ttl": "10d" },"#),
        origin: origin)
      expect(try proxy.get("/a"), "v1", .hit)
    }
  }

  @Test func withoutACopyTheNetworkAnswersAndNothingIsStored() throws {
    try scenario(NetworkOnlyScenarios.route) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)", "Cache-Control: public, max-age=600") }
      let answer = try proxy.get("/a")
      expect(answer, "v1", .notStored("bypass"))
      #expect(answer.cacheStatus.detail == "network-only")
      #expect(answer.first("Cache-Control") == "public, max-age=600")
      #expect(answer.first("Age") == nil)
      expect(try proxy.get("/a"), "v2", .notStored("bypass"))
      #expect(try proxy.counts("r") == .init(passes: 2))
      #expect(try proxy.statistics().hitRatio == 0)
    }
  }

  @Test(arguments: [("fresh", Age.fresh), ("stale", Age.stale), ("older", Age.older)])
  func aCopyIsNeitherReadNorReplaced(_ name: String, _ age: Int64) throws {
    try withCopy(age: age) { origin, proxy in
      expect(try proxy.get("/a"), "v2", .notStored("bypass"))
      expect(try proxy.get("/a"), "v3", .notStored("bypass"))
      #expect(try proxy.counts("r") == .init(passes: 2))
    }
  }

  @Test(arguments: NetworkFailure.allCases)
  func theNetworksFailureIsTheAnswerWhateverIsStored(_ failure: NetworkFailure) throws {
    try withCopy(age: Age.fresh, upstream: failure.upstream) { origin, proxy in
      failure.begin(origin, "/a")
      failure.expectError(try proxy.get("/a"))
      #expect(try proxy.counts("r") == failure.errorCounts)
    }
  }

  @Test func requestsAtOnceAreNotShared() throws {
    try scenario(NetworkOnlyScenarios.route) { origin, proxy in
      let gate = Gate()
      origin.on("/a") { OriginAnswer.text("v\($0.number)").waiting(for: gate) }
      let connections = try (0..<5).map { _ in try proxy.connect() }
      for connection in connections { connection.send("GET", "/a") }
      #expect(gate.waitUntilReached(5))
      gate.open()
      let bodies = try connections.map { try $0.readAnswer().text }
      #expect(Set(bodies) == ["v1", "v2", "v3", "v4", "v5"])
      let statistics = try proxy.statistics()
      #expect(statistics.counts == .init(passes: 5))
      #expect(statistics.collapsed == 0)
    }
  }

  @Test func aRouteWithoutAStrategyIsNetworkOnly() throws {
    try scenario(#"{ "name": "r", "match": "/a" },"#) { origin, proxy in
      for path in ["/a", "/elsewhere"] {
        origin.on(path) { .text("v\($0.number)", "Cache-Control: max-age=600") }
        expect(try proxy.get(path), "v1", .notStored("bypass"))
        expect(try proxy.get(path), "v2", .notStored("bypass"))
      }
      #expect(try proxy.counts("r") == .init(passes: 2))
      #expect(try proxy.counts("(default)") == .init(passes: 2))
    }
  }
}
