import Support
import Testing

/// What a HEAD that goes to the network does to the copies of GET (RFC 9111 §4.3.5).
struct HeadScenarios {
  static let route = #"{ "name": "r", "match": "/**", "strategy": "cache-first" },"#

  private static func head(_ proxy: TestProxy, _ fields: String...) throws -> Answer {
    try proxy.send("HEAD", "/a", fields)
  }

  @Test(arguments: [2, 100_000])
  func aHeadWithTheSameValidatorsFreshensTheCopy(_ bodyBytes: Int) throws {
    try scenario(HeadScenarios.route) { origin, proxy in
      let body = String(repeating: "x", count: bodyBytes)
      origin.on("/a") { request in
        .text(
          body, "ETag: \"1\"", "Cache-Control: max-age=\(request.number * 600)",
          "X-Note: \(request.number)")
      }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 600)
      expect(try Self.head(proxy), "", .notStored("stale"))
      for _ in 0..<2 {
        let answer = try proxy.get("/a")
        expect(answer, body, .hit)
        #expect(answer.all("X-Note") == ["2"])
        #expect(answer.all("Content-Length") == ["\(bodyBytes)"])
        try proxy.restart()
      }
      proxy.advance(seconds: 1190)
      expect(try proxy.get("/a"), body, .hit)
      #expect(origin.requests("/a").map(\.method) == ["GET", "HEAD"])
    }
  }

  @Test func aHeadFreshensACopyWithoutValidators() throws {
    try scenario(HeadScenarios.route) { origin, proxy in
      origin.on("/a", .text("v1", "Cache-Control: max-age=600"))
      _ = try proxy.get("/a")
      proxy.advance(seconds: 600)
      _ = try Self.head(proxy)
      expect(try proxy.get("/a"), "v1", .hit)
    }
  }

  @Test(arguments: [
    ("another tag", OriginAnswer.text("v1", "ETag: \"2\"", "Cache-Control: max-age=600")),
    ("another length", .text("longer", "ETag: \"1\"", "Cache-Control: max-age=600")),
    (
      "a date that the copy has not",
      .text("v1", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", "Cache-Control: max-age=600")
    ),
  ])
  func aHeadThatDiffersHasTheCopyValidated(_ name: String, _ answer: OriginAnswer) throws {
    let route = """
      { "name": "r", "match": "/**", "strategy": "cache-first", "ttl": "1h",
        "staleIfError": "1d" },
      """
    try scenario(route) { origin, proxy in
      origin.on("/a") { request in
        request.method == "HEAD" ? answer : .text("v1", "ETag: \"1\"", "Cache-Control: max-age=600")
      }
      _ = try proxy.get("/a")
      expect(try proxy.get("/a"), "v1", .hit)
      _ = try Self.head(proxy, "Cache-Control: no-cache")
      origin.stop()
      // It is stale by that, and no worse (RFC 9111 §4.3.5).
      expect(try proxy.get("/a"), "v1", .copy("stale", nil))
      try origin.restart()
      origin.on("/a", .empty(status: 304, "ETag: \"1\"", "Cache-Control: max-age=600"))
      expect(try proxy.get("/a"), "v1", .copy("stale", 304))
      expect(try proxy.get("/a"), "v1", .hit)
    }
  }

  @Test(arguments: [301, 403, 404, 405, 500])
  func aHeadThatIsNotAnsweredByTheThingItselfSaysNothingOfIt(_ status: Int) throws {
    try scenario(HeadScenarios.route) { origin, proxy in
      origin.on("/a") { request in
        request.method == "HEAD"
          ? .text("other", status: status, "ETag: \"2\"")
          : .text("v1", "ETag: \"1\"", "Cache-Control: max-age=600")
      }
      _ = try proxy.get("/a")
      // From a server error the copy rescues HEAD too.
      let answered = try Self.head(proxy, "Cache-Control: no-cache").status
      #expect(answered == (status == 500 ? 200 : status))
      expect(try proxy.get("/a"), "v1", .hit)
    }
  }

  @Test func aHeadThatShowsNoValidatorSaysNothingOfACopyThatHasOne() throws {
    try scenario(HeadScenarios.route) { origin, proxy in
      origin.on("/a") { request in
        request.method == "HEAD"
          ? .text("v1", "Cache-Control: max-age=6000")
          : .text("v1", "ETag: \"1\"", "Cache-Control: max-age=600")
      }
      _ = try proxy.get("/a")
      _ = try Self.head(proxy, "Cache-Control: no-cache")
      expect(try proxy.get("/a"), "v1", .hit)
      proxy.advance(seconds: 600)
      _ = try proxy.get("/a")
      #expect(origin.requests("/a").map(\.method) == ["GET", "HEAD", "GET"])
    }
  }

  @Test func aHeadIsForTheVariantThatItSelects() throws {
    try scenario(HeadScenarios.route) { origin, proxy in
      origin.on("/a") { request in
        let language = request.first("Accept-Language") ?? ""
        let tag = request.method == "HEAD" ? "\(language)2" : language
        return .text(
          language, "ETag: \"\(tag)\"", "Vary: Accept-Language", "Cache-Control: max-age=600")
      }
      for language in ["en", "de"] { _ = try proxy.get("/a", "Accept-Language: \(language)") }
      _ = try Self.head(proxy, "Accept-Language: de", "Cache-Control: no-cache")
      expect(try proxy.get("/a", "Accept-Language: en"), "en", .hit)
      expect(try proxy.get("/a", "Accept-Language: de"), "de", .stored("stale"))
    }
  }

  @Test func aHeadThatForbidsStoringTakesTheCopyAway() throws {
    try scenario(HeadScenarios.route) { origin, proxy in
      origin.on("/a") { request in
        request.method == "HEAD"
          ? .text("v1", "ETag: \"1\"", "Cache-Control: no-store")
          : .text("v1", "ETag: \"1\"", "Cache-Control: max-age=600")
      }
      _ = try proxy.get("/a")
      _ = try Self.head(proxy, "Cache-Control: no-cache")
      expect(try proxy.get("/a"), "v1", .stored("uri-miss"))
      #expect(origin.requests("/a").last?.first("If-None-Match") == nil)
    }
  }

  /// RFC 9111 §5.2.1.5: such a request leaves no trace.
  @Test func aHeadThatForbidsStoringFreshensNothing() throws {
    try scenario(HeadScenarios.route) { origin, proxy in
      origin.on("/a", .text("v1", "ETag: \"1\"", "Cache-Control: max-age=600"))
      _ = try proxy.get("/a")
      proxy.advance(seconds: 600)
      _ = try Self.head(proxy, "Cache-Control: no-store")
      expect(try proxy.get("/a"), "v1", .stored("stale"))
    }
  }

  /// A GET that fills the store goes out without these: what a HEAD with them brings may be theirs.
  @Test(arguments: ["X_Who: somebody", "Range: bytes=0-0", "If-Range: \"0\""])
  func aHeadThatIsNotLikeAFetchForAllSaysNothingOfTheCopy(_ field: String) throws {
    try scenario(HeadScenarios.route) { origin, proxy in
      origin.on("/a") { request in
        .text(
          "v", "ETag: \"1\"", "Cache-Control: max-age=600",
          "X-Note: \(request.method == "HEAD" ? "of somebody" : "of all")")
      }
      _ = try proxy.get("/a")
      _ = try Self.head(proxy, field, "Cache-Control: no-cache")
      #expect(origin.requestCount("/a") == 2)
      let answer = try proxy.get("/a")
      expect(answer, "v", .hit)
      #expect(answer.first("X-Note") == "of all")
    }
  }
}
