import CachePolicy
import Testing

@testable import Proxy

struct TargetTableTests {
  private static let policies = """
    {
      "version": 1, "listen": "127.0.0.1:8080", "store": { "path": "/no/such/store" },
      "upstreams": { "o": { "url": "http://origin.example" } },
      "defaults": { "upstream": "o" },
      "routes": [
        { "name": "users", "match": "/users/**", "strategy": "cache-first",
          "perUser": "header:Authorization" },
        { "name": "fields", "match": "/fields/**", "strategy": "cache-first",
          "key": { "headers": ["X-Tenant"] } },
        { "name": "cookies", "match": "/cookies/**", "strategy": "cache-first",
          "key": { "cookies": ["region"] } },
        { "name": "choice", "match": "/choice/**", "strategy": "cache-first",
          "clientStrategies": ["network-first"] },
        { "name": "query", "match": "/query/**", "strategy": "cache-first",
          "key": { "query": ["a"], "sortQuery": true } },
        { "name": "plain", "match": "/**", "strategy": "cache-first" },
      ]
    }
    """

  private let policies: PolicySet
  private let table = TargetTable()

  init() throws {
    let result = ConfigurationLoader.load(text: Self.policies, file: "p.json", environment: [:])
    guard case .loaded(let configuration, _) = result else {
      Issue.record("\(result)")
      throw NotLoaded()
    }
    policies = PolicySet(configuration, generation: 0, slots: CounterSlots(), previous: nil)
  }

  private struct NotLoaded: Error {}

  private func head(
    _ target: String, host: String = "h", method: String = "GET", _ field: String = "X: y"
  ) throws -> RequestHead {
    let text = "\(method) \(target) HTTP/1.1\r\nHost: \(host)\r\n\(field)\r\n\r\n"
    return try #require(try HeadReading.head(text))
  }

  /// Places a request and notes it, as the repository does; `name` stands for its key.
  private func note(_ head: RequestHead, _ name: String) throws {
    var placement = RequestPlacement()
    #expect(placement.normalizePath(head) == nil)
    let route = try #require(placement.route(head, in: policies))
    table.note(
      head, path: placement.path, route: route, wholeKey: Array(name.utf8),
      key: StoreKey(high: 1, low: UInt64(name.utf8.count)))
  }

  private func found(_ head: RequestHead) -> String? { table.find(head).map { text($0.wholeKey) } }

  @Test func aTargetIsKnownFromItsSecondTimeOn() throws {
    let head = try head("/a?b")
    #expect(found(head) == nil)
    try note(head, "key")
    #expect(found(head) == nil)
    try note(head, "key")
    let known = try #require(table.find(head))
    #expect(text(known.wholeKey) == "key" && text(known.path) == "/a")
    #expect(known.route.name == "plain" && known.key == StoreKey(high: 1, low: 3))
    #expect(table.count == 1)
  }

  @Test func whatDiffersInAnyByteIsNotKnown() throws {
    let heads = try [
      head("/ab"), head("/a"), head("/ab?"), head("/ab", host: "H"), head("/a", host: "bh"),
      head("/ab", method: "HEAD"), head("//ab"), head("/%61b"), head("/ab", host: "h:80"),
    ]
    for (index, head) in heads.enumerated() {
      #expect(found(head) == nil)
      for _ in 0..<2 { try note(head, "\(index)") }
    }
    for (index, head) in heads.enumerated() { #expect(found(head) == "\(index)") }
  }

  @Test(
    arguments: [
      ("a user's", "/users/a", false), ("a field in the key", "/fields/a", false),
      ("a cookie in the key", "/cookies/a", false), ("a client's choice", "/choice/a", false),
      ("absolute-form", "http://h/a", false),
      ("a long one", "/" + String(repeating: "a", count: 800), false),
      ("a filtered query", "/query/a?b=1&a=2", true), ("plain", "/a", true),
    ])
  func whatOtherFieldsBearOnIsNotTakenIn(
    _ name: String, _ target: String, _ isKnown: Bool
  ) throws {
    let head = try head(target, "Larder-Strategy: network-first")
    for _ in 0..<3 { try note(head, "key") }
    #expect((found(head) != nil) == isKnown)
  }

  @Test func nothingIsKnownAfterAllIsForgotten() throws {
    let head = try head("/a")
    for _ in 0..<2 { try note(head, "old") }
    #expect(found(head) == "old")
    table.removeAll()
    #expect(found(head) == nil && table.count == 0)
    try note(head, "new")
    #expect(found(head) == nil)
    try note(head, "new")
    #expect(found(head) == "new")
  }

  @Test func ofManyTargetsEachFindsItsOwnOrNone() throws {
    var wrong: [Int] = []
    var known = 0
    let count = 20_000
    let heads = try (0..<count).map { try head("/items/\($0)") }
    for (index, head) in heads.enumerated() {
      for _ in 0..<2 { try note(head, "\(index)") }
    }
    for (index, head) in heads.enumerated() {
      guard let name = found(head) else { continue }
      known += 1
      if name != "\(index)" { wrong.append(index) }
    }
    #expect(wrong.isEmpty)
    #expect(known == table.count && known > 10_000 && known <= 16 * 1024)
  }
}
