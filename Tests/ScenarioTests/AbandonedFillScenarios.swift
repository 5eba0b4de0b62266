import Support
import Testing

/// Fetches whose clients have all left: which of them finish and are stored, and that the others
/// leave nothing behind.
@Suite(.serialized)
struct AbandonedFillScenarios {
  struct Row: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let rule: String
    var framing = OriginAnswer.Framing.length
    let bodyByteCount: Int
    /// How much has come when the last client leaves.
    let early: Int
    let finishes: Bool
  }

  static let rows = [
    Row(
      testDescription: "a small body", rule: "", bodyByteCount: 1_000_000, early: 10,
      finishes: true),
    Row(
      testDescription: "a large body's begin", rule: "", bodyByteCount: 4_000_000, early: 300_000,
      finishes: false),
    Row(
      testDescription: "more than a large body's half", rule: "", bodyByteCount: 4_000_000,
      early: 2_100_000, finishes: true),
    Row(
      testDescription: "unknown length that stays small", rule: "", framing: .chunked,
      bodyByteCount: 1_000_000, early: 10, finishes: true),
    Row(
      testDescription: "unknown length that grows large unread", rule: "", framing: .chunked,
      bodyByteCount: 4_000_000, early: 300_000, finishes: false),
    Row(
      testDescription: "unknown length that is large", rule: "", framing: .chunked,
      bodyByteCount: 4_000_000, early: 2_100_000, finishes: false),
    Row(
      testDescription: "finish", rule: #""whenAbandoned": "finish""#, framing: .chunked,
      bodyByteCount: 4_000_000, early: 300_000, finishes: true),
    Row(
      testDescription: "stop", rule: #""whenAbandoned": "stop""#, bodyByteCount: 100_000,
      early: 99_000, finishes: false),
    Row(
      testDescription: "own bounds, at most so large",
      rule: #""whenAbandoned": { "finishBelow": "5MB" }"#, bodyByteCount: 4_000_000, early: 10,
      finishes: true),
    Row(
      testDescription: "own bounds, less than so much",
      rule: #""whenAbandoned": { "finishBelow": "0B", "finishFromPercent": 90 }"#,
      bodyByteCount: 100_000, early: 80_000, finishes: false),
  ]

  @Test(arguments: rows) func whatIsSmallOrNearlyThereFinishes(_ row: Row) throws {
    try scenario(windowedRoute("cache-first", row.rule), top: CoalescingScenarios.twoLoops) {
      origin, proxy in
      origin.on("/other", .text("other"))
      _ = try proxy.get("/other")
      let before = try settled(proxy)
      let gate = Gate()
      let body = testBytes(row.bodyByteCount)
      let answer = OriginAnswer.bytes(body).framed(row.framing)
      origin.on("/a", inTurn: [answer.pausing(after: row.early, for: gate), answer])
      let clients = try (0..<3).map { _ in try proxy.connect() }
      for client in clients {
        client.send("GET", "/a")
        try client.readHead()
        try client.readBody(atLeast: row.early)
      }
      for client in clients { client.reset() }
      #expect(try proxy.hasOpenConnections(0))
      try proxy.settle()
      gate.open()
      try proxy.settle(after: origin, "/a", answers: 1)
      let requests = row.finishes ? 1 : 2
      let isNoted = try waits(proxy) {
        $0.notStored["abandoned"] == (row.finishes ? nil : 1)
          && $0.entries == (row.finishes ? 2 : 1)
      }
      #expect(isNoted)
      if !row.finishes {
        // Less than a chunk of a body more: a page or two are the file's own.
        let isEmpty = try waits(proxy) { $0.bytes < before.bytes + 64 * 1024 }
        let after = try proxy.statistics().store
        #expect(isEmpty, "\(after) \(before)")
      }
      let late = try proxy.get("/a")
      #expect(late.body == body && !late.isCut)
      #expect(late.cacheStatus.isHit == row.finishes)
      #expect(origin.requestCount("/a") == requests)
      #expect(try proxy.statistics().origin.failures == 0)
    }
  }

  /// The figures once the writer has nothing left to do.
  private func settled(_ proxy: TestProxy) throws -> ProxyStatistics.Store {
    _ = try waits(proxy) { $0.entries == 1 && $0.bytes > 0 }
    return try proxy.statistics().store
  }

  /// Asks for the store's figures until they are as wanted; false: asked far too often.
  private func waits(
    _ proxy: TestProxy, _ isWanted: (ProxyStatistics.Store) -> Bool
  ) throws -> Bool {
    for _ in 0..<20_000 where isWanted(try proxy.statistics().store) { return true }
    return false
  }

  @Test(arguments: [("stop", 2), ("finish", 1)])
  func whoLeavesBeforeTheHeadEndsTheFetchOnlyWhereItIsToStop(
    _ rule: String, _ requests: Int
  ) throws {
    try scenario(windowedRoute("cache-first", #""whenAbandoned": "\#(rule)""#)) {
      origin, proxy in
      let gate = Gate()
      origin.on("/a", inTurn: [OriginAnswer.text("v1").waiting(for: gate), .text("v2")])
      let client = try proxy.connect()
      client.send("GET", "/a")
      #expect(gate.waitUntilReached())
      client.reset()
      #expect(try proxy.hasOpenConnections(0))
      try proxy.settle()
      let late = try proxy.connect()
      late.send("GET", "/a")
      try proxy.settle()
      gate.open()
      let answer = try late.readAnswer()
      #expect(answer.text == "v\(requests)" && answer.cacheStatus.isStored)
      #expect(answer.cacheStatus.isCollapsed == (rule == "finish"))
      #expect(origin.requestCount("/a") == requests)
    }
  }

  @Test func aFetchThatOneClientStillReadsIsNotAbandoned() throws {
    try scenario(windowedRoute("cache-first", #""whenAbandoned": "stop""#)) { origin, proxy in
      let gate = Gate()
      let body = testBytes(400_000)
      origin.on("/a", OriginAnswer.bytes(body).pausing(after: 200_000, for: gate))
      let clients = try (0..<3).map { _ in try proxy.connect() }
      for client in clients {
        client.send("GET", "/a")
        try client.readHead()
        try client.readBody(atLeast: 100_000)
      }
      clients[0].reset()
      clients[2].close()
      #expect(try proxy.hasOpenConnections(1))
      gate.open()
      #expect(try clients[1].finishAnswer().body == body)
      #expect(try proxy.get("/a").cacheStatus.isHit)
      #expect(origin.requestCount("/a") == 1)
    }
  }

  // MARK: Clients that were answered

  @Test func aClientThatHasItsPartDoesNotAbandonTheWhole() throws {
    let route = windowedRoute("cache-first", #""whenAbandoned": "stop", "range": "fetch-whole""#)
    try scenario(route) { origin, proxy in
      let gate = Gate()
      let body = testBytes(400_000)
      origin.on("/a", OriginAnswer.bytes(body).pausing(after: 200_000, for: gate))
      let part = try proxy.get("/a", "Range: bytes=0-99")
      #expect(part.status == 206 && part.body == Array(body[..<100]))
      #expect(gate.waitUntilReached())
      try proxy.settle()
      gate.open()
      try proxy.settle(after: origin, "/a", answers: 1)
      let copy = try proxy.get("/a")
      #expect(copy.cacheStatus.isHit && copy.body == body)
    }
  }

  @Test func aClientThatHasTheBodyAlreadyDoesNotAbandonTheFetch() throws {
    try scenario(windowedRoute("cache-first", #""whenAbandoned": "stop""#)) { origin, proxy in
      let gate = Gate()
      let body = testBytes(400_000)
      origin.on("/a", OriginAnswer.bytes(body, "ETag: \"one\"").pausing(after: 2000, for: gate))
      let answer = try proxy.get("/a", "If-None-Match: \"one\"")
      #expect(answer.status == 304)
      try proxy.settle()
      gate.open()
      try proxy.settle(after: origin, "/a", answers: 1)
      let copy = try proxy.get("/a")
      #expect(copy.cacheStatus.isHit && copy.body == body)
    }
  }

  @Test func atTheDeadlineTheNetworkFinishesAndStoresWhateverBecomesOfAbandonedFetches() throws {
    try scenario(NetworkFirstScenarios.route(#""deadline": "50ms", "whenAbandoned": "stop""#)) {
      origin, proxy in
      let gate = Gate()
      origin.on("/a", inTurn: [.text("v1"), OriginAnswer.text("v2").waiting(for: gate)])
      _ = try proxy.get("/a")
      expect(try proxy.get("/a"), "v1", .copy("bypass", nil))
      try proxy.settle()
      gate.open()
      try proxy.settle(after: origin, "/a", answers: 2)
      origin.stop()
      expect(try proxy.get("/a"), "v2", .copy("bypass", nil))
    }
  }

  @Test func aRefreshBelongsToNoClientAndFinishes() throws {
    try scenario(
      windowedRoute("stale-while-revalidate", #""whenAbandoned": "stop""#),
      top: CoalescingScenarios.twoLoops
    ) { origin, proxy in
      let gate = Gate()
      let body = testBytes(600_000)
      origin.on(
        "/a", inTurn: [.text("v1"), OriginAnswer.bytes(body).pausing(after: 300_000, for: gate)])
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.stale)
      expect(try proxy.get("/a"), "v1", .hit)
      #expect(gate.waitUntilReached())
      // Somebody who insists joins it, and leaves.
      let client = try proxy.connect()
      client.send("GET", "/a", ["Cache-Control: no-cache"])
      try client.readHead()
      try client.readBody(atLeast: 290_000)
      client.reset()
      #expect(try proxy.hasOpenConnections(0))
      gate.open()
      try proxy.settle(after: origin, "/a", answers: 2)
      let copy = try proxy.get("/a")
      #expect(copy.cacheStatus.isHit && copy.body == body)
    }
  }

  // MARK: What nobody stores

  @Test func aFetchThatIsNotStoredEndsWithItsLastClient() throws {
    let ended = Left<Bool>()
    try rawScenario(windowedRoute("cache-first", #""whenAbandoned": "finish""#)) { connection in
      connection.readHead()
      connection.send(
        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 10\r\n\r\nhalf")
      ended.leave(connection.read(1).isEmpty)
    } _: { origin, proxy in
      let client = try proxy.connect()
      client.send("GET", "/a")
      try client.readHead()
      try client.readBody(atLeast: 4)
      client.reset()
      #expect(ended.wait() == true)
    }
  }

  /// What turned out too large goes on to the store for its readers only.
  @Test func aBodyThatTurnedOutTooLargeEndsWithItsLastReader() throws {
    let route = windowedRoute("cache-first", #""maxEntrySize": "1MiB", "whenAbandoned": "finish""#)
    let ended = Left<Bool>()
    let body = testBytes(2_000_000)
    try rawScenario(route) { connection in
      connection.readHead()
      connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
      connection.send("\(String(body.count, radix: 16))\r\n")
      connection.send(body)
      ended.leave(connection.read(1).isEmpty)
    } _: { origin, proxy in
      let clients = try (0..<2).map { _ in try proxy.connect() }
      for client in clients { client.send("GET", "/a") }
      for client in clients {
        try client.readHead()
        try client.readBody(atLeast: 1_500_000)
      }
      for client in clients { client.reset() }
      #expect(ended.wait() == true)
      #expect(try proxy.hasOpenConnections(0))
    }
  }
}
