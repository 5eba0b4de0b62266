import Support
import Testing

/// A POST whose answer says that it is what a GET would bring (RFC 9110 §9.3.3).
struct PostReuseScenarios {
  static let route = #"{ "name": "r", "match": "/**", "strategy": "cache-first" },"#

  private static func posted(_ body: String, _ fields: String...) -> OriginAnswer {
    var answer = OriginAnswer.text(body, "Cache-Control: max-age=600")
    for field in fields {
      let parts = field.split(separator: ":", maxSplits: 1)
      answer.fields.append((String(parts[0]), parts[1].trimmingPrefix(" ").description))
    }
    return answer
  }

  private static func post(_ proxy: TestProxy, _ path: String = "/a", _ fields: String...) throws
    -> Answer
  {
    try proxy.send("POST", path, fields, body: [1])
  }

  @Test(
    arguments: ["/a", "a", "http://app.example/a", "./a", "http://127.0.0.1:{PORT}/a"],
    [2, 100_000])
  func anAnswerThatNamesItsTargetAnswersLaterGets(_ location: String, _ bodyBytes: Int) throws {
    try scenario(PostReuseScenarios.route) { origin, proxy in
      let own = location.replacing("{PORT}", with: "\(origin.port)")
      let body = String(repeating: "x", count: bodyBytes)
      origin.on("/a") { request in
        request.method == "POST"
          ? Self.posted(body, "Content-Location: \(own)")
          : .text("v\(request.number)", "Cache-Control: max-age=600")
      }
      expect(try proxy.get("/a"), "v1", .stored("uri-miss"))
      expect(try Self.post(proxy), body, .stored("method"))
      expect(try proxy.get("/a"), body, .hit)
      let head = try proxy.send("HEAD", "/a")
      expect(head, "", .hit)
      #expect(head.first("Content-Length") == "\(bodyBytes)")
      // A POST is never answered from it.
      expect(try Self.post(proxy), body, .stored("method"))
      #expect(origin.requests("/a").map(\.method) == ["GET", "POST", "POST"])
      try proxy.restart()
      expect(try proxy.get("/a"), body, .hit)
      proxy.advance(seconds: 600)
      expect(try proxy.get("/a"), "v4", .stored("stale"))
    }
  }

  private static let unfit: [(String, OriginAnswer)] = [
    ("no Content-Location", posted("p")),
    ("another target", posted("p", "Content-Location: /b")),
    ("a query of its own", posted("p", "Content-Location: /a?x")),
    ("another host", posted("p", "Content-Location: http://other.example/a")),
    ("two of them", posted("p", "Content-Location: /a", "Content-Location: /a")),
    ("no lifetime of the origin's", .text("p", "Content-Location: /a", "ETag: \"1\"")),
    ("no-store", .text("p", "Content-Location: /a", "Cache-Control: max-age=60, no-store")),
    ("Set-Cookie", posted("p", "Content-Location: /a", "Set-Cookie: a=b")),
    ("Vary: *", posted("p", "Content-Location: /a", "Vary: *")),
    ("created", .text("p", status: 201, "Content-Location: /a", "Cache-Control: max-age=60")),
    ("an end not known", posted("p", "Content-Location: /a").framed(.untilClose)),
  ]

  @Test(arguments: unfit)
  func otherAnswersToPostAreNotStored(_ name: String, _ answer: OriginAnswer) throws {
    let route = #"{ "name": "r", "match": "/**", "strategy": "cache-first", "ttl": "1h" },"#
    try scenario(route) { origin, proxy in
      origin.on("/a") { $0.method == "POST" ? answer : .text("v\($0.number)") }
      _ = try proxy.get("/a")
      expect(try Self.post(proxy), "p", status: answer.status, .notStored("method"))
      expect(try proxy.get("/a"), "v3", .stored("uri-miss"))
    }
  }

  @Test(arguments: [
    #"{ "name": "r", "match": "/**", "strategy": "network-only" },"#,
    #"{ "name": "p", "match": "POST /a", "strategy": "cache-first" }, "# + route,
    #"{ "name": "r", "match": "/**", "strategy": "cache-first", "perUser": "header:X-User" },"#,
  ])
  func aRouteThatKeepsNoSuchCopiesStoresNone(_ routes: String) throws {
    try scenario(routes) { origin, proxy in
      origin.on("/a") {
        $0.method == "POST"
          ? Self.posted("p", "Content-Location: /a")
          : .text("v\($0.number)", "Cache-Control: max-age=600")
      }
      let answer = try Self.post(proxy)
      #expect(!answer.cacheStatus.isStored)
      #expect(try proxy.get("/a").text == "v2")
    }
  }

  @Test func theCopyIsItsUsers() throws {
    let route =
      #"{ "name": "r", "match": "/**", "strategy": "cache-first", "perUser": "header:X-User" },"#
    try scenario(route) { origin, proxy in
      origin.on("/a") {
        $0.method == "POST"
          ? Self.posted("p", "Content-Location: /a")
          : .text("v\($0.number)", "Cache-Control: max-age=600")
      }
      expect(try Self.post(proxy, "/a", "X-User: ann"), "p", .stored("method"))
      expect(try proxy.get("/a", "X-User: ann"), "p", .hit)
      expect(try proxy.get("/a", "X-User: bob"), "v2", .stored("uri-miss"))
      // Bob's change is one of the target, whose copies go: all users'.
      expect(try Self.post(proxy, "/a", "X-User: bob"), "p", .stored("method"))
      expect(try proxy.get("/a", "X-User: ann"), "v4", .stored("uri-miss"))
      expect(try proxy.get("/a", "X-User: bob"), "p", .hit)
    }
  }

  /// The answer is the condition's, or that of a field which a GET would not have brought along.
  @Test(arguments: ["X_Tenant: evil", "If-None-Match: \"1\"", "Cache-Control: no-store"])
  func aRequestThatIsNotLikeAGetStoresNothing(_ field: String) throws {
    try scenario(PostReuseScenarios.route) { origin, proxy in
      origin.on("/a") {
        $0.method == "POST"
          ? Self.posted("p", "Content-Location: /a")
          : .text("v\($0.number)", "Cache-Control: max-age=600")
      }
      _ = try Self.post(proxy, "/a", field)
      #expect(try proxy.get("/a").text == "v2")
    }
  }

  @Test(arguments: ["", "\"loops\": 2,"])
  func aChangeThatCameMeanwhileKeepsItOut(_ top: String) throws {
    try scenario(PostReuseScenarios.route, top: top) { origin, proxy in
      let gate = Gate()
      origin.on("/a") { request in
        switch (request.method, request.number) {
        case ("POST", 1): Self.posted("old", "Content-Location: /a").waiting(for: gate)
        case ("POST", _): Self.posted("new", "Content-Location: /a")
        default: .text("v\(request.number)", "Cache-Control: max-age=600")
        }
      }
      let slow = try proxy.connect()
      slow.send("POST", "/a", body: [1])
      #expect(gate.waitUntilReached())
      expect(try Self.post(proxy), "new", .stored("method"))
      gate.open()
      let late = try slow.readAnswer()
      #expect(late.text == "old" && !late.cacheStatus.isStored)
      try proxy.settle()
      // Whose change came last, nobody knows: the origin is asked.
      expect(try proxy.get("/a"), "v3", .stored("uri-miss"))
    }
  }

  @Test func aBodyThatBreaksOffLeavesNothing() throws {
    try scenario(PostReuseScenarios.route) { origin, proxy in
      origin.on("/a") {
        $0.method == "POST"
          ? Self.posted("half of it", "Content-Location: /a").broken(after: 4, by: .close)
          : .text("v\($0.number)", "Cache-Control: max-age=600")
      }
      _ = try proxy.get("/a")
      let answer = try Self.post(proxy)
      #expect(answer.isCut || answer.status == 502)
      expect(try proxy.get("/a"), "v3", .stored("uri-miss"))
    }
  }

  /// What the origin tags it with is known with its head alone, and the purge was before that.
  @Test func aPurgeOfItsTagThatCameMeanwhileKeepsItOut() throws {
    let routes = """
      { "name": "c", "match": "POST /change", "strategy": "network-only",
        "invalidates": ["tag:T"] },
      \(PostReuseScenarios.route)
      """
    try scenario(routes) { origin, proxy in
      let gate = Gate()
      origin.on("/change", .text("done"))
      origin.on("/a") { request in
        request.method == "POST"
          ? Self.posted("old", "Content-Location: /a", "Surrogate-Key: T").waiting(for: gate)
          : .text("v\(request.number)", "Cache-Control: max-age=600")
      }
      let slow = try proxy.connect()
      slow.send("POST", "/a", body: [1])
      #expect(gate.waitUntilReached())
      #expect(try Self.post(proxy, "/change").text == "done")
      gate.open()
      let late = try slow.readAnswer()
      #expect(late.text == "old" && !late.cacheStatus.isStored)
      expect(try proxy.get("/a"), "v2", .stored("uri-miss"))
    }
  }

  /// The same path means another resource to the client than to the origin.
  @Test(
    arguments: [
      ("\"stripPrefix\": \"/api\"", "/x", "/api/x", false),
      ("\"stripPrefix\": \"/api\"", "/x", "/x", true),
      ("\"addPrefix\": \"/v2\"", "/v2/api/x", "/api/x", false),
      ("\"addPrefix\": \"/v2\"", "/v2/api/x", "/v2/api/x", true),
    ])
  func whereTheOriginSeesOtherPathsItsOwnReadingCounts(
    _ prefix: String, _ sent: String, _ location: String, _ isStored: Bool
  ) throws {
    let route = "{ \"name\": \"r\", \"match\": \"/**\", \"strategy\": \"cache-first\", \(prefix) },"
      .replacing("/**", with: "/api/**")
    try scenario(route) { origin, proxy in
      origin.on(sent) {
        $0.method == "POST" ? Self.posted("p", "Content-Location: \(location)") : .text("v")
      }
      let posted = try Self.post(proxy, "/api/x")
      #expect(posted.cacheStatus.isStored == isStored)
      let answer = try proxy.get("/api/x")
      #expect(answer.text == (isStored ? "p" : "v"))
    }
  }
}
