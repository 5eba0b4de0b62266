import Support
import Testing

/// Errors of the origin: stored only where a route or the origin says so, never stale, and never in
/// a good copy's place.
struct ErrorStoringScenarios {
  static let negative = #""negative": { "404": "30m", "5xx": "10m" }"#

  @Test func anErrorIsRememberedAsLongAsTheRouteSays() throws {
    try scenario(windowedRoute("cache-first", ErrorStoringScenarios.negative)) { origin, proxy in
      origin.on("/a") { .text("gone \($0.number)", status: 404) }
      expect(try proxy.get("/a"), "gone 1", status: 404, .stored("uri-miss"))
      expect(try proxy.get("/a"), "gone 1", status: 404, .hit)
      proxy.advance(seconds: 29 * 60)
      expect(try proxy.get("/a"), "gone 1", status: 404, .hit)
      proxy.advance(seconds: 60)
      expect(try proxy.get("/a"), "gone 2", status: 404, .stored("stale"))
      #expect(try proxy.counts("r") == .init(hits: 2, misses: 2))
    }
  }

  @Test func aServerErrorIsRememberedForItsClass() throws {
    try scenario(windowedRoute("cache-first", ErrorStoringScenarios.negative)) { origin, proxy in
      origin.on("/a") { .text("down \($0.number)", status: 503) }
      expect(try proxy.get("/a"), "down 1", status: 503, .stored("uri-miss"))
      expect(try proxy.get("/a"), "down 1", status: 503, .hit)
      proxy.advance(seconds: 10 * 60)
      origin.on("/a", .text("up"))
      expect(try proxy.get("/a"), "up", .stored("stale"))
    }
  }

  @Test(arguments: [404, 410, 500, 503])
  func aTtlAloneKeepsNoError(_ status: Int) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { .text("no \($0.number)", status: status) }
      let answer = try proxy.get("/a")
      expect(answer, "no 1", status: status, .notStored("uri-miss"))
      #expect(answer.first("Cache-Control") == nil)
      expect(try proxy.get("/a"), "no 2", status: status, .notStored("uri-miss"))
      #expect(try proxy.counts("r") == .init(passes: 2))
    }
  }

  @Test func anErrorWithTheOriginsOwnLifetimeIsStored() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { .text("no \($0.number)", status: 404, "Cache-Control: max-age=600") }
      expect(try proxy.get("/a"), "no 1", status: 404, .stored("uri-miss"))
      expect(try proxy.get("/a"), "no 1", status: 404, .hit)
      proxy.advance(seconds: 600)
      expect(try proxy.get("/a"), "no 2", status: 404, .stored("stale"))
    }
  }

  @Test func anErrorOfARouteWithoutATtlIsKeptForAGuessOfAMinuteAtMost() throws {
    try scenario(#"{ "name": "r", "match": "/**", "strategy": "cache-first" },"#) { origin, proxy in
      origin.on("/a") {
        .text("no \($0.number)", status: 404, "Last-Modified: Thu, 01 Jan 1998 00:00:00 GMT")
      }
      expect(try proxy.get("/a"), "no 1", status: 404, .stored("uri-miss"))
      proxy.advance(seconds: 59)
      expect(try proxy.get("/a"), "no 1", status: 404, .hit)
      proxy.advance(seconds: 1)
      expect(try proxy.get("/a"), "no 2", status: 404, .stored("stale"))
    }
  }

  @Test func negativeGoesBeforeTheOriginsOwnLifetime() throws {
    try scenario(windowedRoute("cache-first", ErrorStoringScenarios.negative)) { origin, proxy in
      origin.on("/a") { .text("no \($0.number)", status: 404, "Cache-Control: max-age=86400") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 30 * 60)
      expect(try proxy.get("/a"), "no 2", status: 404, .stored("stale"))
    }
  }

  @Test func aStoredErrorIsNeverServedStale() throws {
    try scenario(windowedRoute("cache-first", ErrorStoringScenarios.negative)) { origin, proxy in
      origin.on("/a", .text("gone", status: 404))
      _ = try proxy.get("/a")
      proxy.advance(seconds: 45 * 60)
      origin.stop()
      expect(try proxy.get("/a"), "", status: 502, .failed)
    }
  }

  @Test func aWholeErrorOfNoBytesIsStored() throws {
    try scenario(windowedRoute("cache-first", ErrorStoringScenarios.negative)) { origin, proxy in
      origin.on("/a", OriginAnswer.empty(status: 404).framed(.chunked))
      expect(try proxy.get("/a"), "", status: 404, .stored("uri-miss"))
      expect(try proxy.get("/a"), "", status: 404, .hit)
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test func aServerErrorNeverReplacesAGoodCopy() throws {
    try scenario(windowedRoute("cache-first", ErrorStoringScenarios.negative)) { origin, proxy in
      origin.on("/a", inTurn: [.text("v1"), .text("down", status: 503)])
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      expect(try proxy.get("/a"), "v1", .copy("stale", 503))
      expect(try proxy.get("/a"), "v1", .copy("stale", 503))
      #expect(origin.requestCount("/a") == 3)
      #expect(try proxy.counts("r") == .init(stale: 2, misses: 1))
    }
  }

  @Test func aClientErrorIsSentOnAndTheGoodCopyStays() throws {
    let negative = #""negative": { "4xx": "30m" }"#
    try scenario(windowedRoute("cache-first", negative)) { origin, proxy in
      origin.on("/a", inTurn: [.text("v1"), .text("not you", status: 403)])
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      expect(try proxy.get("/a"), "not you", status: 403, .notStored("stale"))
      origin.stop()
      expect(try proxy.get("/a"), "v1", .copy("stale", nil))
    }
  }

  @Test func anErrorTakesThePlaceOfACopyThatMayServeNoMore() throws {
    try scenario(windowedRoute("cache-first", ErrorStoringScenarios.negative)) { origin, proxy in
      origin.on("/a", inTurn: [.text("v1"), .text("gone", status: 404)])
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.beyondAll)
      expect(try proxy.get("/a"), "gone", status: 404, .stored("stale"))
      expect(try proxy.get("/a"), "gone", status: 404, .hit)
    }
  }
}
