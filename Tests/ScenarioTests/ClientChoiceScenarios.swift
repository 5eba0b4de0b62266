import Support
import Testing

/// What clients may ask for: directives of their Cache-Control (`clientMay`) and a strategy
/// (`clientStrategies`).
struct ClientChoiceScenarios {
  private static func route(_ more: String, _ strategy: String = "cache-first") -> String {
    """
    { "name": "r", "match": "/**", "strategy": "\(strategy)", "ttl": "1h",
      "staleWhileRevalidate": "0s", \(more) }
    """
  }

  /// What becomes of a request with a directive that is heeded, on a copy of an age.
  enum Effect: String {
    case refetched, notStored, refused, stale
  }

  static let words: [(word: String, directive: String, age: Int64, Effect)] = [
    ("no-cache", "no-cache", 0, .refetched),
    ("no-cache", "no-cache, foo=\"no-store\"", 0, .refetched),
    ("no-store", "no-store", 0, .notStored),
    ("max-age", "max-age=10", 60, .refetched),
    ("min-fresh", "min-fresh=3590", 60, .refetched),
    ("max-stale", "max-stale=600", 3700, .stale),
    ("max-stale", "max-stale", 3700, .stale),
  ]

  private static func ask(
    _ clientMay: String, _ directive: String, ageSeconds: Int64
  ) throws -> Effect? {
    var effect: Effect?
    try scenario(route(clientMay)) { origin, proxy in
      origin.on("/a") { .text("\($0.number)") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: ageSeconds)
      let answer = try proxy.get("/a", "Cache-Control: \(directive)")
      if answer.status == 504 {
        effect = .refused
      } else if answer.text == "2" {
        effect = answer.cacheStatus.isStored ? .refetched : .notStored
      } else if answer.cacheStatus.timeToLiveSeconds ?? 0 < 0 {
        effect = .stale
      }
    }
    return effect
  }

  @Test(arguments: ClientChoiceScenarios.words)
  func aDirectiveCountsWhereTheRouteSaysSo(
    _ word: String, _ directive: String, _ age: Int64, _ effect: Effect
  ) throws {
    // Unheeded, a fresh copy is a hit and a stale one is fetched anew.
    let unheeded: Effect? = age < 3600 ? nil : .refetched
    let others = ["no-cache", "no-store", "max-age", "max-stale", "min-fresh", "only-if-cached"]
      .filter { $0 != word }.map { "\"\($0)\"" }.joined(separator: ", ")
    #expect(try Self.ask("", directive, ageSeconds: age) == effect, "absent: all count")
    #expect(try Self.ask("\"clientMay\": [\"\(word)\"]", directive, ageSeconds: age) == effect)
    #expect(try Self.ask("\"clientMay\": [\(others)]", directive, ageSeconds: age) == unheeded)
    #expect(try Self.ask("\"clientMay\": []", directive, ageSeconds: age) == unheeded)
  }

  @Test(
    arguments: [
      ("", true), ("\"clientMay\": [\"only-if-cached\"]", true), ("\"clientMay\": []", false),
      ("\"clientMay\": [\"no-cache\"]", false),
    ] as [(String, Bool)])
  func onlyIfCachedCountsWhereTheRouteSaysSo(_ clientMay: String, _ counts: Bool) throws {
    try scenario(Self.route(clientMay)) { origin, proxy in
      origin.on("/a", .text("1"))
      let answer = try proxy.get("/a", "Cache-Control: only-if-cached")
      if counts {
        expect(answer, "", status: 504, .failed)
        #expect(origin.requests.isEmpty)
      } else {
        expect(answer, "1", .stored("uri-miss"))
      }
    }
  }

  @Test func pragmaCountsAsNoCacheDoes() throws {
    for (clientMay, body) in [("", "2"), ("\"clientMay\": [\"max-age\"]", "1")] {
      try scenario(Self.route(clientMay)) { origin, proxy in
        origin.on("/a") { .text("\($0.number)") }
        _ = try proxy.get("/a")
        expectText(try proxy.get("/a", "Pragma: no-cache"), body)
      }
    }
  }

  // MARK: Strategies

  private static let choices =
    "\"clientStrategies\": [\"network-first\", \"cache-only\", \"network-only\"]"

  static let asked: [(String, [String], String)] = [
    ("none", [], "cache-first"),
    ("allowed", ["Larder-Strategy: network-first"], "network-first"),
    ("in another case", ["larder-strategy: Network-First"], "network-first"),
    ("network-only", ["Larder-Strategy: network-only"], "network-only"),
    ("its own", ["Larder-Strategy: cache-first"], "cache-first"),
    ("not allowed", ["Larder-Strategy: network-and-store"], "cache-first"),
    ("unknown", ["Larder-Strategy: fastest"], "cache-first"),
    ("empty", ["Larder-Strategy:"], "cache-first"),
    ("several words", ["Larder-Strategy: network-only, network-first"], "cache-first"),
    (
      "several lines", ["Larder-Strategy: network-only", "Larder-Strategy: network-only"],
      "cache-first"
    ),
    ("with a parameter", ["Larder-Strategy: network-only;q=1"], "cache-first"),
    ("under another name", ["Larder_Strategy: network-only"], "cache-first"),
  ]

  @Test(arguments: ClientChoiceScenarios.asked)
  func aClientGetsTheStrategyItMayAskFor(
    _ name: String, _ fields: [String], _ strategy: String
  ) throws {
    try scenario(Self.route(Self.choices)) { origin, proxy in
      origin.on("/a") { .text("\($0.number)", "ETag: \"\($0.number)\"") }
      _ = try proxy.get("/a")
      let answer = try proxy.send("GET", "/a", fields)
      #expect(answer.cacheStatus.detail == strategy, "\(answer.cacheStatus)")
      #expect(answer.text == (strategy == "cache-first" ? "1" : "2"))
      #expect(answer.cacheStatus.isStored == (strategy == "network-first"))
      for request in origin.requests { #expect(request.first("Larder-Strategy") == nil) }
      // The choice was that request's alone.
      try proxy.settle()
      expect(try proxy.get("/a"), strategy == "network-first" ? "2" : "1", .hit)
    }
  }

  @Test func cacheOnlyAsksNobody() throws {
    try scenario(Self.route(Self.choices)) { origin, proxy in
      origin.on("/a", .text("1"))
      expect(try proxy.get("/a", "Larder-Strategy: cache-only"), "", status: 504, .failed)
      #expect(origin.requests.isEmpty)
      _ = try proxy.get("/a")
      let answer = try proxy.get("/a", "Larder-Strategy: cache-only")
      expect(answer, "1", .hit)
      #expect(answer.cacheStatus.detail == "cache-only")
    }
  }

  @Test func withoutAListNothingIsChosen() throws {
    try scenario(Self.route("")) { origin, proxy in
      origin.on("/a") { .text("\($0.number)") }
      _ = try proxy.get("/a")
      let answer = try proxy.get("/a", "Larder-Strategy: network-only")
      expect(answer, "1", .hit)
      #expect(answer.cacheStatus.detail == "cache-first")
    }
  }

  /// A balance must not be stored because a client asks, unless the route's author wrote so.
  @Test func aNetworkOnlyRouteTakesNoChoiceFromDefaults() throws {
    let policies = """
      {
        "version": 1, "upstreams": { "origin": { "url": "http://{ORIGIN}" } },
        "defaults": { "upstream": "origin", "strategy": "cache-first", "ttl": "1h",
                      "clientStrategies": ["cache-first", "cache-only"] },
        "routes": [ { "name": "balances", "match": "/balances/**" } ]
      }
      """
    let origin = try ScriptedOrigin()
    defer { origin.stop() }
    let proxy = try TestProxy(policies: policies, origin: origin)
    defer { proxy.stop() }
    for path in ["/balances/7", "/other"] { origin.on(path) { .text("\($0.number)") } }
    for body in ["1", "2"] {
      let answer = try proxy.get("/balances/7", "Larder-Strategy: cache-first")
      expectText(answer, body)
      #expect(!answer.cacheStatus.isStored)
    }
    _ = try proxy.get("/other")
    expect(try proxy.get("/other", "Larder-Strategy: cache-only"), "1", .hit)
  }

  /// What several strategies store and read of one URL is one copy.
  @Test func strategiesShareTheCopiesOfAUser() throws {
    let more =
      "\"perUser\": \"header:X-User\", \"clientStrategies\": [\"network-and-store\", \"cache-only\"]"
    try scenario(Self.route(more)) { origin, proxy in
      origin.on("/a") { .text("\($0.number)") }
      _ = try proxy.get("/a", "X-User: anna", "Larder-Strategy: network-and-store")
      try proxy.settle()
      expect(try proxy.get("/a", "X-User: anna"), "1", .hit)
      expect(
        try proxy.get("/a", "X-User: bert", "Larder-Strategy: cache-only"), "", status: 504,
        .failed)
    }
  }

  /// An origin that varies by the choice must not have it decide what is stored.
  @Test func aChoiceNeverPutsADirectiveOutOfForce() throws {
    try scenario(Self.route("\"clientMay\": [], \(Self.choices)")) { origin, proxy in
      origin.on("/a") { .text("\($0.number)") }
      _ = try proxy.get("/a")
      let answer = try proxy.get(
        "/a", "Larder-Strategy: network-first", "Cache-Control: only-if-cached")
      expectText(answer, "2")
    }
  }
}
