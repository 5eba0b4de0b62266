import Support
import Testing

/// What routes list in `warm`: fetched at the start, kept fresh, and left alone where that fails.
///
/// The worker looks with each of its ticks, in real time; when something is due, the test's clock
/// says.
struct WarmScenarios {
  private static func route(_ warm: String, _ more: String = "") -> String {
    """
    { "name": "w", "match": "/w/**", "strategy": "cache-first", "ttl": "100s",
      "warm": [\(warm)], \(more) },
    { "name": "r", "match": "/**", "strategy": "cache-first", "ttl": "100s" }
    """
  }

  private static let top = "\"publicUrl\": \"http://app.example\","

  private static let limits = "\"headerTimeout\": \"100ms\""

  /// A configuration whose origin is scripted before the proxy looks.
  private static func withWarmed(
    _ routes: String, top: String = top, _ script: (ScriptedOrigin) -> Void,
    _ body: (ScriptedOrigin, TestProxy) throws -> Void
  ) throws {
    let origin = try ScriptedOrigin()
    script(origin)
    let proxy = try TestProxy(
      policies: scenarioPolicies(routes, limits: limits, top: top), origin: origin)
    defer {
      origin.stop()
      proxy.stop()
    }
    try body(origin, proxy)
  }

  /// Moves the clock by seconds, and waits until the worker has looked at all that is due: the tick
  /// that looks is the one that ends a request which does not go on.
  private static func step(_ seconds: Int64, _ proxy: TestProxy) throws {
    proxy.advance(seconds: seconds)
    let client = try proxy.connect()
    client.send(raw: "GET ")
    let answer = try client.readAnswer()
    #expect(answer.status == 408)
    client.close()
    try proxy.settle()
  }

  @Test func whatIsListedIsFetchedAtTheStart() throws {
    let urls = "\"/w/a\", \"/w/b?q=1\", \"http://other.example/w/a\""
    try Self.withWarmed(Self.route(urls)) { origin in
      for path in ["/w/a", "/w/b"] { origin.on(path) { .text("\($0.number)") } }
    } _: { origin, proxy in
      try proxy.settle(after: origin, "/w/a", answers: 2)
      try proxy.settle(after: origin, "/w/b", answers: 1)
      #expect(origin.requests("/w/b").map(\.target) == ["/w/b?q=1"])
      let counted = try proxy.statistics()
      #expect(counted.counts == .init(), "nobody asked yet")
      #expect(try proxy.get("/w/a").cacheStatus.isHit)
      #expect(try proxy.get("/w/a", "Host: other.example").cacheStatus.isHit)
      #expect(try proxy.get("/w/b?q=1").cacheStatus.isHit)
      #expect(try proxy.get("/w/b").cacheStatus.isHit == false)
    }
  }

  @Test func aWarmCopyIsFetchedAnewBeforeItsFreshnessEnds() throws {
    try Self.withWarmed(Self.route("\"/w/a\"")) { origin in
      origin.on("/w/a") { request in
        request.first("If-None-Match") == "\"2\""
          ? .empty(status: 304, "ETag: \"2\"")
          : .text("\(request.number)", "ETag: \"\(min(request.number, 2))\"")
      }
    } _: { origin, proxy in
      try proxy.settle(after: origin, "/w/a", answers: 1)
      proxy.advance(seconds: 90)
      expect(try proxy.get("/w/a"), "1", .hit)
      proxy.advance(milliseconds: 8_500)
      try proxy.settle(after: origin, "/w/a", answers: 2)
      expect(try proxy.get("/w/a"), "2", .hit)
      // A confirmation keeps it warm as well.
      for round in 3...5 {
        proxy.advance(milliseconds: 98_500)
        try proxy.settle(after: origin, "/w/a", answers: round)
        let answer = try proxy.get("/w/a")
        expect(answer, "2", .hit)
        #expect(answer.cacheStatus.timeToLiveSeconds ?? 0 > 90, "\(answer.cacheStatus)")
      }
    }
  }

  @Test(arguments: ["refused", "500", "no-store", "404"])
  func anOriginThatFailsIsAskedLessAndLess(_ failure: String) throws {
    try Self.withWarmed(Self.route("\"/w/a\"")) { origin in
      origin.on("/w/a") { _ in
        switch failure {
        case "refused": .silence(.reset)
        case "no-store": .text("x", "Cache-Control: no-store")
        default: .text("x", status: Int(failure)!)
        }
      }
    } _: { origin, proxy in
      #expect(origin.waitForRequests("/w/a", 1))
      for seconds in Array(repeating: 1, count: 8) + Array(repeating: 60, count: 8) {
        try Self.step(Int64(seconds), proxy)
        // A look that meets the fetch before it starts none.
        try proxy.settle(after: origin, "/w/a", answers: origin.requestCount("/w/a"))
      }
      let count = origin.requestCount("/w/a")
      // Doubling from a second to five minutes: at 0, 1, 3, 7, 15, 31, 63, 127…
      #expect((3...10).contains(count), "\(count)")
      // It recovers by itself.
      origin.on("/w/a", .text("well"))
      proxy.advance(seconds: 301)
      try proxy.settle(after: origin, "/w/a", answers: count + 1)
      expect(try proxy.get("/w/a"), "well", .hit)
    }
  }

  @Test func aWarmCopyThatAChangeVoidsIsFetchedAnewSoon() throws {
    try Self.withWarmed(Self.route("\"/w/a\"")) { origin in
      origin.on("/w/a") { .text("\($0.number)") }
    } _: { origin, proxy in
      try proxy.settle(after: origin, "/w/a", answers: 1)
      // It is known to be there, and for how long.
      try Self.step(2, proxy)
      _ = try proxy.send("POST", "/w/a", body: [1])
      proxy.advance(seconds: 20)
      #expect(origin.waitForRequests("/w/a", 3))
      try proxy.settle(after: origin, "/w/a", answers: 3)
      expect(try proxy.get("/w/a"), "3", .hit)
    }
  }

  @Test func whatIsStoredAlreadyIsNotFetchedAtARestart() throws {
    try Self.withWarmed(Self.route("\"/w/a\"")) { origin in
      origin.on("/w/a") { .text("\($0.number)") }
    } _: { origin, proxy in
      try proxy.settle(after: origin, "/w/a", answers: 1)
      try proxy.restart()
      for _ in 0..<3 { try Self.step(1, proxy) }
      #expect(origin.requestCount("/w/a") == 1)
    }
  }

  @Test func aReloadFetchesWhatIsNewAndDropsWhatIsGone() throws {
    try Self.withWarmed(Self.route("\"/w/a\"")) { origin in
      for path in ["/w/a", "/w/b"] { origin.on(path) { .text("\($0.number)") } }
    } _: { origin, proxy in
      try proxy.settle(after: origin, "/w/a", answers: 1)
      let other = scenarioPolicies(Self.route("\"/w/b\""), limits: Self.limits, top: Self.top)
      try proxy.rewrite(policies: other, origin: origin)
      try proxy.settle(after: origin, "/w/b", answers: 1)
      proxy.advance(milliseconds: 98_500)
      try proxy.settle(after: origin, "/w/b", answers: 2)
      #expect(origin.requestCount("/w/a") == 1)
    }
  }

  @Test func aReloadThatMovesThePublicUrlWarmsForIt() throws {
    try Self.withWarmed(Self.route("\"/w/a\"")) { origin in
      origin.on("/w/a") { .text("\($0.number)") }
    } _: { origin, proxy in
      try proxy.settle(after: origin, "/w/a", answers: 1)
      let moved = scenarioPolicies(
        Self.route("\"/w/a\""), top: "\"publicUrl\": \"http://new.example\",")
      try proxy.rewrite(policies: moved, origin: origin)
      proxy.advance(seconds: 20)
      try proxy.settle(after: origin, "/w/a", answers: 2)
      expect(try proxy.get("/w/a", "Host: new.example"), "2", .hit)
    }
  }

  /// A client that comes while the fetch runs waits for it and fetches nothing itself.
  @Test func aClientJoinsTheFetch() throws {
    let gate = Gate()
    try Self.withWarmed(Self.route("\"/w/a\"")) { origin in
      origin.on("/w/a") { OriginAnswer.text("\($0.number)").waiting(for: gate) }
    } _: { origin, proxy in
      #expect(gate.waitUntilReached())
      let client = try proxy.connect()
      client.send("GET", "/w/a")
      try proxy.settle()
      gate.open()
      expectText(try client.readAnswer(), "1")
      #expect(origin.requestCount("/w/a") == 1)
    }
  }
}
