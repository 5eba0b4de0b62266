import Support
import Testing

/// Methods that change something: they pass, take their body along, and void what they changed.
struct ChangeScenarios {
  static let methods = ["POST", "PUT", "PATCH", "DELETE"]

  @Test(arguments: ChangeScenarios.methods)
  func aChangeThatGoesThroughVoidsTheCopy(_ method: String) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { .text("\($0.method) \($0.number)") }
      _ = try proxy.get("/a")
      expect(try proxy.get("/a"), "GET 1", .hit)
      expect(try proxy.send(method, "/a", body: [1]), "\(method) 2", .notStored("method"))
      expect(try proxy.get("/a"), "GET 3", .stored("uri-miss"))
      #expect(try proxy.counts("r") == .init(hits: 1, misses: 2, passes: 1))
    }
  }

  @Test(arguments: [400, 404, 409, 500, 503])
  func aChangeThatFailsLeavesTheCopy(_ status: Int) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { request in
        request.method == "GET" ? .text("GET 1") : .text("refused", status: status)
      }
      _ = try proxy.get("/a")
      expect(
        try proxy.send("POST", "/a", body: [1]), "refused", status: status, .notStored("method"))
      expect(try proxy.get("/a"), "GET 1", .hit)
      #expect(origin.requestCount("/a") == 2)
    }
  }

  @Test func aChangeWithoutAnOriginLeavesTheCopy() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("GET 1"))
      _ = try proxy.get("/a")
      origin.stop()
      expect(try proxy.send("POST", "/a", body: [1]), "", status: 502, .failed)
      expect(try proxy.get("/a"), "GET 1", .hit)
      #expect(try proxy.counts("r") == .init(hits: 1, misses: 1, errors: 1))
    }
  }

  @Test(arguments: ["cache-first", "stale-while-revalidate", "network-first", "cache-only"])
  func aPostIsNeverAnsweredFromAGetsCopy(_ strategy: String) throws {
    try scenario(windowedRoute("network-and-store")) { origin, proxy in
      origin.on("/a") { .text("\($0.method) \($0.number)", "Cache-Control: max-age=600") }
      _ = try proxy.get("/a")
      try proxy.restart(policies: scenarioPolicies(windowedRoute(strategy)), origin: origin)
      expect(try proxy.send("POST", "/a", body: [1]), "POST 2", .notStored("method"))
      expect(try proxy.send("POST", "/a", body: [1]), "POST 3", .notStored("method"))
      #expect(try proxy.counts("r") == .init(passes: 2))
    }
  }

  @Test func whatAnAnswerPointsToIsVoidToo() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      for path in ["/list", "/item", "/other"] { origin.on(path) { .text("v\($0.number)") } }
      origin.on(
        "/create",
        .text("made", status: 201, "Location: /item", "Content-Location: http://app.example/list"))
      for path in ["/list", "/item", "/other"] { _ = try proxy.get(path) }
      _ = try proxy.send("POST", "/create", body: [1])
      #expect(try proxy.get("/item").text == "v2")
      #expect(try proxy.get("/list").text == "v2")
      #expect(try proxy.get("/other").text == "v1")
    }
  }

  @Test func aFillThatBeganBeforeAChangeDoesNotLandAfterIt() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let gate = Gate()
      origin.on("/a") { request in
        if request.method == "POST" { return .text("changed") }
        let answer = OriginAnswer.text("v\(request.number)")
        return request.number == 1 ? answer.waiting(for: gate) : answer
      }
      let reader = try proxy.connect()
      reader.send("GET", "/a")
      #expect(gate.waitUntilReached())
      _ = try proxy.send("POST", "/a", body: [1])
      gate.open()
      let old = try reader.readAnswer()
      #expect(old.text == "v1" && !old.cacheStatus.isStored)
      try proxy.settle()
      expect(try proxy.get("/a"), "v3", .stored("uri-miss"))
    }
  }

  // MARK: Bodies of requests

  static let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

  @Test func aBodyOfKnownLengthReachesTheOrigin() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("ok"))
      _ = try proxy.send("POST", "/a", body: ChangeScenarios.body)
      let request = try #require(origin.requests("/a").first)
      #expect(request.body == ChangeScenarios.body)
      #expect(request.first("Content-Length") == "\(ChangeScenarios.body.count)")
    }
  }

  @Test func aChunkedBodyReachesTheOrigin() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("ok"))
      let connection = try proxy.connect()
      connection.send("POST", "/a", ["Transfer-Encoding: chunked"])
      connection.send(raw: "5\r\nhello\r\n")
      connection.send(raw: "7\r\n, world\r\n0\r\n\r\n")
      #expect(try connection.readAnswer().text == "ok")
      #expect(origin.requests("/a").map(\.bodyText) == ["hello, world"])
    }
  }

  @Test func aBodyThatBreaksOffNeverReachesTheOriginAsWhole() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("ok"))
      let connection = try proxy.connect()
      connection.send(
        raw: "POST /a HTTP/1.1\r\nHost: app.example\r\nContent-Length: 10\r\n\r\nhalf")
      try proxy.settle()
      connection.reset()
      try proxy.settle()
      #expect(origin.requestCount("/a") == 0)
    }
  }

  @Test func aBodyOnAGetThatMayBeStoredIsNotForwarded() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("ok"))
      let connection = try proxy.connect()
      connection.send("GET", "/a", body: Array("smuggled".utf8))
      expect(try connection.readAnswer(), "ok", .stored("uri-miss"))
      #expect(origin.requests("/a").map(\.bodyText) == [""])
      #expect(try connection.get("/a").cacheStatus.isHit)
    }
  }

  @Test func aClientThatExpectsToContinueIsToldTo() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { .text("got \($0.bodyText)") }
      let connection = try proxy.connect()
      connection.send("POST", "/a", ["Expect: 100-continue", "Content-Length: 4"])
      connection.send(raw: "body")
      let answer = try connection.readAnswer()
      #expect(answer.interimStatuses == [100])
      #expect(answer.text == "got body")
    }
  }

  /// The origin may have carried it out: its answer is waited for, though nobody reads it.
  @Test(arguments: [0, 1000])
  func aChangeWhoseClientHasLeftVoidsTheCopyToo(_ bodyBytes: Int) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let gate = Gate()
      origin.on("/a") { request in
        request.method == "POST"
          ? .text("done").waiting(for: gate) : .text("GET \(request.number)")
      }
      _ = try proxy.get("/a")
      let client = try proxy.connect()
      client.send("POST", "/a", body: Array(repeating: 1, count: bodyBytes))
      #expect(gate.waitUntilReached())
      client.reset()
      // The proxy has seen that it is gone.
      #expect(try proxy.hasOpenConnections(0))
      gate.open()
      try proxy.settle(after: origin, "/a", answers: 2)
      expect(try proxy.get("/a"), "GET 3", .stored("uri-miss"))
    }
  }
}
