import Support
import Testing

/// An upstream's limits: who is beyond them waits for a place, and gets a copy or 503 where there is
/// none in time; and origins that are known to be down.
@Suite(.serialized)
struct UpstreamLimitScenarios {
  static let stored = #"{ "name": "r", "match": "/**", "strategy": "cache-first", "ttl": "1h" }"#

  static func upstream(_ limits: String) -> String { "\"retries\": 0, \(limits)" }

  /// Asks for the counts until they are these; false: asked far too often.
  private func waits(
    _ proxy: TestProxy, for wanted: ProxyStatistics.Upstream
  ) throws -> Bool {
    for _ in 0..<20_000 where try proxy.statistics().upstreams["origin"] == wanted { return true }
    return false
  }

  private func clients(_ count: Int, _ proxy: TestProxy) throws -> [ClientConnection] {
    try (0..<count).map { _ in try proxy.connect() }
  }

  private func expectBusy(_ answer: Answer, _ location: SourceLocation = #_sourceLocation) {
    #expect(answer.status == 503, sourceLocation: location)
    #expect(answer.first("Content-Type") == "application/problem+json", sourceLocation: location)
    #expect(answer.first("Retry-After") != nil, sourceLocation: location)
    #expect(answer.cacheStatus.detail == "upstream-busy", sourceLocation: location)
  }

  // MARK: Waiting

  @Test(arguments: [1, 3]) func requestsBeyondTheLimitWaitForAPlaceInTheirOrder(
    _ loops: Int
  ) throws {
    try scenario(
      Self.stored,
      upstream: Self.upstream("\"maxConcurrent\": 2, \"queueTimeout\": \"1m\""),
      top: "\"loops\": \(loops),"
    ) { origin, proxy in
      let gates = (0..<8).map { _ in Gate() }
      for (index, gate) in gates.enumerated() {
        origin.on("/\(index)", OriginAnswer.text("v\(index)").waiting(for: gate))
      }
      let clients = try clients(8, proxy)
      for (index, client) in clients.enumerated() {
        client.send("GET", "/\(index)")
        let isThere = try waits(
          proxy, for: .init(active: min(index + 1, 2), queued: max(0, index - 1)))
        #expect(isThere)
        // Before the next one is sent, which may go by another loop.
        if index < 2 { #expect(origin.waitForRequests("/\(index)", 1)) }
      }
      #expect(origin.requests.count == 2)
      // Each that ends lets the next in line go.
      for (index, gate) in gates.enumerated() {
        #expect(gate.waitUntilReached())
        gate.open()
        let answer = try clients[index].readAnswer()
        #expect(answer.status == 200 && answer.text == "v\(index)")
        if index + 2 < gates.count {
          #expect(origin.waitForRequests("/\(index + 2)", 1))
          #expect(origin.requests.count == index + 3)
        }
      }
      #expect(origin.requests.map(\.path) == (0..<8).map { "/\($0)" })
      #expect(try waits(proxy, for: .init()))
    }
  }

  @Test func whoeverWaitsInVainGets503WithRetryAfter() throws {
    try scenario(
      Self.stored,
      upstream: Self.upstream("\"maxConcurrent\": 1, \"queueTimeout\": \"50ms\"")
    ) { origin, proxy in
      let gate = Gate()
      origin.on("/a", OriginAnswer.text("a").waiting(for: gate))
      origin.on("/b", .text("b"))
      let first = try proxy.connect()
      first.send("GET", "/a")
      #expect(gate.waitUntilReached())
      let answer = try proxy.get("/b")
      expectBusy(answer)
      #expect(answer.first("Retry-After") == "1")
      expectBusy(try proxy.send("POST", "/b", body: [1, 2, 3]))
      #expect(try waits(proxy, for: .init(active: 1, refused: 2)))
      #expect(origin.requestCount("/b") == 0)
      gate.open()
      #expect(try first.readAnswer().text == "a")
      #expect(try proxy.get("/b").text == "b")
      #expect(try proxy.counts("r") == .init(misses: 2, errors: 2))
    }
  }

  @Test func whoeverFindsTheQueueFullIsRefusedAtOnce() throws {
    try scenario(
      Self.stored,
      upstream: Self.upstream(
        "\"maxConcurrent\": 1, \"maxQueue\": 1, \"queueTimeout\": \"10m\"")
    ) { origin, proxy in
      let gate = Gate()
      origin.on("/a", OriginAnswer.text("a").waiting(for: gate))
      for path in ["/b", "/c"] { origin.on(path, .text(path)) }
      let clients = try clients(2, proxy)
      clients[0].send("GET", "/a")
      #expect(gate.waitUntilReached())
      clients[1].send("GET", "/b")
      #expect(try waits(proxy, for: .init(active: 1, queued: 1)))
      let answer = try proxy.get("/c")
      expectBusy(answer)
      #expect(answer.first("Retry-After") == "600")
      // Who joins a fetch that waits takes no place of its own.
      let joiner = try proxy.connect()
      joiner.send("GET", "/b")
      try proxy.settle()
      #expect(try waits(proxy, for: .init(active: 1, queued: 1, refused: 1)))
      gate.open()
      for (client, text) in [(clients[0], "a"), (clients[1], "/b"), (joiner, "/b")] {
        expectText(try client.readAnswer(), text)
      }
      #expect(origin.requestCount("/b") == 1)
    }
  }

  /// Closing looks the same: it may be gone. One that still reads is told.
  @Test func whoeverSendsNoMoreLeavesItsPlaceInLineToOthers() throws {
    try scenario(
      Self.stored,
      upstream: Self.upstream("\"maxConcurrent\": 1, \"queueTimeout\": \"10m\"")
    ) { origin, proxy in
      let gate = Gate()
      origin.on("/a", OriginAnswer.text("a").waiting(for: gate))
      for path in ["/b", "/c"] { origin.on(path, .text(path)) }
      let clients = try clients(4, proxy)
      clients[0].send("GET", "/a")
      #expect(gate.waitUntilReached())
      for (index, path) in ["/b", "/c", "/c"].enumerated() {
        clients[index + 1].send("GET", path)
        #expect(try waits(proxy, for: .init(active: 1, queued: min(index + 1, 2))))
      }
      clients[1].finishSending()
      expectBusy(try clients[1].readAnswer())
      // Another waits for the same.
      clients[2].finishSending()
      #expect(try waits(proxy, for: .init(active: 1, queued: 1, refused: 1)))
      gate.open()
      for client in clients[2...] { #expect(try client.readAnswer().text == "/c") }
      #expect(origin.requestCount("/b") == 0)
      #expect(origin.requestCount("/c") == 1)
    }
  }

  @Test func whoeverLeavesTheQueueLeavesItsPlaceToOthers() throws {
    try scenario(
      windowedRoute("cache-first", #""whenAbandoned": "finish""#),
      upstream: Self.upstream("\"maxConcurrent\": 1, \"queueTimeout\": \"10m\"")
    ) { origin, proxy in
      let gate = Gate()
      origin.on("/a", OriginAnswer.text("a").waiting(for: gate))
      for path in ["/b", "/c"] { origin.on(path, .text(path)) }
      let clients = try clients(4, proxy)
      clients[0].send("GET", "/a")
      #expect(gate.waitUntilReached())
      for (index, path) in ["/b", "/c", "/b"].enumerated() {
        clients[index + 1].send("GET", path)
        try proxy.settle()
      }
      #expect(try waits(proxy, for: .init(active: 1, queued: 2)))
      for client in [clients[1], clients[3]] { client.reset() }
      #expect(try waits(proxy, for: .init(active: 1, queued: 1)))
      gate.open()
      expectText(try clients[2].readAnswer(), "/c")
      #expect(origin.requestCount("/b") == 0)
      #expect(try waits(proxy, for: .init()))
    }
  }

  // MARK: Copies

  @Test func theCopyStandsInWhereTheUpstreamIsBusy() throws {
    try scenario(
      windowedRoute("cache-first"),
      upstream: Self.upstream("\"maxConcurrent\": 1, \"maxQueue\": 0")
    ) { origin, proxy in
      let gate = Gate()
      origin.on("/a", .text("v1"))
      origin.on("/strict", .text("v1", "Cache-Control: must-revalidate"))
      origin.on("/slow", OriginAnswer.text("slow").waiting(for: gate))
      for path in ["/a", "/strict"] { _ = try proxy.get(path) }
      let slow = try proxy.connect()
      slow.send("GET", "/slow")
      #expect(gate.waitUntilReached())
      proxy.advance(seconds: Age.older)
      expect(try proxy.get("/a"), "v1", .hit)
      // 504 would blame the origin.
      expectBusy(try proxy.get("/strict"))
      proxy.advance(seconds: Age.beyondAll)
      expectBusy(try proxy.get("/a"))
      gate.open()
      expectText(try slow.readAnswer(), "slow")
    }
  }

  @Test func aRefreshNeverTakesTheLastPlace() throws {
    try scenario(
      windowedRoute("cache-first"),
      upstream: Self.upstream("\"maxConcurrent\": 2, \"maxQueue\": 0")
    ) { origin, proxy in
      let gate = Gate()
      origin.on("/a") { .text("v\($0.number)") }
      origin.on("/slow", OriginAnswer.text("slow").waiting(for: gate))
      origin.on("/b", .text("b"))
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.stale)
      let slow = try proxy.connect()
      slow.send("GET", "/slow")
      #expect(gate.waitUntilReached())
      for _ in 0..<3 { expect(try proxy.get("/a"), "v1", .hit) }
      try proxy.settle()
      #expect(origin.requestCount("/a") == 1)
      // The place is there for a client.
      expectText(try proxy.get("/b"), "b")
      #expect(try waits(proxy, for: .init(active: 1)))
      gate.open()
      expectText(try slow.readAnswer(), "slow")
      #expect(try waits(proxy, for: .init()))
      // It was put off and has not failed.
      expect(try proxy.get("/a"), "v1", .hit)
      try proxy.settle(after: origin, "/a", answers: 2)
      expect(try proxy.get("/a"), "v2", .hit)
    }
  }

  @Test func atTheDeadlineTheCopyGoesOutAndTheFetchGivesItsPlaceInTheQueueUp() throws {
    try scenario(
      NetworkFirstScenarios.route(#""deadline": "50ms""#),
      upstream: Self.upstream("\"maxConcurrent\": 1, \"queueTimeout\": \"10m\"")
    ) { origin, proxy in
      let gate = Gate()
      origin.on("/a", .text("v1"))
      origin.on("/slow", OriginAnswer.text("slow").waiting(for: gate))
      _ = try proxy.get("/a")
      let slow = try proxy.connect()
      slow.send("GET", "/slow")
      #expect(gate.waitUntilReached())
      expect(try proxy.get("/a"), "v1", .copy("bypass", nil))
      #expect(try waits(proxy, for: .init(active: 1)))
      gate.open()
      expectText(try slow.readAnswer(), "slow")
    }
  }

  // MARK: Reloads

  @Test func aReloadLetsThoseGoWhoWait() throws {
    let tight = Self.upstream("\"maxConcurrent\": 1, \"queueTimeout\": \"10m\"")
    try scenario(Self.stored, upstream: tight, top: CoalescingScenarios.twoLoops) {
      origin, proxy in
      let gate = Gate()
      for index in 0..<6 {
        origin.on("/\(index)", OriginAnswer.text("v\(index)").waiting(for: gate))
      }
      let clients = try clients(6, proxy)
      for (index, client) in clients.enumerated() { client.send("GET", "/\(index)") }
      #expect(try waits(proxy, for: .init(active: 1, queued: 5)))
      func reload(_ upstream: String) throws {
        let policies = scenarioPolicies(
          Self.stored, upstream: upstream, top: CoalescingScenarios.twoLoops)
        #expect(try proxy.rewrite(policies: policies, origin: origin)?.status == 200)
      }
      try reload(Self.upstream("\"maxConcurrent\": 3, \"maxQueue\": 1"))
      #expect(gate.waitUntilReached(3))
      #expect(try waits(proxy, for: .init(active: 3, queued: 3)))
      // Fewer again: those who are there stay, and nobody comes in.
      try reload(Self.upstream("\"maxConcurrent\": 2, \"maxQueue\": 1"))
      expectBusy(try proxy.get("/late"))
      #expect(try waits(proxy, for: .init(active: 3, queued: 3, refused: 1)))
      try reload(Self.upstream("\"connectTimeout\": \"1s\""))
      #expect(gate.waitUntilReached(6))
      #expect(try waits(proxy, for: .init(active: 6, refused: 1)))
      gate.open()
      for (index, client) in clients.enumerated() {
        expectText(try client.readAnswer(), "v\(index)")
      }
      #expect(try waits(proxy, for: .init(refused: 1)))
    }
  }

  // MARK: Attacks

  /// An origin that takes everything and says nothing: everyone is answered, and nothing is left.
  @Test func anOriginThatNeverAnswersHoldsNobodyForLong() throws {
    try scenario(
      Self.stored,
      upstream: Self.upstream(
        "\"maxConcurrent\": 3, \"maxQueue\": 20, \"queueTimeout\": \"200ms\", "
          + "\"firstByteTimeout\": \"400ms\", \"totalTimeout\": \"400ms\""),
      top: "\"loops\": 3,"
    ) { origin, proxy in
      let gate = Gate()
      for index in 0..<60 {
        origin.on("/\(index)", OriginAnswer.text("late").waiting(for: gate))
      }
      let clients = try clients(60, proxy)
      for (index, client) in clients.enumerated() { client.send("GET", "/\(index)") }
      for (index, client) in clients.enumerated() where index % 7 == 0 { client.reset() }
      var statuses: [Int: Int] = [:]
      for (index, client) in clients.enumerated() where index % 7 != 0 {
        statuses[try client.readAnswer().status, default: 0] += 1
      }
      #expect(Set(statuses.keys).isSubset(of: [503, 504]), "\(statuses)")
      #expect(statuses[503, default: 0] >= 60 - 9 - 26, "\(statuses)")
      var isEmpty = false
      for _ in 0..<20_000 where !isEmpty {
        let upstream = try proxy.statistics().upstreams["origin"]!
        isEmpty = upstream.active == 0 && upstream.queued == 0
      }
      #expect(isEmpty)
      gate.open()
      origin.on("/good", .text("good"))
      expectText(try proxy.get("/good"), "good")
    }
  }
}
