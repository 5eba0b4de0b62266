import CachePolicy
import Support
import Testing

/// Several answers of one key: asked about together, told apart by the request, and an origin that
/// says by a tag which of them a request gets (RFC 9111 §4.1, §4.3.1, §4.3.4).
struct VariantScenarios {
  static let route = #"{ "name": "r", "match": "/**", "strategy": "cache-first" },"#

  /// An origin with an answer for each language, named by its tag. To a language that it has not, it
  /// says that English is the answer.
  private static func multilingual(
    _ request: RecordedRequest, body: String? = nil, note: String = "-"
  ) -> OriginAnswer {
    let asked = request.first("Accept-Language") ?? "en"
    let language = ["en", "de", "fr"].contains(asked) ? asked : "en"
    let tags = request.first("If-None-Match") ?? ""
    let fields = (
      "ETag: \"\(language)\"", "Vary: Accept-Language", "Cache-Control: max-age=600",
      "X-Note: \(note)"
    )
    return tags.contains("\"\(language)\"")
      ? .empty(status: 304, fields.0, fields.1, fields.2, fields.3)
      : .text(body ?? language, fields.0, fields.1, fields.2, fields.3)
  }

  @Test func aMissAsksByTheTagsOfTheOtherVariants() throws {
    try scenario(VariantScenarios.route) { origin, proxy in
      origin.on("/a") { VariantScenarios.multilingual($0) }
      for language in ["en", "de", "fr"] {
        let field = "Accept-Language: \(language)"
        expect(
          try proxy.get("/a", field, "If-None-Match: \"x\""), language,
          .stored(language == "en" ? "uri-miss" : "vary-miss"))
        expect(try proxy.get("/a", field), language, .hit)
      }
      let tags = origin.requests("/a").map { $0.first("If-None-Match") }
      #expect(tags == [nil, "\"en\"", "\"de\", \"en\""])
      #expect(origin.requests("/a").allSatisfy { $0.first("If-Modified-Since") == nil })
    }
  }

  @Test(arguments: [2, 100_000])
  func aCopyThatTheOriginNamesByItsTagAnswersAnotherRequestToo(_ bodyBytes: Int) throws {
    try scenario(VariantScenarios.route) { origin, proxy in
      let body = String(repeating: "x", count: bodyBytes)
      origin.on("/a") {
        VariantScenarios.multilingual($0, body: body, note: "\($0.number)")
      }
      _ = try proxy.get("/a", "Accept-Language: en")
      let answer = try proxy.get("/a", "Accept-Language: pt")
      expect(answer, body, .copy("vary-miss", 304))
      #expect(answer.all("X-Note") == ["2"])
      for _ in 0..<2 {
        let again = try proxy.get("/a", "Accept-Language: pt")
        expect(again, body, .hit)
        #expect(again.all("X-Note") == ["2"])
        // Of what English gets, that 304 said nothing.
        #expect(try proxy.get("/a", "Accept-Language: en").all("X-Note") == ["1"])
        #expect(origin.requestCount("/a") == 2)
        try proxy.restart()
      }
      proxy.advance(seconds: 600)
      expect(try proxy.get("/a", "Accept-Language: pt"), body, .copy("stale", 304))
      expect(try proxy.get("/a", "Accept-Language: pt"), body, .hit)
    }
  }

  @Test func aLongBodyServesAnotherVariantWithoutBeingCopied() throws {
    try scenario(VariantScenarios.route) { origin, proxy in
      let body = String(repeating: "x", count: 1_100_000)
      origin.on("/a") { VariantScenarios.multilingual($0, body: body) }
      _ = try proxy.get("/a", "Accept-Language: en")
      for count in 2...3 {
        expect(try proxy.get("/a", "Accept-Language: pt"), body, .copy("vary-miss", 304))
        #expect(origin.requestCount("/a") == count)
      }
      expect(try proxy.get("/a", "Accept-Language: en"), body, .hit)
    }
  }

  @Test func theClientsOwnConditionIsAnsweredByTheCopyThatTheOriginNames() throws {
    try scenario(VariantScenarios.route) { origin, proxy in
      origin.on("/a") { VariantScenarios.multilingual($0) }
      _ = try proxy.get("/a", "Accept-Language: en")
      let answer = try proxy.get("/a", "Accept-Language: pt", "If-None-Match: \"en\"")
      #expect(answer.status == 304 && answer.first("ETag") == "\"en\"")
      #expect(origin.requests("/a").last?.first("If-None-Match") == "\"en\"")
      expect(try proxy.get("/a", "Accept-Language: pt"), "en", .hit)
    }
  }

  // MARK: Tags that mean nothing here

  private static func named(_ tag: String) -> @Sendable (RecordedRequest) -> OriginAnswer {
    { request in
      request.first("If-None-Match") == nil
        ? .text("v\(request.number)", "ETag: \"v\(request.number)\"", "Cache-Control: max-age=600")
        : .empty(status: 304, tag)
    }
  }

  @Test func aNotModifiedOfAnUnknownTagHasTheWholeAnswerFetched() throws {
    try scenario(VariantScenarios.route) { origin, proxy in
      origin.on("/a", VariantScenarios.named("ETag: \"unheard-of\""))
      _ = try proxy.get("/a")
      proxy.advance(seconds: 600)
      expect(try proxy.get("/a"), "v3", .stored("stale"))
      let tags = origin.requests("/a").map { $0.first("If-None-Match") }
      #expect(tags == [nil, "\"v1\"", nil])
      expect(try proxy.get("/a"), "v3", .hit)
    }
  }

  @Test func aRefreshThatIsToldOfAnUnknownTagFetchesTheWholeToo() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", VariantScenarios.named("ETag: \"unheard-of\""))
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.stale)
      expect(try proxy.get("/a"), "v1", .hit)
      try proxy.settle(after: origin, "/a", answers: 3)
      expect(try proxy.get("/a"), "v3", .hit)
      #expect(origin.requestCount("/a") == 3)
    }
  }

  @Test func anOriginThatCannotButSayNotModifiedHasNoAnswer() throws {
    try scenario(VariantScenarios.route) { origin, proxy in
      origin.on("/a", inTurn: [.text("v1", "ETag: \"v1\""), .empty(status: 304, "ETag: \"x\"")])
      _ = try proxy.get("/a")
      expect(try proxy.get("/a"), "", status: 502, .failed)
      #expect(origin.requestCount("/a") == 3)
    }
  }

  @Test func aNotModifiedWithoutATagMeansNoneOfSeveralCopies() throws {
    try scenario(VariantScenarios.route) { origin, proxy in
      origin.on("/a") { request in
        let language = request.first("Accept-Language") ?? ""
        return request.first("If-None-Match") == nil || request.number == 2
          ? .text(
            "\(language) \(request.number)", "ETag: \"\(language)\"", "Vary: Accept-Language",
            "Cache-Control: max-age=600") : .empty(status: 304)
      }
      _ = try proxy.get("/a", "Accept-Language: en")
      _ = try proxy.get("/a", "Accept-Language: de")
      proxy.advance(seconds: 600)
      expect(try proxy.get("/a", "Accept-Language: en"), "en 4", .stored("stale"))
      #expect(origin.requests("/a")[2].first("If-None-Match") == "\"en\", \"de\"")
    }
  }

  // MARK: Whose copies

  /// The origin's tags are the same for all users, as careless ones are.
  @Test(arguments: ["Cookie", "Authorization", "X-Api-Key", "Origin", "Accept-Encoding"])
  func nobodysCopyIsBroughtIntoPlayByATagForSomebodyElse(_ name: String) throws {
    try scenario(VariantScenarios.route) { origin, proxy in
      origin.on("/a") { request in
        request.first("If-None-Match") == nil
          ? .text(
            "of \(request.first(name) ?? "nobody")", "ETag: \"1\"", "Vary: \(name)",
            "Cache-Control: public, max-age=600") : .empty(status: 304, "ETag: \"1\"")
      }
      expect(try proxy.get("/a", "\(name): ann"), "of ann", .stored("uri-miss"))
      expect(try proxy.get("/a", "\(name): bob"), "of bob", .stored("vary-miss"))
      expect(try proxy.get("/a"), "of nobody", .stored("vary-miss"))
      #expect(origin.requests("/a").allSatisfy { $0.first("If-None-Match") == nil })
      proxy.advance(seconds: 600)
      expect(try proxy.get("/a", "\(name): ann"), "of ann", .copy("stale", 304))
      #expect(origin.requests("/a").last?.first("If-None-Match") == "\"1\"")
    }
  }

  /// RFC 9111 §3.5: the copy serves whom the origin confirmed it for, and stays what it was.
  @Test func aConfirmationForCredentialsIsNotEverybodys() throws {
    try scenario(VariantScenarios.route) { origin, proxy in
      origin.on("/a") { request in
        request.first("If-None-Match") == nil
          ? .text("v1", "ETag: \"1\"", "Cache-Control: max-age=600")
          : .empty(status: 304, "ETag: \"1\"", "X-Note: \(request.number)")
      }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 600)
      let authorized = try proxy.get("/a", "Authorization: Bearer x")
      expect(authorized, "v1", .copy("stale", 304))
      #expect(authorized.first("X-Note") == "2")
      let open = try proxy.get("/a")
      expect(open, "v1", .copy("stale", 304))
      #expect(open.first("X-Note") == "3")
      expect(try proxy.get("/a"), "v1", .hit)
    }
  }

  // MARK: A Vary that changes

  @Test func aChangeOfVaryNeitherLosesNorMixesVariants() throws {
    try scenario(VariantScenarios.route) { origin, proxy in
      let vary = ["Vary: A", "Vary: B", "X-No: vary"]
      origin.on("/a") {
        .text("v\($0.number)", "Cache-Control: max-age=6000", vary[min($0.number, 3) - 1])
      }
      func get(_ a: Int, _ b: Int) throws -> Answer { try proxy.get("/a", "A: \(a)", "B: \(b)") }
      expect(try get(1, 1), "v1", .stored("uri-miss"))
      proxy.advance(seconds: 1)
      expect(try get(2, 1), "v2", .stored("vary-miss"))
      // Both may serve the first: the most recent one does. Each of the others has one.
      expect(try get(1, 1), "v2", .hit)
      expect(try get(1, 2), "v1", .hit)
      expect(try get(3, 1), "v2", .hit)
      proxy.advance(seconds: 1)
      expect(try get(2, 2), "v3", .stored("vary-miss"))
      for (a, b) in [(1, 1), (1, 2), (2, 1), (2, 2), (9, 9)] {
        expect(try get(a, b), "v3", .hit)
      }
      #expect(origin.requestCount("/a") == 3)
    }
  }

  @Test func theMostRecentCopyIsTheOneWithTheLatestDate() throws {
    try scenario(VariantScenarios.route) { origin, proxy in
      let seconds = proxy.clock.nowMilliseconds / 1000
      origin.on("/a") { request in
        var date: [UInt8] = []
        HTTPDate.format(request.number == 1 ? seconds : seconds - 50, into: &date)
        return .text(
          "v\(request.number)", "Cache-Control: max-age=6000",
          request.number == 1 ? "Vary: A" : "Vary: B",
          "Date: \(String(decoding: date, as: UTF8.self))")
      }
      _ = try proxy.get("/a", "A: 1", "B: 1")
      _ = try proxy.get("/a", "A: 2", "B: 1")
      expect(try proxy.get("/a", "A: 1", "B: 1"), "v1", .hit)
      expect(try proxy.get("/a", "A: 3", "B: 1"), "v2", .hit)
    }
  }

  @Test(arguments: [2, 100_000])
  func aConfirmationWithAnotherVaryKeepsTheCopyUnderIt(_ bodyBytes: Int) throws {
    try scenario(VariantScenarios.route) { origin, proxy in
      let body = String(repeating: "x", count: bodyBytes)
      origin.on("/a") { request in
        request.first("If-None-Match") == nil
          ? .text(
            body, "ETag: \"1\"", "Vary: Accept-Language", "Cache-Control: max-age=600")
          : .empty(
            status: 304, "ETag: \"1\"", "Vary: Accept-Language, Accept",
            "Cache-Control: max-age=6000")
      }
      func get(_ accept: String) throws -> Answer {
        try proxy.get("/a", "Accept-Language: en", "Accept: \(accept)")
      }
      _ = try get("a/b")
      proxy.advance(seconds: 600)
      expect(try get("a/b"), body, .copy("stale", 304))
      expect(try get("a/b"), body, .hit)
      // What was selected by the language alone is asked about, and found again.
      let other = try get("c/d")
      #expect(!other.cacheStatus.isHit && other.text == body)
      #expect(origin.requestCount("/a") == 3)
      expect(try get("c/d"), body, .hit)
      expect(try get("a/b"), body, .hit)
      #expect(origin.requestCount("/a") == 3)
      try proxy.restart()
      expect(try get("c/d"), body, .hit)
    }
  }

  @Test func spellingsOfOneAcceptShareACopy() throws {
    try scenario(VariantScenarios.route) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)", "Vary: Accept", "Cache-Control: max-age=600") }
      _ = try proxy.get("/a", "Accept: text/html, application/xml;q=0.9")
      expect(try proxy.get("/a", "Accept: application/XML; q=0.90,text/html"), "v1", .hit)
      expect(
        try proxy.get("/a", "Accept: text/html, application/xml"), "v2", .stored("vary-miss"))
      expect(try proxy.get("/a"), "v3", .stored("vary-miss"))
      expect(try proxy.get("/a", "Accept:"), "v4", .stored("vary-miss"))
    }
  }

  /// One weak tag for all representations at a time is allowed (RFC 9110 §8.8.1).
  @Test(arguments: ["Accept", "User-Agent", "Accept-Language"])
  func aWeakTagBringsNoOtherVariantIntoPlay(_ field: String) throws {
    try scenario(VariantScenarios.route) { origin, proxy in
      origin.on("/a") { request in
        let fields = ("ETag: W/\"7\"", "Vary: \(field)", "Cache-Control: max-age=600")
        return request.first("If-None-Match") == nil
          ? .text("for \(request.first(field) ?? "-")", fields.0, fields.1, fields.2)
          : .empty(status: 304, fields.0, fields.1, fields.2)
      }
      expect(try proxy.get("/a", "\(field): text/html"), "for text/html", .stored("uri-miss"))
      expect(
        try proxy.get("/a", "\(field): text/plain"), "for text/plain", .stored("vary-miss"))
      proxy.advance(seconds: 600)
      expect(try proxy.get("/a", "\(field): text/html"), "for text/html", .copy("stale", 304))
    }
  }

  /// Servers forget in a 304 what an inner layer varies by.
  @Test func aConfirmationWithLessVaryHandsNobodysCopyToAnother() throws {
    try scenario(VariantScenarios.route) { origin, proxy in
      origin.on("/a") { request in
        request.first("If-None-Match") == nil
          ? .text(
            "of \(request.first("Cookie") ?? "-")", "ETag: \"1\"",
            "Vary: Accept-Language, Cookie", "Cache-Control: max-age=600")
          : .empty(
            status: 304, "ETag: \"1\"", "Vary: Accept-Language", "Cache-Control: max-age=600")
      }
      func get(_ language: String, _ user: String) throws -> Answer {
        try proxy.get("/a", "Accept-Language: \(language)", "Cookie: u=\(user)")
      }
      for language in ["en", "fr", "en", "fr"] {
        for user in ["ann", "bob"] {
          let answer = try get(language, user)
          #expect(answer.text == "of u=\(user)")
        }
      }
    }
  }
}
