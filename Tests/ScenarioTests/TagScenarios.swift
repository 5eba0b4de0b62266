import Support
import Testing

/// Tags, and what a change voids beyond its own URL (`invalidates`).
struct TagScenarios {
  /// Articles with a user's, a language's and a query's copies each, their list, and the thumbs
  /// that change them.
  private static func routes(_ invalidates: String, _ more: String = "") -> String {
    """
    { "name": "thumbs", "match": "POST|DELETE /articles/{id}/thumbs",
      "strategy": "network-only", "invalidates": [\(invalidates)] },
    { "name": "article", "match": "/articles/{id}", "strategy": "cache-first", "ttl": "1h",
      "perUser": "header:X-User", "tags": ["article:{id}", "articles"] },
    { "name": "rest", "match": "/**", "strategy": "cache-first", "ttl": "1h",
      "key": { "query": "none" }, \(more) }
    """
  }

  private static let users = ["X-User: anna", "X-User: bert"]
  private static let languages = ["Accept-Language: en", "Accept-Language: de"]
  private static let targets = ["/articles/7", "/articles/7?page=2", "/articles/8"]

  private static func script(_ origin: ScriptedOrigin) {
    for path in ["/articles/7", "/articles/8"] {
      origin.on(path) { .text("\($0.number)", "Vary: Accept-Language") }
    }
    for path in ["/articles", "/other", "/a/b/c"] { origin.on(path) { .text("\($0.number)") } }
    for path in ["/articles/7/thumbs", "/articles/8/thumbs"] { origin.on(path, .text("ok")) }
  }

  /// Fills the store with every copy of everything.
  private static func fill(_ proxy: TestProxy) throws {
    for target in targets {
      for user in users {
        for language in languages { _ = try proxy.send("GET", target, [user, language]) }
      }
    }
    for path in ["/articles", "/other", "/a/b/c"] { _ = try proxy.get(path) }
    try proxy.settle()
  }

  /// Of which targets all copies are there, and of which none is; a mixture is a failure.
  private static func present(
    _ proxy: TestProxy, _ location: SourceLocation = #_sourceLocation
  ) throws -> Set<String> {
    var result: Set<String> = []
    for target in targets {
      var hits = 0
      for user in users {
        for language in languages {
          let answer = try proxy.send(
            "GET", target, [user, language, "Cache-Control: only-if-cached"])
          hits += answer.cacheStatus.isHit ? 1 : 0
        }
      }
      #expect(hits == 0 || hits == 4, "\(target): \(hits) of 4", sourceLocation: location)
      if hits > 0 { result.insert(target) }
    }
    for path in ["/articles", "/other", "/a/b/c"] {
      let answer = try proxy.get(path, "Cache-Control: only-if-cached")
      if answer.cacheStatus.isHit { result.insert(path) }
    }
    return result
  }

  private static let all: Set = [
    "/articles/7", "/articles/7?page=2", "/articles/8", "/articles", "/other", "/a/b/c",
  ]

  static let purges: [(String, String, Set<String>)] = [
    ("own tag", "\"tag:article:{id}\"", ["/articles/7", "/articles/7?page=2"]),
    (
      "own tag and the list", "\"tag:article:{id}\", \"/articles\"",
      ["/articles/7", "/articles/7?page=2", "/articles"]
    ),
    ("a tag of all", "\"tag:articles\"", ["/articles/7", "/articles/7?page=2", "/articles/8"]),
    ("the path by its name", "\"/articles/{id}\"", ["/articles/7", "/articles/7?page=2"]),
    (
      "one segment", "\"/articles/*\"",
      ["/articles/7", "/articles/7?page=2", "/articles/8"]
    ),
    (
      "the rest", "\"/articles/**\"",
      ["/articles/7", "/articles/7?page=2", "/articles/8", "/articles"]
    ),
    ("another host", "\"//other.example/**\"", []),
    ("this host", "\"//app.example/other\"", ["/other"]),
    ("all of this host", "\"//*.example/a/**\"", ["/a/b/c"]),
    ("a star in the middle", "\"/a/*/c\"", ["/a/b/c"]),
    ("a star is one segment", "\"/a/*\"", []),
    ("a tag that nobody carries", "\"tag:nobody\"", []),
    ("a prefix of a tag", "\"tag:article\"", []),
  ]

  @Test(arguments: TagScenarios.purges)
  func aChangeVoidsWhatItsRouteNames(
    _ name: String, _ invalidates: String, _ gone: Set<String>
  ) throws {
    try scenario(Self.routes(invalidates)) { origin, proxy in
      Self.script(origin)
      try Self.fill(proxy)
      #expect(try Self.present(proxy) == Self.all)
      expectText(try proxy.send("POST", "/articles/7/thumbs", body: [1]), "ok")
      #expect(try Self.present(proxy) == Self.all.subtracting(gone))
      try proxy.restart()
      #expect(try Self.present(proxy) == Self.all.subtracting(gone))
      // What is fetched after the purge stays.
      try Self.fill(proxy)
      #expect(try Self.present(proxy) == Self.all)
    }
  }

  @Test(arguments: [400, 404, 409, 500, 502, 503])
  func aChangeThatFailsVoidsNothing(_ status: Int) throws {
    try scenario(Self.routes("\"tag:article:{id}\", \"/**\"")) { origin, proxy in
      Self.script(origin)
      try Self.fill(proxy)
      origin.on("/articles/7/thumbs", .text("no", status: status))
      _ = try proxy.send("POST", "/articles/7/thumbs", body: [1])
      #expect(try Self.present(proxy) == Self.all)
    }
  }

  @Test func aChangeWithoutAnOriginVoidsNothing() throws {
    try scenario(Self.routes("\"/**\"")) { origin, proxy in
      Self.script(origin)
      try Self.fill(proxy)
      origin.stop()
      #expect(try proxy.send("POST", "/articles/7/thumbs", body: [1]).status == 502)
      #expect(try Self.present(proxy) == Self.all)
    }
  }

  /// What a client's path brings stands for itself.
  @Test(arguments: ["/articles/*/thumbs", "/articles/**/thumbs", "/articles/%2A/thumbs"])
  func aClientCannotWidenAPurge(_ target: String) throws {
    try scenario(Self.routes("\"tag:article:{id}\", \"/articles/{id}\"")) { origin, proxy in
      Self.script(origin)
      try Self.fill(proxy)
      origin.on(target, .text("ok"))
      expectText(try proxy.send("POST", target, body: [1]), "ok")
      #expect(try Self.present(proxy) == Self.all)
    }
  }

  @Test func aGetOfTheSameRouteVoidsNothing() throws {
    let routes = """
      { "name": "r", "match": "/**", "strategy": "cache-first", "ttl": "1h",
        "invalidates": ["/**"] }
      """
    try scenario(routes) { origin, proxy in
      for path in ["/a", "/b"] { origin.on(path) { .text("\($0.number)") } }
      _ = try proxy.get("/a")
      _ = try proxy.get("/b")
      _ = try proxy.send("HEAD", "/b")
      expect(try proxy.get("/a"), "1", .hit)
      _ = try proxy.send("OPTIONS", "/b")
      expect(try proxy.get("/a"), "1", .hit)
      _ = try proxy.send("PUT", "/b", body: [1])
      expect(try proxy.get("/a"), "2", .stored("uri-miss"))
    }
  }

  // MARK: The origin's tags

  private static let originTagged = """
    { "name": "change", "match": "POST /change", "strategy": "network-only",
      "invalidates": ["tag:x"] },
    { "name": "r", "match": "/**", "strategy": "cache-first", "ttl": "1h" }
    """

  @Test(
    arguments: [
      (["Surrogate-Key: a x b"], true), (["Cache-Tag: a,x"], true), (["Cache-Tag: a, x ,b"], true),
      (["Surrogate-Key: a", "Surrogate-Key: x"], true),
      (["Surrogate-Key: a", "Cache-Tag: x"], true),
      (["Surrogate-Key: xy"], false), (["Cache-Tag: X"], false), (["X-Tag: x"], false),
    ] as [([String], Bool)])
  func theOriginsTagsCount(_ fields: [String], _ isGone: Bool) throws {
    try scenario(Self.originTagged) { origin, proxy in
      origin.on("/a") { request in
        var answer = OriginAnswer.text("\(request.number)")
        for field in fields {
          let parts = field.split(separator: ":", maxSplits: 1)
          answer.fields.append((String(parts[0]), String(parts[1].drop { $0 == " " })))
        }
        return answer
      }
      origin.on("/change", .text("ok"))
      _ = try proxy.get("/a")
      _ = try proxy.send("POST", "/change", body: [1])
      expectText(try proxy.get("/a"), isGone ? "2" : "1")
    }
  }

  /// The confirmation's tags take the place of the copy's.
  @Test func aConfirmationBringsNewTags() throws {
    try Self.purgeAfterAConfirmation { try $0.restart() }
  }

  /// The same while the refreshed record still waits to be written.
  @Test func theTagsOfAConfirmationCountAtOnce() throws {
    try Self.purgeAfterAConfirmation { _ in }
  }

  private static func purgeAfterAConfirmation(
    _ between: (TestProxy) throws -> Void
  ) throws {
    try scenario(originTagged) { origin, proxy in
      origin.on("/a") { request in
        request.first("If-None-Match") == nil
          ? .text("\(request.number)", "ETag: \"1\"", "Surrogate-Key: old")
          : .empty(status: 304, "ETag: \"1\"", "Surrogate-Key: x")
      }
      origin.on("/change", .text("ok"))
      _ = try proxy.get("/a")
      proxy.advance(seconds: 4000)
      expectText(try proxy.get("/a"), "1")
      try between(proxy)
      _ = try proxy.send("POST", "/change", body: [1])
      expectText(try proxy.get("/a"), "3")
    }
  }

  @Test func answersWithMoreTagsThanCanBeKeptAreNotStored() throws {
    try scenario(Self.originTagged) { origin, proxy in
      let tags = (0..<2_000).map { "tag\($0)" }.joined(separator: " ")
      origin.on("/a") { .text("\($0.number)", "Surrogate-Key: \(tags)") }
      let answer = try proxy.get("/a")
      #expect(answer.text == "1" && !answer.cacheStatus.isStored)
      expectText(try proxy.get("/a"), "2")
    }
  }

  // MARK: Running fills

  static let runningPurges: [(name: String, invalidates: String, field: String)] = [
    ("its route's tag", "\"tag:own\"", "Cache-Tag: none"),
    ("the origin's tag", "\"tag:theirs\"", "Cache-Tag: theirs"),
    ("its path", "\"/slow\"", "Cache-Tag: none"),
    ("a pattern", "\"//app.example/*\"", "Cache-Tag: none"),
  ]

  /// `inBody`: the purge comes when the head is there; else nothing is.
  @Test(arguments: TagScenarios.runningPurges, [false, true])
  func aFillThatRunsWhileThePurgeComesDoesNotLandAndIsNotJoined(
    _ purge: (name: String, invalidates: String, field: String), _ inBody: Bool
  ) throws {
    let routes = """
      { "name": "change", "match": "POST /change", "strategy": "network-only",
        "invalidates": [\(purge.invalidates)] },
      { "name": "r", "match": "/**", "strategy": "cache-first", "ttl": "1h", "tags": ["own"] }
      """
    try scenario(routes) { origin, proxy in
      let gate = Gate()
      origin.on("/change", .text("ok"))
      origin.on("/slow") { request in
        let answer = OriginAnswer.text("body \(request.number)", purge.field)
        guard request.number == 1 else { return answer }
        return inBody ? answer.pausing(after: 3, for: gate) : answer.waiting(for: gate)
      }
      let before = try proxy.connect()
      before.send("GET", "/slow")
      #expect(gate.waitUntilReached())
      if inBody { try before.readHead() }
      expectText(try proxy.send("POST", "/change", body: [1]), "ok")
      let after = try proxy.connect()
      after.send("GET", "/slow")
      try proxy.settle()
      // Whoever comes after the change gets what is true after it, and does not wait.
      #expect(origin.waitForRequests("/slow", 2))
      gate.open()
      expectText(try after.readAnswer(), "body 2")
      let old = inBody ? try before.finishAnswer() : try before.readAnswer()
      #expect(old.text == "body 1")
      try proxy.settle()
      expect(try proxy.get("/slow"), "body 2", .hit)
    }
  }

  // MARK: Routes that key otherwise

  @Test func aPostVoidsCopiesThatAnotherRouteKeys() throws {
    let routes = """
      { "name": "write", "match": "POST /a", "strategy": "network-only" },
      { "name": "read", "match": "/a", "strategy": "cache-first", "ttl": "1h",
        "key": { "query": "none", "headers": ["X-Tenant"] } },
      { "name": "named", "match": "/b", "strategy": "cache-first", "ttl": "1h",
        "key": { "query": ["q"], "sortQuery": true } }
      """
    try scenario(routes) { origin, proxy in
      for path in ["/a", "/b"] { origin.on(path) { .text("\($0.number)") } }
      _ = try proxy.get("/a?x=1", "X-Tenant: a")
      _ = try proxy.get("/a?x=1", "X-Tenant: b")
      _ = try proxy.send("POST", "/a?y=2", body: [1])
      expectText(try proxy.get("/a", "X-Tenant: a"), "4")
      expectText(try proxy.get("/a", "X-Tenant: b"), "5")
      _ = try proxy.get("/b?q=1&utm=2")
      _ = try proxy.get("/b?q=2")
      _ = try proxy.send("PUT", "/b?utm=9&q=1", body: [1])
      expectText(try proxy.get("/b?q=1"), "4")
      expectText(try proxy.get("/b?q=2"), "2")
    }
  }
}
