import CachePolicy
import Foundation
import Testing

@testable import Proxy

private let environment = [
  "TOKEN": "hunter2-token", "PROXY_LOGIN": "user:hunter2", "PROXY": "http://user:hunter2@proxy:1",
  "BEARER": "hunter2-bearer", "HOST": "origin",
]

private func loaded(_ text: String) throws -> Configuration {
  let result = ConfigurationLoader.load(text: text, file: "p.json", environment: environment)
  guard case .loaded(let configuration, _) = result else {
    Issue.record("\(result)")
    throw Refused()
  }
  return configuration
}

private struct Refused: Error {}

/// `larder config`: what is printed means what was read, and says no secret.
@Suite struct ConfigurationPrintingTests {
  static let everything = """
    {
      version: 1, listen: ["0.0.0.0:1", "[::1]:2"], loops: 3, publicUrl: "http://apps:81",
      admin: { listen: ["127.0.0.1:4", "[::1]:4"], token: "${TOKEN}" },
      store: { path: "p", maxSize: "5MiB", maxEntrySize: "6KiB" },
      upstreams: {
        a: {
          url: "HTTPS://${HOST}:444/v1/", connectTimeout: "7ms", firstByteTimeout: "8ms",
          totalTimeout: "9ms", retries: 2, hostHeader: "client",
          proxy: "http://${PROXY_LOGIN}@q:3128", targetedCacheControl: ["A-Control"],
          maxConcurrent: 21, maxQueue: 22, queueTimeout: "23ms",
        },
        b: { url: "http://[::1]/", proxy: "none", targetedCacheControl: [] },
      },
      limits: {
        connections: 10, requestLineBytes: "1KiB", headerBytes: "2KiB", headerFields: 20,
        headerTimeout: "1s", bodyStall: "2s", idle: "3s", drain: "4s",
        requestBodyBufferBytes: "65KiB", responseBufferBytes: "66KiB", rescueHoldBytes: "5KiB",
        fills: 11, fillWaiters: 12, upstreamConnections: 13,
      },
      defaults: {
        upstream: "b", strategy: "cache-first", ttl: "1m", keep: "1d", stripPrefix: "/x",
        key: { ignoreQuery: ["utm_*"] }, tags: ["all"], clientStrategies: ["cache-only"],
      },
      routes: [
        {
          name: "r", match: "POST|GET //h/x/{y}", upstream: "a", strategy: "network-first",
          ttl: { default: "1s", min: "0s", max: "2s" }, staleWhileRevalidate: "3s",
          staleIfError: "4s", ignoreOrigin: ["no-store", "vary"],
          negative: { "5xx": "6s", "404": "5s" }, deadline: "7s", keep: "8s",
          maxEntrySize: "1KiB", maxVariants: 9, range: "fetch-whole", notify: true,
          whenAbandoned: { finishFromPercent: 7, finishBelow: "8KiB" },
          key: {
            query: ["p", "q"], ignoreQuery: ["utm_*"], sortQuery: true, headers: ["Accept"],
            cookies: ["region"],
          },
          perUser: "header:Authorization", tags: ["t:{y}", "u"],
          invalidates: ["tag:u:{y}", "//h/z/{y}/**"], clientMay: ["max-age"],
          clientStrategies: ["cache-only", "network-only"], stripPrefix: "/x", addPrefix: "/v2",
          forwardHeaders: ["X-Original-URL"],
        },
        {
          name: "s", match: "/x/s", strategy: "cache-first", key: { query: "none" }, clientMay: [],
          warm: ["http://g/x/s?p=1"],
        },
        { name: "t", match: "/x/t" },
        { name: "u", match: "/x/u", clientStrategies: ["network-first"], deadline: "1s" },
      ],
      tests: [
        { request: "GET /x/t", expect: { route: "t", stores: false } },
        {
          request: "POST //x?p=\\"1\\"", headers: { A: "b\\tc", Authorization: "${BEARER}" },
          given: { status: 404, headers: { Age: "1" } },
          expect: {
            route: "(default)", strategy: "cache-first", ttl: "1m30s", key: "", tags: [],
            upstreamUrl: "http://a/v2/x/1", perUser: true,
          },
        },
      ],
    }
    """

  static let smallest = "{version: 1, upstreams: {a: {url: 'http://a'}}}"

  private static func example() throws -> String {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    return try String(
      contentsOf: root.deletingLastPathComponent().appending(path: "policies.json"), encoding: .utf8
    )
  }

  /// Everything but the places of tests in their files.
  private func expectEqual(_ left: Configuration, _ right: Configuration) {
    #expect(left.listen == right.listen)
    #expect(left.loops == right.loops)
    #expect(left.publicAuthority == right.publicAuthority)
    #expect(left.admin == right.admin)
    #expect(left.store == right.store)
    #expect(left.upstreams == right.upstreams)
    #expect(left.limits == right.limits)
    #expect(left.defaults == right.defaults)
    #expect(left.routes == right.routes)
    let placeless = { (test: PolicyTest) in
      var test = test
      (test.line, test.column) = (1, 1)
      return test
    }
    #expect(left.tests.map(placeless) == right.tests.map(placeless))
  }

  @Test(arguments: ["everything", "smallest", "example"])
  func printedConfigurationMeansTheSame(name: String) throws {
    let texts = [
      "everything": Self.everything, "smallest": Self.smallest, "example": try Self.example(),
    ]
    let first = try loaded(try #require(texts[name]))
    let printed = first.effectiveText
    let second = try loaded(printed)
    expectEqual(first, second)
    #expect(second.effectiveText == printed)
    #expect(try JSONSerialization.jsonObject(with: Data(printed.utf8)) is [String: Any])
  }

  /// What is printed has no findings of its own.
  @Test func printedConfigurationIsNotWarnedOf() throws {
    let text = try loaded(try Self.example()).effectiveText
    let result = ConfigurationLoader.load(text: text, file: "p.json", environment: environment)
    guard case .loaded(_, warnings: []) = result else {
      Issue.record("\(result)")
      return
    }
  }

  @Test func defaultsAndWhatIsTakenOverAreFilledIn() throws {
    let text = try loaded(
      """
      {version: 1, upstreams: {a: {url: 'http://a'}}, defaults: {upstream: 'a', ttl: '90s'},
       routes: [{name: 'r', match: '/r', strategy: 'cache-first'}, {name: 'n', match: '/n'}]}
      """
    ).effectiveText
    let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
    let routes = try #require(object?["routes"] as? [[String: Any]])
    #expect(routes[0]["ttl"] as? String == "1m30s")
    #expect(routes[0]["upstream"] as? String == "a")
    #expect(routes[0]["notify"] as? Bool == false)
    #expect((routes[0]["key"] as? [String: Any])?["query"] as? String == "all")
    // What has no meaning on a network-only route is not printed.
    #expect(routes[1]["ttl"] == nil)
    #expect(routes[1]["key"] == nil)
    #expect(routes[1]["strategy"] as? String == "network-only")
    #expect((object?["limits"] as? [String: Any])?["connections"] as? Int == 10_000)
    #expect(object?["listen"] as? String == "127.0.0.1:8080")
  }

  @Test(
    arguments: [
      ("admin: {token: '${TOKEN}'}", "\"token\": \"${TOKEN}\""),
      ("admin: {token: 'hunter2'}", "\"token\": \"${REDACTED}\""),
      ("admin: {token: 'hunter2${TOKEN}'}", "\"token\": \"${REDACTED}${TOKEN}\""),
      ("admin: {token: '${NO:-hunter2}'}", "\"token\": \"${NO}\""),
      ("admin: {token: '${NO:-}'}", "\"token\": \"${NO:-}\""),
      ("upstreams: {a: {url: 'http://a', proxy: '${PROXY}'}}", "\"proxy\": \"${PROXY}\""),
      (
        "upstreams: {a: {url: 'http://a', proxy: '${NO:-http://u:hunter2@p}'}}",
        "\"proxy\": \"${NO}\""
      ),
      (
        "upstreams: {a: {url: 'http://a', proxy: 'http://u:hunter2@p:1'}}",
        "\"proxy\": \"http://${REDACTED}@p:1\""
      ),
      (
        "upstreams: {a: {url: 'http://a', proxy: 'socks5://${PROXY_LOGIN}@${HOST}:1'}}",
        "\"proxy\": \"socks5://${PROXY_LOGIN}@${HOST}:1\""
      ),
      ("upstreams: {a: {url: 'http://${HOST}'}}", "\"url\": \"http://origin\""),
      (
        "tests: [{request: 'GET /', headers: {A: 'x ${BEARER}'}, expect: {stores: false}}]",
        "\"A\": \"x ${BEARER}\""
      ),
    ])
  func secretIsShownAsTheFileHasIt(member: String, expected: String) throws {
    let upstreams = member.hasPrefix("upstreams") ? "" : "upstreams: {a: {url: 'http://a'}},"
    let text = try loaded("{version: 1, \(upstreams) \(member)}").effectiveText
    #expect(text.contains(expected), "\(text)")
    #expect(!text.contains("hunter2"))
  }

  /// A configuration that no file made is printed without its secrets all the same.
  @Test func secretOfAConfigurationMadeByHandIsNotPrinted() {
    var configuration = Configuration(
      upstreams: [Upstream(name: "a", host: "a", port: 80, proxy: "http://u:hunter2@p")])
    configuration.admin.token = "hunter2"
    #expect(!configuration.effectiveText.contains("hunter2"))
    #expect(configuration.effectiveText.contains("${REDACTED}"))
  }

  @Test func valuesOfARouteSayWhereTheyComeFrom() throws {
    let found = try loaded(
      """
      {version: 1, upstreams: {a: {url: 'http://a'}},
       defaults: {upstream: 'a', strategy: 'cache-first', ttl: '1m', negative: {'404': '1s'}},
       routes: [{name: 'r', match: '/r', strategy: 'network-first', ttl: '1m', deadline: '1s'},
         {name: 'n', match: '/n', strategy: 'network-only'}]}
      """)
    let sources = { (values: [PolicyValue]) in
      Dictionary(uniqueKeysWithValues: values.map { ($0.name, $0) })
    }
    let route = sources(found.values(ofRoute: 0))
    #expect(
      route["strategy"]
        == PolicyValue(name: "strategy", value: "\"network-first\"", source: .route))
    // Said by both: the route's own word counts.
    #expect(route["ttl"] == PolicyValue(name: "ttl", value: "\"1m\"", source: .route))
    #expect(route["deadline"]?.source == .route)
    #expect(
      route["negative"]
        == PolicyValue(name: "negative", value: "{ \"404\": \"1s\" }", source: .defaults))
    #expect(route["upstream"] == PolicyValue(name: "upstream", value: "\"a\"", source: .defaults))
    #expect(route["notify"] == PolicyValue(name: "notify", value: "false", source: .builtIn))
    #expect(route["keep"] == nil)
    let only = found.values(ofRoute: 1)
    #expect(sources(only)["ttl"] == nil)
    #expect(sources(only)["strategy"]?.source == .route)
    let defaults = sources(found.valuesOfDefaults)
    #expect(defaults["strategy"]?.source == .defaults)
    #expect(defaults["ttl"]?.source == .defaults)
    #expect(defaults["range"]?.source == .builtIn)
  }

  /// A strategy that nobody gave is built in, whatever `defaults` says for itself.
  @Test func strategyOfDefaultsIsNoSource() throws {
    let found = try loaded(
      """
      {version: 1, upstreams: {a: {url: 'http://a'}},
       defaults: {upstream: 'a', strategy: 'network-only'}, routes: [{name: 'r', match: '/r'}]}
      """)
    let strategy = found.values(ofRoute: 0).first { $0.name == "strategy" }
    #expect(strategy?.source == .builtIn)
  }

  @Test func commandPrintsJSONOrNothing() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }  // A left-over folder is harmless.
    let path = folder.appending(path: "p.json").path
    try Data(Self.smallest.utf8).write(to: URL(filePath: path))
    var lines: [String] = []
    var errors: [String] = []
    let run = {
      ConfigCommand.run(
        file: path, environment: [:], print: { lines.append($0) }, printError: { errors.append($0) }
      )
    }
    #expect(run() == 0)
    #expect(errors.isEmpty)
    #expect(lines.count == 1)
    // A relative path would mean another folder wherever the output is put.
    #expect(lines[0].contains("\"path\": \"\(folder.path)/larder-data\""))
    try Data("{}".utf8).write(to: URL(filePath: path))
    lines = []
    #expect(run() == 2)
    #expect(lines.isEmpty)
    #expect(errors.count == 2)
  }
}
