import Support
import Testing

/// The row `stale-while-revalidate` of the strategies' table, cell by cell.
struct StaleWhileRevalidateScenarios {
  let route = windowedRoute("stale-while-revalidate")

  @Test func withoutACopyTheNetworkAnswersAndIsStored() throws {
    try scenario(route) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      let answer = try proxy.get("/a")
      expect(answer, "v1", .stored("uri-miss"))
      #expect(answer.cacheStatus.detail == "stale-while-revalidate")
      #expect(origin.requestCount("/a") == 1)
      #expect(try proxy.counts("r") == .init(misses: 1))
      expect(try proxy.get("/a"), "v1", .hit)
    }
  }

  @Test(arguments: [
    ("fresh", Age.fresh, true), ("within the window", Age.stale, false),
    ("older", Age.older, false), ("beyond all windows", Age.beyondAll, false),
  ])
  func aCopyServesAtOnceAndIsRefreshedInTheBackground(
    _ name: String, _ age: Int64, _ isHit: Bool
  ) throws {
    try scenario(route) { origin, proxy in
      let gate = Gate()
      origin.on("/a", inTurn: [.text("v1"), OriginAnswer.text("v2").waiting(for: gate)])
      _ = try proxy.get("/a")
      proxy.advance(seconds: age)
      expect(try proxy.get("/a"), "v1", .hit)
      #expect(gate.waitUntilReached())
      // While the refresh runs there is no second one.
      expect(try proxy.get("/a"), "v1", .hit)
      try proxy.settle()
      #expect(origin.requestCount("/a") == 2)
      gate.open()
      try proxy.settle(after: origin, "/a", answers: 2)
      let before = try proxy.counts("r")
      #expect(before == (isHit ? .init(hits: 2, misses: 1) : .init(stale: 2, misses: 1)))
      expect(try proxy.get("/a"), "v2", .hit)
      try proxy.settle(after: origin, "/a", answers: 3)
      #expect(try proxy.counts("r") == before + .init(hits: 1))
    }
  }

  @Test(arguments: NetworkFailure.allCases)
  func theCopyWasServedBeforeTheNetworkFailed(_ failure: NetworkFailure) throws {
    try scenario(route, upstream: failure.upstream) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      failure.begin(origin, "/a")
      expect(try proxy.get("/a"), "v1", .hit)
      if failure != .refusesConnections { #expect(origin.waitForRequests("/a", 2)) }
      try proxy.settle()
      expect(try proxy.get("/a"), "v1", .hit)
      #expect(try proxy.counts("r") == .init(stale: 2, misses: 1))
    }
  }

  @Test(arguments: NetworkFailure.allCases)
  func withoutACopyTheNetworksFailureIsTheAnswer(_ failure: NetworkFailure) throws {
    try scenario(route, upstream: failure.upstream) { origin, proxy in
      failure.begin(origin, "/a")
      failure.expectError(try proxy.get("/a"))
      #expect(try proxy.counts("r") == failure.errorCounts)
    }
  }
}
