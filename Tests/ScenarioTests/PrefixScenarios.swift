import Support
import Testing

/// Where a request goes: `stripPrefix`, `addPrefix`, the upstream's own path and Host. The key
/// holds what the client asked for.
struct PrefixScenarios {
  private static func policies(
    _ prefixes: String, base: String = "", upstream: String = "", match: String = "/api/**"
  ) -> String {
    """
    {
      "version": 1,
      "upstreams": { "origin": { "url": "http://{ORIGIN}\(base)", "retries": 0, \(upstream) } },
      "defaults": { "upstream": "origin" },
      "routes": [
        { "name": "r", "match": "\(match)", "strategy": "cache-first", "ttl": "1h", \(prefixes) },
      ]
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

  private static let strip = "\"stripPrefix\": \"/api\""
  private static let add = "\"addPrefix\": \"/v2\""

  static let targets: [(prefixes: String, base: String, asked: String, sent: String)] = [
    (strip, "", "/api/users", "/users"), (strip, "", "/api", "/"), (strip, "", "/api/", "/"),
    (strip, "", "/api?q=1", "/?q=1"), (strip, "", "/api/users?q=/api/x", "/users?q=/api/x"),
    (strip, "", "/api/api/users", "/api/users"), (strip, "", "//api/users", "/users"),
    (strip, "", "/api//users", "//users"), (strip, "", "/%61pi/users", "/users"),
    (strip, "", "/x/../api/users", "/users"), (strip, "", "/api/./users/..", "/"),
    (strip, "", "/api/a%2Fb", "/a%2Fb"), (strip, "", "/api/%7Euser%20x", "/~user%20x"),
    (strip, "", "/api/caf%c3%a9", "/caf%C3%A9"),
    (add, "", "/api/users", "/v2/api/users"),
    (add, "/base", "/api/users?x", "/base/v2/api/users?x"),
    ("\(strip), \(add)", "", "/api/users", "/v2/users"), ("\(strip), \(add)", "", "/api", "/v2/"),
    ("\(strip), \(add)", "/base", "/api", "/base/v2/"),
    (strip, "/base", "/api/users", "/base/users"), (strip, "/base/", "/api/users", "/base/users"),
    ("", "/base", "/api/users", "/base/api/users"),
    ("\"addPrefix\": \"/a%20b\"", "", "/api/x", "/a%20b/api/x"),
  ]

  @Test(arguments: PrefixScenarios.targets)
  func theOriginIsAskedBehindThePrefixes(
    _ prefixes: String, _ base: String, _ asked: String, _ sent: String
  ) throws {
    try Self.withProxy(Self.policies(prefixes, base: base)) { origin, proxy in
      origin.on(String(sent.prefix { $0 != "?" })) { .text("\($0.number)") }
      expect(try proxy.get(asked), "1", .stored("uri-miss"))
      #expect(origin.requests.map(\.target) == [sent])
      #expect(origin.requests.first?.first("Host") == "127.0.0.1:\(origin.port)")
      expect(try proxy.get(asked), "1", .hit)
    }
  }

  @Test func aPathThatOnlyBeginsWithTheLettersKeepsThem() throws {
    try Self.withProxy(Self.policies(Self.strip, match: "/**")) { origin, proxy in
      for path in ["/apix/users", "/users", "/API/users"] {
        origin.on(path) { .text($0.target) }
      }
      expectText(try proxy.get("/apix/users"), "/apix/users")
      expectText(try proxy.get("/API/users"), "/API/users")
      expectText(try proxy.get("/users"), "/users")
    }
  }

  /// Two ways to one place of the origin are two targets of the proxy.
  @Test func strippingMakesNoTwoKeysOne() throws {
    try Self.withProxy(Self.policies(Self.strip, match: "/**")) { origin, proxy in
      origin.on("/users") { .text("\($0.number)") }
      expectText(try proxy.get("/users"), "1")
      expectText(try proxy.get("/api/users"), "2")
      expect(try proxy.get("/users"), "1", .hit)
      _ = try proxy.send("POST", "/api/users", body: [1])
      expect(try proxy.get("/users"), "1", .hit)
      expectText(try proxy.get("/api/users"), "4")
    }
  }

  /// What an origin points to by its own paths and its own name is what clients ask for behind the
  /// prefixes (RFC 9111 §4.4); another host's names void nothing.
  @Test(arguments: [
    ("Location: /base/v2/items/7", true), ("Content-Location: items/7", true),
    ("Location: http://{HOST}/base/v2/items/7?", false),
    ("Location: http://{HOST}/base/v2/items/7", true), ("Location: //{HOST}/base/v2/items/7", true),
    ("Location: /api/items/7", true), ("Location: http://app.example/api/items/7", true),
    ("Location: /items/7", false), ("Location: /base/items/7", false),
    ("Location: http://other.example/base/v2/items/7", false),
    ("Location: https://{HOST}/base/v2/items/7", false),
  ])
  func whatAnOriginPointsToIsReadBehindThePrefixes(_ line: String, _ isVoid: Bool) throws {
    let policies = Self.policies("\(Self.strip), \(Self.add)", base: "/base")
    try Self.withProxy(policies) { origin, proxy in
      let field = line.replacing("{HOST}", with: "127.0.0.1:\(origin.port)")
      origin.on("/base/v2/items/7") { .text("\($0.number)") }
      origin.on("/base/v2/make", .empty(status: 201, field))
      expectText(try proxy.get("/api/items/7"), "1")
      _ = try proxy.send("POST", "/api/make", body: [1])
      expectText(try proxy.get("/api/items/7"), isVoid ? "2" : "1")
    }
  }

  @Test(arguments: ["/api/..%2fsecret", "/api/%2e%2e%5csecret", "/api/..%5c..%5csecret"])
  func noSpellingClimbsOutOfTheBasePath(_ target: String) throws {
    let policies = Self.policies(Self.strip, base: "/base", match: "/**")
    try Self.withProxy(policies) { origin, proxy in
      let answer = try proxy.get(target)
      #expect(answer.status == 400)
      #expect(origin.requests.isEmpty)
    }
  }

  @Test(arguments: ["/api/../../../secret", "/../secret", "/%2e%2e/%2e%2e/secret"])
  func dotSegmentsEndAtTheBasePath(_ target: String) throws {
    let policies = Self.policies(Self.strip, base: "/base", match: "/**")
    try Self.withProxy(policies) { origin, proxy in
      origin.on("/base/secret", .text("inside"))
      expectText(try proxy.get(target), "inside")
    }
  }

  @Test func theClientsHostGoesOnWhereTheUpstreamSaysSo() throws {
    let policies = Self.policies(Self.strip, upstream: "\"hostHeader\": \"client\"")
    try Self.withProxy(policies) { origin, proxy in
      origin.on("/a") { .text($0.first("Host") ?? "none") }
      for host in ["a.example", "B.example:8080"] {
        expectText(try proxy.get("/api/a", "Host: \(host)"), host.lowercased())
      }
      expect(try proxy.get("/api/a", "Host: A.example:80"), "a.example", .hit)
      #expect(origin.requestCount("/a") == 2)
    }
  }

  /// The prefix is the proxy's: what a client says of prefixes and addresses does not reach the
  /// origin.
  @Test func addressesOfTheClientsMakingAreDropped() throws {
    try Self.withProxy(Self.policies(Self.strip)) { origin, proxy in
      origin.on("/a", .text("1"))
      _ = try proxy.get(
        "/api/a", "X-Forwarded-Prefix: /evil", "X-Original-URL: /admin", "X_Rewrite_URL: /admin",
        "X-Forwarded-Host: evil.example", "Forwarded: host=evil.example")
      let request = try #require(origin.requests("/a").first)
      for name in ["X-Forwarded-Prefix", "X-Original-URL", "X_Rewrite_URL"] {
        #expect(request.first(name) == nil)
      }
      #expect(request.first("X-Forwarded-Host") == "app.example")
      #expect(request.first("Forwarded")?.contains("evil") == false)
    }
  }
}
