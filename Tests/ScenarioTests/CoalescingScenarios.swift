import Support
import Testing

/// Many requests for one key: one fetch, whose bytes all get as they arrive.
@Suite(.serialized)
struct CoalescingScenarios {
  static let twoLoops = "\"loops\": 2,"

  /// Connections that their loops have taken up: each has had an answer.
  private func connections(_ count: Int, _ proxy: TestProxy) throws -> [ClientConnection] {
    try (0..<count).map { _ in
      let connection = try proxy.connect()
      connection.send("OPTIONS", "*")
      _ = try connection.readAnswer()
      return connection
    }
  }

  @Test func twoHundredRequestsForAMissingKeyCauseOneFetch() throws {
    try scenario(windowedRoute("cache-first"), top: CoalescingScenarios.twoLoops) {
      origin, proxy in
      let gate = Gate()
      let body = testBytes(50_000)
      origin.on("/a", OriginAnswer.bytes(body).waiting(for: gate))
      let clients = try connections(200, proxy)
      for client in clients { client.send("GET", "/a") }
      #expect(gate.waitUntilReached())
      try proxy.settle()
      gate.open()
      let answers = try clients.map { try $0.readAnswer() }
      #expect(answers.count { $0.body == body && $0.status == 200 } == 200)
      #expect(answers.count { $0.cacheStatus.isStored } == 200)
      #expect(answers.count { $0.cacheStatus.isCollapsed } == 199)
      #expect(origin.requestCount("/a") == 1)
      let statistics = try proxy.statistics()
      #expect(statistics.routes["r"]?.counts == .init(misses: 200))
      #expect(statistics.routes["r"]?.collapsed == 199)
      #expect(try proxy.get("/a").cacheStatus.isHit)
    }
  }

  @Test(arguments: [OriginAnswer.Framing.length, .chunked], [3, 1_000_000])
  func aJoinerGetsBytesBeforeTheBodyEnds(_ framing: OriginAnswer.Framing, _ early: Int) throws {
    try scenario(windowedRoute("cache-first"), top: CoalescingScenarios.twoLoops) {
      origin, proxy in
      let gate = Gate()
      let body = testBytes(early + 70_000)
      origin.on(
        "/a", OriginAnswer.bytes(body).framed(framing).pausing(after: early, for: gate))
      let clients = try connections(3, proxy)
      for client in clients {
        client.send("GET", "/a")
        try client.readHead()
        #expect(try client.readBody(atLeast: early) == Array(body[..<early]))
      }
      gate.open()
      for client in clients {
        let answer = try client.finishAnswer()
        #expect(answer.body == body && !answer.isCut)
      }
      #expect(origin.requestCount("/a") == 1)
      #expect(try proxy.counts("r") == .init(misses: 3))
    }
  }

  @Test func theFillGoesOnWhenItsFirstClientLeavesBeforeTheHead() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let gate = Gate()
      origin.on("/a", OriginAnswer.text("v1").waiting(for: gate))
      let first = try proxy.connect()
      first.send("GET", "/a")
      #expect(gate.waitUntilReached())
      first.reset()
      try proxy.settle()
      gate.open()
      try proxy.settle(after: origin, "/a", answers: 1)
      expect(try proxy.get("/a"), "v1", .hit)
      #expect(origin.requestCount("/a") == 1)
      // Who got no answer is not counted as one.
      #expect(try proxy.counts("r") == .init(hits: 1))
    }
  }

  @Test func theFillGoesOnWhenItsFirstClientLeavesInTheBody() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let gate = Gate()
      let body = testBytes(400_000)
      origin.on("/a", OriginAnswer.bytes(body).pausing(after: 200_000, for: gate))
      let first = try proxy.connect()
      first.send("GET", "/a")
      try first.readHead()
      try first.readBody(atLeast: 100_000)
      let second = try proxy.connect()
      second.send("GET", "/a")
      try second.readHead()
      first.reset()
      try proxy.settle()
      gate.open()
      #expect(try second.finishAnswer().body == body)
      #expect(try proxy.get("/a").body == body)
      #expect(origin.requestCount("/a") == 1)
      #expect(try proxy.counts("r") == .init(hits: 1, misses: 2))
    }
  }

  @Test func anAnswerThatIsNobodyElsesReleasesTheWaitersInParallel() throws {
    try scenario(windowedRoute("cache-first"), top: CoalescingScenarios.twoLoops) {
      origin, proxy in
      let first = Gate()
      let others = Gate()
      origin.on("/a") { request in
        OriginAnswer.text("v\(request.number)", "Cache-Control: no-store")
          .waiting(for: request.number == 1 ? first : others)
      }
      let clients = try connections(10, proxy)
      for client in clients { client.send("GET", "/a") }
      #expect(first.waitUntilReached())
      try proxy.settle()
      #expect(origin.requestCount("/a") == 1)
      first.open()
      // All nine are on their way at once: none waits for another.
      #expect(others.waitUntilReached(9))
      others.open()
      let bodies = Set(try clients.map { try $0.readAnswer().text })
      #expect(bodies == Set((1...10).map { "v\($0)" }))
      let statistics = try proxy.statistics()
      #expect(statistics.routes["r"]?.counts == .init(passes: 10))
      #expect(statistics.collapsed == 0)
    }
  }

  @Test func aKeyThatIsNotShareableIsRememberedAsSuch() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let gate = Gate()
      origin.on("/a") { request in
        let answer = OriginAnswer.text("v\(request.number)", "Cache-Control: no-store")
        return request.number == 1 ? answer : answer.waiting(for: gate)
      }
      _ = try proxy.get("/a")
      let clients = try connections(3, proxy)
      for client in clients { client.send("GET", "/a") }
      // Without the memory the second and third would wait for the first.
      #expect(gate.waitUntilReached(3))
      gate.open()
      for client in clients { _ = try client.readAnswer() }
    }
  }

  @Test func oneUsersAnswerIsNotForThoseWhoWaitBesideThem() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let gate = Gate()
      origin.on("/me") { request in
        let answer = OriginAnswer.text("for \(request.first("Authorization") ?? "nobody")")
        return request.number == 1 ? answer.waiting(for: gate) : answer
      }
      let clients = try connections(3, proxy)
      clients[0].send("GET", "/me", ["Authorization: A"])
      #expect(gate.waitUntilReached())
      clients[1].send("GET", "/me", ["Authorization: B"])
      clients[2].send("GET", "/me")
      try proxy.settle()
      gate.open()
      #expect(try clients[0].readAnswer().text == "for A")
      #expect(try clients[1].readAnswer().text == "for B")
      #expect(try clients[2].readAnswer().text == "for nobody")
    }
  }

  @Test func waitersForAnotherVariantShareAFetchOfTheirOwn() throws {
    try scenario(windowedRoute("cache-first"), top: CoalescingScenarios.twoLoops) {
      origin, proxy in
      let gate = Gate()
      origin.on("/a") { request in
        let answer = OriginAnswer.text(
          request.first("Accept-Language") ?? "none", "Vary: Accept-Language")
        return request.number == 1 ? answer.waiting(for: gate) : answer
      }
      let clients = try connections(8, proxy)
      clients[0].send("GET", "/a", ["Accept-Language: en"])
      #expect(gate.waitUntilReached())
      for (index, client) in clients.enumerated().dropFirst() {
        client.send("GET", "/a", ["Accept-Language: \(index % 2 == 0 ? "en" : "de")"])
      }
      try proxy.settle()
      gate.open()
      for (index, client) in clients.enumerated() {
        #expect(try client.readAnswer().text == (index % 2 == 0 ? "en" : "de"))
      }
      #expect(origin.requestCount("/a") == 2)
      #expect(try proxy.counts("r").total == 8)
    }
  }

  // MARK: Failures

  @Test func anOriginThatFailsIsNotAskedOnceMoreByEveryWaiter() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let gate = Gate()
      origin.on("/a") { request in
        let answer = OriginAnswer.text("down \(request.number)", status: 503)
        return request.number == 1 ? answer.waiting(for: gate) : answer
      }
      let clients = try connections(10, proxy)
      for client in clients { client.send("GET", "/a") }
      #expect(gate.waitUntilReached())
      try proxy.settle()
      gate.open()
      for client in clients {
        let answer = try client.readAnswer()
        #expect(answer.status == 503)
        #expect(answer.text == "down 1")
      }
      #expect(origin.requestCount("/a") == 1)
      #expect(try proxy.counts("r") == .init(passes: 10))
      #expect(try proxy.get("/a").text == "down 2")
    }
  }

  @Test func aResetIsEveryWaitersError() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let gate = Gate()
      origin.on("/a", OriginAnswer.silence(.reset).waiting(for: gate))
      let clients = try connections(10, proxy)
      for client in clients { client.send("GET", "/a") }
      #expect(gate.waitUntilReached())
      try proxy.settle()
      gate.open()
      for client in clients { expect(try client.readAnswer(), "", status: 502, .failed) }
      #expect(origin.requestCount("/a") == 1)
      #expect(try proxy.counts("r") == .init(errors: 10))
    }
  }

  @Test func theCopyStandsInForEveryWaiter() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let gate = Gate()
      origin.on(
        "/a", inTurn: [.text("v1"), OriginAnswer.text("down", status: 500).waiting(for: gate)])
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      let clients = try connections(10, proxy)
      for client in clients { client.send("GET", "/a") }
      #expect(gate.waitUntilReached())
      try proxy.settle()
      gate.open()
      for client in clients { expect(try client.readAnswer(), "v1", .copy("stale", 500)) }
      #expect(origin.requestCount("/a") == 2)
      #expect(try proxy.counts("r") == .init(stale: 10, misses: 1))
    }
  }

  @Test(arguments: [OriginAnswer.Framing.length, .chunked])
  func aTruncatedFillIsNotStoredAndEveryJoinerSeesTheCut(
    _ framing: OriginAnswer.Framing
  ) throws {
    try scenario(windowedRoute("cache-first"), top: CoalescingScenarios.twoLoops) {
      origin, proxy in
      let gate = Gate()
      let body = testBytes(200_000)
      origin.on(
        "/a",
        OriginAnswer.bytes(body).framed(framing).pausing(after: 100_000, for: gate)
          .broken(after: 100_000, by: .close))
      let clients = try connections(5, proxy)
      for client in clients {
        client.send("GET", "/a")
        try client.readHead()
        try client.readBody(atLeast: 100_000)
      }
      gate.open()
      for client in clients {
        let answer = try client.finishAnswer()
        #expect(answer.isCut)
        #expect(answer.body == Array(body[..<100_000]))
      }
      #expect(origin.requestCount("/a") == 1)
      origin.on("/a", .text("good"))
      expect(try proxy.get("/a"), "good", .stored("uri-miss"))
      #expect(try proxy.counts("r") == .init(misses: 6))
    }
  }

  // MARK: Slow clients

  /// More than the kernel's buffers between proxy and client hold.
  static let largeByteCount = 24 * 1024 * 1024

  @Test func aSlowFirstClientDoesNotSlowASecond() throws {
    try scenario(windowedRoute("cache-first"), top: CoalescingScenarios.twoLoops) {
      origin, proxy in
      let body = testBytes(CoalescingScenarios.largeByteCount)
      origin.on("/a", .bytes(body))
      let slow = try proxy.connect(receiveBufferBytes: 4096)
      slow.send("GET", "/a")
      try slow.readHead()
      let fast = try proxy.get("/a")
      #expect(fast.body == body)
      #expect(try slow.finishAnswer().body == body)
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test func whoComesAfterABodyTurnedOutTooLargeGetsItWhole() throws {
    try scenario(windowedRoute("cache-first", #""maxEntrySize": "1MiB""#)) { origin, proxy in
      let body = testBytes(3_000_000)
      let gate = Gate()
      origin.on("/a") { request in
        let answer = OriginAnswer.bytes(body).framed(.chunked)
        return request.number == 1 ? answer.pausing(after: 2_500_000, for: gate) : answer
      }
      let first = try proxy.connect()
      first.send("GET", "/a")
      try first.readHead()
      try first.readBody(atLeast: 2_500_000)
      try proxy.settle()
      let second = try proxy.get("/a")
      #expect(second.body == body && !second.isCut)
      gate.open()
      #expect(try first.finishAnswer().body == body)
      #expect(origin.requestCount("/a") == 2)
    }
  }

  @Test func aSlowClientGetsAllOfABodyThatTurnsOutTooLarge() throws {
    try scenario(windowedRoute("cache-first", #""maxEntrySize": "1MiB""#)) { origin, proxy in
      let body = testBytes(CoalescingScenarios.largeByteCount)
      origin.on("/a", OriginAnswer.bytes(body).framed(.chunked))
      let slow = try proxy.connect(receiveBufferBytes: 4096)
      slow.send("GET", "/a")
      try slow.readHead()
      try proxy.settle()
      let answer = try slow.finishAnswer()
      #expect(answer.body == body && !answer.isCut)
    }
  }

  @Test(
    .disabled("readers of a fill that is not stored move at the slowest one's pace; to be decided"))
  func aSlowFirstClientDoesNotSlowASecondWhereTheBodyTurnsOutTooLarge() throws {
    try scenario(
      windowedRoute("cache-first", #""maxEntrySize": "1MiB""#), limits: #""bodyStall": "5m""#
    ) { origin, proxy in
      let body = testBytes(CoalescingScenarios.largeByteCount)
      let gate = Gate()
      origin.on("/a", OriginAnswer.bytes(body).framed(.chunked).pausing(after: 1000, for: gate))
      let slow = try proxy.connect(receiveBufferBytes: 4096)
      slow.send("GET", "/a")
      try slow.readHead()
      let fast = try proxy.connect()
      fast.send("GET", "/a")
      try fast.readHead()
      gate.open()
      #expect(try fast.finishAnswer().body == body)
      #expect(try slow.finishAnswer().body == body)
    }
  }
}

/// Bytes without a pattern that a misplaced chunk could hide in; the same ones for the same seed.
func testBytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
  var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
  var bytes = [UInt8]()
  bytes.reserveCapacity(count + 8)
  while bytes.count < count {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    withUnsafeBytes(of: state) { bytes.append(contentsOf: $0) }
  }
  bytes.removeLast(bytes.count - count)
  return bytes
}
