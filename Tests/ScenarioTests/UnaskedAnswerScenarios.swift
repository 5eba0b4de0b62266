import Support
import Testing

/// Answers that no request asked for: they are an origin's error, and nobody is given them.
struct UnaskedAnswerScenarios {
  @Test(arguments: [304, 206], ["/a", "/stored/a"])
  func aPartOrConfirmationThatNobodyAskedForIsABrokenAnswer(_ status: Int, _ path: String) throws {
    let stored =
      #"{ "name": "stored", "match": "/stored/**", "strategy": "cache-first", "ttl": "1h" }"#
    try scenario(stored) { origin, proxy in
      let unasked: OriginAnswer =
        status == 304
        ? .empty(status: 304, "ETag: \"x\"")
        : .text("part", status: 206, "Content-Range: bytes 0-3/9")
      origin.on(path, inTurn: [unasked, .text("whole")])
      let first = try proxy.get(path)
      #expect(first.status == 502)
      let second = try proxy.get(path)
      #expect(second.text == "whole")
    }
  }

  @Test func whatAClientAskedForPasses() throws {
    try scenario("") { origin, proxy in
      origin.on("/a", .empty(status: 304, "ETag: \"x\""))
      origin.on("/b", .text("part", status: 206, "Content-Range: bytes 0-3/9"))
      let confirmed = try proxy.get("/a", "If-None-Match: \"x\"")
      #expect(confirmed.status == 304)
      let part = try proxy.get("/b", "Range: bytes=0-3")
      #expect(part.status == 206)
    }
  }

  /// A part that has nothing of what was asked for would be taken for another.
  @Test(
    arguments: [
      ("bytes=0-3", ["Content-Range: bytes 4-7/9"]), ("bytes=-2", ["Content-Range: bytes 0-3/9"]),
      ("bytes=0-3", []), ("bytes=0-3", ["Content-Range: bytes 0-3"]),
      ("bytes=0-3", ["Content-Range: bytes 0-8/9"]),
      ("bytes=0-3", ["Content-Range: bytes 0-3/9", "Content-Range: bytes 0-3/9"]),
      ("bytes=0-3", ["Content-Type: multipart/byteranges; boundary=x"]),
      ("bytes=0-3", ["Content-Range: bytes 0-18446744073709551615/*"]),
    ], ["", windowedRoute("cache-first")])
  func aPartThatDoesNotAnswerIsABrokenAnswer(
    _ asked: (range: String, fields: [String]), _ route: String
  ) throws {
    try scenario(route) { origin, proxy in
      var part = OriginAnswer.text("part", status: 206)
      part.fields = asked.fields.map {
        let pair = $0.split(separator: ":", maxSplits: 1)
        return (String(pair[0]), String(pair[1].dropFirst()))
      }
      origin.on("/a", part)
      let answer = try proxy.get("/a", "Range: \(asked.range)")
      expect(answer, "", status: 502, .failed)
    }
  }

  @Test func aPartThatDoesNotAnswerLeavesTheCopyInItsPlace() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on(
        "/a", inTurn: [.text("whole"), .text("par", status: 206, "Content-Range: bytes 6-8/9")])
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      let answer = try proxy.get("/a", "Range: bytes=0-1")
      expectText(answer, "wh", status: 206)
      #expect(answer.first("Content-Range") == "bytes 0-1/5")
    }
  }

  /// Less than was asked for, several parts for several ranges, and units that nobody here knows,
  /// are between the client and the origin.
  @Test(
    arguments: [
      ("bytes=0-7", "Content-Range: bytes 0-3/9"), ("bytes=2-3", "Content-Range: bytes 0-3/*"),
      ("bytes=0-1,3-4", "Content-Type: multipart/byteranges; boundary=x"),
      ("bytes=0-1,3-4", "Content-Range: bytes 1-4/9"),
      ("lines=0-1", "Content-Range: lines 0-1/9"),
    ])
  func aPartThatMayBeWhatWasAskedForPasses(_ range: String, _ field: String) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("part", status: 206, field, "Cache-Control: max-age=9"))
      for _ in 0..<2 {
        let answer = try proxy.get("/a", "Range: \(range)")
        expectText(answer, "part", status: 206)
        #expect(!answer.cacheStatus.isStored && !answer.cacheStatus.isHit)
      }
    }
  }

  @Test(arguments: ["pass", "fetch-whole"])
  func aRefusedRangeIsNotStored(_ range: String) throws {
    let route = windowedRoute(
      "cache-first", "\"range\": \"\(range)\", \"negative\": { \"4xx\": \"1h\" }")
    try scenario(route) { origin, proxy in
      origin.on(
        "/a",
        inTurn: [
          .text("no", status: 416, "Content-Range: bytes */9", "Cache-Control: max-age=60"),
          .text("wholebody"),
        ])
      let refused = try proxy.get("/a", "Range: bytes=20-")
      expectText(refused, "no", status: 416)
      #expect(!refused.cacheStatus.isStored)
      expectText(try proxy.get("/a"), "wholebody")
      #expect(origin.requestCount("/a") == 2)
    }
  }
}
