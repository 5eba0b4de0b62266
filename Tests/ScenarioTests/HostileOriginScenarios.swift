import Support
import Testing

/// Origins that break the protocol, by fault or by intent: what they do harms their own answers
/// alone.
struct HostileOriginScenarios {
  private static let networkOnly = #"{ "name": "r", "match": "/**", "strategy": "network-only" },"#

  /// RFC 9112 §9.2: bytes on a connection without an outstanding request answer nobody.
  @Test(arguments: ["cache-first", "network-only"])
  func whatAnOriginSendsUnaskedAnswersNobody(_ strategy: String) throws {
    let route = #"{ "name": "r", "match": "/**", "strategy": "\#(strategy)", "ttl": "1h" },"#
    try scenario(strategy == "network-only" ? Self.networkOnly : route) { origin, proxy in
      let gate = Gate()
      let unasked = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nunheld"
      origin.on(
        "/a", OriginAnswer.text("first" + unasked).framed(.declared(5)).pausing(after: 5, for: gate)
      )
      origin.on("/b", .text("second"))
      let first = try proxy.get("/a")
      #expect(first.text == "first")
      #expect(gate.waitUntilReached())
      gate.open()
      #expect(origin.waitForAnswers("/a", 1))
      for _ in 0..<2 {
        let second = try proxy.get("/b")
        #expect(second.text == "second")
      }
    }
  }

  @Test func aChangeDoesNotGoOutOnAConnectionThatHasEnded() throws {
    try scenario(Self.networkOnly) { origin, proxy in
      let gate = Gate()
      // Longer than it says: the origin ends the connection once the gate is open.
      origin.on(
        "/a", OriginAnswer.text("first!").framed(.declared(5)).pausing(after: 5, for: gate))
      origin.on("/b", .text("changed"))
      #expect(try proxy.get("/a").text == "first")
      gate.open()
      #expect(origin.waitForAnswers("/a", 1))
      let answer = try proxy.send("POST", "/b", body: Array("body".utf8))
      expect(answer, "changed", .notStored("method"))
      #expect(origin.requestCount("/b") == 1)
    }
  }

  /// Others have read the beginning of an answer that is not stored: it is gone for who comes now.
  @Test func whoComesInTheMiddleOfAnErrorGetsAnAnswerOfTheirOwn() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let gate = Gate()
      let body = String(repeating: "e", count: 400_000)
      origin.on(
        "/a",
        inTurn: [
          OriginAnswer.text(body, status: 503).pausing(after: 300_000, for: gate),
          .text("recovered"),
        ])
      let first = try proxy.connect()
      defer { first.close() }
      first.send("GET", "/a")
      try first.readHead()
      try first.readBody(atLeast: 250_000)
      expect(try proxy.get("/a"), "recovered", .stored("uri-miss"))
      gate.open()
      let answer = try first.finishAnswer()
      #expect(answer.status == 503)
      #expect(answer.body.count == body.utf8.count)
    }
  }

  @Test(arguments: ["Forwarded", "x-forwarded-for", "Accept, X-Forwarded-For"])
  func anAnswerThatVariesByTheClientsAddressIsNotStored(_ vary: String) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)", "Vary: \(vary)") }
      expect(try proxy.get("/a"), "v1", .notStored("uri-miss"))
      expect(try proxy.get("/a"), "v2", .notStored("uri-miss"))
    }
  }

  /// In clear text nothing but HTTP/1 is spoken, whatever the status line says: the end of such a
  /// body is the end of its connection, which says nothing.
  @Test func aStatusLineOfHTTP2InClearTextDoesNotMakeAnEndKnown() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .raw("HTTP/2 200 OK\r\nCache-Control: max-age=60\r\n\r\nhalf a bo"))
      for _ in 0..<2 {
        let answer = try proxy.get("/a")
        #expect(!answer.cacheStatus.isStored)
        #expect(!answer.cacheStatus.isHit)
      }
    }
  }

  @Test func aTrailerSectionWithoutEndEndsTheAnswer() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let trailers = String(repeating: "X-A: b\r\n", count: 20_000)
      origin.on(
        "/a",
        .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n" + trailers))
      expect(try proxy.get("/a"), "", status: 502, .failed)
    }
  }

  /// A 304 confirms the copy whose validators went along, and no other variant.
  @Test(arguments: [true, false])
  func aConfirmationIsForItsOwnVariant(_ hasOtherCopy: Bool) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let gate = Gate()
      origin.on("/a") { request in
        let variant = request.first("X-V") ?? ""
        if variant == "one", request.first("If-None-Match") == "\"one\"" {
          return OriginAnswer.empty(status: 304, "ETag: \"one\"", "Vary: X-V").waiting(for: gate)
        }
        let tag = variant == "one" ? "one" : "\(variant)\(request.number)"
        return .text("\(variant) \(request.number)", "ETag: \"\(tag)\"", "Vary: X-V")
      }
      _ = try proxy.get("/a", "X-V: one")
      if hasOtherCopy { _ = try proxy.get("/a", "X-V: two") }
      let before = origin.requestCount("/a")
      proxy.advance(seconds: Age.older)
      let (one, two) = (try proxy.connect(), try proxy.connect())
      defer {
        one.close()
        two.close()
      }
      one.send("GET", "/a", ["X-V: one"])
      #expect(gate.waitUntilReached())
      two.send("GET", "/a", ["X-V: two"])
      try proxy.settle()
      gate.open()
      #expect(try one.readAnswer().text == "one 1")
      #expect(try two.readAnswer().text == "two \(before + 2)")
    }
  }
}
