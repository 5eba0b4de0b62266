import Support
import Testing

/// What a reload changes for copies that are stored, for requests that run, and for whoever asks
/// next.
struct ReloadEffectScenarios {
  private static func route(_ more: String) -> String {
    "{ \"name\": \"r\", \"match\": \"/**\", \"strategy\": \"cache-first\", \(more) }"
  }

  private static let plain = route("\"ttl\": \"1h\"")

  private static func reload(
    _ proxy: TestProxy, _ origin: ScriptedOrigin, _ routes: String = plain,
    upstream: String = "\"retries\": 0", limits: String = "", top: String = ""
  ) throws {
    let answer = try proxy.rewrite(
      policies: scenarioPolicies(routes, upstream: upstream, limits: limits, top: top),
      origin: origin)
    #expect(answer?.status == 200, "\(answer?.text ?? "")")
  }

  // MARK: The store

  @Test func aSmallerStoreIsTrimmedAndALargerOneGrows() throws {
    func top(_ size: String) -> String {
      "\"store\": { \"maxSize\": \"\(size)\", \"maxEntrySize\": \"256KiB\" },"
    }
    try scenario(Self.plain, top: top("8MiB")) { origin, proxy in
      let body = testBytes(50_000)
      func fill(_ range: Range<Int>) throws {
        for index in range {
          origin.on("/\(index)", .bytes(body))
          _ = try proxy.get("/\(index)")
        }
        try proxy.settle()
      }
      try fill(0..<80)
      let isFilled = try Self.waits(proxy) { $0.entries == 80 }
      let before = try proxy.statistics().store
      #expect(isFilled && before.maxBytes == 8 << 20 && before.evicted == 0, "\(before)")
      try Self.reload(proxy, origin, top: top("1MiB"))
      #expect(try proxy.statistics().config.needsRestart.isEmpty)
      let isTrimmed = try Self.waits(proxy) { $0.maxBytes == 1 << 20 && $0.bytes <= 1 << 20 }
      #expect(isTrimmed)
      #expect(try proxy.statistics().store.entries < 21)
      try Self.reload(proxy, origin, top: top("16MiB"))
      try fill(100..<200)
      for index in 100..<200 {
        let answer = try proxy.get("/\(index)", "Cache-Control: only-if-cached")
        #expect(answer.cacheStatus.isHit && answer.body == body)
      }
      #expect(try proxy.statistics().store.maxBytes == 16 << 20)
    }
  }

  /// Asks for the store's figures until they are as wanted; false: asked far too often.
  private static func waits(
    _ proxy: TestProxy, _ isWanted: (ProxyStatistics.Store) -> Bool
  ) throws -> Bool {
    for _ in 0..<20_000 where isWanted(try proxy.statistics().store) { return true }
    return false
  }

  @Test func aChangedTtlHoldsForWhatIsStored() throws {
    try scenario(Self.plain) { origin, proxy in
      origin.on("/a") { .text("\($0.number)") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 1800)
      try Self.reload(proxy, origin, Self.route("\"ttl\": \"2h\""))
      let longer = try proxy.get("/a")
      expect(longer, "1", .hit)
      #expect((5300...5400).contains(longer.cacheStatus.timeToLiveSeconds ?? 0))
      try Self.reload(proxy, origin, Self.route("\"ttl\": \"10m\""))
      expect(try proxy.get("/a"), "2", .stored("stale"))
    }
  }

  @Test func changedWindowsHoldForWhatIsStored() throws {
    try scenario(Self.plain) { origin, proxy in
      origin.on("/a") { .text("\($0.number)") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 5000)
      origin.stop()
      expect(try proxy.get("/a"), "", status: 502, .failed)
      try Self.reload(proxy, origin, Self.route("\"ttl\": \"1h\", \"staleIfError\": \"1d\""))
      expectText(try proxy.get("/a"), "1")
      try Self.reload(proxy, origin, Self.route("\"ttl\": \"1h\", \"keep\": \"1h\""))
      expect(try proxy.get("/a"), "", status: 502, .failed)
    }
  }

  // MARK: Whose copies

  @Test(
    arguments: [
      "\"perUser\": \"header:X-User\"", "\"key\": { \"headers\": [\"X-User\"] }",
      "\"key\": { \"cookies\": [\"sid\"] }", "\"perUser\": \"cookie:sid\"",
    ])
  func whatWasSharedIsNobodysWhenUsersAreKeptApart(_ addition: String) throws {
    try scenario(Self.plain) { origin, proxy in
      origin.on("/me") { .text("\($0.number)") }
      let anna = ["X-User: anna", "Cookie: sid=anna"]
      _ = try proxy.send("GET", "/me", anna)
      try Self.reload(proxy, origin, Self.route("\"ttl\": \"1h\", \(addition)"))
      expect(try proxy.send("GET", "/me", anna), "2", .stored("uri-miss"))
      expectText(try proxy.send("GET", "/me", ["X-User: bert", "Cookie: sid=bert"]), "3")
      expectText(try proxy.get("/me"), "4")
      // And a user's own are never everybody's.
      try Self.reload(proxy, origin)
      expect(try proxy.get("/me", "X-User: bert"), "1", .hit)
    }
  }

  /// An identity of another kind, or by another name, is another identity.
  @Test func anIdentityThatChangesItsNameMeetsNoCopy() throws {
    let routes = ["header:X-User", "header:X-Account", "cookie:X-User", "header:X-User"].map {
      Self.route("\"ttl\": \"1h\", \"perUser\": \"\($0)\"")
    }
    try scenario(routes[0]) { origin, proxy in
      origin.on("/me") { .text("\($0.number)") }
      let fields = ["X-User: anna", "X-Account: anna", "Cookie: X-User=anna"]
      for (index, body) in [(0, "1"), (1, "2"), (2, "3"), (3, "1")] {
        try Self.reload(proxy, origin, routes[index])
        expectText(try proxy.send("GET", "/me", fields), body)
      }
    }
  }

  @Test func aClientThatWaitsGetsTheAnswerItWaitsFor() throws {
    try scenario(Self.plain) { origin, proxy in
      let gate = Gate()
      origin.on("/a") { OriginAnswer.text("\($0.number)").waiting(for: gate) }
      let clients = try (0..<3).map { _ in try proxy.connect() }
      for client in clients { client.send("GET", "/a", ["X-User: anna"]) }
      #expect(gate.waitUntilReached())
      try proxy.settle()
      try Self.reload(
        proxy, origin, Self.route("\"ttl\": \"1h\", \"perUser\": \"header:X-User\""))
      // Whoever comes now is keyed otherwise, and joins nobody.
      let late = try proxy.connect()
      late.send("GET", "/a", ["X-User: anna"])
      #expect(origin.waitForRequests("/a", 2))
      gate.open()
      for client in clients { expectText(try client.readAnswer(), "1") }
      expectText(try late.readAnswer(), "2")
      try proxy.settle()
      expect(try proxy.get("/a", "X-User: anna"), "2", .hit)
    }
  }

  // MARK: The admin listener

  @Test func aChangedTokenHoldsAtOnceAlsoOnOpenConnections() throws {
    try scenario(Self.plain) { origin, proxy in
      let open = try ClientConnection(port: proxy.server!.adminAddresses[0].port)
      let unasked = try open.get("/stats")
      #expect(unasked.status == 200)
      try Self.reload(proxy, origin, top: "\"admin\": { \"token\": \"first\" },")
      func status(_ token: String?) throws -> (Int, Int) {
        let fields = token.map { ["Authorization: Bearer \($0)"] } ?? []
        let kept = try open.get("/stats", fields)
        return (kept.status, try proxy.administer("GET", "/stats", fields).status)
      }
      for token in [nil, "", "firs", "firstly", "second"] {
        #expect(try status(token) == (401, 401), "\(token ?? "none")")
      }
      #expect(try status("first") == (200, 200))
      try proxy.rewrite(
        policies: scenarioPolicies(Self.plain, top: "\"admin\": { \"token\": \"second\" },"),
        origin: origin, reloading: false)
      #expect(try proxy.administer("POST", "/reload").status == 401)
      #expect(try status("first") == (200, 200))
      let answer = try proxy.administer("POST", "/reload", ["Authorization: Bearer first"])
      #expect(answer.status == 200)
      #expect(try status("first") == (401, 401))
      #expect(try status("second") == (200, 200))
    }
  }

  // MARK: The upstream

  @Test func aChangedHostHeaderHoldsForTheNextRequest() throws {
    try scenario(Self.plain) { origin, proxy in
      for path in ["/a", "/b"] { origin.on(path) { .text($0.first("Host") ?? "none") } }
      expectText(try proxy.get("/a"), "127.0.0.1:\(origin.port)")
      try Self.reload(proxy, origin, upstream: "\"retries\": 0, \"hostHeader\": \"client\"")
      expectText(try proxy.get("/b"), "app.example")
      try Self.reload(proxy, origin, upstream: "\"retries\": 0, \"hostHeader\": \"upstream\"")
      expectText(try proxy.send("POST", "/b", body: [1]), "127.0.0.1:\(origin.port)")
    }
  }

  @Test func changedTimeoutsHoldForTheNextRequest() throws {
    try scenario(Self.plain) { origin, proxy in
      let gate = Gate()
      for path in ["/a", "/b"] { origin.on(path, OriginAnswer.text("late").waiting(for: gate)) }
      let patient = try proxy.connect()
      patient.send("GET", "/a")
      #expect(gate.waitUntilReached())
      try Self.reload(proxy, origin, upstream: "\"retries\": 0, \"firstByteTimeout\": \"200ms\"")
      expect(try proxy.get("/b"), "", status: 504, .failed)
      // Who asked before waits as long as was said then.
      gate.open()
      expectText(try patient.readAnswer(), "late")
    }
  }

  @Test func aProxyToTheOriginComesAndGoes() throws {
    let between = try ScriptedOrigin()
    defer { between.stop() }
    try scenario(Self.plain) { origin, proxy in
      origin.on("/a", .text("direct"))
      between.on("http://127.0.0.1:\(origin.port)/a", .text("by the proxy"))
      expectText(try proxy.send("POST", "/a", body: [1]), "direct")
      try Self.reload(
        proxy, origin,
        upstream: "\"retries\": 0, \"proxy\": \"http://127.0.0.1:\(between.port)\"")
      expectText(try proxy.send("POST", "/a", body: [1]), "by the proxy")
      try Self.reload(proxy, origin)
      expectText(try proxy.send("POST", "/a", body: [1]), "direct")
      #expect(between.requests.map(\.target) == ["http://127.0.0.1:\(origin.port)/a"])
    }
  }
}
