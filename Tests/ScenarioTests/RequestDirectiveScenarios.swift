import Support
import Testing

/// What clients ask of a cache (RFC 9111 §5.2.1, §5.4), each against one copy that is fresh for 100
/// seconds and has no window of its own.
struct RequestDirectiveScenarios {
  enum Due {
    case hit
    case stale
    case network(String)
    /// Asked, and nothing of it stored.
    case pass
    case refused
  }

  static let rows: [(line: String, age: Int64, due: Due)] = [
    ("Cache-Control: max-age=50", 40, .hit), ("Cache-Control: max-age=50", 60, .network("request")),
    ("Cache-Control: max-age=0", 0, .network("request")),
    ("Cache-Control: max-age=x", 0, .network("request")),
    ("Cache-Control: max-age=1.5", 0, .network("request")),
    ("Cache-Control: max-age=500, max-age=50", 60, .network("request")),
    ("Cache-Control: max-age=99999999999999999999", 60, .hit),
    ("Cache-Control: MAX-AGE=50", 60, .network("request")),
    ("Cache-Control: min-fresh=30", 60, .hit),
    ("Cache-Control: min-fresh=50", 60, .network("request")),
    ("Cache-Control: min-fresh=50, max-stale=1", 60, .network("request")),
    ("Cache-Control: min-fresh=x", 0, .network("request")),
    ("Cache-Control: max-stale", 5000, .stale), ("Cache-Control: max-stale=30", 120, .stale),
    ("Cache-Control: max-stale=10", 120, .network("stale")),
    ("Cache-Control: max-stale=30, max-stale", 140, .network("stale")),
    ("Cache-Control: max-stale=x", 120, .network("stale")),
    ("Cache-Control: no-cache", 0, .network("request")),
    ("Cache-Control: foo, no-cache=\"bar\", baz=1", 0, .network("request")),
    ("Cache-Control: foo=\"no-cache, no-store\"", 0, .hit),
    ("Cache-Control: no-transform", 0, .hit), ("Cache-Control: immutable, s-maxage=0", 0, .hit),
    ("Cache-Control: no-store", 0, .pass), ("Cache-Control: ,, no-store ,", 0, .pass),
    ("Cache-Control: only-if-cached", 0, .hit), ("Cache-Control: only-if-cached", 120, .refused),
    ("Cache-Control: only-if-cached, max-stale=30", 120, .stale),
    ("Cache-Control: only-if-cached, max-stale=10", 120, .refused),
    ("Cache-Control: only-if-cached, max-age=200, max-stale=30", 120, .stale),
    ("Cache-Control: only-if-cached, max-age=110, max-stale=30", 120, .refused),
    ("Cache-Control: only-if-cached, no-cache", 0, .refused),
    ("Pragma: no-cache", 0, .network("request")), ("Pragma: foo, No-Cache", 0, .network("request")),
    ("Pragma: foo", 0, .hit), ("Pragma: no-cache\r\nCache-Control: foo", 0, .hit),
    ("Pragma: no-cache\r\nCache-Control: max-age=50", 10, .hit),
  ]

  @Test(arguments: rows)
  func whatAClientAsksForHolds(_ line: String, _ age: Int64, _ due: Due) throws {
    let route = #"{ "name": "r", "match": "/**", "strategy": "cache-first" },"#
    try scenario(route) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)", "Cache-Control: max-age=100") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: age)
      let answer = try proxy.get("/a", line)
      switch due {
      case .hit: expect(answer, "v1", .hit)
      case .stale:
        expect(answer, "v1", .hit)
        #expect(answer.cacheStatus.timeToLiveSeconds ?? 0 < 0)
      case .network(let word):
        expect(answer, "v2", .stored(word))
        // What a client insists on is everybody's from then on.
        expect(try proxy.get("/a"), "v2", .hit)
      case .pass:
        expect(answer, "v2", .notStored("request"))
        expect(try proxy.get("/a"), "v1", .hit)
      case .refused: expect(answer, "", status: 504, .failed)
      }
      let asked =
        switch due {
        case .hit, .stale, .refused: 1
        case .network, .pass: 2
        }
      #expect(origin.requestCount("/a") == asked)
    }
  }

  @Test func onlyIfCachedWithoutACopyAsksNobody() throws {
    let route = #"{ "name": "r", "match": "/**", "strategy": "cache-first" },"#
    try scenario(route) { origin, proxy in
      for words in ["only-if-cached", "only-if-cached, max-stale"] {
        expect(try proxy.get("/a", "Cache-Control: \(words)"), "", status: 504, .failed)
      }
      #expect(origin.requests.isEmpty)
    }
  }
}
