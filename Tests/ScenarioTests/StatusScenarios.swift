import CachePolicy
import Support
import Testing

/// Every final status under the origin's own words (RFC 9111 §3, §4.2.2; RFC 9110 §15): what has a
/// lifetime is stored, known or not, and what has none follows the list of those that may be guessed.
struct StatusScenarios {
  static let withLifetime = [
    200, 201, 203, 204, 299, 300, 301, 302, 303, 307, 308, 399, 400, 401, 402, 403, 404, 405, 406,
    408, 409, 410, 411, 413, 414, 415, 417, 418, 421, 422, 425, 426, 428, 429, 431, 451, 499, 500,
    501, 502, 503, 504, 505, 511, 599,
  ]

  @Test(arguments: withLifetime)
  func anyFinalStatusWithALifetimeIsStored(_ status: Int) throws {
    try scenario(FieldScenarios.route) { origin, proxy in
      origin.on("/a") {
        .text(status == 204 ? "" : "\($0.number)", status: status, "Cache-Control: max-age=60")
      }
      let body = status == 204 ? "" : "1"
      expect(try proxy.get("/a"), body, status: status, .stored("uri-miss"))
      expect(try proxy.get("/a"), body, status: status, .hit)
      proxy.advance(seconds: 60)
      #expect(try !proxy.get("/a").cacheStatus.isHit)
      #expect(origin.requestCount("/a") == 2)
    }
  }

  /// Answers to a condition, a range or a proxy's credentials are nobody else's.
  @Test(arguments: [407, 412, 416])
  func whatAnswersOneRequestAloneIsNotStored(_ status: Int) throws {
    try scenario(FieldScenarios.route) { origin, proxy in
      origin.on("/a") { .text("\($0.number)", status: status, "Cache-Control: max-age=60") }
      expect(try proxy.get("/a"), "1", status: status, .notStored("uri-miss"))
      expect(try proxy.get("/a"), "2", status: status, .notStored("uri-miss"))
    }
  }

  static let withoutLifetime: [(Int, String, Bool)] =
    [200, 203, 300, 301, 308, 404, 405, 410, 414, 501].map { ($0, "", true) }
    + [201, 302, 303, 307, 299, 400, 403, 429, 499, 500, 503, 599].map { ($0, "", false) }
    + [201, 302, 303, 307, 299, 400, 403, 499, 503, 599].map { ($0, "public", true) }

  @Test(arguments: StatusScenarios.withoutLifetime)
  func aLifetimeIsGuessedWhereTheStatusOrTheOriginAllowsIt(
    _ status: Int, _ cacheControl: String, _ isGuessed: Bool
  ) throws {
    try scenario(FieldScenarios.route) { origin, proxy in
      var text: [UInt8] = []
      HTTPDate.format(proxy.clock.nowMilliseconds / 1000 - 10_000, into: &text)
      let modified = "Last-Modified: \(String(decoding: text, as: UTF8.self))"
      origin.on("/a") { request in
        var answer = OriginAnswer.text("\(request.number)", status: status, modified)
        if !cacheControl.isEmpty { answer.fields.append(("Cache-Control", cacheControl)) }
        return answer
      }
      _ = try proxy.get("/a")
      let second = try proxy.get("/a")
      #expect(second.status == status)
      #expect(second.text == (isGuessed ? "1" : "2"), "\(second.cacheStatus)")
    }
  }

  /// RFC 9111 §5.2.2.3: who understands the status keeps to its rules in place of no-store.
  @Test(arguments: [(200, true), (404, true), (299, false), (599, false)])
  func mustUnderstandAllowsWhatIsUnderstood(_ status: Int, _ isStored: Bool) throws {
    try scenario(FieldScenarios.route) { origin, proxy in
      origin.on("/a") {
        .text(
          "\($0.number)", status: status, "Cache-Control: no-store, must-understand, max-age=60")
      }
      _ = try proxy.get("/a")
      #expect(try proxy.get("/a").text == (isStored ? "1" : "2"))
    }
  }

  // MARK: Interim answers

  @Test func thoseWhoWaitForAFetchGetItsInterimAnswersAndNobodyElse() throws {
    try scenario(windowedRoute("stale-while-revalidate")) { origin, proxy in
      let gate = Gate()
      origin.on("/a") { request in
        let answer = OriginAnswer.text("v\(request.number)")
          .after(interim: 103, "Link: </\(request.number)>", "X-Early: 1").after(interim: 102)
        return request.number == 1 ? answer.waiting(for: gate) : answer
      }
      let (first, second) = (try proxy.connect(), try proxy.connect())
      first.send("GET", "/a")
      #expect(gate.waitUntilReached())
      second.send("GET", "/a")
      try proxy.settle()
      gate.open()
      for client in [first, second] {
        let answer = try client.readAnswer()
        #expect(answer.text == "v1")
        #expect(answer.interimStatuses == [103, 102])
        #expect(answer.all("Link").isEmpty && answer.all("X-Early").isEmpty)
      }
      // A refresh has interim answers too, and nobody waits for it.
      let hit = try first.get("/a")
      expect(hit, "v1", .hit)
      #expect(hit.interimStatuses.isEmpty)
      try proxy.settle(after: origin, "/a", answers: 2)
      let refreshed = try first.get("/a")
      expect(refreshed, "v2", .hit)
      #expect(refreshed.all("Link").isEmpty && refreshed.interimStatuses.isEmpty)
    }
  }

  // MARK: Methods

  @Test(arguments: ["OPTIONS", "POST", "PUT", "PATCH", "DELETE", "PROPFIND", "get"])
  func otherMethodsAreNeverStoredNorAnsweredFromACopy(_ method: String) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") {
        .text("\($0.method) \($0.number)", status: 400, "Cache-Control: max-age=60")
      }
      origin.on("/b") { .text("\($0.method) \($0.number)", "Cache-Control: max-age=60, public") }
      for path in ["/a", "/b"] {
        for number in 1...2 {
          let answer = try proxy.send(method, path)
          #expect(answer.text == "\(method) \(number)")
          #expect(!answer.cacheStatus.isStored && answer.cacheStatus.forward == "method")
        }
        #expect(try proxy.get(path).text == "GET 3")
        #expect(try proxy.send(method, path).text == "\(method) 4")
      }
    }
  }

  @Test(arguments: ["OPTIONS", "PUT", "PROPFIND"])
  func otherMethodsAreNotShared(_ method: String) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let gate = Gate()
      origin.on("/a") { OriginAnswer.text("\($0.number)").waiting(for: gate) }
      let clients = try (0..<3).map { _ in try proxy.connect() }
      for client in clients { client.send(method, "/a") }
      #expect(gate.waitUntilReached(3))
      gate.open()
      let bodies = try clients.map { try $0.readAnswer().text }
      #expect(Set(bodies) == ["1", "2", "3"])
    }
  }
}
