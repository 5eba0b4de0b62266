import Backends
import CachePolicy
import Support
import Testing

/// How long a copy is fresh, and how long after that it may serve: the three forms of `ttl`, the
/// origin's own words, and both ends of every window, on a clock that the test moves.
struct FreshnessScenarios {
  /// Of a response: how many seconds it is fresh.
  struct Lifetime: Sendable, CustomTestStringConvertible {
    var name: String
    var ttl: String?
    var fields: [String] = []
    var seconds: Int64

    var testDescription: String { name }

    var route: String {
      let member = ttl.map { "\"ttl\": \($0)" } ?? ""
      return "{ \"name\": \"r\", \"match\": \"/**\", \"strategy\": \"cache-first\", \(member) },"
    }
  }

  static let hour: Int64 = 3600
  /// More than a test takes, less than any window.
  static let margin: Int64 = 60

  static let lifetimes: [Lifetime] = [
    .init(name: "ttl alone", ttl: #""1h""#, seconds: hour),
    .init(
      name: "ttl over a shorter max-age", ttl: #""1h""#, fields: ["Cache-Control: max-age=60"],
      seconds: hour),
    .init(
      name: "ttl over a longer max-age", ttl: #""1h""#, fields: ["Cache-Control: max-age=86400"],
      seconds: hour),
    .init(
      name: "ttl over Expires in the past", ttl: #""1h""#, fields: ["Expires: 0"], seconds: hour),
    .init(
      name: "ttl counts from the receipt", ttl: #""1h""#, fields: ["Age: 3000"], seconds: hour),
    .init(name: "default where the origin is silent", ttl: #"{"default": "1h"}"#, seconds: hour),
    .init(
      name: "default leaves the origin's word", ttl: #"{"default": "1h"}"#,
      fields: ["Cache-Control: max-age=7200"], seconds: 2 * hour),
    .init(
      name: "min lifts", ttl: #"{"min": "1h"}"#, fields: ["Cache-Control: max-age=60"],
      seconds: hour),
    .init(
      name: "max caps", ttl: #"{"max": "1h"}"#, fields: ["Cache-Control: max-age=86400"],
      seconds: hour),
    .init(
      name: "between min and max the origin's word holds", ttl: #"{"min": "1h", "max": "3h"}"#,
      fields: ["Cache-Control: max-age=7200"], seconds: 2 * hour),
    .init(name: "max-age", fields: ["Cache-Control: max-age=3600"], seconds: hour),
    .init(
      name: "Age shortens max-age", fields: ["Cache-Control: max-age=7200", "Age: 3600"],
      seconds: hour),
    .init(
      name: "s-maxage over max-age", fields: ["Cache-Control: max-age=0, s-maxage=3600"],
      seconds: hour),
  ]

  @Test(arguments: lifetimes)
  func aCopyIsFreshToTheEndOfItsLifetimeAndNotBeyond(_ row: Lifetime) throws {
    try scenario(row.route) { origin, proxy in
      origin.on("/a") { request in
        var answer = OriginAnswer.text("v\(request.number)")
        answer.fields = row.fields.map { line in
          let parts = line.split(separator: ": ", maxSplits: 1)
          return (String(parts[0]), String(parts[1]))
        }
        return answer
      }
      expect(try proxy.get("/a"), "v1", .stored("uri-miss"))
      proxy.advance(seconds: row.seconds - FreshnessScenarios.margin)
      expect(try proxy.get("/a"), "v1", .hit)
      proxy.advance(seconds: FreshnessScenarios.margin)
      expect(try proxy.get("/a"), "v2", .stored("stale"))
      #expect(try proxy.counts("r") == .init(hits: 1, misses: 2))
    }
  }

  @Test func aCopyIsFreshUntilExpires() throws {
    try scenario(#"{ "name": "r", "match": "/**", "strategy": "cache-first" },"#) {
      origin, proxy in
      origin.on("/a") { [clock = proxy.clock] request in
        var text: [UInt8] = []
        HTTPDate.format(clock.nowMilliseconds / 1000 + 3600, into: &text)
        return .text("v\(request.number)", "Expires: \(String(decoding: text, as: UTF8.self))")
      }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 3600 - FreshnessScenarios.margin)
      expect(try proxy.get("/a"), "v1", .hit)
      proxy.advance(seconds: FreshnessScenarios.margin)
      expect(try proxy.get("/a"), "v2", .stored("stale"))
    }
  }

  @Test func aLifetimeIsGuessedFromLastModified() throws {
    try scenario(#"{ "name": "r", "match": "/**", "strategy": "cache-first" },"#) {
      origin, proxy in
      origin.on("/a") { [clock = proxy.clock] request in
        var text: [UInt8] = []
        HTTPDate.format(clock.nowMilliseconds / 1000 - 36_000, into: &text)
        return .text(
          "v\(request.number)", "Last-Modified: \(String(decoding: text, as: UTF8.self))")
      }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 3600 - FreshnessScenarios.margin)
      expect(try proxy.get("/a"), "v1", .hit)
      proxy.advance(seconds: FreshnessScenarios.margin + 1)
      expect(try proxy.get("/a"), "v2", .stored("stale"))
    }
  }

  @Test func theRoutesTtlBeatsTheDefaults() throws {
    let origin = try ScriptedOrigin()
    let proxy = try TestProxy(
      policies: """
        { "version": 1, "upstreams": { "origin": { "url": "http://{ORIGIN}" } },
          "defaults": { "upstream": "origin", "ttl": "10h" },
          "routes": [
            { "name": "own", "match": "/own", "strategy": "cache-first", "ttl": "1h" },
            { "name": "inherited", "match": "/inherited", "strategy": "cache-first" } ] }
        """, origin: origin)
    defer { proxy.stop() }
    for path in ["/own", "/inherited"] {
      origin.on(path) { .text("v\($0.number)") }
      _ = try proxy.get(path)
    }
    proxy.advance(seconds: 2 * 3600)
    expect(try proxy.get("/own"), "v2", .stored("stale"))
    expect(try proxy.get("/inherited"), "v1", .hit)
  }

  // MARK: Windows

  /// The same windows, given by the route and by the origin (RFC 5861).
  static let windows = [
    ("the route's", #""ttl": "1h", "staleWhileRevalidate": "1h", "staleIfError": "10h""#, ""),
    (
      "the origin's", "", "max-age=3600, stale-while-revalidate=3600, stale-if-error=36000"
    ),
    (
      "the origin's beside its s-maxage", "",
      "s-maxage=3600, stale-while-revalidate=3600, stale-if-error=36000"
    ),
  ]

  private func withWindows(
    _ members: String, _ directives: String, _ body: (ScriptedOrigin, TestProxy) throws -> Void
  ) throws {
    try scenario(
      "{ \"name\": \"r\", \"match\": \"/**\", \"strategy\": \"cache-first\", \(members) },"
    ) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)", "Cache-Control: public, \(directives)") }
      _ = try proxy.get("/a")
      try body(origin, proxy)
    }
  }

  @Test(arguments: FreshnessScenarios.windows)
  func staleWhileRevalidateEndsWhereItSays(
    _ name: String, _ members: String, _ directives: String
  ) throws {
    try withWindows(members, directives) { origin, proxy in
      proxy.advance(seconds: 2 * 3600 - FreshnessScenarios.margin)
      origin.on("/a", .text("bad", status: 500))
      expect(try proxy.get("/a"), "v1", .hit)
      try proxy.settle(after: origin, "/a", answers: 2)
      origin.on("/a", .text("new", "Cache-Control: max-age=60"))
      proxy.advance(seconds: FreshnessScenarios.margin)
      expect(try proxy.get("/a"), "new", .stored("stale"))
    }
  }

  @Test(arguments: FreshnessScenarios.windows)
  func staleIfErrorEndsWhereItSays(
    _ name: String, _ members: String, _ directives: String
  ) throws {
    try withWindows(members, directives) { origin, proxy in
      proxy.advance(seconds: 11 * 3600 - FreshnessScenarios.margin)
      origin.on("/a", .text("bad", status: 500))
      expect(try proxy.get("/a"), "v1", .copy("stale", 500))
      proxy.advance(seconds: FreshnessScenarios.margin)
      expect(try proxy.get("/a"), "bad", status: 500, .notStored("stale"))
    }
  }

  @Test(arguments: NetworkFailure.allCases)
  func withoutAWindowAStaleCopyNeverServes(_ failure: NetworkFailure) throws {
    try scenario(
      #"{ "name": "r", "match": "/**", "strategy": "cache-first", "ttl": "1h" },"#,
      upstream: failure.upstream
    ) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 3600)
      failure.begin(origin, "/a")
      failure.expectError(try proxy.get("/a"))
    }
  }

  @Test func theRoutesWindowGoesBeforeTheOrigins() throws {
    try withWindows(#""ttl": "1h", "staleIfError": "1h""#, "stale-if-error=360000") {
      origin, proxy in
      proxy.advance(seconds: 2 * 3600)
      origin.on("/a", .text("bad", status: 500))
      expect(try proxy.get("/a"), "bad", status: 500, .notStored("stale"))
    }
  }

  // MARK: What the origin forbids

  static let forbidding = [
    ("must-revalidate", "max-age=3600, must-revalidate"),
    ("proxy-revalidate", "max-age=3600, proxy-revalidate"),
    ("no-cache", "max-age=3600, no-cache"),
    ("s-maxage", "s-maxage=3600"),
  ]

  @Test(
    arguments: FreshnessScenarios.forbidding,
    [NetworkFailure.refusesConnections, .resetsInsteadOfAnswering, .neverAnswers])
  func aForbiddenStaleCopyIs504WhereTheNetworkFails(
    _ word: (String, String), _ failure: NetworkFailure
  ) throws {
    try scenario(windowedRoute("cache-first"), upstream: failure.upstream) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)", "Cache-Control: \(word.1)", "ETag: \"x\"") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.stale)
      failure.begin(origin, "/a")
      expect(try proxy.get("/a"), "", status: 504, .failed)
      #expect(try proxy.counts("r") == .init(misses: 1, errors: 1))
    }
  }

  @Test(arguments: FreshnessScenarios.forbidding)
  func aForbiddenStaleCopyIsRevalidatedBeforeItServes(_ word: String, _ directives: String) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)", "Cache-Control: \(directives)", "ETag: \"x\"") }
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.stale)
      expect(try proxy.get("/a"), "v2", .stored("stale"))
    }
  }

  @Test(arguments: FreshnessScenarios.forbidding)
  func theRouteOverrulesEachWordByName(_ word: String, _ directives: String) throws {
    try scenario(windowedRoute("cache-first", "\"ignoreOrigin\": [\"\(word)\"]")) {
      origin, proxy in
      origin.on("/a") { .text("v\($0.number)", "Cache-Control: \(directives)") }
      _ = try proxy.get("/a")
      expect(try proxy.get("/a"), "v1", .hit)
      proxy.advance(seconds: Age.older)
      origin.stop()
      expect(try proxy.get("/a"), "v1", .copy("stale", nil))
    }
  }

  @Test func aFreshNoCacheCopyIsRevalidatedEachTime() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { request in
        request.first("If-None-Match") == "\"one\""
          ? .empty(status: 304, "ETag: \"one\"", "Cache-Control: no-cache")
          : .text("v1", "ETag: \"one\"", "Cache-Control: no-cache")
      }
      _ = try proxy.get("/a")
      let answer = try proxy.get("/a")
      #expect(answer.text == "v1")
      #expect(answer.cacheStatus.forwardStatus == 304)
      #expect(origin.requestCount("/a") == 2)
      origin.stop()
      expect(try proxy.get("/a"), "", status: 504, .failed)
      #expect(try proxy.counts("r") == .init(hits: 1, misses: 1, errors: 1))
    }
  }
}
