import Foundation
import Support
import Testing

/// What tells copies apart: a route's `key`, and what no route can take out of it. Every request
/// goes to the origin as it came, whatever of it counts.
struct KeyScenarios {
  private static func route(_ key: String, _ more: String = "") -> String {
    """
    { "name": "r", "match": "/**", "strategy": "cache-first", "ttl": "1h",
      "key": { \(key) }, \(more) }
    """
  }

  /// Asks for two targets, one after the other: whether the second had the first's copy.
  private static func share(
    _ key: String, _ first: (target: String, fields: [String]),
    _ second: (target: String, fields: [String])
  ) throws -> Bool {
    var isShared = false
    try scenario(route(key)) { origin, proxy in
      let path = String(first.target.prefix { $0 != "?" })
      origin.on(path) { .text("\($0.number)") }
      expect(try proxy.send("GET", first.target, first.fields), "1", .stored("uri-miss"))
      let answer = try proxy.send("GET", second.target, second.fields)
      isShared = answer.text == "1"
      #expect(answer.cacheStatus.isHit == isShared)
      #expect(
        origin.requests(path).map(\.target) == [first.target] + (isShared ? [] : [second.target]))
    }
    return isShared
  }

  // MARK: The query

  static let sameQueries: [(String, String, String)] = [
    ("\"query\": [\"base\"]", "base=USD&utm=1", "base=USD&utm=2"),
    ("\"query\": [\"base\"]", "x=1&base=USD", "base=USD"),
    ("\"query\": [\"base\"]", "utm=1", "other=2"),
    ("\"query\": [\"base\"]", "x=1;y=2", "x=3;y=4"),
    ("\"query\": \"none\"", "a=1", "b=2&c"),
    ("\"query\": \"none\"", "", "a"),
    ("\"ignoreQuery\": [\"utm_*\", \"fbclid\"]", "a=1&utm_source=x&fbclid=y", "a=1"),
    ("\"ignoreQuery\": [\"utm_*\"]", "utm_source=x", "utm_campaign=y"),
    ("\"ignoreQuery\": [\"*\"]", "a=1&b=2", "c=3"),
    ("\"ignoreQuery\": [\"*id\"]", "gclid=1&a=2", "fbclid=7&a=2"),
    ("\"sortQuery\": true", "b=2&a=1", "a=1&b=2"),
    ("\"query\": [\"a\", \"b\"], \"sortQuery\": true", "b=2&x=1&a=1", "a=1&b=2&x=9"),
  ]

  @Test(arguments: KeyScenarios.sameQueries)
  func theseQueriesHaveOneCopy(_ key: String, _ first: String, _ second: String) throws {
    let isShared = try Self.share(key, ("/a?\(first)", []), ("/a?\(second)", []))
    #expect(isShared)
  }

  static let differentQueries: [(String, String, String)] = [
    ("\"query\": [\"base\"]", "base=USD", "base=EUR"),
    ("\"query\": [\"base\"]", "base=USD", "base=USD&base=EUR"),
    ("\"query\": [\"base\"]", "base=USD", "x=1;base=EUR"),
    ("\"query\": [\"base\"]", "base=USD", "x=1"),
    ("\"query\": [\"base\"]", "base", "x=1"),
    // Origins decode names: what they take for base counts.
    ("\"query\": [\"base\"]", "%62ase=USD", "%62ase=EUR"),
    ("\"query\": [\"base\"]", "x=1&b%61se=EUR", "x=1"),
    ("\"query\": [\"base\"]", "base%5B%5D=1", "base%5B%5D=2"),
    ("\"query\": [\"base\"]", "base[]=1", "base[]=2"),
    ("\"query\": [\"base\"]", "base=USD&x=1", "x=1%26base=EUR&base=USD&base=1"),
    ("\"ignoreQuery\": [\"utm_*\"]", "utm_a=1;b=2", "utm_a=1;b=3"),
    ("\"ignoreQuery\": [\"utm_*\"]", "a=1", "a=2"),
    ("\"ignoreQuery\": [\"utm_*\"]", "autm_x=1", "autm_x=2"),
    ("\"ignoreQuery\": [\"id\"]", "idx=1", "idx=2"),
    ("\"sortQuery\": true", "a=1&a=2", "a=2&a=1"),
    ("\"sortQuery\": true", "a=1&b=2", "a=2&b=1"),
    ("\"sortQuery\": true", "a=1;b=2&c=3", "b=2;a=1&c=3"),
    ("\"query\": \"all\"", "a=1&b=2", "b=2&a=1"),
    ("\"query\": \"all\"", "", "a"),
    ("\"query\": \"all\"", "%61=1", "a=1"),
  ]

  @Test(arguments: KeyScenarios.differentQueries)
  func theseQueriesHaveCopiesOfTheirOwn(
    _ key: String, _ first: String, _ second: String
  ) throws {
    let isShared = try Self.share(key, ("/a?\(first)", []), ("/a?\(second)", []))
    #expect(!isShared)
  }

  @Test func noQueryAndAnEmptyOneAreToldApartWhereAllCounts() throws {
    #expect(try !Self.share("\"query\": \"all\"", ("/a", []), ("/a?", [])))
    #expect(try Self.share("\"query\": \"none\"", ("/a", []), ("/a?", [])))
  }

  // MARK: Fields and cookies

  static let differentFields: [(String, [String], [String])] = [
    ("\"headers\": [\"X-Tenant\"]", ["X-Tenant: a"], ["X-Tenant: b"]),
    ("\"headers\": [\"X-Tenant\"]", ["X-Tenant: a"], []),
    ("\"headers\": [\"X-Tenant\"]", ["X-Tenant:"], []),
    ("\"headers\": [\"X-Tenant\"]", ["X-Tenant: a, b"], ["X-Tenant: a", "X-Tenant: b"]),
    ("\"headers\": [\"X-Tenant\"]", ["X-Tenant: a"], ["X-Tenant: a", "X_Tenant: b"]),
    ("\"headers\": [\"X-Tenant\"]", ["X-Tenant: a"], ["X-Tenant: a", "Connection: x-tenant"]),
    ("\"headers\": [\"A\", \"B\"]", ["A: x"], ["B: x"]),
    ("\"headers\": [\"A\", \"B\"]", ["A: xB"], ["A: x", "B:"]),
    ("\"cookies\": [\"region\"]", ["Cookie: region=eu"], ["Cookie: region=us"]),
    ("\"cookies\": [\"region\"]", ["Cookie: region="], ["Cookie: other=1"]),
    ("\"cookies\": [\"region\"]", ["Cookie: region=eu"], []),
    ("\"cookies\": [\"region\"]", ["Cookie: region=eu"], ["Cookie: region=eu; region=us"]),
    (
      "\"cookies\": [\"region\"]", ["Cookie: a=1; region=eu"], ["Cookie: a=1", "Cookie: region=us"]
    ),
    // Names of cookies are told apart by case.
    ("\"cookies\": [\"region\"]", ["Cookie: region=eu"], ["Cookie: REGION=eu"]),
  ]

  @Test(arguments: KeyScenarios.differentFields)
  func theseFieldsHaveCopiesOfTheirOwn(
    _ key: String, _ first: [String], _ second: [String]
  ) throws {
    let isShared = try Self.share(key, ("/a", first), ("/a", second))
    #expect(!isShared)
  }

  static let sameFields: [(String, [String], [String])] = [
    ("\"headers\": [\"X-Tenant\"]", ["X-Tenant: a"], ["x-tenant: a"]),
    ("\"headers\": [\"X-Tenant\"]", ["X-Tenant: a", "Y: 1"], ["Y: 2", "X-Tenant: a"]),
    ("\"cookies\": [\"region\"]", ["Cookie: region=eu; s=1"], ["Cookie: t=2; region=eu"]),
    ("\"cookies\": [\"region\"]", ["Cookie: session=1"], []),
  ]

  @Test(arguments: KeyScenarios.sameFields)
  func theseFieldsHaveOneCopy(_ key: String, _ first: [String], _ second: [String]) throws {
    let isShared = try Self.share(key, ("/a", first), ("/a", second))
    #expect(isShared)
  }

  @Test(
    arguments: [
      ("\"headers\": [\"X-Api-Key\"]", "X-Api-Key: sesame-opens-4711", ""),
      ("\"headers\": [\"Authorization\"]", "Authorization: Bearer sesame-opens-4711", ""),
      ("\"cookies\": [\"sid\"]", "Cookie: sid=sesame-opens-4711", ""),
      // An origin that varies by what is keyed must not bring the secret in by that door.
      ("\"headers\": [\"X-Api-Key\"]", "X-Api-Key: sesame-opens-4711", "Vary: X-Api-Key"),
      (
        "\"headers\": [\"Authorization\"]", "Authorization: sesame-opens-4711",
        "Vary: Authorization"
      ),
      ("\"cookies\": [\"sid\"]", "Cookie: sid=sesame-opens-4711", "Vary: Cookie"),
      ("\"headers\": [\"X-Tenant\"]", "X-Auth-Token: sesame-opens-4711", "Vary: X-Auth-Token"),
    ] as [(String, String, String)])
  func noCredentialIsReadableInTheStore(
    _ key: String, _ field: String, _ vary: String
  ) throws {
    try scenario(Self.route(key)) { origin, proxy in
      origin.on(
        "/a",
        .text(
          "the-body-that-is-there", "Cache-Control: public, max-age=60",
          vary.isEmpty ? "X-None: 1" : vary))
      _ = try proxy.get("/a", field)
      try proxy.settle()
      expect(try proxy.get("/a", field), "the-body-that-is-there", .hit)
      let file = proxy.storePath + "/data.mdb"
      proxy.stop()
      let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
      #expect(bytes.range(of: Data("the-body-that-is-there".utf8)) != nil)
      #expect(bytes.range(of: Data("sesame-opens-4711".utf8)) == nil)
    }
  }

  // MARK: What is always in it

  @Test(
    arguments: [
      ("a.example", "b.example", false), ("a.example", "A.Example", true),
      ("a.example", "a.example:80", true), ("a.example", "a.example:8080", false),
      ("a.example", "a.example.", false),
    ] as [(String, String, Bool)])
  func hostsHaveCopiesOfTheirOwn(_ first: String, _ second: String, _ share: Bool) throws {
    let isShared = try Self.share(
      "\"query\": \"none\"", ("/a", ["Host: \(first)"]), ("/a", ["Host: \(second)"]))
    #expect(isShared == share)
  }

  /// Lengths stand before the parts of a key: nothing in one of them reads as another.
  @Test(
    arguments: [
      ("/a?b", "/a%3Fb"), ("/a?x", "/a"), ("/a/b", "/a%2Fb"), ("/a;b", "/a?b"),
      ("/a?h%00", "/a?h"), ("/a?u", "/a?h"),
    ])
  func noTargetMeetsAnothersCopy(_ first: String, _ second: String) throws {
    try scenario(Self.route("\"query\": \"all\", \"headers\": [\"X\"]")) { origin, proxy in
      for path in ["/a", "/a%3Fb", "/a/b", "/a%2Fb", "/a;b"] {
        origin.on(path) { .text($0.target) }
      }
      _ = try proxy.get(first, "X: 1")
      expectText(try proxy.get(second, "X: 1"), second)
      expectText(try proxy.get(first, "X: 1"), first)
    }
  }

  @Test(arguments: ["//admin", "///admin/", "/admin", "/./admin", "/x/../admin", "/%61dmin"])
  func noSpellingDodgesARoute(_ target: String) throws {
    let routes = """
      { "name": "admin", "match": "/admin/**", "strategy": "network-only" },
      { "name": "rest", "match": "/**", "strategy": "cache-first", "ttl": "1h" }
      """
    try scenario(routes) { origin, proxy in
      for path in ["/admin", "//admin", "///admin/"] { origin.on(path) { .text("\($0.number)") } }
      _ = try proxy.get(target)
      let answer = try proxy.get(target)
      #expect(answer.text == "2" && !answer.cacheStatus.isStored)
      #expect(try proxy.counts("admin") == .init(passes: 2))
    }
  }
}
