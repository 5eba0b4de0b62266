internal import Foundation
import Proxy
import Support
import Testing

private let routes = """
  { "name": "stored", "match": "/stored/**", "strategy": "cache-first", "ttl": "1h" },
  { "name": "passed", "match": "/passed/**", "strategy": "network-only" }
  """

/// `GET /stats`: its fields, their types, and that they add up.
struct StatisticsDocumentTests {
  private static func document(_ proxy: TestProxy) throws -> [String: Any] {
    try proxy.settle()
    let admin = try ClientConnection(
      port: proxy.server!.adminAddresses[0].port, authority: ClientConnection.adminAuthority)
    let answer = try admin.get("/stats")
    #expect(answer.first("Content-Type") == "application/json")
    #expect(answer.first("Cache-Control") == "no-store")
    return try #require(
      try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any])
  }

  /// The value at a path such as `bytes.toClients`.
  private static func value(_ path: String, in document: [String: Any]) -> Any? {
    var found: Any? = document
    for name in path.split(separator: ".") { found = (found as? [String: Any])?[String(name)] }
    return found
  }

  private static let counts = [
    "requests", "hits", "stale", "misses", "passes", "errors", "collapsed",
  ]

  @Test func everyFieldIsThereWithItsType() throws {
    try scenario(routes) { origin, proxy in
      let document = try Self.document(proxy)
      let numbers =
        Self.counts + [
          "uptimeSeconds", "bytes.toClients", "bytes.fromStore", "bytes.fromOrigin",
          "origin.requests", "origin.failures", "origin.connectionsOpened", "origin.reused",
          "origin.resumed",
          "store.entries", "store.bytes", "store.maxBytes", "store.evicted", "store.expired",
          "connections.open", "connections.accepted", "connections.refused",
        ]
        + ["stored", "passed"].flatMap { route in
          (Self.counts + ["entries", "bytesFromStore", "bytesFromOrigin"])
            .map { "routes.\(route).\($0)" }
        }
      for path in numbers {
        let number = try #require(Self.value(path, in: document) as? NSNumber, "\(path)")
        #expect(number.doubleValue == number.doubleValue.rounded(), "\(path)")
        #expect(number.doubleValue >= 0, "\(path)")
      }
      #expect(Self.value("version", in: document) as? String == VersionCommand.version)
      #expect(Self.value("routes.stored.strategy", in: document) as? String == "cache-first")
      #expect(Self.value("routes.passed.strategy", in: document) as? String == "network-only")
      #expect(Self.value("store.notStored", in: document) is [String: Any])
      #expect(Self.value("store.maxBytes", in: document) as? Int == 1 << 30)
      let started = try #require(Self.value("startedAt", in: document) as? String)
      let time = try #require(ISO8601DateFormatter().date(from: started), "\(started)")
      #expect(abs(time.timeIntervalSinceNow) < 3600)
    }
  }

  @Test func ratiosAreZeroWhileNothingWasCounted() throws {
    try scenario(routes) { _, proxy in
      let document = try Self.document(proxy)
      for path in ["hitRatio", "routes.stored.hitRatio", "routes.passed.hitRatio"] {
        #expect(Self.value(path, in: document) as? Double == 0, "\(path)")
      }
      for path in Self.counts { #expect(Self.value(path, in: document) as? Int == 0, "\(path)") }
    }
  }

  @Test func uptimeFollowsTheClock() throws {
    try scenario(routes) { _, proxy in
      proxy.advance(seconds: 3600)
      let uptime = try #require(
        Self.value("uptimeSeconds", in: Self.document(proxy)) as? Int)
      #expect((3600...3700).contains(uptime))
    }
  }

  @Test func everyAnswerCountsOnceAndTheSumsAgree() throws {
    try scenario(routes) { origin, proxy in
      origin.on("/stored/a", .text("12345"))
      origin.on("/stored/private", .text("p", "Cache-Control: private"))
      origin.on("/passed/a", .text("1234567"))
      origin.on("/other", .text("o"))
      let connection = try proxy.connect()
      for path in ["/stored/a", "/stored/a", "/stored/a", "/stored/private", "/passed/a", "/other"]
      {
        #expect(try connection.get(path).status == 200)
      }
      connection.send("POST", "/stored/b", body: [1])
      #expect(try connection.readAnswer().status == 404)
      connection.send("PURGE", "/stored/a")
      #expect(try connection.readAnswer().status == 405)
      origin.on("/passed/broken", .silence(.reset))
      #expect(try connection.get("/passed/broken").status == 502)
      #expect(try connection.get("/%zz").status == 400)

      let statistics = try proxy.statistics()
      #expect(
        statistics.counts == .init(hits: 2, misses: 1, passes: 4, errors: 3))
      #expect(statistics.requests == 10)
      #expect(statistics.hitRatio == 2.0 / 3)
      #expect(
        statistics.routes["stored"]?.counts == .init(hits: 2, misses: 1, passes: 2))
      #expect(statistics.routes["passed"]?.counts == .init(passes: 1, errors: 1))
      #expect(statistics.routes["(default)"]?.counts == .init(passes: 1))
      #expect(statistics.routes["(none)"]?.counts == .init(errors: 2))
      #expect(statistics.routes["stored"]?.hitRatio == 2.0 / 3)
      #expect(statistics.routes["passed"]?.hitRatio == 0)
      for route in statistics.routes.values { #expect(route.requests == route.counts.total) }
      #expect(statistics.requests == statistics.routes.values.map(\.requests).reduce(0, +))
      #expect(statistics.requests == statistics.counts.total)
      #expect(statistics.store.notStored["private"] == 1)
      #expect(statistics.origin.requests == 6)
      #expect(statistics.origin.failures == 1)
    }
  }

  @Test func entriesAreCountedForTheStoreAndForTheirRoute() throws {
    try scenario(routes) { origin, proxy in
      for path in ["/stored/a", "/stored/b", "/passed/a"] {
        origin.on(path, .text("a"))
        _ = try proxy.get(path)
      }
      // All that was to be written is written once the store is closed.
      try proxy.restart()
      let statistics = try proxy.statistics()
      #expect(statistics.store.entries == 2)
      #expect(statistics.store.bytes > 0)
      #expect(statistics.routes["stored"]?.entries == 2)
      #expect(statistics.routes["passed"]?.entries == 0)
    }
  }

  @Test func bytesAreCountedWhereTheyPass() throws {
    try scenario(routes) { origin, proxy in
      origin.on("/stored/a", .text(String(repeating: "x", count: 1000)))
      origin.on("/stored/large", .text(String(repeating: "x", count: 300_000)))
      origin.on("/passed/a", .text(String(repeating: "y", count: 500)).framed(.chunked))
      let client = try RawClient(proxy)
      for path in [
        "/stored/a", "/stored/a", "/stored/a", "/passed/a", "/stored/large", "/stored/large",
      ] {
        client.send("GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n")
      }
      client.send("HEAD /stored/a HTTP/1.1\r\nHost: h\r\n\r\n")
      client.send("GET /missing HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [200, 200, 200, 200, 200, 200, 200, 404])
      let statistics = try proxy.statistics()
      #expect(statistics.bytes.fromStore == 2 * 1000 + 300_000)
      let missing = "no script for this path\n".utf8.count
      #expect(statistics.bytes.fromOrigin == 1000 + 500 + 300_000 + missing)
      #expect(statistics.routes["stored"]?.bytesFromStore == 2 * 1000 + 300_000)
      #expect(statistics.routes["stored"]?.bytesFromOrigin == 1000 + 300_000)
      #expect(statistics.routes["passed"]?.bytesFromOrigin == 500)
      #expect(statistics.routes["passed"]?.bytesFromStore == 0)
      // Heads and framing go to clients too.
      #expect(statistics.bytes.toClients == client.received.count)
    }
  }

  @Test func bytesOfOurOwnErrorsGoToClientsToo() throws {
    try scenario(routes) { origin, proxy in
      let client = try RawClient(proxy)
      client.send("GET /%zz HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\n\r\n")
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [400, 400])
      #expect(try proxy.statistics().bytes.toClients == client.received.count)
    }
  }

  // MARK: The listener itself

  @Test func unknownPathsGetTheListOfThoseThatExist() throws {
    try scenario(routes) { _, proxy in
      let admin = try ClientConnection(
        port: proxy.server!.adminAddresses[0].port, authority: ClientConnection.adminAuthority)
      let answer = try admin.get("/nowhere")
      #expect(answer.status == 404)
      #expect(answer.text.contains("/stats"))
      #expect(answer.text.contains("/healthz"))
      admin.send("POST", "/stats", body: [])
      let refused = try admin.readAnswer()
      #expect(refused.status == 405)
      #expect(refused.first("Allow") == "GET, HEAD")
      admin.send("HEAD", "/stats")
      #expect(try admin.readAnswer().status == 200)
      let health = try admin.get("/healthz")
      #expect(health.status == 200)
      let parsed = try JSONSerialization.jsonObject(with: Data(health.body)) as? [String: String]
      #expect(parsed?["status"] == "ok")
      #expect(try proxy.statistics().requests == 0, "what the admin listener serves is not counted")
    }
  }

  @Test func thePublicListenerHasNoStatistics() throws {
    try scenario(routes) { origin, proxy in
      let answer = try proxy.get("/stats")
      #expect(answer.text == "no script for this path\n")
      #expect(origin.requestCount("/stats") == 1)
    }
  }

  @Test func aTokenIsAskedForWhereOneIsSet() throws {
    try scenario(
      routes, top: #""admin": { "listen": "127.0.0.1:1", "token": "right" },"#
    ) { _, proxy in
      let admin = try ClientConnection(
        port: proxy.server!.adminAddresses[0].port, authority: ClientConnection.adminAuthority)
      for fields in [[], ["Authorization: Bearer wrong"], ["Authorization: right"]] {
        let answer = try admin.get("/stats", fields)
        #expect(answer.status == 401)
        #expect(answer.first("WWW-Authenticate") == "Bearer")
      }
      #expect(try admin.get("/stats", ["Authorization: Bearer right"]).status == 200)
      #expect(try admin.get("/healthz").status == 200)
    }
  }
}
