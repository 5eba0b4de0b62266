import CachePolicy
import Foundation
import Testing

@testable import Proxy

/// What `larder explain` says, word for word.
@Suite struct ExplanationTests {
  private static let policies = """
    {
      version: 1, listen: '127.0.0.1:8080', store: { path: '/no/such/store' },
      admin: { listen: '127.0.0.1:8081', token: 'hunter2' },
      upstreams: {
        a: { url: 'http://origin.example/base' },
        b: { url: 'http://b.example', hostHeader: 'client' },
      },
      defaults: { upstream: 'a' },
      routes: [
        { name: 'thumbs', match: 'POST /articles/{id}/thumbs',
          invalidates: ['tag:article:{id}', '/articles/{id}'] },
        { name: 'other', match: '//other.example/**', upstream: 'b' },
        { name: 'article', match: 'GET /articles/{id}', strategy: 'cache-first', ttl: '1m',
          tags: ['article:{id}'], clientMay: ['no-cache'], clientStrategies: ['network-first'],
          key: { query: ['lang'], headers: ['Accept', 'X-Api-Key'], cookies: ['region'] },
          staleIfError: '1h' },
        { name: 'me', match: '/me', strategy: 'network-first', deadline: '800ms',
          perUser: 'header:Authorization' },
      ],
    }
    """

  private func configuration(_ text: String = policies) throws -> Configuration {
    let result = ConfigurationLoader.load(text: text, file: "p.json", environment: [:])
    guard case .loaded(let configuration, _) = result else {
      Issue.record("\(result)")
      throw NotLoaded()
    }
    return configuration
  }

  private struct NotLoaded: Error {}

  private func explain(
    _ method: String, _ target: String, _ headers: String..., isSecretKnown: Bool = true
  ) throws -> Explanation {
    let configuration = try configuration()
    let policies = PolicySet(configuration, generation: 0, slots: CounterSlots(), previous: nil)
    let request = try ExplainedRequest(method: method, target: target, headers: headers)
    // Plain, and yet the value cannot be seen in it.
    let digest: Explanation.Digest = { bytes in
      var sum: UInt8 = 0
      for index in bytes.indices { sum = sum &* 31 &+ bytes[index] }
      return [0xAB, sum] + [UInt8](repeating: 0, count: 30)
    }
    return Explanation.make(
      request, in: policies, authority: configuration.ownAuthority,
      digest: isSecretKnown ? digest : nil)
  }

  @Test func textOfARequestWithEverything() throws {
    let text = try explain(
      "GET", "/articles/7?utm=x&lang=en", "Accept: text/html", "X-Api-Key: hunter2",
      "Cookie: region=hunter2", "Cache-Control: no-cache, max-age=0",
      "Larder-Strategy: network-first"
    ).text
    #expect(
      text == """
        request      GET /articles/7?utm=x&lang=en
        headers      Accept: text/html
                     X-Api-Key: (digest abb2000000000000)
                     Cookie: (digest abc9000000000000)
                     Cache-Control: no-cache, max-age=0
                     Larder-Strategy: network-first
        authority    127.0.0.1:8080 (a URL with a host asks for another)
        path         /articles/7
        query        utm=x&lang=en
        passed       thumbs (routes[0]): another method, path
                     other (routes[1]): another host
        route        article (routes[2], GET /articles/{id})
        strategy     network-first, chosen by the client (the route's own: cache-first)
        key          upstream a
                     authority 127.0.0.1:8080
                     path /articles/7
                     query lang=en
                     header accept: text/html
                     header x-api-key, digest ab58000000000000
                     cookie region, digest ab58000000000000
        identity     none: copies are everybody's
        origin       GET http://origin.example/base/articles/7?utm=x&lang=en
                     Host: origin.example
        policy       upstream          defaults  "a"
                     strategy          route     "cache-first"
                     ttl               route     "1m"
                     staleIfError      route     "1h"
                     ignoreOrigin      built in  []
                     negative          built in  {}
                     key               route     { "query": ["lang"], "ignoreQuery": [], \
        "sortQuery": false, "headers": ["accept", "x-api-key"], "cookies": ["region"] }
                     tags              route     ["article:{id}"]
                     notify            built in  false
                     warm              built in  []
                     range             built in  "pass"
                     whenAbandoned     built in  { "finishBelow": "1MiB", "finishFromPercent": 50 }
                     clientMay         route     ["no-cache"]
                     clientStrategies  route     ["network-first"]
                     invalidates       built in  []
                     forwardHeaders    built in  []
        tags         article:7
        directives   no-cache
                     max-age=0 (ignored: the route's clientMay)
        answer       stored, where its own words and the policy allow it

        """)
  }

  @Test func jsonOfAnUnsafeRequest() throws {
    let json = try explain("POST", "http://APPS:80/articles/7/thumbs").json.compact
    #expect(
      json
        == #"{ "request": { "method": "POST", "target": "http://APPS:80/articles/7/thumbs", "#
        + #""authority": "APPS:80", "path": "/articles/7/thumbs", "headers": [] }, "passed": [], "#
        + #""route": { "name": "thumbs", "at": "routes[0]", "match": "POST /articles/{id}/thumbs" "#
        + #"}, "strategy": { "inForce": "network-only", "ofRoute": "network-only", "#
        + #""chosenByClient": false }, "key": { "none": "no copies" }, "identity": { "source": "#
        + #""none" }, "origin": { "method": "POST", "url": "#
        + #""http://origin.example/base/articles/7/thumbs", "host": "origin.example" }, "#
        + #""policy": [{ "name": "upstream", "value": "a", "from": "defaults" }, "#
        + #"{ "name": "strategy", "value": "network-only", "from": "built in" }, "#
        + #"{ "name": "clientStrategies", "value": [], "from": "built in" }, "#
        + #"{ "name": "invalidates", "value": ["tag:article:{id}", "/articles/{id}"], "from": "#
        + #""route" }, { "name": "forwardHeaders", "value": [], "from": "built in" }], "#
        + #""tags": [], "invalidates": ["tag:article:7", "/articles/7"], "directives": { "#
        + #""counting": [], "ignored": [] }, "answer": { "mayBeStored": false, "notStored": "#
        + #""method", "needsPermission": false } }"#)
  }

  /// What is printed for programs is JSON, whatever a request holds.
  @Test(
    arguments: [
      ("GET", "/articles/7?\"\\=%22", ["Accept: a\t\"b\\"]), ("PURGE", "/x", []),
      ("GET", "/x%zz", []), ("GET", "/me", ["Authorization: hunter2"]),
      ("GET", "/x", ["Content-Length: 1", "Content-Length: 2"]),
    ] as [(String, String, [String])])
  func jsonCanBeRead(method: String, target: String, headers: [String]) throws {
    let configuration = try configuration()
    let request = try ExplainedRequest(method: method, target: target, headers: headers)
    let explanation = ExplainCommand.explain(request, configuration)
    for text in [explanation.json.formatted, explanation.json.compact] {
      let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
      #expect((object?["request"] as? [String: Any])?["target"] as? String == target)
      #expect(!text.contains("hunter2"))
    }
    #expect(!explanation.text.contains("hunter2"))
  }

  @Test(
    arguments: [
      ("PURGE", "/x", 405, "this method is not served here"),
      ("GET", "/x%zz", 400, "malformed path: path-malformed-percent"),
    ] as [(String, String, UInt16, String)])
  func refusedRequestIsExplained(
    method: String, target: String, status: UInt16, detail: String
  ) throws {
    let explanation = try explain(method, target)
    #expect(explanation.refusal == .init(status: status, detail: detail))
    #expect(explanation.routed == nil && explanation.passed.isEmpty)
    #expect(explanation.text.hasSuffix("refused      \(status), \(detail)\n"))
  }

  @Test func requestThatCannotBeReadIsExplained() throws {
    let explanation = try explain("GET", "/x", "Content-Length: 1", "Content-Length: 2")
    #expect(explanation.refusal?.status == 400)
    #expect(explanation.path == nil)
  }

  @Test func requestWithoutARouteIsExplained() throws {
    var configuration = try configuration()
    configuration.defaults.upstreamIndex = nil
    let explanation = ExplainCommand.explain(
      try ExplainedRequest(target: "/nowhere"), configuration)
    #expect(explanation.refusal == .init(status: 404, detail: "no route takes this request"))
    #expect(explanation.passed.map(\.mismatches) == [[.method, .path], [.host], [.path], [.path]])
  }

  @Test func hostOfTheClientReachesTheOriginWhereTheUpstreamSaysSo() throws {
    let origin = try explain("GET", "http://OTHER.example:80/x").routed?.origin
    #expect(origin == .init(method: "GET", url: "http://b.example/x", host: "other.example"))
  }

  @Test func identityIsShownAsADigestOrMissing() throws {
    let user = try explain("GET", "/me", "Authorization: Bearer hunter2").routed?.identity
    guard case .user("header:authorization", let digest?) = user else {
      Issue.record("\(String(describing: user))")
      return
    }
    #expect(digest.hasPrefix("ab") && digest.count == 16)
    let unknown = try explain(
      "GET", "/me", "Authorization: Bearer hunter2", isSecretKnown: false)
    #expect(unknown.routed?.identity == .user(source: "header:authorization", digest: nil))
    #expect(unknown.text.contains("whose digest only the running proxy knows"))
    #expect(unknown.request.headers == [.init(name: "Authorization", value: "(hidden)")])
    let missing = try explain("GET", "/me").routed
    #expect(missing?.identity == .missing(source: "header:authorization"))
    #expect(missing?.key == nil && missing?.unkeyed == .noIdentity)
    #expect(missing?.answer == .init(notStored: .noIdentity, needsPermission: false))
  }

  @Test func credentialsOnASharedRouteNeedTheOriginsWord() throws {
    let answer = try explain("GET", "/articles/7", "Authorization: Bearer a").routed?.answer
    #expect(answer == .init(notStored: nil, needsPermission: true))
  }

  @Test(
    arguments: [
      ("cache-only", ClientStrategy.Refusal.notAllowed), ("fast", .unknown),
      ("network-first, cache-first", .several),
    ])
  func ignoredChoiceOfTheClientIsNamed(word: String, reason: ClientStrategy.Refusal) throws {
    let strategy = try explain("GET", "/articles/7", "Larder-Strategy: \(word)").routed?.strategy
    #expect(
      strategy
        == .init(
          inForce: .cacheFirst, ofRoute: .cacheFirst, isChosenByClient: false, ignored: reason))
  }

  /// A long list of routes is cut to those that come near.
  @Test func manyPassedRoutesAreCounted() throws {
    let names = (0..<50).map { "{name: 'r\($0)', match: '/r\($0)'}" }.joined(separator: ", ")
    let text = """
      {version: 1, upstreams: {a: {url: 'http://a'}}, defaults: {upstream: 'a'},
       routes: [\(names), {name: 'p', match: 'POST /x'}]}
      """
    let explanation = ExplainCommand.explain(
      try ExplainedRequest(target: "/x"), try configuration(text))
    #expect(
      explanation.text.contains(
        """
        passed       p (routes[50]): another method
                     and 50 others
        route        (default) (defaults)

        """))
    #expect(explanation.passed.count == 51)
  }

  /// Explanation and data path step by step agree in the route, whatever is asked.
  @Test(arguments: ["/me", "//me", "/articles/7", "/articles/7/", "/x", "/articles/%37"])
  func traceAgreesWithTheRouteTaken(target: String) throws {
    let configuration = try configuration()
    let policies = PolicySet(configuration, generation: 0, slots: CounterSlots(), previous: nil)
    let head = try ExplainedRequest(target: target).head(authority: "h")
    var placement = RequestPlacement()
    let outlook = RequestOutlook(head, in: policies, with: &placement, isTraced: true) { _ in [] }
    let index = try #require(outlook.routed).index
    #expect(outlook.passed.map(\.route) == Array(0..<(index ?? policies.routes.count)))
    #expect(outlook.routed?.route.name == index.map { policies.routes[$0].name } ?? "(default)")
  }

  @Test func commandReadsTheStoresSecretAndChangesNothing() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }  // A left-over folder is harmless.
    let path = folder.appending(path: "p.json").path
    let text = Self.policies.replacingOccurrences(of: "/no/such/store", with: folder.path)
    try Data(text.utf8).write(to: URL(filePath: path))
    var output = ""
    let run = { (isJSON: Bool) in
      output = ""
      let request = try ExplainedRequest(target: "/me", headers: ["Authorization: hunter2"])
      return ExplainCommand.run(
        file: path, request: request, isJSON: isJSON, environment: [:],
        print: { output += $0 + "\n" }, printError: { Issue.record("\($0)") })
    }
    #expect(try run(false) == 0)
    #expect(output.contains("only the running proxy knows"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["p.json"])
    try Data(repeating: 7, count: 32).write(to: folder.appending(path: "identity-secret"))
    #expect(try run(false) == 0)
    #expect(output.contains("identity     header:authorization, digest "))
    #expect(try run(true) == 0)
    #expect(output.contains("\"digest\": \"") && !output.contains("hunter2"))
    try Data(repeating: 7, count: 33).write(to: folder.appending(path: "identity-secret"))
    #expect(try run(false) == 0)
    #expect(output.contains("only the running proxy knows"))
  }

  @Test func commandRefusesAConfigurationThatCannotBeRead() throws {
    var errors: [String] = []
    let request = try ExplainedRequest(target: "/")
    let status = ExplainCommand.run(
      file: "/no/such/file", request: request, isJSON: false, environment: [:],
      print: { Issue.record("\($0)") }, printError: { errors.append($0) })
    #expect(status == 2 && errors.count == 1)
  }
}

/// The parameters of `GET /explain`.
@Suite struct ExplainQueryTests {
  @Test(
    arguments: [
      ("url=/a", "GET", "/a", [], nil),
      ("url=%2Fa%3Fb%3D1%26c&method=POST", "POST", "/a?b=1&c", [], nil),
      (
        "url=/a+b&header=A:%20b+c&header=D:%20%C3%A9&format=text", "GET", "/a+b",
        ["A: b+c", "D: é"], .text
      ),
      ("&url=/a=b&&format=json", "GET", "/a=b", [], .json),
    ] as [(String, String, String, [String], ExplainQuery.Format?)])
  func queryIsUnderstood(
    text: String, method: String, target: String, headers: [String], format: ExplainQuery.Format?
  ) throws {
    let query = try ExplainQuery(parsing: Array(text.utf8)[...])
    #expect(
      query.request == (try ExplainedRequest(method: method, target: target, headers: headers)))
    #expect(query.format == format)
  }

  @Test(
    arguments: [
      ("", "url is missing, as in /explain?url=/articles/7"),
      ("url=", "url is missing, as in /explain?url=/articles/7"),
      ("url=/a&url=/b", "url is given twice"),
      (
        "urll=/a",
        "unknown parameter \"urll\", did you mean \"url\"?; there is url, method, header, format"
      ),
      ("url=/a&x", "unknown parameter \"x\"; there is url, method, header, format"),
      ("url=%2", "url: \"%\" needs two hex digits behind it"),
      ("url=%2g", "url: \"%\" needs two hex digits behind it"),
      ("url=%+1", "url: \"%\" needs two hex digits behind it"),
      ("url=/a&header=%ff", "header: not UTF-8"),
      ("url=/a&header=hunter2", "a header is \"Name: value\", and this one has no colon"),
      ("url=/a&header=A:%0ab", "A: a field's value holds no control character"),
      ("url=/a&header=A%20b:c", "\"A b\" is no field name"),
      ("url=/a&method=get", "methods are upper case, did you mean \"GET\"?"),
      ("url=/a&format=xml", "format: \"xml\" is neither \"json\" nor \"text\""),
      (
        "url=/a%20HTTP/1.1%0d%0aX:%20y",
        "\"/a HTTP/1.1\r\nX: y\": a space, a control or a character "
          + "beyond ASCII must be percent-encoded in a URL"
      ),
    ])
  func queryIsRefused(text: String, message: String) {
    #expect(throws: ValueError(message: message)) {
      try ExplainQuery(parsing: Array(text.utf8)[...])
    }
  }
}
