import CachePolicy
import Support
import Testing

/// The fields of an answer on their way through: what is replayed as it was received, what ends at
/// this connection, and what nobody can take away (RFC 9111 §3.1, RFC 9110 §5.3, §7.6.1).
struct FieldScenarios {
  /// Nothing of the route's own: what is stored, and for how long, the origin says.
  static let route = #"{ "name": "r", "match": "/**", "strategy": "cache-first" },"#

  private static func lines(_ answer: Answer, but ours: Set<String> = []) -> [String] {
    let ours = ours.union(["content-length", "age", "cache-status", "via", "date"])
    return answer.fields.filter { !ours.contains($0.name.lowercased()) }
      .map { "\($0.name): \($0.value)" }
  }

  // MARK: As received

  @Test func everyFieldIsReplayedInItsOrderSpellingAndNumber() throws {
    try scenario(Self.route) { origin, proxy in
      let sent = [
        "x-Second: 2", "CACHE-CONTROL: max-age=60", "X-First: one, \"two, three\"", "x-second: 1",
        "Server: made-up/1.0 (x)", "Warning: 199 - \"Miscellaneous\"", "Pragma: x-own",
        "X-Empty:", "Content-Language: de", "Link: </a>; rel=next", "Link: </b>; rel=prev",
        "Strict-Transport-Security: max-age=1", "ETag: W/\"weak\"", "Clear-Site-Data: \"cache\"",
        "Content-Disposition: attachment; filename=\"a;b.txt\"", "WWW-Authenticate: Basic",
        "X-Latin: caf\u{E9}", "Other-Cache-Control: x", "Set-Cookie2: a=b", "aGe2: 7",
      ]
      origin.on("/a") { _ in
        var answer = OriginAnswer.text("x")
        answer.fields = sent.map { line in
          let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
          return (String(parts[0]), String(parts[1].drop { $0 == " " }))
        }
        return answer
      }
      let expected = sent.map { $0.hasSuffix(":") ? $0 + " " : $0 }
      for outcome in [Outcome.stored("uri-miss"), .hit] {
        let answer = try proxy.get("/a")
        expect(answer, "x", outcome)
        #expect(Self.lines(answer) == expected)
      }
      try proxy.restart()
      #expect(Self.lines(try proxy.get("/a")) == expected)
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test func aWarningIsNeitherDroppedNorAdded() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/with", .text("w", "Warning: 110 - \"Stale\"", "Warning: 299 - \"x\""))
      origin.on("/without", .text("w"))
      for path in ["/with", "/without"] { _ = try proxy.get(path) }
      proxy.advance(seconds: Age.older)
      origin.stop()
      #expect(try proxy.get("/with").all("Warning") == ["110 - \"Stale\"", "299 - \"x\""])
      let stale = try proxy.get("/without")
      expect(stale, "w", .copy("stale", nil))
      #expect(stale.all("Warning").isEmpty)
    }
  }

  @Test func aDateIsKeptAndAMissingOneIsAdded() throws {
    try scenario(Self.route) { origin, proxy in
      let now = proxy.clock.nowMilliseconds / 1000
      var text: [UInt8] = []
      HTTPDate.format(now - 5, into: &text)
      let sent = String(decoding: text, as: UTF8.self)
      origin.on("/dated", .text("x", "Date: \(sent)", "Cache-Control: max-age=600"))
      origin.on("/undated", .text("x", "Cache-Control: max-age=600"))
      for _ in 0..<2 {
        let answer = try proxy.get("/dated")
        #expect(answer.all("Date") == [sent])
        proxy.advance(seconds: 60)
      }
      let first = try proxy.get("/undated").all("Date")
      #expect(first.count == 1)
      proxy.advance(seconds: 60)
      let second = try proxy.get("/undated")
      expect(second, "x", .hit)
      #expect(second.all("Date") == first)
      let bytes = Array((first.first ?? "").utf8)
      let seconds = HTTPDate.parse(bytes.span, nowSeconds: now)
      #expect(seconds.map { ($0 - now - 120) < 60 } == true)
      let passed = try proxy.get("/passed")
      #expect(passed.all("Date").count == 1)
    }
  }

  @Test(arguments: ["x", "Sun, 06 Nov 1994 08:49:37 UTC", ""])
  func withoutAUsableDateAnAnswerIsAsOldAsItsReceipt(_ date: String) throws {
    try scenario(Self.route) { origin, proxy in
      origin.on(
        "/a"
      ) { .text("v\($0.number)", "Date: \(date)", "Cache-Control: max-age=600") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 540)
      let hit = try proxy.get("/a")
      expect(hit, "v1", .hit)
      #expect((540..<600).contains(hit.ageSeconds ?? 0))
      proxy.advance(seconds: 60)
      expect(try proxy.get("/a"), "v2", .stored("stale"))
    }
  }

  @Test(arguments: ["\"strong\"", "W/\"weak\"", "unquoted"])
  func anEntityTagStaysAsItIs(_ tag: String) throws {
    try scenario(Self.route) { origin, proxy in
      let body = "\u{1F}not gzip at all"
      origin.on(
        "/a",
        .text(body, "ETag: \(tag)", "Content-Encoding: gzip", "Cache-Control: max-age=60"))
      for outcome in [Outcome.stored("uri-miss"), .hit] {
        let answer = try proxy.get("/a", "Accept-Encoding: gzip")
        expect(answer, body, outcome)
        #expect(answer.all("ETag") == [tag])
        #expect(answer.all("Content-Encoding") == ["gzip"])
      }
    }
  }

  // MARK: Hop by hop

  static let hopByHop = [
    "Connection: X-Hop, x-other", "X-Hop: 1", "x-hop: 2", "X-Other: 3", "Keep-Alive: timeout=5",
    "Proxy-Connection: keep-alive", "Proxy-Authenticate: Basic", "Proxy-Authorization: Basic eA==",
    "Proxy-Authentication-Info: nextnonce=\"x\"", "TE: trailers", "Trailer: X-T", "Upgrade: h2c",
  ]

  private static func expectNoHopByHop(
    _ fields: [(name: String, value: String)], _ location: SourceLocation = #_sourceLocation
  ) {
    let names = Set(fields.map { $0.name.lowercased() })
    for line in hopByHop + ["Transfer-Encoding: chunked"] {
      let name = line.prefix { $0 != ":" }.lowercased()
      #expect(!names.contains(name), "\(name)", sourceLocation: location)
    }
  }

  @Test func whatIsForOneConnectionIsAbsentFromMissHitAndBoth304s() throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a") { request in
        var answer =
          request.first("If-None-Match") == nil
          ? OriginAnswer.text("x") : OriginAnswer.empty(status: 304)
        answer.fields = (Self.hopByHop + ["ETag: \"x\"", "Cache-Control: max-age=60", "X-End: 1"])
          .map { line in
            let parts = line.split(separator: ": ", maxSplits: 1)
            return (String(parts[0]), String(parts[1]))
          }
        return answer
      }
      let miss = try proxy.get("/a")
      expect(miss, "x", .stored("uri-miss"))
      let hit = try proxy.get("/a")
      expect(hit, "x", .hit)
      let notModified = try proxy.get("/a", "If-None-Match: \"x\"")
      #expect(notModified.status == 304)
      proxy.advance(seconds: 60)
      let confirmed = try proxy.get("/a")
      expect(confirmed, "x", .copy("stale", 304))
      let again = try proxy.get("/a")
      expect(again, "x", .hit)
      for answer in [miss, hit, notModified, confirmed, again] {
        Self.expectNoHopByHop(answer.fields)
        #expect(answer.status == 304 || answer.all("X-End") == ["1"])
      }
    }
  }

  @Test(arguments: ["GET", "POST", "OPTIONS"])
  func whatIsForOneConnectionDoesNotReachTheOrigin(_ method: String) throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .text("x"))
      _ = try proxy.send(
        method, "/a", Self.hopByHop + ["X-Kept: 1"], body: method == "POST" ? [1, 2] : nil)
      let request = try #require(origin.requests("/a").first)
      Self.expectNoHopByHop(request.fields)
      #expect(request.first("X-Kept") == "1")
      #expect(request.body == (method == "POST" ? [1, 2] : []))
    }
  }

  /// What a `Connection` field of the origin names, and what must hold nevertheless.
  @Test func aConnectionFieldTakesNothingAwayThatTheCacheReliesOn() throws {
    let naming =
      "Connection: cache-control, etag, vary, date, content-length, content-encoding, expires, "
      + "set-cookie, content-type"
    try scenario(Self.route) { origin, proxy in
      origin.on("/secret") { .text("v\($0.number)", naming, "Cache-Control: no-store") }
      origin.on("/cookie") {
        .text("v\($0.number)", naming, "Set-Cookie: a=b", "Cache-Control: max-age=60")
      }
      origin.on("/varied") {
        .text("v\($0.number)", naming, "Vary: X-Kind", "Cache-Control: max-age=60")
      }
      origin.on(
        "/coded",
        .text("coded", naming, "Content-Encoding: gzip", "ETag: \"x\"", "Cache-Control: max-age=9"))
      origin.on("/targeted") {
        .text(
          "v\($0.number)", "Connection: CDN-Cache-Control", "CDN-Cache-Control: no-store",
          "Cache-Control: max-age=60")
      }
      for path in ["/secret", "/cookie", "/targeted"] {
        expect(try proxy.get(path), "v1", .notStored("uri-miss"))
        expect(try proxy.get(path), "v2", .notStored("uri-miss"))
      }
      expect(try proxy.get("/varied", "X-Kind: a"), "v1", .stored("uri-miss"))
      expect(try proxy.get("/varied", "X-Kind: b"), "v2", .stored("vary-miss"))
      for outcome in [Outcome.stored("uri-miss"), .hit] {
        let answer = try proxy.get("/coded")
        expect(answer, "coded", outcome)
        #expect(answer.all("Content-Length") == ["5"])
        #expect(answer.all("Content-Encoding") == ["gzip"])
        #expect(answer.all("ETag") == ["\"x\""])
        #expect(answer.all("Connection").isEmpty)
      }
    }
  }

  /// A client can have no field dropped on which the origin's answer, or its storing, depends.
  @Test func aClientsConnectionFieldHidesNothingFromTheOrigin() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { .text("for \($0.first("Authorization") ?? "nobody")") }
      origin.on("/b", .text("done"))
      let naming =
        "Connection: host, authorization, cookie, content-length, cache-control, "
        + "x-forwarded-for, forwarded, accept-encoding"
      let answer = try proxy.get(
        "/a", naming, "Authorization: A", "Cookie: c=1", "Accept-Encoding: gzip")
      expect(answer, "for A", .notStored("uri-miss"))
      let request = try #require(origin.requests("/a").first)
      #expect(request.first("Host") == "127.0.0.1:\(origin.port)")
      #expect(request.first("Cookie") == "c=1")
      #expect(request.first("Accept-Encoding") == "gzip")
      #expect(request.first("X-Forwarded-For") == "127.0.0.1")
      expect(try proxy.get("/a"), "for nobody", .stored("uri-miss"))
      _ = try proxy.send("POST", "/b", [naming], body: [7, 8, 9])
      #expect(origin.requests("/b").map(\.body) == [[7, 8, 9]])
    }
  }

  // MARK: Trailers (RFC 9110 §6.5)

  @Test func trailersOfAnAnswerAreNeitherMergedNorForwarded() throws {
    try rawScenario(Self.route) { connection in
      while connection.readHead() != nil {
        connection.send(
          "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTrailer: X-T, ETag\r\n"
            + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-T: 1\r\nETag: \"t\"\r\n"
            + "Cache-Control: no-store\r\n\r\n")
      }
    } _: { origin, proxy in
      for outcome in [Outcome.stored("uri-miss"), .hit] {
        let answer = try proxy.get("/a")
        expect(answer, "x", outcome)
        #expect(answer.all("X-T").isEmpty && answer.all("ETag").isEmpty)
        #expect(answer.all("Cache-Control") == ["max-age=60"])
        #expect(answer.all("Trailer").isEmpty)
      }
      #expect(origin.heads.count == 1)
      let client = try RawClient(proxy)
      client.send("GET /b HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTE: trailers\r\n\r\n")
      _ = try client.readToEnd()
      let text = client.text
      #expect(!text.contains("X-T"), "\(text)")
    }
  }

  @Test func trailersOfARequestAreNotForwarded() throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .text("x"))
      let connection = try proxy.connect()
      connection.send(
        raw: "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"
          + "2\r\nab\r\n0\r\nX-T: 1\r\nAuthorization: evil\r\n\r\n", method: "POST")
      #expect(try connection.readAnswer().text == "x")
      let request = try #require(origin.requests("/a").first)
      #expect(request.bodyText == "ab")
      #expect(request.first("X-T") == nil && request.first("Authorization") == nil)
      #expect(request.first("Trailer") == nil)
      // What followed the trailers is the next request.
      #expect(try connection.get("/a").text == "x")
    }
  }
}
