import Support
import Testing

/// The row `network-and-store` of the strategies' table: the client always gets the network's
/// answer, and others may read it.
struct NetworkAndStoreScenarios {
  static let route = windowedRoute("network-and-store")

  /// What is stored, as a route sees it that may only read.
  private func expectStored(
    _ body: String, _ origin: ScriptedOrigin, _ proxy: TestProxy,
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    try proxy.restart(
      policies: scenarioPolicies(
        #"{ "name": "r", "match": "/**", "strategy": "cache-only", "ttl": "10d" },"#),
      origin: origin)
    expect(try proxy.get("/a"), body, .hit, location)
  }

  @Test func withoutACopyTheNetworkAnswersAndIsStored() throws {
    try scenario(NetworkAndStoreScenarios.route) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      let answer = try proxy.get("/a")
      #expect(answer.text == "v1")
      #expect(answer.cacheStatus.isStored && !answer.cacheStatus.isHit)
      #expect(answer.cacheStatus.detail == "network-and-store")
      #expect(try proxy.counts("r") == .init(misses: 1))
      try expectStored("v1", origin, proxy)
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test(arguments: [("fresh", Age.fresh), ("stale", Age.stale), ("older", Age.older)])
  func theNetworkAnswersBesideACopyAndReplacesIt(_ name: String, _ age: Int64) throws {
    try scenario(NetworkAndStoreScenarios.route) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)", "ETag: \"\($0.number)\"") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: age)
      let answer = try proxy.get("/a")
      #expect(answer.text == "v2")
      #expect(answer.cacheStatus.isStored && !answer.cacheStatus.isHit)
      #expect(origin.requestCount("/a") == 2)
      #expect(try proxy.counts("r") == .init(misses: 2))
      try expectStored("v2", origin, proxy)
    }
  }

  @Test(
    arguments: NetworkFailure.allCases,
    [("fresh", Age.fresh), ("stale", Age.stale), ("older", Age.older)])
  func theNetworksFailureIsTheAnswerAndTheCopyStays(
    _ failure: NetworkFailure, _ age: (String, Int64)
  ) throws {
    try scenario(NetworkAndStoreScenarios.route, upstream: failure.upstream) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: age.1)
      failure.begin(origin, "/a")
      failure.expectError(try proxy.get("/a"))
      #expect(try proxy.counts("r") == .init(misses: 1) + failure.errorCounts)
      try expectStored("v1", origin, proxy)
    }
  }
}
