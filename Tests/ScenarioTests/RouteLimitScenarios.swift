import Support
import Testing

/// What a route limits, what it takes from `defaults`, and the fields by which an origin speaks to
/// caches alone.
struct RouteLimitScenarios {
  private static func route(_ more: String) -> String {
    "{ \"name\": \"r\", \"match\": \"/**\", \"strategy\": \"cache-first\", \(more) }"
  }

  // MARK: maxVariants

  @Test(arguments: [1, 2, 3])
  func theOldestVariantMakesRoom(_ variantsMax: Int) throws {
    try scenario(Self.route("\"ttl\": \"1h\", \"maxVariants\": \(variantsMax)")) { origin, proxy in
      for path in ["/a", "/b"] {
        origin.on(path) { .text("\($0.number)", "Vary: Accept-Language") }
      }
      let languages = ["en", "de", "fr", "it"]
      for path in ["/a", "/b"] {
        for language in languages {
          _ = try proxy.get(path, "Accept-Language: \(language)")
          try proxy.settle()
        }
      }
      // What is dropped is told once it is written.
      let dropped = 2 * (languages.count - variantsMax)
      let isWritten = try Self.waits(proxy) { $0.variantsDropped >= dropped }
      #expect(isWritten)
      let store = try proxy.statistics().store
      #expect(store.variantsDropped == dropped && store.entries == 2 * variantsMax)
      #expect(store.evicted == 0)
      for path in ["/a", "/b"] {
        for (index, language) in languages.enumerated() {
          let answer = try proxy.get(
            path, "Accept-Language: \(language)", "Cache-Control: only-if-cached")
          let isKept = index >= languages.count - variantsMax
          #expect(answer.status == (isKept ? 200 : 504), "\(path) \(language)")
        }
      }
    }
  }

  @Test func aVariantThatIsFetchedAnewDropsNoOther() throws {
    try scenario(Self.route("\"ttl\": \"1h\", \"maxVariants\": 2")) { origin, proxy in
      origin.on("/a") { .text("\($0.number)", "Vary: Accept-Language") }
      for _ in 0..<3 {
        for language in ["en", "de"] {
          _ = try proxy.get(
            "/a", "Accept-Language: \(language)", "Cache-Control: no-cache")
        }
      }
      try proxy.restart()
      expect(try proxy.get("/a", "Accept-Language: en"), "5", .hit)
      expect(try proxy.get("/a", "Accept-Language: de"), "6", .hit)
    }
  }

  private static func waits(
    _ proxy: TestProxy, _ isWanted: (ProxyStatistics.Store) -> Bool
  ) throws -> Bool {
    for _ in 0..<20_000 where isWanted(try proxy.statistics().store) { return true }
    return false
  }

  // MARK: targetedCacheControl

  /// The upstream's list, the origin's fields, and how long the copy is fresh; nil: not stored.
  static let targeted: [(String, [String], Int?)] = [
    ("", ["CDN-Cache-Control: max-age=60"], 60),
    ("", ["Larder-Cache-Control: max-age=50", "CDN-Cache-Control: max-age=60"], 50),
    ("", ["CDN-Cache-Control: no-store"], nil),
    ("", ["Other-Cache-Control: max-age=60"], 10),
    // A targeted field that cannot be read is as if it were not there (RFC 9213 §2.2).
    ("", ["CDN-Cache-Control: max-age=\"x\"; ]["], 10),
    ("[\"CDN-Cache-Control\"]", ["Larder-Cache-Control: max-age=50"], 10),
    (
      "[\"My-Cache-Control\"]", ["My-Cache-Control: max-age=70", "CDN-Cache-Control: no-store"], 70
    ),
    ("[\"My-Cache-Control\"]", ["CDN-Cache-Control: no-store"], 10),
    ("[]", ["CDN-Cache-Control: max-age=60", "Larder-Cache-Control: no-store"], 10),
    (
      "[\"B-Cache-Control\", \"A-Cache-Control\"]",
      ["A-Cache-Control: max-age=1", "B-Cache-Control: max-age=80"], 80
    ),
  ]

  @Test(arguments: RouteLimitScenarios.targeted)
  func theFirstTargetedFieldTakesTheWord(
    _ list: String, _ fields: [String], _ lifetimeSeconds: Int?
  ) throws {
    let upstream = "\"retries\": 0" + (list.isEmpty ? "" : ", \"targetedCacheControl\": \(list)")
    try scenario(Self.route(""), upstream: upstream) { origin, proxy in
      origin.on("/a") { request in
        var answer = OriginAnswer.text("\(request.number)", "Cache-Control: max-age=10")
        for field in fields {
          let parts = field.split(separator: ":", maxSplits: 1)
          answer.fields.append((String(parts[0]), String(parts[1].drop { $0 == " " })))
        }
        return answer
      }
      let first = try proxy.get("/a")
      #expect(first.cacheStatus.isStored == (lifetimeSeconds != nil), "\(first.cacheStatus)")
      // The fields are for every cache on the way that knows them.
      #expect(first.first("Cache-Control") == "max-age=10")
      let second = try proxy.get("/a")
      // In whole seconds, rounded down.
      let left = second.cacheStatus.timeToLiveSeconds
      #expect(
        left.map { ($0...$0 + 2).contains(lifetimeSeconds ?? -9) }
          == lifetimeSeconds.map { _ in true })
    }
  }

  // MARK: What is taken from defaults

  private static func policies(_ defaults: String, _ route: String) -> String {
    """
    {
      "version": 1,
      "upstreams": { "origin": { "url": "http://{ORIGIN}", "retries": 0 } },
      "defaults": { "upstream": "origin", "strategy": "cache-first", \(defaults) },
      "routes": [ { "name": "r", "match": "/r/**", "strategy": "cache-first", \(route) } ]
    }
    """
  }

  private static func withProxy(
    _ policies: String, _ body: (ScriptedOrigin, TestProxy) throws -> Void
  ) throws {
    let origin = try ScriptedOrigin()
    let proxy = try TestProxy(policies: policies, origin: origin)
    defer {
      origin.stop()
      proxy.stop()
    }
    try body(origin, proxy)
  }

  @Test func theLargestBodyIsInheritedAndOverruled() throws {
    let defaults = "\"ttl\": \"1h\", \"maxEntrySize\": \"1KiB\""
    for (route, limit) in [("", 1024), ("\"maxEntrySize\": \"2KiB\"", 2048)] {
      try Self.withProxy(Self.policies(defaults, route)) { origin, proxy in
        for (path, count, framing) in [
          ("/r/1", limit, OriginAnswer.Framing.length), ("/r/2", limit + 1, .length),
          ("/r/3", limit, .chunked), ("/r/4", limit + 1, .chunked), ("/r/5", 0, .length),
        ] {
          origin.on(path, OriginAnswer.bytes(testBytes(count)).framed(framing))
          #expect(try proxy.get(path).body.count == count)
          try proxy.settle()
          let again = try proxy.get(path)
          #expect(again.cacheStatus.isHit == (count <= limit), "\(path)")
          #expect(again.body == testBytes(count))
        }
      }
    }
  }

  @Test func negativeLifetimesAreInheritedAndOverruled() throws {
    let defaults = "\"ttl\": \"1h\", \"negative\": { \"404\": \"30s\", \"5xx\": \"5s\" }"
    let cases: [(String, Int, Int?)] = [
      ("", 404, 30), ("", 503, 5), ("", 410, nil),
      ("\"negative\": { \"410\": \"10s\" }", 410, 10),
      ("\"negative\": { \"410\": \"10s\" }", 404, nil), ("\"negative\": {}", 404, nil),
    ]
    for (route, status, lifetimeSeconds) in cases {
      try Self.withProxy(Self.policies(defaults, route)) { origin, proxy in
        origin.on("/r/a") { .text("\($0.number)", status: status) }
        _ = try proxy.get("/r/a")
        try proxy.settle()
        let second = try proxy.get("/r/a")
        #expect(second.cacheStatus.isHit == (lifetimeSeconds != nil), "\(route) \(status)")
        guard let lifetimeSeconds else { return }
        #expect(second.cacheStatus.timeToLiveSeconds ?? 0 <= lifetimeSeconds)
        proxy.advance(seconds: Int64(lifetimeSeconds) + 1)
        expectText(try proxy.get("/r/a"), "2", status: status)
      }
    }
  }

  @Test func howLongACopyIsKeptIsInheritedAndOverruled() throws {
    let defaults = "\"ttl\": \"1h\", \"staleIfError\": \"30d\", \"keep\": \"2h\""
    for (route, age, isKept) in [
      ("", 7000, true), ("", 7300, false), ("\"keep\": \"1d\"", 7300, true),
      ("\"keep\": \"1d\"", 86_500, false),
    ] as [(String, Int64, Bool)] {
      try Self.withProxy(Self.policies(defaults, route)) { origin, proxy in
        origin.on("/r/a", .text("1"))
        _ = try proxy.get("/r/a")
        proxy.advance(seconds: age)
        origin.stop()
        #expect(try proxy.get("/r/a").status == (isKept ? 200 : 502), "\(route) \(age)")
      }
    }
  }

  /// A route that says nothing of a strategy stores nothing, whatever `defaults` says.
  @Test func aRouteWithoutAStrategyStoresNothing() throws {
    let policies = """
      {
        "version": 1,
        "upstreams": { "origin": { "url": "http://{ORIGIN}" } },
        "defaults": { "upstream": "origin", "strategy": "cache-first", "ttl": "1h",
          "tags": ["all"], "notify": true, "maxVariants": 3, "range": "fetch-whole",
          "invalidates": ["/list"], "perUser": "header:X-User" },
        "routes": [ { "name": "balances", "match": "/balances" } ]
      }
      """
    try Self.withProxy(policies) { origin, proxy in
      for path in ["/balances", "/other", "/list"] { origin.on(path) { .text("\($0.number)") } }
      for body in ["1", "2"] {
        let answer = try proxy.get("/balances", "X-User: anna")
        expectText(answer, body)
        #expect(!answer.cacheStatus.isStored && answer.cacheStatus.detail == "network-only")
      }
      // The defaults hold for what no route takes, tags, users and purges included.
      expect(try proxy.get("/other", "X-User: anna"), "1", .stored("uri-miss"))
      expect(try proxy.get("/other", "X-User: anna"), "1", .hit)
      expectText(try proxy.get("/other", "X-User: bert"), "2")
      _ = try proxy.get("/list", "X-User: anna")
      _ = try proxy.send("POST", "/other", body: [1])
      expectText(try proxy.get("/other", "X-User: anna"), "4")
      expectText(try proxy.get("/list", "X-User: anna"), "2")
      #expect(try proxy.counts("(default)").total == 7)
    }
  }

  /// `notify` changes nothing of how requests are answered.
  @Test(arguments: ["", "\"notify\": true,", "\"notify\": false,"])
  func aRouteThatNotifiesAnswersAsOthersDo(_ notify: String) throws {
    try scenario(Self.route("\(notify) \"ttl\": \"1h\"")) { origin, proxy in
      origin.on("/a") { .text("\($0.number)") }
      expect(try proxy.get("/a"), "1", .stored("uri-miss"))
      expect(try proxy.get("/a"), "1", .hit)
      _ = try proxy.send("DELETE", "/a")
      expect(try proxy.get("/a"), "3", .stored("uri-miss"))
    }
  }
}
