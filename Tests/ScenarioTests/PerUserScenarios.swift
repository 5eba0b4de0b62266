import Foundation
import Support
import Testing

/// Routes on which each user has copies of their own.
struct PerUserScenarios {
  private static func route(
    _ identity: String = "header:Authorization", _ strategy: String = "cache-first",
    _ more: String = ""
  ) -> String {
    """
    { "name": "r", "match": "/**", "strategy": "\(strategy)", "ttl": "1h",
      "perUser": "\(identity)", \(more) }
    """
  }

  /// An identity, and a request's field of two users each.
  static let identities: [(String, String, String)] = [
    ("header:Authorization", "Authorization: Bearer anna", "Authorization: Bearer bert"),
    ("header:X-User", "X-User: anna", "X-User: bert"),
    ("header:X-User", "X-User: anna", "X-User: anna, bert"),
    ("cookie:sid", "Cookie: sid=anna; a=1", "Cookie: a=1; sid=bert"),
    ("cookie:sid", "Cookie: sid=anna", "Cookie: sid=anna; sid=bert"),
  ]

  @Test(arguments: PerUserScenarios.identities)
  func usersAreKeptApart(_ identity: String, _ anna: String, _ bert: String) throws {
    try scenario(Self.route(identity)) { origin, proxy in
      origin.on("/me") { .text("for \($0.number)", "Cache-Control: private, max-age=60") }
      expect(try proxy.get("/me", anna), "for 1", .stored("uri-miss"))
      expect(try proxy.get("/me", bert), "for 2", .stored("uri-miss"))
      expect(try proxy.get("/me", anna), "for 1", .hit)
      expect(try proxy.get("/me", bert), "for 2", .hit)
      try proxy.restart()
      expect(try proxy.get("/me", anna), "for 1", .hit)
      expect(try proxy.get("/me", bert), "for 2", .hit)
      #expect(origin.requestCount("/me") == 2)
    }
  }

  @Test(
    arguments: [
      ("header:Authorization", []), ("header:Authorization", ["Authorization:"]),
      ("header:Authorization", ["Cookie: sid=1", "X-User: 1"]),
      ("header:X-User", ["X_User: anna"]), ("header:X-User", ["X-Forwarded-For: 10.0.0.1"]),
      ("header:X-User", ["X-User: anna", "Connection: X-User"]),
      ("cookie:sid", ["Cookie: other=1"]), ("cookie:sid", ["Cookie: sid="]),
      ("cookie:sid", ["Cookie: sid=\"\""]), ("cookie:sid", ["Cookie: SID=anna"]),
    ] as [(String, [String])])
  func whoIsNobodyIsPassedOn(_ identity: String, _ fields: [String]) throws {
    try scenario(Self.route(identity)) { origin, proxy in
      origin.on("/me") { .text("\($0.number)", "Cache-Control: public, max-age=60") }
      for number in ["1", "2"] {
        let answer = try proxy.send("GET", "/me", fields)
        expect(answer, number, .notStored("bypass"))
        #expect(answer.cacheStatus.detail == "no-identity", "\(answer.cacheStatus)")
      }
      #expect(try proxy.counts("r") == .init(passes: 2))
      #expect(try proxy.statistics().store.entries == 0)
    }
  }

  @Test func requestsOfNobodyAreNotShared() throws {
    try scenario(Self.route()) { origin, proxy in
      let gate = Gate()
      origin.on("/me") { OriginAnswer.text("\($0.number)").waiting(for: gate) }
      let clients = try (0..<3).map { _ in try proxy.connect() }
      for client in clients { client.send("GET", "/me") }
      #expect(gate.waitUntilReached(3))
      gate.open()
      let bodies = try clients.map { try $0.readAnswer().text }
      #expect(Set(bodies) == ["1", "2", "3"])
    }
  }

  @Test(arguments: ["cache-only"])
  func cacheOnlyWithoutAnIdentityIsRefused(_ strategy: String) throws {
    try scenario(Self.route("header:Authorization", strategy)) { origin, proxy in
      origin.on("/me", .text("secret"))
      expect(try proxy.get("/me"), "", status: 504, .failed)
      expect(try proxy.get("/me", "Authorization: a"), "", status: 504, .failed)
      #expect(origin.requests.isEmpty)
    }
  }

  @Test(arguments: ["network-first", "stale-while-revalidate", "network-and-store"])
  func noStrategyMixesUsers(_ strategy: String) throws {
    try scenario(Self.route("header:Authorization", strategy)) { origin, proxy in
      origin.on("/me") { .text($0.first("Authorization") ?? "nobody") }
      for _ in 0..<2 {
        for user in ["anna", "bert"] {
          expectText(try proxy.get("/me", "Authorization: \(user)"), user)
          expectText(try proxy.get("/me"), "nobody")
        }
        try proxy.settle()
      }
      origin.stop()
      if strategy == "network-first" {
        for user in ["anna", "bert"] {
          expectText(try proxy.get("/me", "Authorization: \(user)"), user)
        }
        expect(try proxy.get("/me"), "", status: 502, .failed)
      }
      expect(
        try proxy.get("/me", "Authorization: carl"), "",
        status: 502, .failed)
    }
  }

  @Test func aSetCookieIsStillNotStored() throws {
    try scenario(Self.route()) { origin, proxy in
      origin.on("/me") { .text("\($0.number)", "Set-Cookie: a=b") }
      let answer = try proxy.get("/me", "Authorization: anna")
      #expect(!answer.cacheStatus.isStored && answer.cacheStatus.detail == "set-cookie")
      expectText(try proxy.get("/me", "Authorization: anna"), "2")
    }
  }

  @Test func noStoreStillHolds() throws {
    try scenario(Self.route()) { origin, proxy in
      origin.on("/me") { .text("\($0.number)", "Cache-Control: no-store") }
      _ = try proxy.get("/me", "Authorization: anna")
      expectText(try proxy.get("/me", "Authorization: anna"), "2")
    }
  }

  /// Whoever is keyed by something else has not thereby a right to what Authorization opens.
  @Test func authorizationBesideAnotherIdentityKeepsItsRules() throws {
    try scenario(Self.route("cookie:sid")) { origin, proxy in
      origin.on("/me") { .text("\($0.number)") }
      let fields = ["Cookie: sid=anna", "Authorization: Bearer x"]
      _ = try proxy.send("GET", "/me", fields)
      let answer = try proxy.send("GET", "/me", fields)
      #expect(answer.text == "2" && answer.cacheStatus.detail == "authorization")
    }
  }

  @Test(
    arguments: [
      ["Authorization: anna"], ["Authorization: carl"], [],
    ])
  func aChangeVoidsEveryUsersCopies(_ fields: [String]) throws {
    try scenario(Self.route()) { origin, proxy in
      origin.on("/me") { .text("\($0.number)") }
      origin.on("/other") { .text("\($0.number)") }
      for user in ["anna", "bert"] {
        for target in ["/me", "/me?q=1", "/other"] {
          _ = try proxy.get(target, "Authorization: \(user)")
        }
      }
      _ = try proxy.send("POST", "/me", fields, body: [1])
      expect(try proxy.get("/me", "Authorization: anna"), "6", .stored("uri-miss"))
      expect(try proxy.get("/me", "Authorization: bert"), "7", .stored("uri-miss"))
      // Another query is another URL.
      expect(try proxy.get("/me?q=1", "Authorization: bert"), "4", .hit)
      expect(try proxy.get("/other", "Authorization: bert"), "2", .hit)
    }
  }

  @Test func aFillOfAnotherUserDoesNotLandAfterAChange() throws {
    try scenario(Self.route()) { origin, proxy in
      let gate = Gate()
      origin.on("/me") { request in
        let answer = OriginAnswer.text("\(request.number)")
        return request.number == 1 ? answer.waiting(for: gate) : answer
      }
      let client = try proxy.connect()
      client.send("GET", "/me", ["Authorization: anna"])
      #expect(gate.waitUntilReached())
      _ = try proxy.send("POST", "/me", ["Authorization: bert"], body: [1])
      // Whoever comes after the change does not wait for what began before it.
      expectText(try proxy.get("/me", "Authorization: anna"), "3")
      gate.open()
      expectText(try client.readAnswer(), "1")
      try proxy.settle()
      expect(try proxy.get("/me", "Authorization: anna"), "3", .hit)
    }
  }

  @Test func onlyOneUsersRequestsAreShared() throws {
    try scenario(Self.route()) { origin, proxy in
      let gate = Gate()
      origin.on("/me") { request in
        .text("\(request.first("Authorization") ?? "") \(request.number)").waiting(for: gate)
      }
      let users = ["anna", "anna", "bert", "anna", "bert"]
      let clients = try users.map { user in
        let client = try proxy.connect()
        client.send("GET", "/me", ["Authorization: \(user)"])
        return client
      }
      #expect(gate.waitUntilReached(2))
      try proxy.settle()
      gate.open()
      for (user, client) in zip(users, clients) {
        let answer = try client.readAnswer()
        #expect(answer.text.hasPrefix(user))
      }
      #expect(origin.requestCount("/me") == 2)
      #expect(try proxy.statistics().collapsed == 3)
    }
  }

  @Test(
    arguments: [
      ("header:Authorization", "Authorization: Bearer sesame-opens-4711", ""),
      ("header:Authorization", "Authorization: sesame-opens-4711", "Vary: Authorization"),
      ("header:X-User", "X-User: sesame-opens-4711", ""),
      ("header:X-User", "X-User: sesame-opens-4711", "Vary: X-User"),
      ("cookie:sid", "Cookie: sid=sesame-opens-4711", "Vary: Cookie"),
    ] as [(String, String, String)])
  func noIdentityIsReadableInTheStore(
    _ identity: String, _ field: String, _ vary: String
  ) throws {
    try scenario(Self.route(identity)) { origin, proxy in
      origin.on("/me", .text("the-body-that-is-there", vary.isEmpty ? "X-None: 1" : vary))
      _ = try proxy.get("/me", field)
      try proxy.settle()
      expect(try proxy.get("/me", field), "the-body-that-is-there", .hit)
      let folder = proxy.storePath
      proxy.stop()
      var isThere = false
      for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: folder + "/" + name))
        isThere = isThere || bytes.range(of: Data("the-body-that-is-there".utf8)) != nil
        #expect(bytes.range(of: Data("sesame-opens-4711".utf8)) == nil, "\(name)")
      }
      #expect(isThere)
    }
  }

  /// Lines that the origin gets under the field's other spelling are part of who asks.
  @Test func aSecondSpellingIsAnotherUser() throws {
    try scenario(Self.route("header:X-User")) { origin, proxy in
      origin.on("/me") { .text("\($0.number)") }
      _ = try proxy.send("GET", "/me", ["X-User: anna"])
      expectText(try proxy.send("GET", "/me", ["X-User: anna", "X_User: bert"]), "2")
    }
  }
}
