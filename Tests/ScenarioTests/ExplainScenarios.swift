import CachePolicy
import Foundation
import Support
import Testing

@testable import Proxy

/// `GET /explain` and `GET /config` of the admin listener: what they say is what happens.
struct ExplainScenarios {
  private struct Answered: Decodable {
    struct Route: Decodable { let name: String }
    struct Refusal: Decodable { let status: Int }
    struct Identity: Decodable {
      let digest: String?
      let missing: Bool?
    }
    struct Stored: Decodable {
      struct Copy: Decodable {
        let selected: Bool
        let status: Int
        let bodyBytes: Int
        let ageSeconds: Int
        let lifetimeSeconds: Int
        let freshSecondsLeft: Int
        let staleWhileRevalidateSecondsLeft: Int
        let entityTag: String?
        let varies: [String]
        let tags: [String]
      }
      let now: String
      let then: [String]
      let copies: [Copy]
    }
    let route: Route?
    let refusal: Refusal?
    let identity: Identity?
    let stored: Stored?
  }

  private func explain(_ proxy: TestProxy, _ query: String) throws -> Answered {
    // As clients ask: a path alone would be asked of the address that the proxy listens on.
    let url = "url=http://\(ClientConnection.authority)/"
    let answer = try proxy.administer(
      "GET", "/explain?\(query.replacingOccurrences(of: "url=/", with: url))")
    #expect(answer.status == 200, "\(answer.text)")
    #expect(answer.first("Content-Type") == "application/json")
    return try JSONDecoder().decode(Answered.self, from: Data(answer.body))
  }

  private static let routes = """
    { "name": "a", "match": "/a/{id}", "strategy": "cache-first", "ttl": "1h",
      "staleWhileRevalidate": "30m", "tags": ["a:{id}"] },
    { "name": "me", "match": "/me", "strategy": "cache-first", "ttl": "1h",
      "perUser": "header:Authorization" },
    { "name": "only", "match": "/only", "strategy": "cache-only", "ttl": "1h" }
    """

  @Test func copyIsExplainedBeforeStoringFreshAndStale() throws {
    try scenario(Self.routes) { origin, proxy in
      origin.on("/a/7") { _ in
        var answer = OriginAnswer.text("12345")
        answer.fields += [("ETag", "\"x\""), ("Vary", "Accept-Language"), ("Surrogate-Key", "k")]
        return answer
      }
      let query = "url=/a/7&header=Accept-Language:%20en"
      let before = try explain(proxy, query)
      #expect(before.route?.name == "a")
      #expect(before.stored?.now == "larder; fwd=uri-miss; detail=cache-first")
      #expect(before.stored?.copies.isEmpty == true)
      #expect(origin.requestCount("/a/7") == 0)

      _ = try proxy.get("/a/7", "Accept-Language: de")
      _ = try proxy.get("/a/7", "Accept-Language: en")
      proxy.advance(seconds: 600)
      let fresh = try #require(try explain(proxy, query).stored)
      #expect(fresh.copies.map(\.selected) == [true, false])
      let copy = try #require(fresh.copies.first)
      #expect(copy.status == 200 && copy.bodyBytes == 5 && copy.lifetimeSeconds == 3600)
      #expect((600...650).contains(3600 - copy.freshSecondsLeft))
      #expect((600...650).contains(copy.ageSeconds))
      #expect(copy.staleWhileRevalidateSecondsLeft == 1800)
      #expect(copy.entityTag == "\"x\"" && copy.varies == ["accept-language"])
      #expect(Set(copy.tags) == ["a:7", "k"])
      // Time goes on between the two, by less than a minute.
      let served = try proxy.get("/a/7", "Accept-Language: en")
      #expect(served.first("Cache-Status")?.hasPrefix("larder; hit; ttl=") == true)
      #expect(
        fresh.now.hasPrefix("larder; hit; ttl=29") || fresh.now.hasPrefix("larder; hit; ttl=30"))
      #expect(fresh.now.hasSuffix("; detail=cache-first"))

      proxy.advance(seconds: 3600)
      let stale = try #require(try explain(proxy, query).stored)
      #expect(stale.now.hasPrefix("larder; hit; ttl=-"))
      #expect(stale.then == ["a refresh in the background replaces it"])
      #expect(stale.copies[0].freshSecondsLeft < 0)
      #expect((1..<1800).contains(stale.copies[0].staleWhileRevalidateSecondsLeft))

      proxy.advance(seconds: 3600)
      let old = try #require(try explain(proxy, query).stored)
      #expect(old.now == "larder; fwd=stale; detail=cache-first")
      #expect(old.then == ["the origin is asked whether the copy still holds"])
      #expect(old.copies[0].staleWhileRevalidateSecondsLeft == 0)
      #expect(origin.requestCount("/a/7") == 2, "explaining asks no origin")
    }
  }

  /// What an explanation says is counted nowhere and serves nobody.
  @Test func explainingChangesNoCounts() throws {
    try scenario(Self.routes) { origin, proxy in
      _ = try explain(proxy, "url=/a/7")
      #expect(try proxy.counts("a") == .init())
    }
  }

  @Test func eachUserSeesTheirOwnCopies() throws {
    try scenario(Self.routes) { origin, proxy in
      origin.on("/me") { _ in .text("mine") }
      _ = try proxy.get("/me", "Authorization: Bearer ann")
      let ann = try explain(proxy, "url=/me&header=Authorization:%20Bearer%20ann")
      #expect(ann.stored?.now.hasPrefix("larder; hit; ttl=") == true)
      let bob = try explain(proxy, "url=/me&header=Authorization:%20Bearer%20bob")
      #expect(bob.stored?.now == "larder; fwd=uri-miss; detail=cache-first")
      #expect(ann.identity?.digest?.count == 16)
      #expect(ann.identity?.digest != bob.identity?.digest)
      let nobody = try explain(proxy, "url=/me")
      #expect(nobody.identity?.missing == true)
      #expect(nobody.stored?.copies.isEmpty == true)
      // The command, which reads the secret of the same store, makes the same digest.
      let request = try ExplainedRequest(target: "/me", headers: ["Authorization: Bearer ann"])
      let command = ExplainCommand.explain(request, proxy.configuration)
      #expect(
        command.routed?.identity
          == .user(source: "header:authorization", digest: ann.identity?.digest))
      // As it is said to whoever asks without the identity.
      let answer = try proxy.get("/me")
      let status = try #require(answer.first("Cache-Status"))
      let said = try #require(nobody.stored?.now)
      #expect(status.replacingOccurrences(of: "; fwd-status=200", with: "") == said)
      let text = try proxy.administer(
        "GET", "/explain?url=/me&header=Authorization:%20Bearer%20ann&format=text"
      ).text
      #expect(!text.contains("Bearer"), "\(text)")
    }
  }

  /// A request, and whether a copy of its answer is there already.
  struct Row: Sendable, CustomTestStringConvertible {
    var request: String
    var fields: [String]
    var isStored: Bool
    var testDescription: String { "\(request) \(fields) \(isStored)" }

    init(_ request: String, _ fields: String..., isStored: Bool = false) {
      self.request = request
      self.fields = fields
      self.isStored = isStored
    }
  }

  /// What is said to happen, and what then happens, in the same words.
  @Test(
    arguments: [
      Row("GET /a/1"), Row("GET /a/1", isStored: true), Row("HEAD /a/1"),
      Row("HEAD /a/1", isStored: true), Row("GET /a/1", "Range: bytes=0-1"),
      Row("GET /a/1", "Range: bytes=0-1", isStored: true), Row("POST /a/1", isStored: true),
      Row("GET /a/1", "Cache-Control: no-store", isStored: true),
      Row("GET /a/1", "Cache-Control: no-cache", isStored: true),
      Row("GET /a/1", "Cache-Control: max-age=0", isStored: true),
      Row("GET /a/1", "Cache-Control: only-if-cached"),
      Row("GET /a/1", "Cache-Control: only-if-cached", isStored: true),
      Row("GET /a/1", "If-Match: \"x\"", isStored: true),
      Row("GET /a/1", "If-None-Match: \"x\"", isStored: true),
      Row("GET /a/1", "Authorization: Bearer a", isStored: true), Row("GET /me"),
      Row("HEAD /me", "Authorization: Bearer a"), Row("GET /only"), Row("GET /nowhere"),
      Row("DELETE /nowhere"), Row("GET /choice", isStored: true),
      Row("GET /choice", "Larder-Strategy: network-only", isStored: true),
      Row("GET /choice", "Larder-Strategy: network-first", isStored: true),
      Row("GET /choice", "Larder-Strategy: network-and-store", isStored: true),
      Row("GET /choice", "Larder-Strategy: cache-only"),
      Row("GET /choice", "Larder-Strategy: stale-while-revalidate", isStored: true),
    ])
  func whatIsSaidHappens(row: Row) throws {
    let strategies = Strategy.allCases.map { "\"\($0.name)\"" }.joined(separator: ", ")
    let choice = """
      , { "name": "choice", "match": "/choice", "strategy": "cache-first", "ttl": "1h",
          "clientStrategies": [\(strategies)] }
      """
    try scenario(Self.routes + choice) { origin, proxy in
      let parts = row.request.split(separator: " ").map(String.init)
      origin.on(parts[1]) { _ in .text("12345", "ETag: \"x\"") }
      if row.isStored { _ = try proxy.get(parts[1]) }
      let headers = row.fields.map { "&header=" + $0.replacingOccurrences(of: " ", with: "%20") }
      let said = try explain(
        proxy, "url=\(parts[1])&method=\(parts[0])" + headers.joined()
      ).stored?.now
      let answer = try proxy.send(parts[0], parts[1], row.fields)
      let status = try #require(answer.first("Cache-Status"))
      #expect(try Self.words(#require(said)) == Self.words(status))
    }
  }

  /// Without what the network's answer adds, and without seconds, which go on.
  private static func words(_ status: String) -> String {
    status.split(separator: "; ").filter { word in
      word != "stored" && !word.hasPrefix("fwd-status=") && !word.hasPrefix("ttl=")
    }.joined(separator: "; ")
  }

  @Test func copyThatIsNotThereIsAnErrorWhereTheNetworkIsNotAsked() throws {
    try scenario(Self.routes) { origin, proxy in
      let stored = try explain(proxy, "url=/only").stored
      #expect(stored?.now == (try proxy.get("/only")).first("Cache-Status"))
      #expect(stored?.then == ["504, and the network is not asked"])
    }
  }

  @Test func requestThatIsRefusedIsExplained() throws {
    try scenario(Self.routes) { origin, proxy in
      #expect(try explain(proxy, "url=/a/7&method=PURGE").refusal?.status == 405)
      #expect(try explain(proxy, "url=/a/..%252fb").refusal?.status == 400)
      let unknown = try explain(proxy, "url=/nowhere")
      #expect(unknown.route?.name == "(default)")
      #expect(unknown.stored?.now == "larder; fwd=bypass; detail=network-only")
    }
  }

  @Test func badParametersAreRefusedByName() throws {
    try scenario(Self.routes) { origin, proxy in
      for (query, word) in [
        ("", "url is missing"), ("?url=a", "a path"), ("?url=/a&metod=GET", "metod"),
        ("?url=/a&header=x", "colon"), ("?url=/%zz", "hex digits"),
      ] {
        let answer = try proxy.administer("GET", "/explain\(query)")
        #expect(answer.status == 400 && answer.text.contains(word), "\(query): \(answer.text)")
        #expect(answer.first("Content-Type") == "application/problem+json")
      }
    }
  }

  @Test func textIsForWhoeverAsksForIt() throws {
    try scenario(Self.routes) { origin, proxy in
      for (query, fields) in [
        ("url=/a/7&format=text", []), ("url=/a/7", ["Accept: text/plain"]),
      ] as [(String, [String])] {
        let answer = try proxy.administer("GET", "/explain?\(query)", fields)
        #expect(answer.first("Content-Type") == "text/plain; charset=utf-8")
        #expect(answer.text.hasPrefix("request      GET /a/7\n"))
        #expect(answer.text.hasSuffix("now          larder; fwd=uri-miss; detail=cache-first\n"))
      }
    }
  }

  @Test func pathIsAskedOfTheAddressThatTheProxyListensOn() throws {
    try scenario(Self.routes) { origin, proxy in
      let text = try proxy.administer("GET", "/explain?url=/a/7&format=text").text
      #expect(text.contains("\nauthority    127.0.0.1:\(proxy.port) (a URL"), "\(text)")
    }
    try scenario(Self.routes, top: #""publicUrl": "http://apps.example","#) { origin, proxy in
      let text = try proxy.administer("GET", "/explain?url=/a/7&format=text").text
      #expect(text.contains("\nauthority    apps.example (a URL"), "\(text)")
    }
  }

  @Test func reloadedPoliciesAreExplained() throws {
    try scenario(Self.routes) { origin, proxy in
      _ = try explain(proxy, "url=/a/7")
      let route = "{ \"name\": \"b\", \"match\": \"/a/7\", \"strategy\": \"network-first\" }"
      try proxy.rewrite(policies: scenarioPolicies(route), origin: origin)
      let after = try explain(proxy, "url=/a/7")
      #expect(after.route?.name == "b")
      #expect(after.stored?.now == "larder; fwd=uri-miss; detail=network-first")
    }
  }

  // MARK: The token and the configuration

  @Test func explanationAndConfigurationNeedTheToken() throws {
    let admin = #""admin": { "listen": "127.0.0.1:1", "token": "hunter2" },"#
    try scenario(Self.routes, top: admin) { origin, proxy in
      for path in ["/explain?url=/a/7", "/config"] {
        #expect(try proxy.administer("GET", path).status == 401)
        let answer = try proxy.administer("GET", path, ["Authorization: Bearer hunter2"])
        #expect(answer.status == 200)
        #expect(!answer.text.contains("hunter2"))
      }
      let answer = try proxy.administer("GET", "/config", ["Authorization: Bearer hunter2"])
      #expect(answer.first("Content-Type") == "application/json")
      let object = try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
      #expect((object?["routes"] as? [Any])?.count == 3)
      #expect((object?["admin"] as? [String: Any])?["token"] as? String == "${REDACTED}")
    }
  }

  // MARK: Tests of the file

  @Test func reloadIsRefusedByAFailingTest() throws {
    let stored =
      "{ \"name\": \"a\", \"match\": \"/a\", \"strategy\": \"cache-first\", \"ttl\": \"1h\" }"
    let passed = "{ \"name\": \"a\", \"match\": \"/a\", \"strategy\": \"network-only\" }"
    let tests = #""tests": [{ "request": "GET /a", "expect": { "stores": true } }],"#
    try scenario(stored, top: tests) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      _ = try proxy.get("/a")
      let refused = try #require(
        try proxy.rewrite(policies: scenarioPolicies(passed, top: tests), origin: origin))
      #expect(refused.status == 422)
      let said = "tests[0]: GET /a: stores: expected true, got false (strategy)"
      #expect(refused.text.contains(said), "\(refused.text)")
      expect(try proxy.get("/a"), "v1", .hit)
      let config = try proxy.statistics().config
      #expect(config.generation == 1)
      #expect(config.lastError?.errors.count == 1)
      #expect(config.lastError?.errors.first?.hasSuffix(said) == true)
      let applied = try proxy.rewrite(policies: scenarioPolicies(passed), origin: origin)
      #expect(applied?.status == 200)
      #expect(try proxy.get("/a").text == "v2")
    }
  }
}
