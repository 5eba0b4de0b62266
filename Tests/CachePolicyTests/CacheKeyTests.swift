import Testing

@testable import CachePolicy

struct CacheKeyTests {
  /// A request's whole key, put together as the repository does.
  private static func key(
    _ upstream: String, _ authority: String, _ path: String, _ query: String? = nil
  ) -> [UInt8] {
    var key: [UInt8] = []
    let upstreamBytes = Array(upstream.utf8)
    let authorityBytes = Array(authority.utf8)
    let pathBytes = Array(path.utf8)
    CacheKey.append(part: upstreamBytes.span, to: &key)
    CacheKey.append(authority: authorityBytes.span, defaultPort: "80", to: &key)
    CacheKey.append(part: pathBytes.span, to: &key)
    if let query {
      let queryBytes = Array(query.utf8)
      key.append(UInt8(ascii: "?"))
      CacheKey.append(part: queryBytes.span, to: &key)
    }
    return key
  }

  @Test func noTwoDifferentRequestsShareAKey() {
    var keys: [[UInt8]: String] = [:]
    // Everything that could move a byte from one part to the next, or be lost on the way.
    let upstreams = ["api", "ap", "api2", "API"]
    let authorities = [
      "", "a", "a:8080", "a:81", "a:8", "a:08", "a:080", "b", "aa", "a.b", "[::1]", "[::1]:81",
      "[::80]", "a80",
    ]
    let paths = ["/", "/a", "/A", "/a/", "//a", "/a%2F", "/a?", "/a;b", "/a/b", "/i/a"]
    let queries = [nil, "", "a", "A", "a=1", "a=1&b=2", "b=2&a=1", "?", "a=1;b=2", "a=%31"]
    for upstream in upstreams {
      for authority in authorities {
        for path in paths {
          for query in queries {
            let name = "\(upstream) \(authority) \(path) \(query ?? "-")"
            let earlier = keys.updateValue(name, forKey: Self.key(upstream, authority, path, query))
            #expect(earlier == nil, "\(name) and \(earlier ?? "")")
          }
        }
      }
    }
    #expect(
      keys.count == upstreams.count * authorities.count * paths.count * queries.count)
  }

  @Test func bytesDoNotMoveBetweenParts() {
    #expect(Self.key("ab", "c", "/") != Self.key("a", "bc", "/"))
    #expect(Self.key("a", "b", "/c") != Self.key("a", "b/", "c"))
    #expect(Self.key("a", "b", "/c", "d") != Self.key("a", "b", "/c?d"))
    #expect(Self.key("a", "b", "/", "\u{1}\u{0}\u{0}\u{0}x") != Self.key("a", "b", "/", "x"))
  }

  @Test(
    arguments: [
      ("upper case", "API.Example.COM", "api.example.com"),
      ("the default port", "a:80", "a"),
      ("an empty port", "a:", "a"),
      ("the default port of an IPv6 address", "[::1]:80", "[::1]"),
      ("an IPv6 address in capitals", "[2001:DB8::A]", "[2001:db8::a]"),
    ])
  func oneAuthorityHasOneKey(_ name: String, _ written: String, _ plain: String) {
    #expect(Self.key("u", written, "/") == Self.key("u", plain, "/"))
  }

  @Test(
    arguments: [
      ("a", "80", 1), ("a:80", "80", 1), ("a:80", "443", 4), ("a:443", "443", 1),
      ("a:180", "80", 5),
      ("a:", "80", 1), ("80", "80", 2), (":80", "80", 0), ("", "80", 0), ("[::80]", "80", 6),
    ] as [(String, String, Int)])
  func theDefaultPortIsTakenOff(_ authority: String, _ port: String, _ count: Int) {
    let bytes = Array(authority.utf8)
    let found =
      port == "80"
      ? CacheKey.lengthWithoutPort(bytes.span, "80")
      : CacheKey.lengthWithoutPort(bytes.span, "443")
    #expect(found == count)
  }

  @Test func aPartIsItsLengthAndItsBytes() {
    var key: [UInt8] = []
    let long = [UInt8](repeating: 7, count: 0x0102)
    CacheKey.append(part: long.span, to: &key)
    #expect(Array(key.prefix(5)) == [0x02, 0x01, 0, 0, 7])
    #expect(key.count == 4 + 0x0102)
  }

  @Test func theReaderFindsWhatTheWriterWrote() throws {
    for query in [nil, "", "a=1&b=2"] as [String?] {
      for further in [[], Array("h\u{1}\u{0}".utf8)] as [[UInt8]] {
        let key = Self.key("api", "Example.com:8080", "//a?/b", query) + further
        let found = CacheKey.Parts(key.span)
        let parts = try #require(found)
        func text(_ range: Range<Int>) -> String { String(decoding: key[range], as: UTF8.self) }
        #expect(text(parts.upstream) == "api")
        #expect(text(parts.authority) == "example.com:8080")
        #expect(text(parts.path) == "//a?/b")
        #expect(parts.query.map(text) == query)
        #expect(Array(key[parts.further]) == further)
      }
    }
  }

  @Test func aKeyCutShortInAPartIsNoKey() {
    let key = Self.key("api", "a", "/p", "q")
    let pathEnd = Self.key("api", "a", "/p").count
    let accepted = (0...key.count).filter { count in
      let start = key.prefix(count)
      return CacheKey.Parts(start.span) != nil
    }
    #expect(accepted == [pathEnd, key.count])
    let tooLong: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF] + key
    let parts = CacheKey.Parts(tooLong.span)
    #expect(parts == nil)
  }
}
