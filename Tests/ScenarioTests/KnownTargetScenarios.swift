import Support
import Testing

/// Targets that come again and again, so that a loop knows where they belong: every request gets
/// what it would get if it came for the first time.
struct KnownTargetScenarios {
  typealias Asked = (method: String, target: String, fields: [String])

  struct Row: CustomTestStringConvertible {
    var name: String
    var route: String
    var asked: [Asked]
    /// For each request, the first of those that get the same copy.
    var copies: [Int]
    var testDescription: String { name }
  }

  private static func get(_ target: String, _ fields: String...) -> Asked {
    ("GET", target, fields)
  }

  static let rows = [
    Row(
      name: "two hosts", route: "",
      asked: [get("/a", "Host: one.example"), get("/a", "Host: two.example")], copies: [0, 1]),
    Row(
      name: "a host in another case and with its default port", route: "",
      asked: [get("/a", "Host: ONE.example:80"), get("/a", "Host: one.example")], copies: [0, 0]),
    Row(
      name: "a host that the target names", route: "",
      asked: [
        get("/a", "Host: one.example"), get("http://two.example/a", "Host: one.example"),
        get("http://two.example/a", "Host: other.example"), get("/a", "Host: two.example"),
      ], copies: [0, 1, 1, 1]),
    Row(
      name: "what one has in the target, the other in the host", route: "",
      asked: [get("/a", "Host: bc.example"), get("/ab", "Host: c.example")], copies: [0, 1]),
    Row(
      name: "users", route: #""perUser": "header:Authorization","#,
      asked: [get("/a", "Authorization: anna"), get("/a", "Authorization: bert")],
      copies: [0, 1]),
    Row(
      name: "users by a cookie", route: #""perUser": "cookie:session","#,
      asked: [get("/a", "Cookie: session=1"), get("/a", "Cookie: session=2")], copies: [0, 1]),
    Row(
      name: "a field in the key", route: #""key": { "headers": ["X-Tenant"] },"#,
      asked: [get("/a", "X-Tenant: a"), get("/a", "X-Tenant: b"), get("/a")],
      copies: [0, 1, 2]),
    Row(
      name: "a cookie in the key", route: #""key": { "cookies": ["region"] },"#,
      asked: [get("/a", "Cookie: region=eu"), get("/a", "Cookie: region=us")], copies: [0, 1]),
    Row(
      name: "the order of a query", route: "",
      asked: [get("/a?x=1&y=2"), get("/a?y=2&x=1"), get("/a"), get("/a?")],
      copies: [0, 1, 2, 3]),
    Row(
      name: "a query that is sorted and filtered",
      route: #""key": { "query": ["x", "y"], "sortQuery": true },"#,
      asked: [get("/a?x=1&y=2"), get("/a?y=2&z=3&x=1"), get("/a?x=2&y=2")], copies: [0, 0, 2]),
    Row(
      name: "percent-encoding", route: "",
      asked: [get("/a"), get("/%61"), get("/x/../a"), get("/a%2fb"), get("/a%2Fb"), get("/a/b")],
      copies: [0, 0, 0, 3, 3, 5]),
    Row(
      name: "languages", route: "",
      asked: [get("/v", "Accept-Language: en"), get("/v", "Accept-Language: de"), get("/v")],
      copies: [0, 1, 2]),
  ]

  @Test(arguments: KnownTargetScenarios.rows)
  func whoAsksAgainGetsTheCopyOfTheFirstTime(_ row: Row) throws {
    try scenario(Self.route(row.route)) { origin, proxy in
      for path in ["/a", "/ab", "/a/b", "/a%2Fb"] {
        origin.on(path) { .text("\($0.path) \($0.number)") }
      }
      origin.on("/v") { .text("\($0.path) \($0.number)", "Vary: Accept-Language") }
      let client = try proxy.connect()
      var texts: [String] = []
      for round in 0..<6 {
        for (index, asked) in row.asked.enumerated() {
          client.send(asked.method, asked.target, asked.fields)
          let answer = try client.readAnswer()
          let isFirst = row.copies[index] == index
          if round == 0 { texts.append(isFirst ? answer.text : texts[row.copies[index]]) }
          #expect(answer.text == texts[index], "round \(round), request \(index)")
          #expect(answer.cacheStatus.isHit == (round > 0 || !isFirst))
        }
        try proxy.settle()
      }
      #expect(Set(texts).count == Set(row.copies).count)
    }
  }

  // MARK: What a request says beside its target

  @Test func theMethodHasItsOwnRoute() throws {
    let routes =
      #"{ "name": "g", "match": "GET /a", "strategy": "cache-first", "ttl": "1h" },"#
      + #"{ "name": "p", "match": "POST /a", "strategy": "network-only" },"#
    try scenario(routes) { origin, proxy in
      origin.on("/a") { .text("\($0.method) \($0.number)") }
      expect(try proxy.get("/a"), "GET 1", .stored("uri-miss"))
      for _ in 0..<4 {
        expect(try proxy.get("/a"), "GET 1", .hit)
        #expect(try proxy.send("HEAD", "/a").cacheStatus.isHit)
      }
      #expect(try proxy.send("POST", "/a").text == "POST 2")
    }
  }

  @Test func aClientsChoiceOfStrategyCountsEachTime() throws {
    let choice = Self.route(#""clientStrategies": ["network-and-store"],"#)
    try scenario(choice) { origin, proxy in
      origin.on("/a") { .text("\($0.number)") }
      for number in 1...5 {
        let answer = try proxy.get("/a", "Larder-Strategy: network-and-store")
        #expect(answer.text == "\(number)" && !answer.cacheStatus.isHit)
        try proxy.settle()
        for _ in 0..<2 { expect(try proxy.get("/a"), "\(number)", .hit) }
      }
    }
  }

  @Test func aWordOfTheClientsCountsEachTime() throws {
    try scenario(Self.route()) { origin, proxy in
      origin.on("/a") { .text("\($0.number)") }
      for number in 1...4 {
        #expect(try proxy.get("/a", "Cache-Control: no-cache").text == "\(number)")
        try proxy.settle()
        for _ in 0..<2 { expect(try proxy.get("/a"), "\(number)", .hit) }
      }
    }
  }

  // MARK: What changes

  @Test func aPurgedTargetIsFetchedAgain() throws {
    let change =
      #"{ "name": "p", "match": "POST /change", "strategy": "network-only", "#
      + #""invalidates": ["tag:t"] },"#
    try scenario(change + Self.route(#""tags": ["t"],"#)) { origin, proxy in
      origin.on("/a") { .text("\($0.number)") }
      origin.on("/change", .text("ok"))
      for number in 1...4 {
        _ = try proxy.get("/a")
        for _ in 0..<3 { expect(try proxy.get("/a"), "\(number)", .hit) }
        try proxy.settle()
        for _ in 0..<3 { expect(try proxy.get("/a"), "\(number)", .hit) }
        expectText(try proxy.send("POST", "/change"), "ok")
      }
    }
  }

  @Test func aChangeVoidsTheTargetsCopy() throws {
    try scenario(Self.route()) { origin, proxy in
      origin.on("/a") { .text("\($0.number)") }
      for round in 0..<3 {
        let number = 2 * round + 1
        expect(try proxy.get("/a"), "\(number)", .stored("uri-miss"))
        for _ in 0..<3 { expect(try proxy.get("/a"), "\(number)", .hit) }
        #expect(try proxy.send("DELETE", "/a").status == 200)
      }
    }
  }

  @Test func aReloadedRouteHoldsForTheNextRequest() throws {
    try scenario(Self.route()) { origin, proxy in
      origin.on("/a") { .text("\($0.number)") }
      func reload(_ routes: String) throws {
        let answer = try proxy.rewrite(policies: scenarioPolicies(routes), origin: origin)
        #expect(answer?.status == 200, "\(answer?.text ?? "")")
      }
      func ask(_ tenant: String) throws -> String {
        try proxy.get("/a", "X-Tenant: \(tenant)").text
      }
      for tenant in ["a", "b", "a", "b"] { #expect(try ask(tenant) == "1") }
      try reload(Self.route(#""key": { "headers": ["X-Tenant"] },"#))
      for tenant in ["a", "b", "a", "b", "a", "b"] {
        #expect(try ask(tenant) == (tenant == "a" ? "2" : "3"))
      }
      try reload(#"{ "name": "r", "match": "/**", "strategy": "network-only" },"#)
      for number in 4...6 { #expect(try ask("a") == "\(number)") }
      try reload(Self.route())
      for _ in 0..<4 { #expect(try ask("b") == "1") }
    }
  }

  private static func route(_ more: String = "") -> String {
    #"{ "name": "r", "match": "/**", "strategy": "cache-first", \#(more) "ttl": "1h" },"#
  }
}
