import CachePolicy
import Testing

@testable import Proxy

/// The tests of policies.json: each expectation holds where it should, and fails where it should.
@Suite struct PolicyTestRunnerTests {
  private static let routes = """
    { name: 'fixed', match: '/fixed', strategy: 'cache-first', ttl: '15m', tags: ['a', 'b'],
      negative: { '404': '30s' }, key: { query: ['x'], sortQuery: true } },
    { name: 'clamped', match: '/clamped', strategy: 'cache-first',
      ttl: { default: '1m', min: '10s', max: '2m' } },
    { name: 'bounded', match: '/bounded', strategy: 'cache-first', ttl: { max: '2m' } },
    { name: 'origin', match: '/origin', strategy: 'network-first' },
    { name: 'read', match: '/read', strategy: 'cache-only', ttl: '1m' },
    { name: 'user', match: '/user', strategy: 'cache-first', ttl: '1m',
      perUser: 'header:Authorization' },
    { name: 'choice', match: '/choice', strategy: 'cache-first', ttl: '1m',
      clientStrategies: ['network-only'] },
    { name: 'tagged', match: '/tagged/{id}', strategy: 'cache-first', tags: ['t:{id}'], ttl: '1m' },
    { name: 'moved', match: '/api/**', stripPrefix: '/api', addPrefix: '/v2' },
    { name: 'small', match: '/small', strategy: 'cache-first', ttl: '1m', maxEntrySize: '1KiB' },
    { name: 'loud', match: '/loud', strategy: 'cache-first', ttl: '1m',
      ignoreOrigin: ['no-store'] },
    { name: 'host', match: '//other.example/**', strategy: 'cache-first', ttl: '1m' },
    """

  /// A test's members, and what is to be said of it; nothing where it passes.
  struct Row: Sendable, CustomTestStringConvertible {
    var test: String
    var said: [String]
    var testDescription: String { test }

    init(_ test: String, _ said: String...) {
      self.test = test
      self.said = said
    }
  }

  private func results(_ test: String, defaults: String = "") throws -> [PolicyTestResult] {
    let text = """
      {version: 1, listen: '127.0.0.1:8080', upstreams: {a: {url: 'http://a.example/base'}},
       defaults: {upstream: 'a', \(defaults)}, routes: [\(Self.routes)], tests: [{\(test)}]}
      """
    let result = ConfigurationLoader.load(
      text: text, file: "p.json", environment: ["WORD": "hunter2"])
    guard case .loaded(let configuration, _) = result else {
      Issue.record("\(result)")
      return []
    }
    return PolicyTestRunner.run(configuration)
  }

  private func said(_ test: String) throws -> [String] {
    let results = try results(test)
    try #require(results.count == 1)
    #expect(results[0].hasPassed == results[0].diagnostics(file: "p.json").isEmpty)
    return results[0].diagnostics(file: "p.json").map(\.message)
  }

  @Test(
    arguments: [
      Row("request: 'GET /fixed', expect: {route: 'fixed'}"),
      Row(
        "request: 'GET /fixed', expect: {route: 'origin'}",
        "GET /fixed: route: expected \"origin\", got \"fixed\""),
      Row("request: 'GET /nowhere', expect: {route: '(default)', strategy: 'network-only'}"),
      Row(
        "request: 'GET /nowhere', expect: {route: 'fixed', strategy: 'cache-first'}",
        "GET /nowhere: route: expected \"fixed\", got \"(default)\"",
        "GET /nowhere: strategy: expected cache-first, got network-only"),
      Row("request: 'GET http://other.example/x', expect: {route: 'host'}"),
      Row("request: 'GET /x', headers: {Host: 'OTHER.example:80'}, expect: {route: 'host'}"),
      Row("request: 'GET //fixed', expect: {route: 'fixed'}"),
      Row("request: 'GET /a/../fixed', expect: {route: 'fixed'}"),
      Row("request: 'GET /fixed', expect: {strategy: 'cache-first'}"),
      Row(
        "request: 'GET /choice', headers: {'Larder-Strategy': 'network-only'}, "
          + "expect: {strategy: 'network-only', stores: false}"),
      Row(
        "request: 'GET /choice', headers: {'Larder-Strategy': 'cache-only'}, "
          + "expect: {strategy: 'cache-first', stores: true}"),
      Row(
        "request: 'GET /fixed', headers: {Authorization: 'a b', Authorisation: 'c'}, "
          + "expect: {stores: true}"),
      Row(
        "request: 'GET /fixed', headers: {'Transfer-Encoding': 'gzip, chunked'}, expect: {stores: true}",
        "GET /fixed: the request is refused with 501: transfer coding not supported"),
    ])
  func requestTakesItsRoute(row: Row) throws { #expect(try said(row.test) == row.said) }

  @Test(
    arguments: [
      Row("request: 'GET /fixed', expect: {ttl: '15m'}"),
      Row(
        "request: 'GET /fixed', expect: {ttl: '30d'}", "GET /fixed: ttl: expected 30d, got 15m"),
      Row("request: 'GET /clamped', expect: {ttl: '1m'}"),
      Row(
        "request: 'GET /bounded', expect: {ttl: '2m'}",
        "GET /bounded: ttl: expected 2m, got by the origin"),
      Row(
        "request: 'GET /origin', expect: {ttl: '1m'}",
        "GET /origin: ttl: expected 1m, got by the origin"),
      Row(
        "request: 'GET /nowhere', expect: {ttl: '1m'}",
        "GET /nowhere: ttl: expected 1m, got none (network-only)"),
      Row("request: 'GET /read', expect: {ttl: '1m'}"),
      Row("request: 'GET /fixed', given: {status: 200}, expect: {ttl: '15m'}"),
      Row("request: 'GET /fixed', given: {status: 404}, expect: {ttl: '30s'}"),
      Row(
        "request: 'GET /fixed', given: {status: 500}, expect: {ttl: '15m'}",
        "GET /fixed: ttl: expected 15m, got none (not stored: status)"),
      Row(
        "request: 'GET /fixed', given: {headers: {'Cache-Control': 'max-age=5'}}, "
          + "expect: {ttl: '15m'}"),
      Row(
        "request: 'GET /clamped', given: {headers: {'Cache-Control': 'max-age=5'}}, "
          + "expect: {ttl: '10s'}"),
      Row(
        "request: 'GET /clamped', given: {headers: {'Cache-Control': 'max-age=500'}}, "
          + "expect: {ttl: '2m'}"),
      Row(
        "request: 'GET /origin', given: {headers: {'Cache-Control': 'max-age=5, s-maxage=7'}}, "
          + "expect: {ttl: '7s'}"),
      Row(
        "request: 'GET /origin', given: {headers: {'Cache-Control': 'max-age=5', "
          + "'CDN-Cache-Control': 'max-age=9'}}, expect: {ttl: '9s'}"),
      Row(
        "request: 'GET /origin', given: {headers: {Date: 'Sun, 06 Nov 1994 08:49:37 GMT', "
          + "Expires: 'Sun, 06 Nov 1994 09:49:37 GMT'}}, expect: {ttl: '1h'}"),
      Row(
        "request: 'GET /origin', given: {headers: {Expires: 'Sun, 06 Nov 2050 09:49:37 GMT'}}, "
          + "expect: {ttl: '1h'}",
        "GET /origin: what comes of the given answer depends on the time it comes at: "
          + "give it a Date"),
      Row(
        "request: 'GET /origin', given: {headers: {Expires: '0', ETag: '\"a\"'}}, "
          + "expect: {ttl: '0s'}"),
      Row(
        "request: 'GET /fixed', given: {headers: {Expires: 'Sun, 06 Nov 2050 09:49:37 GMT'}}, "
          + "expect: {ttl: '15m'}"),
      Row(
        "request: 'GET /origin', given: {headers: {Date: 'Sun, 06 Nov 1994 08:49:37 GMT', "
          + "'Last-Modified': 'Sun, 06 Nov 1994 07:09:37 GMT'}}, expect: {ttl: '10m'}"),
    ])
  func lifetimeIsCompared(row: Row) throws { #expect(try said(row.test) == row.said) }

  @Test(
    arguments: [
      ("fixed", "200", "", nil), ("fixed", "404", "", nil), ("fixed", "410", "", "status"),
      ("fixed", "500", "", "status"), ("origin", "500", "Cache-Control: max-age=1", nil),
      ("fixed", "200", "Cache-Control: no-store", "no-store"),
      ("loud", "200", "Cache-Control: no-store", nil),
      ("fixed", "200", "Cache-Control: private", "private"),
      ("fixed", "200", "Set-Cookie: a=b", "set-cookie"),
      ("fixed", "200", "Vary: *", "vary-any"), ("loud", "200", "Vary: Accept", nil),
      ("fixed", "200", "Vary: Forwarded", "vary-any"),
      ("fixed", "200", "Content-Type: text/event-stream", "event-stream"),
      ("fixed", "206", "Content-Range: bytes 0-1/2", "partial-content"),
      ("small", "200", "Content-Length: 1024", nil),
      ("small", "200", "Content-Length: 1025", "too-large"),
      ("fixed", "200", "Surrogate-Key: \(String(repeating: "x", count: 300))", "unusable-tags"),
      ("read", "200", "", "strategy"), ("moved", "200", "", "strategy"),
      ("user", "200", "", "no-identity"),
    ] as [(String, String, String, String?)])
  func givenAnswerIsStoredOrNot(
    route: String, status: String, header: String, reason: String?
  ) throws {
    let name = header.prefix { $0 != ":" }
    let value = header.drop { $0 != ":" }.dropFirst(2)
    let headers = header.isEmpty ? "" : "'\(name)': '\(value)'"
    let path = route == "moved" ? "/api" : "/\(route)"
    let test = "request: 'GET \(path)', given: {status: \(status), headers: {\(headers)}}, "
    #expect(try said(test + "expect: {stores: \(reason == nil)}").isEmpty)
    let actual = reason.map { "false (\($0))" } ?? "true"
    #expect(
      try said(test + "expect: {stores: \(reason != nil)}")
        == ["GET \(path): stores: expected \(reason != nil), got \(actual)"])
  }

  @Test(
    arguments: [
      ("GET /fixed", "", nil), ("HEAD /fixed", "", "method"), ("POST /fixed", "", "method"),
      ("GET /nowhere", "", "strategy"), ("GET /read", "", "strategy"),
      ("GET /fixed", "Cache-Control: no-store", "request-no-store"),
      ("GET /fixed", "Range: bytes=0-1", "range"), ("GET /user", "", "no-identity"),
      ("GET /user", "Authorization: Bearer a", nil), ("GET /user", "Authorization:", "no-identity"),
      ("GET /fixed", "Authorization: Bearer a", nil), ("GET /fixed", "If-Match: *", "strategy"),
    ] as [(String, String, String?)])
  func requestMayHaveItsAnswerStoredOrNot(request: String, header: String, reason: String?) throws {
    let name = header.prefix { $0 != ":" }
    let value = header.drop { $0 != ":" }.dropFirst(2)
    let headers = header.isEmpty ? "" : "'\(name)': '\(value)'"
    let test = "request: '\(request)', headers: {\(headers)}, "
    #expect(try said(test + "expect: {stores: \(reason == nil)}").isEmpty)
    let actual = reason.map { "false (\($0))" } ?? "true"
    #expect(
      try said(test + "expect: {stores: \(reason != nil)}")
        == ["\(request): stores: expected \(reason != nil), got \(actual)"])
  }

  /// An authorized answer that everybody's key would hold needs the origin's word.
  @Test func givenAnswerToCredentialsIsStoredWhereItSaysSo() throws {
    let request = "request: 'GET /fixed', headers: {Authorization: 'Bearer a'}, "
    #expect(
      try said(request + "given: {status: 200}, expect: {stores: true}")
        == ["GET /fixed: stores: expected true, got false (authorization)"])
    let given = "given: {headers: {'Cache-Control': 'public'}}, "
    #expect(try said(request + given + "expect: {stores: true}").isEmpty)
  }

  @Test(
    arguments: [
      Row("request: 'GET /fixed?y=1&x=2&x=1', expect: {key: 'x=2&x=1'}"),
      Row(
        "request: 'GET /fixed?y=1&x=2', expect: {key: 'y=1&x=2'}",
        "GET /fixed?y=1&x=2: key: expected \"y=1&x=2\", got \"x=2\""),
      Row("request: 'GET /fixed?y=1', expect: {key: ''}"),
      Row("request: 'GET /origin?', expect: {key: ''}"),
      Row("request: 'GET /origin?b&a', expect: {key: 'b&a'}"),
      Row("request: 'GET /nowhere?a', expect: {key: ''}"),
      Row(
        "request: 'GET /nowhere?a', expect: {key: 'a'}",
        "GET /nowhere?a: key: expected \"a\", got none (no copies are kept)"),
      Row("request: 'GET /fixed', expect: {upstreamUrl: 'http://a.example/base/fixed'}"),
      Row("request: 'GET /api/x?y', expect: {upstreamUrl: 'http://a.example/base/v2/x?y'}"),
      Row(
        "request: 'GET /api/x', expect: {upstreamUrl: 'http://a.example/x'}",
        "GET /api/x: upstreamUrl: expected \"http://a.example/x\", "
          + "got \"http://a.example/base/v2/x\""),
      Row(
        "request: 'GET /user', headers: {Authorization: 'Bearer a'}, expect: {perUser: true}"),
      Row(
        "request: 'GET /user', expect: {perUser: false}",
        "GET /user: perUser: expected false, got true"),
      Row("request: 'GET /user', expect: {perUser: true, stores: false}"),
      Row("request: 'GET /fixed', expect: {perUser: false}"),
      Row("request: 'GET /fixed', expect: {tags: ['b', 'a']}"),
      Row("request: 'GET /tagged/7', expect: {tags: ['t:7']}"),
      Row(
        "request: 'GET /tagged/7', given: {headers: {'Surrogate-Key': 'x y'}}, "
          + "expect: {tags: ['x', 't:7', 'y']}"),
      Row(
        "request: 'GET /tagged/7', expect: {tags: ['t:8']}",
        "GET /tagged/7: tags: expected [\"t:8\"], got [\"t:7\"]"),
      Row("request: 'GET /origin', expect: {tags: []}"),
      Row(
        "request: 'GET /fixed?${WORD}', expect: {key: '${WORD}', upstreamUrl: 'http://x'}",
        "GET /fixed?${WORD}: key: expected \"${WORD}\", got another (not shown: the request names "
          + "the environment)",
        "GET /fixed?${WORD}: upstreamUrl: expected \"http://x\", got another (not shown: the "
          + "request names the environment)"),
    ])
  func keyOriginUserAndTagsAreCompared(row: Row) throws {
    #expect(try said(row.test) == row.said)
    #expect(!row.said.joined().contains("hunter2"))
  }

  @Test func requestThatNothingTakesIsOfNoRoute() throws {
    let text = """
      {version: 1, upstreams: {a: {url: 'http://a'}}, tests: [
        {request: 'GET /x', expect: {route: '(none)', stores: false, key: '', perUser: false,
          tags: []}},
        {request: 'GET /x', expect: {strategy: 'cache-first', ttl: '1m', upstreamUrl: 'http://a/x',
          stores: true}}]}
      """
    let result = ConfigurationLoader.load(text: text, file: "p.json", environment: [:])
    guard case .loaded(let configuration, _) = result else {
      Issue.record("\(result)")
      return
    }
    let results = PolicyTestRunner.run(configuration)
    #expect(results.map(\.hasPassed) == [true, false])
    #expect(
      results[1].diagnostics(file: "p.json").map(\.description) == [
        "p.json:4:3: tests[1]: GET /x: strategy: expected cache-first, got none",
        "p.json:4:3: tests[1]: GET /x: ttl: expected 1m, got none",
        "p.json:4:3: tests[1]: GET /x: stores: expected true, got false",
        "p.json:4:3: tests[1]: GET /x: upstreamUrl: expected \"http://a/x\", got none",
      ])
  }

  @Test func identityOfACookieIsOneToo() throws {
    let found = try results(
      "request: 'GET /x', headers: {Cookie: 'b=1; sid=2'}, expect: {perUser: true, stores: true}",
      defaults: "strategy: 'cache-first', perUser: 'cookie:sid'")
    #expect(found.map(\.mismatches) == [[]])
  }
}
