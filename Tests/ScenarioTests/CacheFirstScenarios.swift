import Support
import Testing

/// The row `cache-first` of the strategies' table, cell by cell.
struct CacheFirstScenarios {
  let route = windowedRoute("cache-first")

  @Test func withoutACopyTheNetworkAnswersAndIsStored() throws {
    try scenario(route) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      let answer = try proxy.get("/a")
      expect(answer, "v1", .stored("uri-miss"))
      #expect(answer.cacheStatus.detail == "cache-first")
      #expect(answer.first("Age") == nil)
      #expect(try proxy.counts("r") == .init(misses: 1))
      expect(try proxy.get("/a"), "v1", .hit)
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test func aFreshCopyServesWithoutTheNetwork() throws {
    try scenario(route) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 1800)
      let answer = try proxy.get("/a")
      expect(answer, "v1", .hit)
      #expect(answer.cacheStatus.detail == "cache-first")
      #expect((1750...1800).contains(answer.cacheStatus.timeToLiveSeconds ?? 0))
      #expect((1800...1850).contains(answer.ageSeconds ?? 0))
      expect(try proxy.get("/a"), "v1", .hit)
      #expect(origin.requestCount("/a") == 1)
      #expect(try proxy.counts("r") == .init(hits: 2, misses: 1))
    }
  }

  @Test func aStaleCopyServesAtOnceWhileExactlyOneRefreshRuns() throws {
    try scenario(route) { origin, proxy in
      let gate = Gate()
      origin.on("/a", inTurn: [.text("v1"), OriginAnswer.text("v2").waiting(for: gate)])
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.stale)
      let first = try proxy.get("/a")
      expect(first, "v1", .hit)
      #expect((first.cacheStatus.timeToLiveSeconds ?? 0) <= -1800)
      #expect(gate.waitUntilReached())
      expect(try proxy.get("/a"), "v1", .hit)
      #expect(try proxy.counts("r") == .init(stale: 2, misses: 1))
      gate.open()
      try proxy.settle(after: origin, "/a", answers: 2)
      expect(try proxy.get("/a"), "v2", .hit)
      #expect(origin.requestCount("/a") == 2)
      #expect(try proxy.counts("r") == .init(hits: 1, stale: 2, misses: 1))
    }
  }

  @Test func anOlderCopyIsFetchedAnew() throws {
    try scenario(route) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      expect(try proxy.get("/a"), "v2", .stored("stale"))
      expect(try proxy.get("/a"), "v2", .hit)
      #expect(origin.requestCount("/a") == 2)
      #expect(try proxy.counts("r") == .init(hits: 1, misses: 2))
    }
  }

  @Test func anOlderCopyThatTheOriginConfirmsIsAHit() throws {
    try scenario(route) { origin, proxy in
      origin.on("/a") { request in
        request.first("If-None-Match") == "\"one\""
          ? .empty(status: 304, "ETag: \"one\"") : .text("v1", "ETag: \"one\"")
      }
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      expect(try proxy.get("/a"), "v1", .copy("stale", 304))
      expect(try proxy.get("/a"), "v1", .hit)
      #expect(origin.requestCount("/a") == 2)
      #expect(try proxy.counts("r") == .init(hits: 2, misses: 1))
    }
  }

  @Test(arguments: NetworkFailure.allCases)
  func anOlderCopyServesWhereTheNetworkFails(_ failure: NetworkFailure) throws {
    try scenario(route, upstream: failure.upstream) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      failure.begin(origin, "/a")
      expect(try proxy.get("/a"), "v1", .copy("stale", failure.forwardStatus))
      expect(try proxy.get("/a"), "v1", .copy("stale", failure.forwardStatus))
      #expect(try proxy.counts("r") == .init(stale: 2, misses: 1))
      if failure == .neverAnswers || failure == .answers503 {
        #expect(origin.requestCount("/a") == 3)
      }
      if failure == .refusesConnections { try origin.restart() }
      origin.on("/a", .text("recovered"))
      expect(try proxy.get("/a"), "recovered", .stored("stale"))
    }
  }

  @Test(arguments: NetworkFailure.allCases)
  func aCopyBeyondItsWindowsIsNoHelpWhereTheNetworkFails(_ failure: NetworkFailure) throws {
    try scenario(route, upstream: failure.upstream) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.beyondAll)
      failure.begin(origin, "/a")
      failure.expectError(try proxy.get("/a"))
      #expect(try proxy.counts("r") == .init(misses: 1) + failure.errorCounts)
    }
  }

  @Test(arguments: NetworkFailure.allCases)
  func withoutACopyTheNetworksFailureIsTheAnswer(_ failure: NetworkFailure) throws {
    try scenario(route, upstream: failure.upstream) { origin, proxy in
      failure.begin(origin, "/a")
      failure.expectError(try proxy.get("/a"))
      #expect(try proxy.counts("r") == failure.errorCounts)
      if failure == .refusesConnections { try origin.restart() }
      origin.on("/a", .text("recovered"))
      expect(try proxy.get("/a"), "recovered", .stored("uri-miss"))
    }
  }

  @Test func aFailedRefreshLeavesTheStaleCopy() throws {
    try scenario(route) { origin, proxy in
      origin.on("/a", inTurn: [.text("v1"), .text("bad", status: 500), .text("v3")])
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.stale)
      expect(try proxy.get("/a"), "v1", .hit)
      try proxy.settle(after: origin, "/a", answers: 2)
      // The next is tried a second later.
      proxy.advance(seconds: 2)
      expect(try proxy.get("/a"), "v1", .hit)
      try proxy.settle(after: origin, "/a", answers: 3)
      expect(try proxy.get("/a"), "v3", .hit)
      #expect(try proxy.counts("r") == .init(hits: 1, stale: 2, misses: 1))
    }
  }
}
