import Support
import Testing

/// What an origin's later words do to a copy: confirmations that forbid to keep it, answers that come
/// in the wrong order, HEAD, and "it is gone" (RFC 9111 §3.2, §4, §4.3.4, §4.3.5).
@Suite(.serialized)
struct CopyUpdateScenarios {
  static let route = #"{ "name": "r", "match": "/**", "strategy": "cache-first" },"#

  // MARK: Confirmations that forbid

  @Test(arguments: ["no-store", "private", "max-age=600, private"], [2, 100_000])
  func aConfirmationThatForbidsStoringServesOnceAndTheCopyIsGone(
    _ words: String, _ bodyBytes: Int
  ) throws {
    try scenario(CopyUpdateScenarios.route) { origin, proxy in
      let body = String(repeating: "x", count: bodyBytes)
      origin.on("/a") { request in
        request.first("If-None-Match") == nil
          ? .text(body, "ETag: \"1\"", "Cache-Control: max-age=60")
          : .empty(status: 304, "ETag: \"1\"", "Cache-Control: \(words)", "X-Note: 2")
      }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 60)
      let answer = try proxy.get("/a")
      expect(answer, body, .copy("stale", 304))
      #expect(answer.all("Cache-Control") == [words] && answer.all("X-Note") == ["2"])
      expect(try proxy.get("/a"), body, .stored("uri-miss"))
      #expect(origin.requests("/a").map { $0.first("If-None-Match") } == [nil, "\"1\"", nil])
    }
  }

  @Test func aConfirmationForOneClientIsNotHandedToThoseWhoWaitBesideIt() throws {
    try scenario(CopyUpdateScenarios.route) { origin, proxy in
      let gate = Gate()
      origin.on("/a") { request in
        guard request.first("If-None-Match") != nil else {
          return .text(
            "v\(request.number)", "ETag: \"\(request.number)\"", "Cache-Control: max-age=60")
        }
        return OriginAnswer.empty(
          status: 304, "ETag: \"1\"", "Cache-Control: private, max-age=60",
          "X-For: \(request.first("X-Who") ?? "")"
        ).waiting(for: gate)
      }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 60)
      let clients = try (0..<3).map { _ in try proxy.connect() }
      for (number, client) in clients.enumerated() {
        client.send("GET", "/a", ["X-Who: \(number)"])
        if number == 0 { #expect(gate.waitUntilReached()) }
      }
      try proxy.settle()
      gate.open()
      for (number, client) in clients.enumerated() {
        let answer = try client.readAnswer()
        #expect(answer.status == 200)
        #expect(answer.first("X-For") ?? "\(number)" == "\(number)")
      }
    }
  }

  // MARK: The wrong order

  private static let tagged = """
    { "name": "x", "match": "POST /x", "invalidates": ["tag:unheard-of"] },
    """ + route

  /// Two fetches of one key, side by side: a purge by a tag, whatever it is, has nobody join a fill
  /// whose head is not here. The first one's answer is let go last.
  private static func answeredInReverse(
    first: OriginAnswer, second: OriginAnswer, top: String,
    _ check: (Answer, Answer, ScriptedOrigin, TestProxy) throws -> Void
  ) throws {
    try scenario(tagged, top: top) { origin, proxy in
      let gate = Gate()
      origin.on("/x", .text("done"))
      origin.on("/a") { request in
        switch request.number {
        case 1: .text("v1", "ETag: \"1\"", "Cache-Control: max-age=60")
        case 2: first.waiting(for: gate)
        case 3: second
        default:
          .text("v\(request.number)", "ETag: \"\(request.number)\"", "Cache-Control: max-age=60")
        }
      }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 60)
      let slow = try proxy.connect()
      slow.send("GET", "/a")
      #expect(gate.waitUntilReached())
      _ = try proxy.send("POST", "/x", body: [1])
      let quick = try proxy.get("/a")
      gate.open()
      let late = try slow.readAnswer()
      try proxy.settle()
      try check(quick, late, origin, proxy)
    }
  }

  private static let loops = ["", "\"loops\": 2,"]

  @Test(arguments: loops)
  func aSlowOldConfirmationDoesNotUndoANewerOne(_ top: String) throws {
    try Self.answeredInReverse(
      first: .empty(status: 304, "ETag: \"1\"", "Cache-Control: max-age=60", "X-Note: old"),
      second: .empty(status: 304, "ETag: \"1\"", "Cache-Control: max-age=6000", "X-Note: new"),
      top: top
    ) { quick, late, origin, proxy in
      #expect(quick.all("X-Note") == ["new"])
      #expect(late.text == "v1" && late.all("X-Note") == ["new"])
      proxy.advance(seconds: 3000)
      let kept = try proxy.get("/a")
      expect(kept, "v1", .hit)
      #expect(kept.all("X-Note") == ["new"])
      try proxy.restart()
      #expect(try proxy.get("/a").all("X-Note") == ["new"])
    }
  }

  @Test(arguments: loops)
  func aSlowOldBodyDoesNotReplaceACopyConfirmedSince(_ top: String) throws {
    try Self.answeredInReverse(
      first: .text("old", "ETag: \"0\"", "Cache-Control: max-age=9000"),
      second: .empty(status: 304, "ETag: \"1\"", "Cache-Control: max-age=6000"), top: top
    ) { quick, late, origin, proxy in
      #expect(quick.text == "v1" && late.text == "old")
      expect(try proxy.get("/a"), "v1", .hit)
      try proxy.restart()
      expect(try proxy.get("/a"), "v1", .hit)
    }
  }

  @Test(arguments: loops)
  func aSlowOldBodyDoesNotReplaceANewerOne(_ top: String) throws {
    try Self.answeredInReverse(
      first: .text("old", "ETag: \"0\"", "Cache-Control: max-age=9000"),
      second: .text("new", "ETag: \"2\"", "Cache-Control: max-age=6000"), top: top
    ) { quick, late, origin, proxy in
      #expect(quick.text == "new" && late.text == "old")
      expect(try proxy.get("/a"), "new", .hit)
      try proxy.restart()
      expect(try proxy.get("/a"), "new", .hit)
    }
  }

  @Test(arguments: loops)
  func aSlowConfirmationOfWhatHasBeenReplacedGetsTheNewBody(_ top: String) throws {
    try Self.answeredInReverse(
      first: .empty(status: 304, "ETag: \"1\"", "Cache-Control: max-age=9000"),
      second: .text("new", "ETag: \"2\"", "Cache-Control: max-age=6000"), top: top
    ) { quick, late, origin, proxy in
      #expect(quick.text == "new" && late.text == "new" && late.status == 200)
      expect(try proxy.get("/a"), "new", .hit)
      #expect(origin.requestCount("/a") == 3)
    }
  }

  @Test(arguments: loops)
  func aSlowOldWordThatItIsGoneDoesNotUndoANewerCopy(_ top: String) throws {
    try Self.answeredInReverse(
      first: .text("gone", status: 404),
      second: .text("new", "ETag: \"2\"", "Cache-Control: max-age=6000"), top: top
    ) { quick, late, origin, proxy in
      #expect(quick.text == "new" && late.status == 404)
      expect(try proxy.get("/a"), "new", .hit)
    }
  }

  // MARK: Gone

  @Test(arguments: [404, 410], ["cache-first", "network-first"])
  func aCopyThatTheOriginSaysIsGoneServesNobody(_ status: Int, _ strategy: String) throws {
    try scenario(windowedRoute(strategy)) { origin, proxy in
      origin.on("/a", inTurn: [.text("v1", "ETag: \"1\""), .text("gone", status: status)])
      _ = try proxy.get("/a")
      let word = strategy == "cache-first" ? "request" : "bypass"
      expect(
        try proxy.get("/a", "Cache-Control: no-cache"), "gone", status: status, .notStored(word))
      expect(try proxy.get("/a"), "gone", status: status, .notStored("stale"))
      #expect(origin.requests("/a").last?.first("If-None-Match") == "\"1\"")
      origin.stop()
      expect(try proxy.get("/a"), "", status: 504, .failed)
      expect(
        try proxy.get("/a", "Cache-Control: only-if-cached, max-stale"), "", status: 504, .failed)
      try origin.restart()
      origin.on("/a", .empty(status: 304, "ETag: \"1\""))
      #expect(try proxy.get("/a").text == "v1")
      origin.stop()
      #expect(try proxy.get("/a").text == "v1")
    }
  }

  /// Somebody's own, or one that varies by more than the copy does.
  @Test(arguments: ["Cache-Control: private", "Set-Cookie: a=b", "Vary: Cookie"])
  func aGoneAnswerForSomebodyAloneLeavesTheCopy(_ field: String) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") {
        $0.first("Cookie") == nil ? .text("v1", "ETag: \"1\"") : .text("gone", status: 404, field)
      }
      _ = try proxy.get("/a")
      #expect(try proxy.get("/a", "Cookie: bad", "Cache-Control: no-cache").status == 404)
      expect(try proxy.get("/a"), "v1", .hit)
      #expect(origin.requestCount("/a") == 2)
    }
  }

  /// Some origins hide what a user may not see; that is no word to all others.
  @Test(arguments: ["GET", "HEAD"])
  func whatIsSaidToSomebodysCredentialsDoesNotBearOnEverybodysCopy(_ method: String) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { request in
        request.first("Authorization") == nil
          ? .text("v1", "ETag: \"1\"")
          : request.method == "GET" ? .text("none", status: 404) : .text("v1", "ETag: \"2\"")
      }
      _ = try proxy.get("/a")
      _ = try proxy.send(method, "/a", ["Authorization: Bearer x", "Cache-Control: no-cache"])
      #expect(origin.requestCount("/a") == 2)
      expect(try proxy.get("/a"), "v1", .hit)
    }
  }

  @Test func aStoredWordThatItIsGoneTakesTheCopysPlace() throws {
    let negative = #""negative": { "404": "30m" }"#
    try scenario(windowedRoute("cache-first", negative)) { origin, proxy in
      origin.on("/a", inTurn: [.text("v1"), .text("gone", status: 404)])
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      expect(try proxy.get("/a"), "gone", status: 404, .stored("stale"))
      origin.stop()
      expect(try proxy.get("/a"), "gone", status: 404, .hit)
      proxy.advance(seconds: 31 * 60)
      expect(try proxy.get("/a"), "", status: 502, .failed)
    }
  }

  @Test func aGoneAnswerThatBreaksOffIsNotRescuedByTheCopy() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on(
        "/a",
        inTurn: [
          .text("v1"), .text("gone for good", status: 404).broken(after: 4, by: .close),
        ])
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      let answer = try proxy.get("/a")
      #expect(answer.text != "v1" && (answer.isCut || answer.status == 502))
    }
  }

  @Test(arguments: [500, 503, 403, 429])
  func otherErrorsLeaveTheCopy(_ status: Int) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", inTurn: [.text("v1"), .text("no", status: status)])
      _ = try proxy.get("/a")
      _ = try proxy.get("/a", "Cache-Control: no-cache")
      expect(try proxy.get("/a"), "v1", .hit)
    }
  }
}
