import Support
import Testing

/// What those who run caching proxies reported elsewhere, where no other suite is about it: each the
/// right behaviour in one story.
struct FieldCaseScenarios {
  // MARK: Freshness

  @Test func minFreshAndMaxStaleEachHaveAValueOfTheirOwn() throws {
    try scenario(FieldScenarios.route) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)", "Cache-Control: max-age=3600") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 3000)
      // 600 s of freshness are left: enough for 300, and not for 900 whatever max-stale says.
      expect(try proxy.get("/a", "Cache-Control: max-stale=9999, min-fresh=300"), "v1", .hit)
      expect(
        try proxy.get("/a", "Cache-Control: min-fresh=900, max-stale=1"), "v2", .stored("request"))
      expect(
        try proxy.get("/a", "Cache-Control: max-stale=9999, min-fresh=9999"), "v3",
        .stored("request"))
    }
  }

  @Test func aRouteThatDoesNotCacheLeavesTheOriginsFieldsUntouched() throws {
    try scenario(NetworkOnlyScenarios.route) { origin, proxy in
      let sent = [
        "Cache-Control: public, max-age=60", "Expires: 0", "Pragma: no-cache", "ETag: W/\"x\"",
        "Age: 7", "Last-Modified: yesterday", "Vary: *", "Surrogate-Control: x",
        "Date: Sun, 06 Nov 1994 08:49:37 GMT", "Set-Cookie: a=b", "Set-Cookie: c=d",
      ]
      origin.on("/a") { _ in
        var answer = OriginAnswer.text("x")
        answer.fields = sent.map { line in
          let parts = line.split(separator: ": ", maxSplits: 1)
          return (String(parts[0]), String(parts[1]))
        }
        return answer
      }
      let answer = try proxy.get("/a")
      let ours: Set = ["Content-Length", "Cache-Status", "Via"]
      #expect(
        answer.fields.filter { !ours.contains($0.name) }.map { "\($0.name): \($0.value)" } == sent)
    }
  }

  // MARK: Variants

  /// Answers in the coding that the request takes, as origins do.
  private static func coded(_ request: RecordedRequest) -> OriginAnswer {
    let isCoded = request.first("Accept-Encoding")?.contains("gzip") == true
    var answer = OriginAnswer.text(
      isCoded ? "coded \(request.number)" : "plain \(request.number)", "Vary: Accept-Encoding")
    if isCoded { answer.fields.append(("Content-Encoding", "gzip")) }
    return answer
  }

  @Test func aPlainAnswerDoesNotStarveThoseWhoTakeCodedOnes() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", FieldCaseScenarios.coded)
      expect(try proxy.get("/a"), "plain 1", .stored("uri-miss"))
      expect(try proxy.get("/a", "Accept-Encoding: gzip, br"), "coded 2", .stored("vary-miss"))
      // The same set in other words.
      for spelling in ["br, gzip", "gzip;q=0.5,br;q=1.0", "GZIP ,  BR", "br,gzip,identity"] {
        let answer = try proxy.get("/a", "Accept-Encoding: \(spelling)")
        expect(answer, "coded 2", .hit)
        #expect(answer.all("Content-Encoding") == ["gzip"])
      }
      expect(try proxy.get("/a"), "plain 1", .hit)
      #expect(origin.requestCount("/a") == 2)
    }
  }

  @Test(arguments: ["identity", "br", "gzip;q=0", "", "*;q=0"])
  func aCodedCopyNeverGoesToWhoDoesNotTakeIt(_ accepted: String) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { request in
        accepted == request.first("Accept-Encoding")
          ? .text("plain", "Vary: Accept-Encoding") : FieldCaseScenarios.coded(request)
      }
      expect(try proxy.get("/a", "Accept-Encoding: gzip"), "coded 1", .stored("uri-miss"))
      let answer = try proxy.get("/a", "Accept-Encoding: \(accepted)")
      expect(answer, "plain", .stored("vary-miss"))
      #expect(answer.all("Content-Encoding").isEmpty)
    }
  }

  @Test func anAnswerForOneWebOriginIsNeverAnothers() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { request in
        let asking = request.first("Origin") ?? "none"
        return .text(asking, "Access-Control-Allow-Origin: \(asking)", "Vary: Origin")
      }
      for _ in 0..<2 {
        for asking in ["https://a.example", "https://b.example"] {
          let answer = try proxy.get("/a", "Origin: \(asking)")
          #expect(answer.text == asking)
          #expect(answer.all("Access-Control-Allow-Origin") == [asking])
        }
        #expect(try proxy.get("/a").text == "none")
      }
      #expect(origin.requestCount("/a") == 3)
    }
  }

  // MARK: Privacy

  @Test func aPrivateAnswerIsNotStoredThoughTheKeyHoldsTheCredentials() throws {
    let key = #""key": { "headers": ["Authorization"] }"#
    try scenario(windowedRoute("cache-first", key)) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)", "Cache-Control: private, max-age=60") }
      expect(try proxy.get("/a", "Authorization: A"), "v1", .notStored("uri-miss"))
      expect(try proxy.get("/a", "Authorization: A"), "v2", .notStored("uri-miss"))
    }
  }

  @Test func aForwardedAddressTellsNobodyApart() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      expect(try proxy.get("/a", "X-Forwarded-For: 192.0.2.1"), "v1", .stored("uri-miss"))
      expect(try proxy.get("/a", "X-Forwarded-For: 192.0.2.2"), "v1", .hit)
      #expect(origin.requests("/a").map { $0.first("X-Forwarded-For") } == ["127.0.0.1"])
    }
  }

  // MARK: Methods

  @Test func aPostWhoseAnswerDoesNotNameItsTargetIsNeverStored() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") {
        .text(
          "v\($0.number)", "Cache-Control: max-age=60, public")
      }
      for number in 1...2 {
        expect(
          try proxy.send("POST", "/a", body: [1]), "v\(number)", .notStored("method"))
      }
      expect(try proxy.get("/a"), "v3", .stored("uri-miss"))
    }
  }

  @Test func onlyIfCachedWithMaxStaleTakesAStaleCopyAndAsksNobody() throws {
    let asking = "Cache-Control: only-if-cached, max-stale=600"
    try scenario(FieldScenarios.route) { origin, proxy in
      origin.on("/a", .text("x", "Cache-Control: max-age=60"))
      expect(try proxy.get("/a", asking), "", status: 504, .failed)
      #expect(origin.requests.isEmpty)
      _ = try proxy.get("/a")
      proxy.advance(seconds: 120)
      expect(try proxy.get("/a", asking), "x", .hit)
      proxy.advance(seconds: 600)
      expect(try proxy.get("/a", asking), "", status: 504, .failed)
      #expect(origin.requestCount("/a") == 1)
    }
  }

  // MARK: Strategies

  @Test func theLastAnswerServesWhileTheOriginIsDownAndTheNextIsLiveAgain() throws {
    try scenario(NetworkFirstScenarios.route()) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      expect(try proxy.get("/a"), "v1", .stored("uri-miss"))
      expect(try proxy.get("/a"), "v2", .stored("bypass"))
      origin.stop()
      for _ in 0..<2 {
        let answer = try proxy.get("/a")
        expect(answer, "v2", .copy("bypass", nil))
      }
      try origin.restart()
      expect(try proxy.get("/a"), "v3", .stored("bypass"))
    }
  }

  @Test func retriesLiveWithinTheDeadline() throws {
    try scenario(
      NetworkFirstScenarios.route(#""deadline": "100ms""#), upstream: #""retries": 2"#
    ) { origin, proxy in
      let gate = Gate()
      origin.on(
        "/a",
        inTurn: [
          .text("v1"), .silence(.reset), OriginAnswer.text("v2").waiting(for: gate),
        ])
      _ = try proxy.get("/a")
      expect(try proxy.get("/a"), "v1", .copy("bypass", nil))
      #expect(gate.waitUntilReached())
      gate.open()
      try proxy.settle(after: origin, "/a", answers: 3)
      #expect(origin.requestCount("/a") == 3)
    }
  }

  @Test func theFirstRequestAfterExpiryGetsTheStaleCopyAtOnceAndTheBodyOnce() throws {
    try scenario(FieldScenarios.route) { origin, proxy in
      let gate = Gate()
      let words = "Cache-Control: max-age=60, stale-while-revalidate=600"
      origin.on(
        "/a", inTurn: [.text("v1", words), OriginAnswer.text("v2", words).waiting(for: gate)])
      let client = try proxy.connect()
      _ = try client.get("/a")
      proxy.advance(seconds: 61)
      // The origin has not answered when this has.
      expect(try client.get("/a"), "v1", .hit)
      #expect(gate.waitUntilReached())
      gate.open()
      try proxy.settle(after: origin, "/a", answers: 2)
      // Had the body gone out twice, it would stand where this answer is due.
      expect(try client.get("/a"), "v2", .hit)
      #expect(origin.requestCount("/a") == 2)
    }
  }
}
