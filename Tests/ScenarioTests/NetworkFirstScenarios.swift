import Support
import Testing

/// The row `network-first` of the strategies' table, cell by cell.
struct NetworkFirstScenarios {
  /// Without `staleIfError`: a copy of any age stands in.
  static func route(_ more: String = "") -> String {
    #"{ "name": "r", "match": "/**", "strategy": "network-first", "ttl": "1h", \#(more) },"#
  }

  static let ages = [
    ("fresh", Age.fresh, "bypass"), ("stale", Age.stale, "stale"), ("older", Age.older, "stale"),
    ("very old", Int64(400 * 86400), "stale"),
  ]

  @Test func withoutACopyTheNetworkAnswersAndIsStored() throws {
    try scenario(NetworkFirstScenarios.route()) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      let answer = try proxy.get("/a")
      expect(answer, "v1", .stored("uri-miss"))
      #expect(answer.cacheStatus.detail == "network-first")
      #expect(try proxy.counts("r") == .init(misses: 1))
      #expect(origin.requestCount("/a") == 1)
      origin.stop()
      expect(try proxy.get("/a"), "v1", .copy("bypass", nil))
    }
  }

  @Test(arguments: NetworkFirstScenarios.ages)
  func theNetworkAnswersWhateverTheCopysAge(_ name: String, _ age: Int64, _ word: String) throws {
    try scenario(NetworkFirstScenarios.route()) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: age)
      expect(try proxy.get("/a"), "v2", .stored(word))
      expect(try proxy.get("/a"), "v3", .stored("bypass"))
      #expect(origin.requestCount("/a") == 3)
      #expect(try proxy.counts("r") == .init(misses: 3))
    }
  }

  @Test(arguments: NetworkFirstScenarios.ages)
  func aCopyThatTheNetworkConfirmsIsAHit(_ name: String, _ age: Int64, _ word: String) throws {
    try scenario(NetworkFirstScenarios.route()) { origin, proxy in
      origin.on("/a") { request in
        request.first("If-None-Match") == "\"one\""
          ? .empty(status: 304, "ETag: \"one\"") : .text("v1", "ETag: \"one\"")
      }
      _ = try proxy.get("/a")
      proxy.advance(seconds: age)
      expect(try proxy.get("/a"), "v1", .copy(word, 304))
      #expect(origin.requestCount("/a") == 2)
      #expect(try proxy.counts("r") == .init(hits: 1, misses: 1))
    }
  }

  @Test(arguments: NetworkFirstScenarios.ages)
  func theCopyServesAtTheDeadlineAndTheNetworkFinishesAndStores(
    _ name: String, _ age: Int64, _ word: String
  ) throws {
    try scenario(NetworkFirstScenarios.route(#""deadline": "50ms""#)) { origin, proxy in
      let gate = Gate()
      origin.on("/a", inTurn: [.text("v1"), OriginAnswer.text("v2").waiting(for: gate)])
      _ = try proxy.get("/a")
      proxy.advance(seconds: age)
      expect(try proxy.get("/a"), "v1", .copy(word, nil))
      #expect(
        try proxy.counts("r") == .init(misses: 1)
          + (age == Age.fresh ? .init(hits: 1) : .init(stale: 1)))
      gate.open()
      try proxy.settle(after: origin, "/a", answers: 2)
      origin.stop()
      expect(try proxy.get("/a"), "v2", .copy("bypass", nil))
      #expect(origin.requestCount("/a") == 2)
    }
  }

  @Test func aCopyThatIsPurgedBeforeTheDeadlineLeavesTheRequestToTheNetwork() throws {
    try scenario(NetworkFirstScenarios.route(#""deadline": "1s""#)) { origin, proxy in
      let gate = Gate()
      for path in ["/a", "/b"] {
        origin.on(path) { request in
          request.method == "GET" && request.number > 1
            ? OriginAnswer.text("late").waiting(for: gate) : .text("early")
        }
        _ = try proxy.get(path)
      }
      let waiting = try proxy.connect()
      defer { waiting.close() }
      waiting.send("GET", "/a")
      #expect(gate.waitUntilReached())
      _ = try proxy.send("POST", "/a")
      // Its deadline is later than the other's.
      expect(try proxy.get("/b"), "early", .copy("bypass", nil))
      gate.open()
      let answer = try waiting.readAnswer()
      #expect(answer.status == 200 && answer.text == "late")
    }
  }

  @Test func aBodyThatStallsBehindItsHeadersIsLateToo() throws {
    try scenario(NetworkFirstScenarios.route(#""deadline": "50ms""#)) { origin, proxy in
      let gate = Gate()
      origin.on(
        "/a", inTurn: [.text("v1"), OriginAnswer.text("version 2").pausing(after: 3, for: gate)])
      _ = try proxy.get("/a")
      expect(try proxy.get("/a"), "v1", .copy("bypass", 200))
      #expect(gate.waitUntilReached())
      gate.open()
      try proxy.settle(after: origin, "/a", answers: 2)
      origin.stop()
      expect(try proxy.get("/a"), "version 2", .copy("bypass", nil))
      #expect(try proxy.counts("r") == .init(hits: 2, misses: 1))
    }
  }

  @Test func withoutACopyTheDeadlineWaitsForTheNetwork() throws {
    try scenario(NetworkFirstScenarios.route(#""deadline": "1ms""#)) { origin, proxy in
      let gate = Gate()
      origin.on("/a", OriginAnswer.text("v1").waiting(for: gate))
      let connection = try proxy.connect()
      connection.send("GET", "/a")
      #expect(gate.waitUntilReached())
      // Another deadline, begun after this one and with a copy to serve, passes meanwhile.
      let other = Gate()
      origin.on("/b", inTurn: [.text("b1"), OriginAnswer.text("b2").waiting(for: other)])
      _ = try proxy.get("/b")
      expect(try proxy.get("/b"), "b1", .copy("bypass", nil))
      gate.open()
      expect(try connection.readAnswer(), "v1", .stored("uri-miss"))
      other.open()
    }
  }

  @Test(
    arguments: NetworkFailure.allCases,
    [("fresh", Age.fresh, "bypass"), ("very old", Int64(400 * 86400), "stale")])
  func theCopyServesWhereTheNetworkFails(
    _ failure: NetworkFailure, _ age: (String, Int64, String)
  ) throws {
    try scenario(NetworkFirstScenarios.route(), upstream: failure.upstream) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: age.1)
      failure.begin(origin, "/a")
      expect(try proxy.get("/a"), "v1", .copy(age.2, failure.forwardStatus))
      #expect(
        try proxy.counts("r") == .init(misses: 1)
          + (age.1 == Age.fresh ? .init(hits: 1) : .init(stale: 1)))
      if failure == .refusesConnections { try origin.restart() }
      origin.on("/a", .text("recovered"))
      expect(try proxy.get("/a"), "recovered", .stored(age.2))
    }
  }

  @Test(arguments: NetworkFailure.allCases)
  func staleIfErrorLimitsTheCopysAge(_ failure: NetworkFailure) throws {
    try scenario(
      NetworkFirstScenarios.route(#""staleIfError": "10h""#), upstream: failure.upstream
    ) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      failure.begin(origin, "/a")
      expect(try proxy.get("/a"), "v1", .copy("stale", failure.forwardStatus))
      proxy.advance(seconds: Age.beyondAll)
      failure.expectError(try proxy.get("/a"))
      #expect(try proxy.counts("r") == .init(stale: 1, misses: 1) + failure.errorCounts)
    }
  }

  @Test(arguments: NetworkFailure.allCases)
  func withoutACopyTheNetworksFailureIsTheAnswer(_ failure: NetworkFailure) throws {
    try scenario(
      NetworkFirstScenarios.route(#""deadline": "1ms""#), upstream: failure.upstream
    ) { origin, proxy in
      failure.begin(origin, "/a")
      failure.expectError(try proxy.get("/a"))
      #expect(try proxy.counts("r") == failure.errorCounts)
    }
  }
}
