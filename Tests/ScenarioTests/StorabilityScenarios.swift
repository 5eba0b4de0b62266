import Support
import Testing

/// What is stored and what is not, seen from outside: by what the next client gets.
struct StorabilityScenarios {
  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var request: [String] = []
    var response: [String] = []
    var route = ""
    /// The word under which /stats counts the refusal; nil: it is stored.
    var reason: String?

    var testDescription: String { name }
  }

  static let cases: [Case] = [
    .init(name: "Set-Cookie", response: ["Set-Cookie: a=b"], reason: "set-cookie"),
    .init(
      name: "Set-Cookie beside public", response: ["Set-Cookie: a=b", "Cache-Control: public"],
      reason: "set-cookie"),
    .init(
      name: "Set-Cookie, overruled", response: ["Set-Cookie: a=b"],
      route: #""ignoreOrigin": ["set-cookie"]"#),
    .init(name: "private", response: ["Cache-Control: private, max-age=60"], reason: "private"),
    .init(
      name: "private, overruled", response: ["Cache-Control: private"],
      route: #""ignoreOrigin": ["private"]"#),
    .init(name: "no-store", response: ["Cache-Control: no-store"], reason: "no-store"),
    .init(
      name: "no-store, overruled", response: ["Cache-Control: no-store"],
      route: #""ignoreOrigin": ["no-store"]"#),
    .init(name: "Authorization", request: ["Authorization: Bearer x"], reason: "authorization"),
    .init(
      name: "Authorization beside max-age", request: ["Authorization: Bearer x"],
      response: ["Cache-Control: max-age=60"], reason: "authorization"),
    .init(
      name: "Authorization and public", request: ["Authorization: Bearer x"],
      response: ["Cache-Control: public"]),
    .init(
      name: "Authorization and s-maxage", request: ["Authorization: Bearer x"],
      response: ["Cache-Control: s-maxage=60"]),
    .init(
      name: "Authorization and must-revalidate", request: ["Authorization: Bearer x"],
      response: ["Cache-Control: must-revalidate"]),
    .init(
      name: "the request's no-store", request: ["Cache-Control: no-store"], reason: "strategy"),
    .init(name: "Vary: *", response: ["Vary: *"], reason: "vary-any"),
    .init(
      name: "an event stream", response: ["Content-Type: text/event-stream"],
      reason: "event-stream"),
  ]

  @Test(arguments: StorabilityScenarios.cases)
  func anAnswerIsStoredOnlyWhereItMayBe(_ row: Case) throws {
    try scenario(windowedRoute("cache-first", row.route)) { origin, proxy in
      origin.on("/a") { request in
        var answer = OriginAnswer.text("v\(request.number)")
        answer.fields = row.response.map { line in
          let parts = line.split(separator: ": ", maxSplits: 1)
          return (String(parts[0]), String(parts[1]))
        }
        return answer
      }
      let first = try proxy.send("GET", "/a", row.request)
      let second = try proxy.send("GET", "/a", row.request)
      #expect(first.text == "v1")
      guard row.reason != nil else {
        #expect(first.cacheStatus.isStored)
        expect(second, "v1", .hit)
        #expect(try proxy.counts("r") == .init(hits: 1, misses: 1))
        return
      }
      #expect(!first.cacheStatus.isStored)
      #expect(second.text == "v2")
      #expect(!second.cacheStatus.isStored && !second.cacheStatus.isHit)
      #expect(origin.requestCount("/a") == 2)
      #expect(try proxy.counts("r") == .init(passes: 2))
    }
  }

  @Test(
    arguments: StorabilityScenarios.cases.filter { $0.reason != nil && $0.reason != "strategy" })
  func theRefusalIsCountedByItsReason(_ row: Case) throws {
    try scenario(windowedRoute("cache-first", row.route)) { origin, proxy in
      var answer = OriginAnswer.text("v1")
      answer.fields = row.response.map { line in
        let parts = line.split(separator: ": ", maxSplits: 1)
        return (String(parts[0]), String(parts[1]))
      }
      origin.on("/a", answer)
      let got = try proxy.send("GET", "/a", row.request)
      #expect(got.cacheStatus.detail == row.reason)
      #expect(try proxy.statistics().store.notStored == [row.reason ?? "": 1])
    }
  }

  @Test func oneUsersAuthorizedAnswerIsNeverAnothers() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/me") { .text("for \($0.first("Authorization") ?? "nobody")") }
      expect(try proxy.get("/me", "Authorization: A"), "for A", .notStored("uri-miss"))
      expect(try proxy.get("/me", "Authorization: B"), "for B", .notStored("uri-miss"))
      expect(try proxy.get("/me"), "for nobody", .stored("uri-miss"))
      expect(try proxy.get("/me"), "for nobody", .hit)
    }
  }

  @Test func aClientsCookieNeverGoesOutForAnother() throws {
    try scenario(NetworkOnlyScenarios.route) { origin, proxy in
      origin.on("/a", .text("x", "Set-Cookie: session=A"))
      #expect(try proxy.get("/a", "Cookie: me=A").first("Set-Cookie") == "session=A")
      _ = try proxy.get("/a")
      #expect(origin.requests("/a").map { $0.first("Cookie") } == ["me=A", nil])
    }
  }

  @Test func hopByHopFieldsAreNeitherForwardedNorStored() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on(
        "/a", .text("x", "Connection: X-Hop", "X-Hop: 1", "Keep-Alive: timeout=9", "X-End: 1"))
      for _ in 0..<2 {
        let answer = try proxy.get("/a", "Connection: X-Mine", "X-Mine: 1", "X-Kept: 1")
        #expect(answer.first("X-Hop") == nil && answer.first("Keep-Alive") == nil)
        #expect(answer.first("X-End") == "1")
      }
      let request = try #require(origin.requests("/a").first)
      #expect(request.first("X-Mine") == nil)
      #expect(request.first("X-Kept") == "1")
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test func aResponseWhoseEndIsNotKnownIsNotStored() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { OriginAnswer.text("v\($0.number)").framed(.untilClose) }
      let answer = try proxy.get("/a")
      #expect(answer.text == "v1")
      #expect(!answer.cacheStatus.isStored)
      #expect(try proxy.get("/a").text == "v2")
      #expect(try proxy.counts("r") == .init(passes: 2))
    }
  }

  @Test func anInterimAnswerIsNeitherStoredNorMixedUpWithTheFinal() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on(
        "/a", OriginAnswer.text("final").after(interim: 103, "Link: </x>; rel=preload"))
      expect(try proxy.get("/a"), "final", .stored("uri-miss"))
      let second = try proxy.get("/a")
      expect(second, "final", .hit)
      #expect(second.first("Link") == nil)
    }
  }

  // MARK: Vary

  @Test func eachVariantIsACopyOfItsOwn() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { request in
        .text(
          "\(request.first("Accept-Language") ?? "none") \(request.number)", "Vary: Accept-Language"
        )
      }
      expect(try proxy.get("/a", "Accept-Language: en"), "en 1", .stored("uri-miss"))
      expect(try proxy.get("/a", "Accept-Language: de"), "de 2", .stored("vary-miss"))
      expect(try proxy.get("/a"), "none 3", .stored("vary-miss"))
      expect(try proxy.get("/a", "Accept-Language: en"), "en 1", .hit)
      expect(try proxy.get("/a", "Accept-Language: de"), "de 2", .hit)
      expect(try proxy.get("/a"), "none 3", .hit)
      #expect(try proxy.counts("r") == .init(hits: 3, misses: 3))
      try proxy.restart()
      expect(try proxy.get("/a", "Accept-Language: de"), "de 2", .hit)
    }
  }

  @Test func aChangeRemovesAllVariants() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)", "Vary: Accept-Language") }
      _ = try proxy.get("/a", "Accept-Language: en")
      _ = try proxy.get("/a", "Accept-Language: de")
      _ = try proxy.send("POST", "/a", body: [])
      #expect(try proxy.get("/a", "Accept-Language: en").text == "v4")
      #expect(try proxy.get("/a", "Accept-Language: de").text == "v5")
    }
  }

  @Test func hostsWithTheSamePathAreApart() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      expect(try proxy.get("/a", "Host: one.example"), "v1", .stored("uri-miss"))
      expect(try proxy.get("/a", "Host: two.example"), "v2", .stored("uri-miss"))
      expect(try proxy.get("/a", "Host: ONE.example:80"), "v1", .hit)
      expect(try proxy.get("/a", "Host: one.example:81"), "v3", .stored("uri-miss"))
    }
  }

  /// The client that the origin answers gets the cookie, those after it the rest.
  @Test(arguments: ["private", "no-cache"])
  func aCookieThatTheOriginKeepsOutOfSharedCopiesIsLeftOut(_ word: String) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("v", "Set-Cookie: a=b", "Cache-Control: \(word)=\"set-cookie\""))
      let first = try proxy.get("/a")
      expect(first, "v", .stored("uri-miss"))
      #expect(first.first("Set-Cookie") == "a=b")
      let second = try proxy.get("/a")
      expect(second, "v", .hit)
      #expect(second.first("Set-Cookie") == nil)
    }
  }
}
