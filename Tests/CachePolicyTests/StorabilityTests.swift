import CachePolicy
import Testing

/// The decision on one exchange; everything that is not said is a plain storable GET.
struct StorabilityCase: Sendable, CustomTestStringConvertible {
  var name: String
  var expected: NotStoredReason?
  var method = Method.get
  var request: [(String, String)] = []
  var status: UInt16 = 200
  var response: [(String, String)] = [("Cache-Control", "max-age=60")]
  var policy = Policy(strategy: .cacheFirst)
  var identity = Storability.KeyedIdentity.none
  var testDescription: String { name }

  init(
    _ name: String, _ expected: NotStoredReason?,
    _ change: (inout StorabilityCase) -> Void = { _ in }
  ) {
    self.name = name
    self.expected = expected
    change(&self)
  }

  var decision: NotStoredReason? {
    let (request, response) = (Fields(request), Fields(response))
    let directives = ResponseDirectives(response)
    return Storability.decide(
      method: method, request: request, requestDirectives: RequestDirectives(request),
      status: status, response: response, responseDirectives: directives, policy: policy,
      metadata: metadata(status, self.response), identity: identity)
  }
}

private func cacheControl(_ value: String) -> [(String, String)] { [("Cache-Control", value)] }

struct StorabilityTests {
  static let messages: [StorabilityCase] = [
    .init("a plain answer", nil),
    .init("HEAD", .method) { $0.method = .head },
    .init("POST", .method) { $0.method = .post },
    .init("an unknown method", .method) { $0.method = .other },
    .init("network-only", .strategy) { $0.policy.strategy = .networkOnly },
    .init("cache-only", .strategy) { $0.policy.strategy = .cacheOnly },
    .init("request no-store", .requestNoStore) { $0.request = cacheControl("no-store") },
    .init("request no-store is not the origin's word", .requestNoStore) {
      $0.request = cacheControl("no-store")
      $0.policy.ignoreOrigin = .noStore
    },
    .init("request no-cache stores", nil) { $0.request = cacheControl("no-cache") },
    .init("no-store", .noStore) { $0.response = cacheControl("max-age=60, no-store") },
    .init("no-store overruled", nil) {
      $0.response = cacheControl("max-age=60, no-store")
      $0.policy.ignoreOrigin = .noStore
    },
    .init("another word overruled", .noStore) {
      $0.response = cacheControl("max-age=60, no-store")
      $0.policy.ignoreOrigin = [.private, .noCache]
    },
    .init("must-understand beside no-store", nil) {
      $0.response = cacheControl("max-age=60, no-store, must-understand")
    },
    .init("must-understand of a status not understood", .status) {
      $0.status = 299
      $0.response = cacheControl("max-age=60, must-understand")
    },
    .init("must-understand beside no-store of a status not understood", .status) {
      $0.status = 599
      $0.response = cacheControl("max-age=60, no-store, must-understand")
    },
    .init("private", .private) { $0.response = cacheControl("max-age=60, private") },
    .init("private overruled", nil) {
      $0.response = cacheControl("max-age=60, private")
      $0.policy.ignoreOrigin = .private
    },
    .init("private of one user", nil) {
      $0.response = cacheControl("max-age=60, private")
      $0.identity = .other
    },
    .init("private with names", nil) {
      $0.response = cacheControl("max-age=60, private=\"x-a\"")
    },
    .init("private with names that matter", .private) {
      $0.response = cacheControl("max-age=60, private=\"etag\"")
    },
    .init("Authorization", .authorization) { $0.request = [("Authorization", "x")] },
    .init("Authorization and a ttl of the route", .authorization) {
      $0.request = [("Authorization", "x")]
      $0.policy.timeToLive = .fixed(milliseconds: 1000)
    },
    .init("Authorization and public", nil) {
      $0.request = [("Authorization", "x")]
      $0.response = cacheControl("max-age=60, public")
    },
    .init("Authorization and s-maxage", nil) {
      $0.request = [("Authorization", "x")]
      $0.response = cacheControl("s-maxage=60")
    },
    .init("Authorization and must-revalidate", nil) {
      $0.request = [("Authorization", "x")]
      $0.response = cacheControl("max-age=60, must-revalidate")
    },
    .init("Authorization and proxy-revalidate", .authorization) {
      $0.request = [("Authorization", "x")]
      $0.response = cacheControl("max-age=60, proxy-revalidate")
    },
    .init("Authorization overruled", nil) {
      $0.request = [("Authorization", "x")]
      $0.policy.ignoreOrigin = .authorization
    },
    .init("Authorization as the identity", nil) {
      $0.request = [("Authorization", "x")]
      $0.identity = .authorization
    },
    .init("Authorization beside another identity", .authorization) {
      $0.request = [("Authorization", "x")]
      $0.identity = .other
    },
    .init("Set-Cookie", .setCookie) { $0.response.append(("Set-Cookie", "a=b")) },
    .init("Set-Cookie of one user", .setCookie) {
      $0.response.append(("Set-Cookie", "a=b"))
      $0.identity = .authorization
    },
    .init("Set-Cookie that private names", nil) {
      $0.response = cacheControl("max-age=60, private=\"Set-Cookie\"") + [("Set-Cookie", "a=b")]
    },
    .init("Set-Cookie that no-cache names among others", nil) {
      $0.response =
        cacheControl("max-age=60, no-cache=\"x-a, set-cookie\"") + [("Set-Cookie", "a=b")]
    },
    .init("Set-Cookie beside another private field", .setCookie) {
      $0.response = cacheControl("max-age=60, private=\"x-a\"") + [("Set-Cookie", "a=b")]
    },
    .init("Set-Cookie that private names without quotes", .private) {
      $0.response = cacheControl("max-age=60, private=set-cookie") + [("Set-Cookie", "a=b")]
    },
    .init("Set-Cookie overruled", nil) {
      $0.response.append(("Set-Cookie", "a=b"))
      $0.policy.ignoreOrigin = .setCookie
    },
    .init("Vary: *", .varyAny) { $0.response.append(("Vary", "accept, *")) },
    .init("Vary: * overruled", nil) {
      $0.response.append(("Vary", "*"))
      $0.policy.ignoreOrigin = .vary
    },
    .init("Vary", nil) { $0.response.append(("Vary", "accept")) },
    .init("an event stream", .eventStream) {
      $0.response.append(("Content-Type", "Text/Event-Stream ; charset=utf-8"))
    },
    .init("almost an event stream", nil) {
      $0.response.append(("Content-Type", "text/event-stream2"))
    },
  ]

  static let statuses: [StorabilityCase] = [
    .init("103", .status) { $0.status = 103 },
    .init("206", .partialContent) { $0.status = 206 },
    .init("304", .status) { $0.status = 304 },
    .init("407", .status) { $0.status = 407 },
    .init("412", .status) { $0.status = 412 },
    .init("416", .range) {
      $0.status = 416
      $0.policy.negative = [.init(match: .statusClass(4), lifetimeMilliseconds: 1000)]
    },
    .init("600", .status) { $0.status = 600 },
    .init("an unknown one with a lifetime", nil) { $0.status = 299 },
    .init("an unknown error with a lifetime", nil) { $0.status = 499 },
    .init("the last one with a lifetime", nil) { $0.status = 599 },
    .init("an unknown one without a word", .status) {
      $0.status = 299
      $0.response = [("Last-Modified", date(0)), ("ETag", "\"x\"")]
    },
    .init("an unknown one that is public", nil) {
      $0.status = 299
      $0.response = [("Cache-Control", "public"), ("Last-Modified", date(0))]
    },
    .init("an unknown one with a ttl of the route", .status) {
      $0.status = 299
      $0.response = []
      $0.policy.timeToLive = .fixed(milliseconds: 1000)
    },
    .init("302 without a lifetime", .status) {
      $0.status = 302
      $0.response = [("ETag", "\"x\"")]
    },
    .init("302 with a ttl of the route", nil) {
      $0.status = 302
      $0.response = []
      $0.policy.timeToLive = .fixed(milliseconds: 1000)
    },
    .init("302 with a default of the route", nil) {
      $0.status = 302
      $0.response = []
      $0.policy.timeToLive = .clamped(
        defaultMilliseconds: 1000, minMilliseconds: nil, maxMilliseconds: nil)
    },
    .init("302 with a lifetime", nil) { $0.status = 302 },
    .init("302 that is public", nil) {
      $0.status = 302
      $0.response = [("Cache-Control", "public"), ("ETag", "\"x\"")]
    },
    .init("404 without a lifetime", .status) {
      $0.status = 404
      $0.response = [("ETag", "\"x\"")]
    },
    .init("404 with a lifetime that is guessed", nil) {
      $0.status = 404
      $0.response = [("Last-Modified", date(0))]
    },
    .init("404 with a guess on a route with a ttl", .status) {
      $0.status = 404
      $0.response = [("Last-Modified", date(0))]
      $0.policy.timeToLive = .fixed(milliseconds: 1000)
    },
    .init("404 with a guess on a route with a default ttl", .status) {
      $0.status = 404
      $0.response = [("Last-Modified", date(0))]
      $0.policy.timeToLive = .clamped(
        defaultMilliseconds: 1000, minMilliseconds: nil, maxMilliseconds: nil)
    },
    .init("503 with a last change, which is not guessed", .status) {
      $0.status = 503
      $0.response = [("Last-Modified", date(0))]
    },
    .init("503 that is public, with a guess", nil) {
      $0.status = 503
      $0.response = [("Last-Modified", date(0)), ("Cache-Control", "public")]
    },
    .init("503 that is public, without a last change", .status) {
      $0.status = 503
      $0.response = [("Cache-Control", "public")]
    },
    .init("404 with a ttl of the route", .status) {
      $0.status = 404
      $0.response = []
      $0.policy.timeToLive = .fixed(milliseconds: 1000)
    },
    .init("404 by its own words", nil) { $0.status = 404 },
    .init("404 that says 0", .noLifetime) {
      $0.status = 404
      $0.response = [("Cache-Control", "max-age=0"), ("ETag", "\"x\"")]
    },
    .init("404 by negative", nil) {
      $0.status = 404
      $0.response = []
      $0.policy.negative = [.init(match: .status(404), lifetimeMilliseconds: 1000)]
    },
    .init("500 by a class", nil) {
      $0.status = 500
      $0.response = []
      $0.policy.negative = [.init(match: .statusClass(5), lifetimeMilliseconds: 1000)]
    },
    .init("500 under network-first", .status) {
      $0.status = 500
      $0.response = []
      $0.policy.strategy = .networkFirst
    },
    .init("negative of 0 takes an error's own words away", .noLifetime) {
      $0.status = 404
      $0.policy.negative = [.init(match: .status(404), lifetimeMilliseconds: 0)]
    },
  ]

  static let useless: [StorabilityCase] = [
    .init("nothing at all", .noLifetime) { $0.response = [] },
    .init("0 and no validator", .noLifetime) { $0.response = cacheControl("max-age=0") },
    .init("0 and a validator", nil) {
      $0.response = [("Cache-Control", "max-age=0"), ("ETag", "\"x\"")]
    },
    .init("too old already", .noLifetime) { $0.response.append(("Age", "60")) },
    .init("too old already, but the route's ttl", nil) {
      $0.response.append(("Age", "60"))
      $0.policy.timeToLive = .fixed(milliseconds: 1000)
    },
    .init("a window of the route", nil) {
      $0.response = []
      $0.policy.staleIfErrorMilliseconds = 1
    },
    .init("a window of the origin", nil) {
      $0.response = cacheControl("max-age=0, stale-while-revalidate=1")
    },
    .init("a window that is forbidden", .noLifetime) {
      $0.response = cacheControl("max-age=0, must-revalidate")
      $0.policy.staleIfErrorMilliseconds = 1000
    },
    .init("no-cache and no validator", .noLifetime) {
      $0.response = cacheControl("max-age=60, no-cache")
    },
    .init("no-cache and a validator", nil) {
      $0.response = [("Cache-Control", "no-cache"), ("Last-Modified", date(0))]
    },
    .init("network-first keeps anything", nil) {
      $0.response = []
      $0.policy.strategy = .networkFirst
    },
    .init("network-and-store keeps anything", nil) {
      $0.response = []
      $0.policy.strategy = .networkAndStore
    },
    .init("a guess", nil) { $0.response = [("Last-Modified", date(0))] },
  ]

  @Test(arguments: messages)
  func messagesForbidOrAllow(_ row: StorabilityCase) { #expect(row.decision == row.expected) }

  @Test(arguments: statuses)
  func statusesHaveRulesOfTheirOwn(_ row: StorabilityCase) {
    #expect(row.decision == row.expected)
  }

  @Test(arguments: useless)
  func whatCouldNeverServeIsNotStored(_ row: StorabilityCase) {
    #expect(row.decision == row.expected)
  }

  @Test func theStoredHeadLeavesOutWhatIsNotForOthers() {
    let response = Fields([
      ("Date", "x"), ("Connection", "x-hop"), ("X-Hop", "1"), ("Age", "5"), ("Set-Cookie", "a=b"),
      ("X-User", "me"), ("Cache-Control", "max-age=5, private=\"x-user\""), ("X-Kept", "1"),
    ])
    let stored = Storability.storedFields(of: response, directives: ResponseDirectives(response))
    #expect(
      stored
        == Fields([
          ("Date", "x"), ("Set-Cookie", "a=b"),
          ("Cache-Control", "max-age=5, private=\"x-user\""), ("X-Kept", "1"),
        ]))
  }
}
