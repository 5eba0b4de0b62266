internal import Foundation
import Proxy
import Support
import Testing

/// The configuration read anew while requests run: what changes, what stays, and what a refusal
/// leaves alone.
struct ReloadScenarios {
  private static func policies(
    _ routes: String, limits: String = "", top: String = ""
  ) -> String {
    scenarioPolicies(routes, limits: limits, top: top)
  }

  private static let stored =
    "{ \"name\": \"a\", \"match\": \"/a\", \"strategy\": \"cache-first\", \"ttl\": \"1h\" }"
  private static let passed =
    "{ \"name\": \"a\", \"match\": \"/a\", \"strategy\": \"network-only\" }"

  @Test func newPoliciesHoldForTheNextRequestAndTheStoreStays() throws {
    try scenario(Self.stored) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      let kept = try proxy.connect()
      expect(try kept.get("/a"), "v1", .stored("uri-miss"))
      let answer = try proxy.rewrite(policies: Self.policies(Self.passed), origin: origin)
      #expect(answer?.status == 200)
      let read1 = try kept.get("/a")
      #expect(read1.text == "v2")
      try proxy.rewrite(policies: Self.policies(Self.stored), origin: origin)
      expect(try kept.get("/a"), "v1", .hit)
      let config = try proxy.statistics().config
      #expect(config.generation == 3 && config.lastError == nil && config.needsRestart.isEmpty)
    }
  }

  @Test func countsOfARouteThatKeepsItsNameGoOn() throws {
    try scenario(Self.stored) { origin, proxy in
      origin.on("/a", .text("v1"))
      _ = try proxy.get("/a")
      _ = try proxy.get("/a")
      let other = "{ \"name\": \"b\", \"match\": \"/b\", \"strategy\": \"cache-first\" }"
      try proxy.rewrite(policies: Self.policies("\(other), \(Self.stored)"), origin: origin)
      _ = try proxy.get("/a")
      #expect(try proxy.counts("a") == .init(hits: 2, misses: 1))
      #expect(try proxy.counts("b") == .init())
      try proxy.rewrite(policies: Self.policies(other), origin: origin)
      let statistics = try proxy.statistics()
      #expect(statistics.routes["a"] == nil)
      // What was counted under a name that is gone is still counted.
      #expect(statistics.counts == .init(hits: 2, misses: 1))
    }
  }

  @Test func aRefusedReloadChangesNothingAndIsShown() throws {
    try scenario(Self.stored) { origin, proxy in
      origin.on("/a", .text("v1"))
      _ = try proxy.get("/a")
      let answer = try #require(
        try proxy.rewrite(
          policies: Self.policies(
            "{ \"name\": \"a\", \"match\": \"/a\", \"strategi\": \"network-only\" }"),
          origin: origin))
      #expect(answer.status == 422)
      #expect(answer.text.contains("did you mean \\\"strategy\\\"?"), "\(answer.text)")
      expect(try proxy.get("/a"), "v1", .hit)
      let config = try proxy.statistics().config
      #expect(config.generation == 1)
      #expect(config.lastError?.errors.count == 1)
      #expect(config.lastError?.errors.first?.contains("strategi") == true)
      try proxy.rewrite(policies: Self.policies(Self.stored), origin: origin)
      let after = try proxy.statistics().config
      #expect(after.generation == 2 && after.lastError == nil)
    }
  }

  @Test func aRunningExchangeEndsUnderThePoliciesItBeganWith() throws {
    try scenario(Self.stored) { origin, proxy in
      let gate = Gate()
      origin.on("/a", OriginAnswer.text("version 1").pausing(after: 4, for: gate))
      let client = try proxy.connect()
      client.send("GET", "/a")
      try client.readHead()
      #expect(gate.waitUntilReached())
      try proxy.rewrite(policies: Self.policies(Self.passed), origin: origin)
      gate.open()
      let read2 = try client.finishAnswer()
      #expect(read2.text == "version 1")
      try proxy.settle()
      try proxy.rewrite(policies: Self.policies(Self.stored), origin: origin)
      expect(try proxy.get("/a"), "version 1", .hit)
    }
  }

  @Test func anUpstreamThatMovesIsAskedAtItsNewPlace() throws {
    try scenario(Self.passed) { origin, proxy in
      origin.on("/a", .text("old"))
      let read3 = try proxy.get("/a")
      #expect(read3.text == "old")
      let other = try ScriptedOrigin()
      defer { other.stop() }
      other.on("/a", .text("new"))
      try proxy.rewrite(policies: Self.policies(Self.passed), origin: other)
      let read4 = try proxy.get("/a")
      #expect(read4.text == "new")
    }
  }

  @Test func limitsHoldFromTheReloadOn() throws {
    try scenario(Self.passed) { origin, proxy in
      origin.on("/a", .text("v"))
      let kept = try proxy.connect()
      let long = "X-Long: \(String(repeating: "x", count: 3000))"
      kept.send("GET", "/a", [long])
      let read5 = try kept.readAnswer()
      #expect(read5.status == 200)
      try proxy.rewrite(
        policies: Self.policies(
          Self.passed, limits: "\"headerBytes\": \"2KiB\", \"requestLineBytes\": \"1KiB\""),
        origin: origin)
      kept.send("GET", "/a", [long])
      let read6 = try kept.readAnswer()
      #expect(read6.status == 431)
    }
  }

  @Test func whatNeedsARestartIsNamedAndTheRestApplies() throws {
    try scenario(Self.stored) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      _ = try proxy.get("/a")
      let answer = try #require(
        try proxy.rewrite(
          policies: Self.policies(Self.passed, top: "\"loops\": 2,"), origin: origin))
      #expect(answer.status == 200 && answer.text.contains("\"loops\""), "\(answer.text)")
      let read7 = try proxy.get("/a")
      #expect(read7.text == "v2")
      #expect(try proxy.statistics().config.needsRestart == ["loops"])
    }
  }

  @Test func reloadsUnderLoadDropNoRequest() throws {
    try scenario(Self.stored, top: "\"loops\": 2,") { origin, proxy in
      origin.on("/a", .text("v1"))
      _ = try proxy.get("/a")
      let (loaded, reloaded) = ([proxy.port], proxy)
      let clients = try loaded.flatMap { port in
        try (0..<4).map { _ in try ClientConnection(port: port) }
      }
      for round in 0..<100 {
        for client in clients { client.send("GET", "/a") }
        try reloaded.rewrite(
          policies: Self.policies(round % 2 == 0 ? Self.passed : Self.stored, top: "\"loops\": 2,"),
          origin: origin)
        for client in clients {
          let answer = try client.readAnswer()
          #expect(answer.status == 200 && answer.text == "v1")
        }
      }
      let statistics = try proxy.statistics()
      #expect(statistics.config.generation == 101)
      #expect(statistics.errors == 0 && statistics.requests == 401)
    }
  }

  @Test(
    arguments: [
      ("POST", "/reload", ["Content-Type: application/x-www-form-urlencoded"], 415),
      ("POST", "/reload", ["Content-Type: text/plain; charset=utf-8"], 415),
      ("POST", "/reload", ["Content-Type: multipart/form-data; boundary=x"], 415),
      ("POST", "/reload", ["Content-Type: application/json"], 200),
      ("POST", "/reload", ["Origin: https://evil.example"], 403),
      ("POST", "/reload", ["Origin: null"], 403),
      ("POST", "/reload", ["Origin: http://127.0.0.1.evil.example"], 403),
      ("POST", "/reload", ["Origin: http://127.0.0.1:8081"], 200),
      ("POST", "/reload", ["Origin: http://[::1]:8081"], 200),
      ("POST", "/reload", ["Origin: http://[::1].evil.example:80"], 403),
      ("POST", "/reload", ["Content-Type: text/plain\t;x"], 415),
      ("POST", "/reload", ["Sec-Fetch-Site: cross-site"], 403),
      ("POST", "/reload", [], 200),
      ("POST", "/reload", ["Host: evil.example"], 403),
      ("GET", "/config", ["Host: evil.example:8081"], 403),
      ("GET", "/config", ["Host: localhost:8081"], 200),
      ("GET", "/stats", ["Host: any.example"], 200),
      ("GET", "/reload", [], 405),
      ("POST", "/stats", [], 405),
    ] as [(String, String, [String], Int)])
  func webPagesCannotOrderAReload(
    _ method: String, _ path: String, _ fields: [String], _ status: Int
  ) throws {
    try scenario(Self.stored) { _, proxy in
      let answer = try proxy.administer(method, path, fields)
      #expect(answer.status == status)
    }
  }

  @Test(
    arguments: [
      ("127.0.0.1:8081", 200), ("localhost:8081", 200), ("admin.localhost", 200),
      ("[::1]:8081", 200), ("evil.example:8081", 403), ("127.0.0.1.evil.example", 403),
    ] as [(String, Int)])
  func webPagesCannotReadByANameOfTheirOwn(_ host: String, _ status: Int) throws {
    try scenario(Self.stored) { _, proxy in
      let client = try ClientConnection(port: proxy.server!.adminAddresses[0].port)
      defer { client.close() }
      client.send(raw: "GET /config HTTP/1.1\r\nHost: \(host)\r\n\r\n")
      let answer = try client.readAnswer()
      #expect(answer.status == status)
    }
  }

  @Test func aChangeOfTheFileIsNoticed() throws {
    let origin = try ScriptedOrigin()
    defer { origin.stop() }
    let noted = Monitored<[String]>([])
    let proxy = try TestProxy(
      policies: Self.policies(Self.stored), origin: origin, watchesFile: true,
      log: Log { _, text in noted.update { $0.append(text) } })
    defer { proxy.stop() }
    // Written by a rename, as editors do.
    try proxy.rewrite(policies: Self.policies(Self.passed), origin: origin, reloading: false)
    #expect(
      noted.wait { lines in
        lines.contains { $0.contains("the file changed: configuration 2") }
      })
    try proxy.rewrite(policies: "{ nonsense", origin: origin, reloading: false)
    #expect(
      noted.wait { lines in
        lines.contains { $0.contains("the new configuration is refused") }
      })
    #expect(try proxy.statistics().config.lastError != nil)
  }

  /// As a deployment does: the folder on the way to the file is a link, and is swung.
  @Test func aLinkThatIsSwungIsNoticedAndAMissingFileIsSaidOnce() throws {
    let origin = try ScriptedOrigin()
    defer { origin.stop() }
    let noted = Monitored<[String]>([])
    let folder = try TemporaryFolder()
    let files = FileManager.default
    for (name, routes) in [("one", Self.stored), ("two", Self.passed)] {
      try files.createDirectory(atPath: "\(folder.path)/\(name)", withIntermediateDirectories: true)
      try Self.policies(routes).replacingOccurrences(
        of: "{ORIGIN}", with: "127.0.0.1:\(origin.port)"
      )
      .write(toFile: "\(folder.path)/\(name)/p.json", atomically: true, encoding: .utf8)
    }
    let link = "\(folder.path)/current"
    try files.createSymbolicLink(atPath: link, withDestinationPath: "one")
    let proxy = try TestProxy(
      file: "\(link)/p.json", folder: folder,
      log: Log { _, text in noted.update { $0.append(text) } })
    defer { proxy.stop() }
    try files.createSymbolicLink(atPath: "\(link).new", withDestinationPath: "two")
    #expect(rename("\(link).new", link) == 0)
    #expect(noted.wait { lines in lines.contains { $0.contains("configuration 2 is in force") } })
    try files.removeItem(atPath: "\(folder.path)/two/p.json")
    #expect(noted.wait { lines in lines.contains { $0.contains("is refused") } })
    // More stirs in the folder, and the file's return: what is missing is not said again.
    for number in 0..<3 {
      try "x".write(
        toFile: "\(folder.path)/two/other\(number)", atomically: true, encoding: .utf8)
    }
    try files.copyItem(atPath: "\(folder.path)/one/p.json", toPath: "\(folder.path)/two/p.json")
    #expect(noted.wait { lines in lines.contains { $0.contains("configuration 3 is in force") } })
    #expect(noted.read { lines in lines.count { $0.contains("is refused") } } == 1)
  }

  @Test func originsThatFailAreLoggedAtOnceAndThenSummedUp() throws {
    let origin = try ScriptedOrigin()
    origin.stop()
    let noted = Monitored<[String]>([])
    let proxy = try TestProxy(
      policies: Self.policies(Self.passed), origin: origin,
      log: Log { _, text in noted.update { $0.append(text) } })
    defer { proxy.stop() }
    for _ in 0..<3 {
      let answer = try proxy.get("/a")
      #expect(answer.status == 502)
    }
    try proxy.settle()
    let first = noted.read { $0 }
    #expect(first.count == 1)
    #expect(
      first[0].hasPrefix("a: upstream \"origin\" (127.0.0.1:\(origin.port)): origin unreachable"))
    proxy.advance(seconds: 11)
    _ = try proxy.get("/a")
    try proxy.settle()
    let then = noted.read { $0 }
    #expect(then.count == 2 && then[1].hasSuffix("(and 2 failures since the last line)"))
  }
}
