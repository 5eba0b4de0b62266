import Support
import Testing

/// What an answer says of its way: `Cache-Status` (RFC 9211), `Via` (RFC 9110 §7.6.3) and `Age`.
struct CacheStatusScenarios {
  // MARK: Cache-Status

  /// One list, the cache nearest the origin first. What cannot be read stays too: it is not ours.
  @Test(arguments: [
    ["edge; hit; ttl=3"], ["a; fwd=miss, \"b c\"; hit", "d; fwd=stale"], ["HIT from \"x"],
    ["=;=, ,"], [""],
  ])
  func oursComesBehindWhatEarlierCachesSaid(_ earlier: [String]) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      for path in ["/a", "/b"] {
        origin.on(path) { request in
          var answer =
            request.first("If-None-Match") == nil
            ? OriginAnswer.text("x", "ETag: \"x\"") : OriginAnswer.empty(status: 304, "ETag: \"x\"")
          answer.fields += earlier.map { ("Cache-Status", $0) }
          return answer
        }
      }
      let miss = try proxy.get("/a")
      let hit = try proxy.get("/a")
      let notModified = try proxy.get("/a", "If-None-Match: \"x\"")
      let missNotModified = try proxy.get("/b", "If-None-Match: \"x\"")
      proxy.advance(seconds: Age.older)
      let confirmed = try proxy.get("/a")
      let passed = try proxy.send("POST", "/a")
      let all = [miss, hit, notModified, missNotModified, confirmed, passed]
      #expect(all.map(\.status) == [200, 200, 304, 304, 200, 200])
      for answer in all {
        let lines = answer.all("Cache-Status")
        #expect(Array(lines.dropLast()) == earlier)
        #expect(lines.last?.hasPrefix("larder; ") == true)
      }
      let ours = all.map { CacheStatus($0.all("Cache-Status").last ?? "") }
      #expect(ours.map(\.isHit) == [false, true, true, false, false, false])
      #expect(ours.map(\.forward) == ["uri-miss", nil, nil, "uri-miss", "stale", "method"])
      #expect(ours.map(\.isStored) == [true, false, false, true, false, false])
    }
  }

  @Test func theWordsOfAForwardAreThoseOfTheRFC() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)", "Vary: X-Kind") }
      expect(try proxy.get("/a", "X-Kind: a"), "v1", .stored("uri-miss"))
      expect(try proxy.get("/a", "X-Kind: b"), "v2", .stored("vary-miss"))
      expect(try proxy.get("/a", "X-Kind: b", "Cache-Control: no-cache"), "v3", .stored("request"))
      expect(
        try proxy.get("/a", "X-Kind: b", "Cache-Control: no-store"), "v4", .notStored("request"))
      expect(try proxy.send("PUT", "/a", body: []), "v5", .notStored("method"))
      expect(try proxy.get("/a", "X-Kind: a"), "v6", .stored("uri-miss"))
      proxy.advance(seconds: Age.beyondAll)
      expect(try proxy.get("/a", "X-Kind: a"), "v7", .stored("stale"))
    }
  }

  @Test func whoSharesAFetchIsToldSoWhateverCameOfIt() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let gate = Gate()
      origin.on("/stored", OriginAnswer.text("x").waiting(for: gate))
      origin.on("/down", OriginAnswer.text("down", status: 503).waiting(for: gate))
      let pairs = try ["/stored", "/down"].enumerated().map { index, path in
        let (first, second) = (try proxy.connect(), try proxy.connect())
        first.send("GET", path)
        #expect(gate.waitUntilReached(index + 1))
        second.send("GET", path)
        try proxy.settle()
        return (first, second)
      }
      gate.open()
      for (first, second) in pairs {
        let (one, other) = (try first.readAnswer(), try second.readAnswer())
        #expect(one.text == other.text)
        #expect(!one.cacheStatus.isCollapsed && other.cacheStatus.isCollapsed)
        #expect(one.cacheStatus.isStored == other.cacheStatus.isStored)
      }
      #expect(origin.requests.count == 2)
    }
  }

  @Test func whoWaitsForAConfirmationBesideAnotherIsToldSo() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let gate = Gate()
      origin.on(
        "/a",
        inTurn: [
          .text("x", "ETag: \"x\""),
          OriginAnswer.empty(status: 304, "ETag: \"x\"").waiting(for: gate),
        ])
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      let (first, second) = (try proxy.connect(), try proxy.connect())
      first.send("GET", "/a")
      #expect(gate.waitUntilReached())
      second.send("GET", "/a")
      try proxy.settle()
      gate.open()
      let (one, other) = (try first.readAnswer(), try second.readAnswer())
      expect(one, "x", .copy("stale", 304))
      expect(other, "x", .copy("stale", 304))
      #expect(!one.cacheStatus.isCollapsed && other.cacheStatus.isCollapsed)
      #expect(origin.requestCount("/a") == 2)
    }
  }

  // MARK: Via

  /// The version in which the origin answered, on every answer that comes of it.
  @Test func viaNamesTheVersionThatTheOriginAnsweredIn() throws {
    try rawScenario(FieldScenarios.route) { connection in
      while let head = connection.readHead() {
        let isConditional = head.contains("If-None-Match")
        connection.send(
          isConditional
            ? "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n"
            : "HTTP/1.0 200 OK\r\nETag: \"x\"\r\nVia: 1.1 inner\r\nCache-Control: max-age=60\r\n"
              + "Content-Length: 1\r\n\r\nx")
        if !isConditional { return }
      }
    } _: { origin, proxy in
      let passed = try proxy.send("POST", "/a")
      let miss = try proxy.get("/a")
      let hit = try proxy.get("/a")
      for answer in [passed, miss, hit] {
        #expect(answer.all("Via") == ["1.1 inner", "1.0 larder"])
      }
      let notModified = try proxy.get("/a", "If-None-Match: \"x\"")
      #expect(notModified.status == 304 && notModified.all("Via") == ["1.0 larder"])
      try proxy.restart()
      #expect(try proxy.get("/a").all("Via") == ["1.1 inner", "1.0 larder"])
      proxy.advance(seconds: 60)
      let confirmed = try proxy.get("/a")
      expect(confirmed, "x", .copy("stale", 304))
      #expect(confirmed.all("Via") == ["1.1 inner", "1.1 larder"])
      #expect(origin.heads.count == 3)
    }
  }

  @Test func aChunkedAnswerOfHTTP10IsNotStored() throws {
    try rawScenario(windowedRoute("cache-first")) { connection in
      guard connection.readHead() != nil else { return }
      connection.send(
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n\(connection.number)\r\n0\r\n\r\n"
      )
    } _: { _, proxy in
      // RFC 9112 §6.1: its framing is faulty, whatever it looks like.
      expect(try proxy.get("/a"), "1", .notStored("uri-miss"))
      expect(try proxy.get("/a"), "2", .notStored("uri-miss"))
    }
  }

  // MARK: Age

  @Test func aHitCarriesAnAgeThatGrows() throws {
    try scenario(FieldScenarios.route) { origin, proxy in
      origin.on("/a", .text("x", "Cache-Control: max-age=600", "Age: 30"))
      let first = try proxy.get("/a")
      #expect(first.all("Age").count == 1)
      #expect((30..<60).contains(first.ageSeconds ?? 0))
      for passed in 1...3 {
        proxy.advance(seconds: 100)
        let hit = try proxy.get("/a")
        expect(hit, "x", .hit)
        #expect(hit.all("Age").count == 1)
        #expect((30 + passed * 100..<60 + passed * 100).contains(hit.ageSeconds ?? 0))
      }
      let passed = try proxy.send("POST", "/a")
      #expect(passed.all("Age") == ["30"])
    }
  }

  @Test func anAgeIsAtMostWhatStandsForMore() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("x", "Age: 99999999999999999999"))
      expect(try proxy.get("/a"), "x", .stored("uri-miss"))
      proxy.advance(seconds: 600)
      let hit = try proxy.get("/a")
      // The route's ttl counts from the receipt. RFC 9111 §1.2.2
      expect(hit, "x", .hit)
      #expect(hit.all("Age") == ["2147483648"])
    }
  }

  @Test(
    arguments: [
      ("7200, 0", false), ("0, 7200", true), ("007200", false), ("7200;a=b", true),
      ("-7200", true), ("7200.0", true), ("\"7200\"", true), ("abc", true), ("2147483649", false),
    ])
  func theFirstMemberOfAgeCounts(_ age: String, _ isFresh: Bool) throws {
    try scenario(FieldScenarios.route) { origin, proxy in
      origin.on("/a") {
        .text(
          "v\($0.number)", "Cache-Control: max-age=3600", "Age: \(age)", "ETag: \"\($0.number)\"")
      }
      _ = try proxy.get("/a")
      #expect(try proxy.get("/a").text == (isFresh ? "v1" : "v2"))
    }
  }
}
