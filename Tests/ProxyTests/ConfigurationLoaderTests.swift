import CachePolicy
import Foundation
import Testing

@testable import Proxy

private func loaded(
  _ text: String, environment: [String: String] = [:]
) throws -> Configuration {
  let result = ConfigurationLoader.load(text: text, file: "p.json", environment: environment)
  guard case .loaded(let configuration, _) = result else {
    Issue.record("\(result)")
    throw Refused()
  }
  return configuration
}

private struct Refused: Error {}

@Suite struct ConfigurationLoaderTests {
  @Test func smallestFileTakesEveryDefault() throws {
    let found = try loaded("{version: 1, upstreams: {a: {url: 'http://a'}}}")
    #expect(found.listen == [.init(host: "127.0.0.1", port: 8080)])
    #expect(found.loops == 0)
    #expect(found.admin == Configuration.Admin())
    #expect(found.store == Configuration.Store())
    #expect(found.upstreams == [Upstream(name: "a", host: "a", port: 80)])
    #expect(found.limits == Limits())
    #expect(found.defaults == Configuration.Defaults())
    #expect(found.routes.isEmpty)
  }

  @Test func everyFieldReachesItsPlace() throws {
    let found = try loaded(
      """
      {
        $schema: "x", version: 1, listen: ["0.0.0.0:1", "[::1]:2"], loops: 3,
        admin: { listen: "localhost:4", token: "${T}" },
        store: { path: "p", maxSize: "5MiB", maxEntrySize: "6KiB" },
        upstreams: {
          a: {
            url: "HTTPS://Api.Example.com:444/v1/", connectTimeout: "7ms", firstByteTimeout: "8ms",
            totalTimeout: "9ms", retries: 2, hostHeader: "client", proxy: "http://q:3128",
          },
          b: { url: "http://[::1]/", proxy: "none" },
        },
        limits: {
          connections: 10, requestLineBytes: "1KiB", headerBytes: "2KiB", headerFields: 20,
          headerTimeout: "1s", bodyStall: "2s", idle: "3s", drain: "4s",
          requestBodyBufferBytes: "65KiB", responseBufferBytes: "66KiB", rescueHoldBytes: "5KiB",
          fills: 11, fillWaiters: 12, upstreamConnections: 13,
        },
        defaults: { upstream: "b", ttl: "1m", keep: "1d" },
        routes: [
          {
            name: "r", match: "GET //h/x/{y}", upstream: "a", strategy: "network-first",
            ttl: { default: "1s", min: "0s", max: "2s" }, staleWhileRevalidate: "3s",
            staleIfError: "4s", ignoreOrigin: ["no-store", "vary"],
            negative: { "404": "5s", "5xx": "6s" }, deadline: "7s", keep: "8s",
            maxEntrySize: "1KiB", forwardHeaders: ["X-Original-URL"],
          },
          { name: "s", match: "/s", strategy: "cache-first" },
          { name: "t", match: "/t" },
        ],
      }
      """, environment: ["T": "secret"])
    #expect(found.listen.map(\.description) == ["0.0.0.0:1", "[::1]:2"])
    #expect(found.loops == 3)
    #expect(found.admin == .init(listen: [.init(host: "127.0.0.1", port: 4)], token: "secret"))
    #expect(found.store == .init(path: "p", maxSizeBytes: 5 << 20, maxEntrySizeBytes: 6 << 10))
    let first = Upstream(
      name: "a", scheme: .https, host: "api.example.com", port: 444, basePath: "/v1",
      connectTimeoutMilliseconds: 7, firstByteTimeoutMilliseconds: 8, totalTimeoutMilliseconds: 9,
      retries: 2, hostHeader: .client, proxy: "http://q:3128")
    #expect(found.upstreams == [first, Upstream(name: "b", host: "::1", port: 80)])
    var limits = Limits()
    limits.connections = 10
    (limits.requestLineBytes, limits.headerBytes, limits.headerFields) = (1_024, 2_048, 20)
    (limits.headerTimeoutMilliseconds, limits.bodyStallMilliseconds) = (1_000, 2_000)
    (limits.idleMilliseconds, limits.drainMilliseconds) = (3_000, 4_000)
    (limits.requestBodyBufferBytes, limits.responseBufferBytes) = (65 << 10, 66 << 10)
    (limits.rescueHoldBytes, limits.fills, limits.fillWaiters) = (5 << 10, 11, 12)
    limits.upstreamConnections = 13
    #expect(found.limits == limits)
    #expect(found.defaults == .init(upstreamIndex: 1, policy: Policy()))
    let policy = Policy(
      strategy: .networkFirst,
      timeToLive: .clamped(
        defaultMilliseconds: 1_000, minMilliseconds: 0, maxMilliseconds: 2_000),
      staleWhileRevalidateMilliseconds: 3_000, staleIfErrorMilliseconds: 4_000,
      ignoreOrigin: [.noStore, .vary],
      negative: [
        .init(match: .status(404), lifetimeMilliseconds: 5_000),
        .init(match: .statusClass(5), lifetimeMilliseconds: 6_000),
      ], deadlineMilliseconds: 7_000, keepMilliseconds: 8_000, maxEntrySizeBytes: 1_024)
    #expect(
      found.routes[0]
        == Route(
          name: "r", pattern: try RoutePattern(parsing: "GET //h/x/{y}"), upstreamIndex: 0,
          policy: policy,
          options: RouteOptions(forwardHeaders: ["x-original-url"])))
    // What the route does not say comes from defaults, but for the strategy.
    #expect(
      found.routes[1].policy
        == Policy(
          strategy: .cacheFirst, timeToLive: .fixed(milliseconds: 60_000),
          keepMilliseconds: 86_400_000))
    #expect(found.routes[1].upstreamIndex == 1)
    #expect(found.routes[2].policy == Policy(strategy: .networkOnly))
  }

  @Test func everyFieldOfARouteReachesItsPlace() throws {
    let found = try loaded(
      """
      {
        version: 1, publicUrl: "http://Apps.example.com:8080/",
        upstreams: {
          a: {
            url: "http://a", targetedCacheControl: ["A-Control", "CDN-Cache-Control"],
            maxConcurrent: 14, maxQueue: 15, queueTimeout: "16ms",
          },
        },
        defaults: { upstream: "a" },
        routes: [
          {
            name: "r", match: "/v1/x/{y}", strategy: "cache-first",
            key: {
              query: ["p", "q"], ignoreQuery: ["utm_*"], sortQuery: true, headers: ["Accept"],
              cookies: ["region"],
            },
            perUser: "header:Authorization", tags: ["t:{y}"],
            invalidates: ["tag:u:{y}", "/z/{y}/**"], notify: true,
            clientMay: ["max-age", "no-cache"], clientStrategies: ["network-first", "cache-only"],
            maxVariants: 7, range: "fetch-whole",
            whenAbandoned: { finishBelow: "2MiB" },
            stripPrefix: "/v1", addPrefix: "/v%32/%7e",
          },
          {
            name: "s", match: "/s/**", strategy: "cache-first", key: { query: "none" },
            warm: ["/s/1", "http://b/s/2?p=1"],
          },
        ],
        tests: [
          {
            request: "POST //v1/x/1?p=2", headers: { A: "b" },
            given: { status: 404, headers: { Age: "1" } },
            expect: {
              route: "r", strategy: "cache-first", ttl: "1m", stores: false, key: "p=2",
              upstreamUrl: "http://a/v2/x/1", perUser: true, tags: ["t:1"],
            },
          },
        ],
      }
      """)
    #expect(found.publicAuthority == "apps.example.com:8080")
    let upstream = found.upstreams[0]
    #expect(upstream.targetedCacheControl == ["A-Control", "CDN-Cache-Control"])
    #expect(upstream.maxConcurrent == 14 && upstream.maxQueue == 15)
    #expect(upstream.queueTimeoutMilliseconds == 16)
    let options = RouteOptions(
      key: KeyRecipe(
        query: .names(["p", "q"]), ignoreQuery: ["utm_*"], sortQuery: true, headers: ["accept"],
        cookies: ["region"]),
      perUser: .header("authorization"), tags: [try TagTemplate(parsing: "t:{y}")],
      invalidates: [
        try InvalidationTarget(parsing: "tag:u:{y}"), try InvalidationTarget(parsing: "/z/{y}/**"),
      ],
      notify: true, clientStrategies: [.networkFirst, .cacheOnly], stripPrefix: "/v1",
      addPrefix: "/v2/~")
    #expect(found.routes[0].options == options)
    #expect(
      found.routes[1].options
        == RouteOptions(
          key: KeyRecipe(query: .none), warm: ["/s/1", "http://b/s/2?p=1"]))
    #expect(
      found.routes[0].policy
        == Policy(
          strategy: .cacheFirst, maxVariants: 7, clientMay: [.noCache, .maxAge],
          range: .fetchWhole,
          whenAbandoned: .finishWhere(belowBytes: 2 << 20, fromPercent: 50)))
    var test = PolicyTest(
      path: "tests[0]", line: 30, column: 5, method: "POST", target: "//v1/x/1?p=2",
      headers: [.init(name: "A", value: "b")],
      given: .init(status: 404, headers: [.init(name: "Age", value: "1")]))
    test.expect.route = "r"
    test.expect.strategy = .cacheFirst
    test.expect.timeToLiveMilliseconds = 60_000
    test.expect.stores = false
    test.expect.key = "p=2"
    test.expect.upstreamURL = "http://a/v2/x/1"
    test.expect.perUser = true
    test.expect.tags = ["t:1"]
    #expect(found.tests == [test])
  }

  /// Each field of the table is set by the tests above: a new row must come with a line there.
  @Test func tableHasNoFieldThatIsNotTested() {
    let counts = FieldTable.sections.filter { $0.path != "defaults" }.map(\.fields.count)
    #expect(counts == [12, 2, 3, 11, 14, 26, 5, 4, 2, 8])
  }

  /// What a route does not say comes from defaults; some of it never does.
  @Test func routesTakeOverWhatHasAMeaningForThem() throws {
    let found = try loaded(
      """
      {
        version: 1, upstreams: { a: { url: "http://a" } },
        defaults: {
          upstream: "a", ttl: "1m", deadline: "1s", perUser: "cookie:sid", tags: ["all"],
          key: { query: "none" }, notify: true, maxVariants: 3, range: "fetch-whole",
          whenAbandoned: "stop",
          clientMay: [], clientStrategies: ["cache-only"], stripPrefix: "/v1", addPrefix: "/v2",
          invalidates: ["/list"],
        },
        routes: [
          { name: "own", match: "/v1/a", strategy: "cache-first", key: { sortQuery: true } },
          { name: "money", match: "/v1/b" },
          { name: "asked", match: "/v1/c", clientStrategies: ["network-first"] },
        ],
      }
      """)
    let own = found.routes[0]
    #expect(own.policy.timeToLive == .fixed(milliseconds: 60_000))
    #expect(own.policy.deadlineMilliseconds == nil)
    #expect(own.policy.maxVariants == 3)
    #expect(own.policy.clientMay == [])
    #expect(own.policy.range == .fetchWhole)
    #expect(own.policy.whenAbandoned == .stop)
    // `key` is taken as a whole or not at all.
    #expect(own.options.key == KeyRecipe(sortQuery: true))
    #expect(own.options.perUser == .cookie("sid"))
    #expect(own.options.tags.map(\.source) == ["all"])
    #expect(own.options.notify)
    #expect(own.options.clientStrategies == [.cacheOnly])
    // A client must not make copies of a balance because of a line somewhere else.
    let money = found.routes[1]
    #expect(money.policy == Policy(strategy: .networkOnly))
    #expect(
      money.options
        == RouteOptions(
          invalidates: [try InvalidationTarget(parsing: "/list")], stripPrefix: "/v1",
          addPrefix: "/v2"))
    let asked = found.routes[2]
    #expect(asked.policy.timeToLive == .fixed(milliseconds: 60_000))
    #expect(asked.policy.deadlineMilliseconds == 1_000)
    #expect(asked.options.perUser == .cookie("sid"))
  }

  @Test func loneLongTimeoutsCarryTheOthersAlong() throws {
    let found = try loaded(
      """
      {version: 1, upstreams: {
        a: {url: 'http://a', totalTimeout: '1s'},
        b: {url: 'http://a', firstByteTimeout: '2m'},
        c: {url: 'http://a', connectTimeout: '15s', firstByteTimeout: '20s'},
      }}
      """)
    let numbers = found.upstreams.map {
      [
        $0.connectTimeoutMilliseconds, $0.firstByteTimeoutMilliseconds, $0.totalTimeoutMilliseconds,
      ]
    }
    #expect(
      numbers == [[1_000, 1_000, 1_000], [2_000, 120_000, 120_000], [15_000, 20_000, 60_000]])
  }

  @Test func routeTableAnswersWithTheRoutesIndex() throws {
    let found = try loaded(
      """
      {version: 1, upstreams: {a: {url: 'http://a'}}, defaults: {upstream: 'a'},
       routes: [{name: 'x', match: 'POST /b'}, {name: 'y', match: '/b'}]}
      """)
    let index = found.routeTable.match(
      method: Array("GET".utf8).span, host: Array("h".utf8).span, path: Array("//b".utf8).span)
    #expect(index == 1)
  }

  @Test(arguments: [
    ("http://a", "http://a"), ("https://a", "https://a"), ("http://a:80", "http://a"),
    ("https://a:80/x/", "https://a:80/x"), ("http://[::1]:8090", "http://[::1]:8090"),
    ("http://a/", "http://a"), ("http://a/b/../c%7e", "http://a/c~"), ("http://A/B", "http://a/B"),
  ])
  func upstreamURLIsTakenApartAndPutTogether(text: String, baseURL: String) throws {
    let url = try AddressParsing.upstreamURL(text)
    let upstream = Upstream(
      name: "u", scheme: url.scheme, host: url.host, port: url.port, basePath: url.basePath)
    #expect(upstream.baseURL == baseURL)
  }

  @Test(arguments: [("/nowhere/p.json", "no such file or directory"), ("/", "is a directory")])
  func fileThatCannotBeReadIsRefusedWithItsReason(path: String, reason: String) {
    var lines: [String] = []
    let status = CheckCommand.run(file: path, verbose: false, environment: [:]) { lines.append($0) }
    #expect(status == 2)
    #expect(lines == ["\(path):1:1: cannot be read: \(reason)", "\(path): refused, 1 error"])
  }

  @Test func bytesThatAreNoTextAreRefusedWithTheirPlace() throws {
    let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
    defer { try? FileManager.default.removeItem(atPath: path) }  // A left-over file is harmless.
    try Data(Array("{\n\"ä\": \"".utf8) + [0xFF]).write(to: URL(filePath: path))
    var lines: [String] = []
    let status = CheckCommand.run(file: path, verbose: false, environment: [:]) { lines.append($0) }
    #expect(status == 2)
    #expect(lines == ["\(path):2:7: not UTF-8", "\(path): refused, 1 error"])
  }
}

@Suite struct CheckCommandTests {
  @Test func verboseCheckSaysWhatWasUnderstood() throws {
    let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
    defer { try? FileManager.default.removeItem(atPath: path) }  // A left-over file is harmless.
    let text = """
      {version: 1, admin: {listen: '0.0.0.0:1'}, upstreams: {a: {url: 'http://a/b', retries: 0}},
       routes: [{name: 'r', match: 'GET /r', upstream: 'a', strategy: 'network-first',
         ttl: {min: '1s', max: '90s'}, deadline: '800ms', negative: {'5xx': '2s'},
         ignoreOrigin: ['vary', 'no-store'], maxEntrySize: '1MiB'}]}
      """
    try Data(text.utf8).write(to: URL(filePath: path))
    var lines: [String] = []
    let status = CheckCommand.run(file: path, verbose: true, environment: [:]) { lines.append($0) }
    #expect(status == 0)
    #expect(
      lines == [
        "\(path):1:30: admin.listen: warning: \"0.0.0.0:1\" is open to other machines, and there "
          + "is "
          + "no admin.token",
        "listen    127.0.0.1:8080",
        "loops     one per core",
        "admin     0.0.0.0:1, no token",
        "store     \(ConfigurationLoader.resolved("larder-data", besides: path)), up to 1GiB, "
          + "bodies up to 64MiB",
        "upstream  a: http://a/b, connect 2s, first byte 10s, total 1m, retries 0",
        "route     r       GET /r  network-first  ttl { \"min\": \"1s\", \"max\": \"1m30s\" }    -> a  "
          + "ignoreOrigin [\"no-store\", \"vary\"], negative { \"5xx\": \"2s\" }, "
          + "deadline \"800ms\", maxEntrySize \"1MiB\"",
        "defaults  (none)  404",
        "\(path): sound, 1 route, 1 upstream, 1 warning",
      ])
  }
}

@Suite struct LimitsTests {
  @Test func defaultsFitTogether() {
    #expect(Limits().checkRelations().isEmpty)
  }

  struct Row: Sendable, CustomTestStringConvertible {
    var field: String?
    var change: @Sendable (inout Limits) -> Void
    var testDescription: String { field ?? "fixed limits" }

    init(_ field: String?, _ change: @escaping @Sendable (inout Limits) -> Void) {
      self.field = field
      self.change = change
    }
  }

  @Test(arguments: [
    Row("requestLineBytes") { $0.headerBytes = $0.requestLineBytes - 1 },
    Row("headerFields") { $0.headerFields = $0.headerBytes },
    Row("requestLineBytes") { $0.cacheKeyBytes = 100 },
    Row("rescueHoldBytes") { $0.rescueHoldBytes = $0.responseBufferBytes + 1 },
    Row(nil) { $0.inlineBodyBytes = $0.bodyChunkBytes + 1 },
    Row("responseBufferBytes") { $0.bodyChunkBytes = $0.responseBufferBytes + 1 },
    Row("headerTimeout") { $0.idleMilliseconds = $0.headerTimeoutMilliseconds - 1 },
  ])
  func contradictionIsFound(row: Row) {
    var limits = Limits()
    row.change(&limits)
    #expect(limits.checkRelations().map(\.fields.first) == [row.field])
  }
}

/// What the repository holds beside the code says the same as the code.
@Suite struct CommittedCopiesTests {
  private func file(_ name: String) throws -> String {
    let root = URL(filePath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    return try String(contentsOf: root.appending(path: name), encoding: .utf8)
  }

  @Test func schemaIsWhatTheTableGives() throws {
    #expect(
      try file("policies.schema.json") == ConfigurationSchema.text,
      "run: larder schema > policies.schema.json")
  }

  @Test func schemaIsJSON() throws {
    let object = try JSONSerialization.jsonObject(with: Data(ConfigurationSchema.text.utf8))
    #expect((object as? [String: Any])?["$defs"] != nil)
  }

  @Test func referenceIsWhatTheTableGives() throws {
    let text = try file("docs/policies.md")
    let begin = try #require(text.firstRange(of: ConfigurationReference.beginMarker + "\n"))
    let end = try #require(text.firstRange(of: ConfigurationReference.endMarker))
    #expect(
      String(text[begin.upperBound..<end.lowerBound]) == ConfigurationReference.text,
      "put the output of \"larder schema --reference\" between the markers")
  }

  @Test func exampleIsSound() throws {
    let text = try file("policies.json")
    let result = ConfigurationLoader.load(text: text, file: "policies.json", environment: [:])
    guard case .loaded(let configuration, let warnings) = result else {
      Issue.record("\(result)")
      return
    }
    #expect(warnings.isEmpty)
    #expect(configuration.upstreams[0].baseURL == "http://127.0.0.1:8090")
    let stores = configuration.routes.filter { $0.policy.strategy != .networkOnly }.map(\.name)
    #expect(stores == ["countries", "rates", "articles", "article", "me", "slow", "fail"])
  }
}
