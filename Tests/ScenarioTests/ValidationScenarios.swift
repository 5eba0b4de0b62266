import Support
import Testing

/// Conditions in both directions: ours to the origin, the client's to us; and HEAD and Range from
/// what a GET stored.
struct ValidationScenarios {
  static let plainRoute = #"{ "name": "r", "match": "/**", "strategy": "cache-first" },"#

  // MARK: Towards the origin

  @Test func aConfirmationRenewsFreshnessAndMergesFields() throws {
    try scenario(ValidationScenarios.plainRoute) { origin, proxy in
      origin.on(
        "/a",
        inTurn: [
          .text(
            "v1", "ETag: \"one\"", "Cache-Control: max-age=3600", "X-Note: old",
            "Content-Type: text/plain", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"),
          .empty(
            status: 304, "ETag: \"one\"", "Cache-Control: max-age=7200", "X-Note: new",
            "X-More: 1"),
        ])
      _ = try proxy.get("/a")
      proxy.advance(seconds: 2 * 3600)
      let confirmed = try proxy.get("/a")
      expect(confirmed, "v1", .copy("stale", 304))
      let second = try #require(origin.requests("/a").last)
      #expect(second.first("If-None-Match") == "\"one\"")
      #expect(second.first("If-Modified-Since") == "Sun, 06 Nov 1994 08:49:37 GMT")
      proxy.advance(seconds: 7200 - 60)
      let later = try proxy.get("/a")
      expect(later, "v1", .hit)
      for answer in [confirmed, later] {
        #expect(answer.all("X-Note") == ["new"])
        #expect(answer.all("X-More") == ["1"])
        #expect(answer.all("Cache-Control") == ["max-age=7200"])
        #expect(answer.first("Content-Type") == "text/plain")
        #expect(answer.all("ETag") == ["\"one\""])
        #expect(answer.all("Content-Length") == ["2"])
      }
      #expect((7140..<7200).contains(later.ageSeconds ?? 0))
      #expect(origin.requestCount("/a") == 2)
      #expect(try proxy.counts("r") == .init(hits: 2, misses: 1))
      try proxy.restart()
      #expect(try proxy.get("/a").all("X-Note") == ["new"])
    }
  }

  @Test func theAgeOfAConfirmationCounts() throws {
    try scenario(ValidationScenarios.plainRoute) { origin, proxy in
      origin.on("/a") { request in
        request.first("If-None-Match") == nil
          ? .text("v\(request.number)", "ETag: \"x\"", "Cache-Control: max-age=3600")
          : .empty(status: 304, "ETag: \"x\"", "Age: 3000")
      }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 3600)
      let confirmed = try proxy.get("/a")
      expect(confirmed, "v1", .copy("stale", 304))
      #expect((3000...3060).contains(confirmed.ageSeconds ?? 0))
      #expect(confirmed.all("Age").count == 1)
      proxy.advance(seconds: 500)
      expect(try proxy.get("/a"), "v1", .hit)
      proxy.advance(seconds: 100)
      expect(try proxy.get("/a"), "v1", .copy("stale", 304))
    }
  }

  @Test func aNewBodyReplacesTheCopyThatWasToBeConfirmed() throws {
    try scenario(ValidationScenarios.plainRoute) { origin, proxy in
      origin.on("/a") {
        .text("v\($0.number)", "ETag: \"\($0.number)\"", "Cache-Control: max-age=60")
      }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 60)
      expect(try proxy.get("/a"), "v2", .stored("stale"))
      #expect(origin.requests("/a").map { $0.first("If-None-Match") } == [nil, "\"1\""])
      expect(try proxy.get("/a"), "v2", .hit)
    }
  }

  @Test func aConfirmationThatForbidsToKeepEndsTheCopy() throws {
    try scenario(ValidationScenarios.plainRoute) { origin, proxy in
      origin.on("/a") { request in
        request.first("If-None-Match") == nil
          ? .text("v\(request.number)", "ETag: \"x\"", "Cache-Control: max-age=60")
          : .empty(status: 304, "ETag: \"x\"", "Cache-Control: no-store")
      }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 60)
      let answer = try proxy.get("/a")
      #expect(answer.status == 200)
      #expect(answer.text == "v1" || answer.text == "v3")
      // Whatever served: what is there now is not the old copy.
      origin.stop()
      #expect(try proxy.get("/a").text != "v1")
    }
  }

  @Test func theClientsNoCacheReadsPastTheCopyAndReplacesIt() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      _ = try proxy.get("/a")
      expect(try proxy.get("/a", "Cache-Control: no-cache"), "v2", .stored("request"))
      expect(try proxy.get("/a"), "v2", .hit)
    }
  }

  // MARK: From the client

  @Test(arguments: [
    ("the same", "\"one\""), ("weak", "W/\"one\""), ("among others", "\"x\", \"one\""),
    ("any", "*"),
  ])
  func aClientsMatchingTagOnAMissFillsAndGets304(_ name: String, _ tag: String) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on(
        "/a",
        .text("v1", "ETag: \"one\"", "Cache-Control: max-age=60", "Vary: Accept", "X-Other: 1"))
      let answer = try proxy.get("/a", "If-None-Match: \(tag)")
      #expect(answer.status == 304)
      #expect(answer.body.isEmpty && !answer.isCut)
      #expect(answer.cacheStatus.isStored)
      #expect(origin.requests("/a").map { $0.first("If-None-Match") } == [nil])
      // The 304 needed the head alone; the fill goes on to the end of the body.
      try proxy.settle(after: origin, "/a", answers: 1)
      let second = try proxy.get("/a", "If-None-Match: \(tag)")
      #expect(second.status == 304)
      #expect(second.cacheStatus.isHit)
      for answer in [answer, second] {
        for field in ["Cache-Control", "ETag", "Vary", "Date"] {
          #expect(answer.all(field).count == 1, "\(field)")
        }
      }
      expect(try proxy.get("/a"), "v1", .hit)
      #expect(origin.requestCount("/a") == 1)
      #expect(try proxy.counts("r") == .init(hits: 2, misses: 1))
    }
  }

  @Test func aTagThatDoesNotMatchGetsTheBody() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("v1", "ETag: \"one\""))
      expect(try proxy.get("/a", "If-None-Match: \"two\""), "v1", .stored("uri-miss"))
      expect(try proxy.get("/a", "If-None-Match: \"two\""), "v1", .hit)
    }
  }

  @Test func aClientsDateIsComparedWithTheCopys() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("v1", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"))
      _ = try proxy.get("/a")
      let same = try proxy.get("/a", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT")
      #expect(same.status == 304)
      expect(
        try proxy.get("/a", "If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT"), "v1", .hit)
    }
  }

  @Test func theDateOfACopyStandsForItsLastChangeWhereNoneIsSaid() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("v1", "Date: Sun, 06 Nov 1994 08:49:37 GMT"))
      _ = try proxy.get("/a")
      let same = try proxy.get("/a", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT")
      #expect(same.status == 304 && same.cacheStatus.isHit)
      expect(
        try proxy.get("/a", "If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT"), "v1", .hit)
      expect(
        try proxy.get(
          "/a", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT", "If-None-Match: \"x\""),
        "v1", .hit)
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test func aConnectionGoesOnBehindA304() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("v1", "ETag: \"one\""))
      let connection = try proxy.connect()
      #expect(try connection.get("/a", ["If-None-Match: \"one\""]).status == 304)
      #expect(try connection.get("/a", ["If-None-Match: \"one\""]).status == 304)
      #expect(try connection.get("/a").text == "v1")
    }
  }

  // MARK: HEAD

  @Test func aHeadIsAnsweredFromAGetsCopy() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("twelve bytes", "X-Field: 1"))
      _ = try proxy.get("/a")
      let connection = try proxy.connect()
      connection.send("HEAD", "/a")
      let answer = try connection.readAnswer()
      expect(answer, "", .hit)
      #expect(answer.first("Content-Length") == "12")
      #expect(answer.first("X-Field") == "1")
      // Had a body followed, it would stand where the next answer is due.
      expect(try connection.get("/a"), "twelve bytes", .hit)
      #expect(origin.requestCount("/a") == 1)
      #expect(try proxy.counts("r") == .init(hits: 2, misses: 1))
    }
  }

  @Test func aHeadThatMissesGoesToTheOriginAndIsNotStored() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("twelve bytes"))
      let connection = try proxy.connect()
      connection.send("HEAD", "/a")
      let answer = try connection.readAnswer()
      expect(answer, "", .notStored("uri-miss"))
      #expect(answer.first("Content-Length") == "12")
      expect(try connection.get("/a"), "twelve bytes", .stored("uri-miss"))
      #expect(origin.requests("/a").map(\.method) == ["HEAD", "GET"])
      #expect(try proxy.counts("r") == .init(misses: 1, passes: 1))
    }
  }

  // MARK: Range

  @Test(arguments: [
    ("first and last", "bytes=2-4", "234", "bytes 2-4/10"),
    ("one byte", "bytes=0-0", "0", "bytes 0-0/10"),
    ("open", "bytes=7-", "789", "bytes 7-9/10"),
    ("suffix", "bytes=-3", "789", "bytes 7-9/10"),
    ("a suffix longer than the body", "bytes=-99", "0123456789", "bytes 0-9/10"),
    ("beyond the end", "bytes=8-99", "89", "bytes 8-9/10"),
  ])
  func aRangeIsServedFromAWholeCopy(
    _ name: String, _ range: String, _ body: String, _ contentRange: String
  ) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("0123456789", "ETag: \"one\""))
      _ = try proxy.get("/a")
      let answer = try proxy.get("/a", "Range: \(range)")
      expect(answer, body, status: 206, .hit)
      #expect(answer.first("Content-Range") == contentRange)
      #expect(answer.first("Content-Length") == "\(body.utf8.count)")
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test(arguments: ["bytes=10-", "bytes=99-100", "bytes=-0"])
  func aRangeOutsideTheBodyIs416(_ range: String) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("0123456789"))
      _ = try proxy.get("/a")
      let answer = try proxy.get("/a", "Range: \(range)")
      #expect(answer.status == 416)
      #expect(answer.first("Content-Range") == "bytes */10")
      #expect(answer.cacheStatus.isHit)
      #expect(try proxy.counts("r").total == 2)
    }
  }

  @Test(arguments: [
    ("another unit", ["Range: lines=1-2"]), ("malformed", ["Range: bytes=4-2"]),
    ("If-Range of another tag", ["Range: bytes=2-4", "If-Range: \"two\""]),
    ("If-Range of a weak tag", ["Range: bytes=2-4", "If-Range: W/\"one\""]),
  ])
  func aRangeThatDoesNotCountGetsTheWhole(_ name: String, _ fields: [String]) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("0123456789", "ETag: \"one\""))
      _ = try proxy.get("/a")
      expect(try proxy.send("GET", "/a", fields), "0123456789", .hit)
    }
  }

  @Test func anIfRangeOfTheCopysTagGetsThePart() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("0123456789", "ETag: \"one\""))
      _ = try proxy.get("/a")
      expect(
        try proxy.get("/a", "Range: bytes=2-4", "If-Range: \"one\""), "234", status: 206, .hit)
    }
  }

  @Test func aRangeThatMissesGoesToTheOriginAndIsNeverStoredAsTheWhole() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { request in
        request.first("Range") == "bytes=2-4"
          ? .text("234", status: 206, "Content-Range: bytes 2-4/10") : .text("0123456789")
      }
      let part = try proxy.get("/a", "Range: bytes=2-4")
      expect(part, "234", status: 206, .notStored("uri-miss"))
      #expect(part.first("Content-Range") == "bytes 2-4/10")
      expect(try proxy.get("/a"), "0123456789", .stored("uri-miss"))
      #expect(try proxy.counts("r") == .init(misses: 1, passes: 1))
    }
  }

  @Test func anErrorIsNotDressedAsAPart() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", inTurn: [.text("0123456789"), .text("down", status: 503)])
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      expect(
        try proxy.get("/a", "Range: bytes=2-4"), "234", status: 206, .copy("stale", 503))
      proxy.advance(seconds: Age.beyondAll)
      let answer = try proxy.get("/a", "Range: bytes=2-4")
      expect(answer, "down", status: 503, .notStored("stale"))
      #expect(answer.first("Content-Range") == nil)
    }
  }
}
