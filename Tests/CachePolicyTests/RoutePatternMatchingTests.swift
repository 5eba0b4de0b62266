/// One pattern by itself says what a table with that pattern says.
import Testing

@testable import CachePolicy

struct RoutePatternMatchingTests {
  static let patterns = [
    "/", "/a", "/a/", "/a/b", "/a/*", "/*", "/*/b", "/a/{id}", "/{x}/{y}", "/**", "/a/**",
    "/a/*/c/**", "/a/b*", "/a/*b*c", "/a/*.json", "/{x}/**", "/a%20b/*",
    "//h.example/a", "//h.example/**", "//*.example/a", "//*.example:8080/**",
    "//h.example:80/a", "//[::1]/a", "//[::1]:81/*", "GET /a/*", "POST|PUT //h.example/a",
  ]
  static let hosts = [
    "", "h.example", "H.EXAMPLE", "h.example:80", "h.example:8080", "h.example:", "h.example.",
    "x.h.example", "x.h.example:8080", ".example", "example", "xexample", "[::1]", "[::1]:81",
    "other", "h.example:x", "h.example:99999",
  ]
  static let paths = [
    "", "*", "/", "//", "/a", "//a", "/a/", "/a//", "/a/b", "/a//b", "/a/b/", "/a/bc", "/a/xbyc",
    "/a/b.json", "/a/.json", "/a/b/c", "/a/b/c/d", "/a/b/x", "/b", "/A", "/a%20b/c", "a",
    "/b/b", "/bbb/b",
  ]

  @Test(arguments: patterns) func aPatternAloneAgreesWithATable(_ text: String) throws {
    let pattern = try RoutePattern(parsing: text)
    let table = RouteTable(patterns: [pattern])
    let method = Array((pattern.methods.first ?? "GET").utf8)
    var matchCount = 0
    for host in Self.hosts {
      for path in Self.paths {
        let hostBytes = Array(host.utf8)
        let pathBytes = Array(path.utf8)
        let byItself = pattern.matches(host: hostBytes.span, path: pathBytes.span)
        let byTable =
          table.match(method: method.span, host: hostBytes.span, path: pathBytes.span) != nil
        #expect(byItself == byTable, "\(text) with \(host) \(path)")
        if byItself { matchCount += 1 }
      }
    }
    #expect(matchCount > 0 && matchCount < Self.hosts.count * Self.paths.count)
  }

  @Test(
    arguments: [
      ("/", "/"), ("/a/b", "/a/b"), ("GET //h/a/", "/a/"), ("/caf%c3%a9", "/caf%C3%A9"),
      ("/a/*", nil), ("/a/{b}", nil), ("/a/b*", nil), ("/a/**", nil), ("/**", nil),
    ] as [(String, String?)])
  func aPatternWithoutWildcardsIsOnePath(_ text: String, _ path: String?) throws {
    let pattern = try RoutePattern(parsing: text)
    #expect(pattern.literalPath.map { String(decoding: $0, as: UTF8.self) } == path)
  }

  @Test(
    arguments: [
      ("/a/*/c", "/a/**"), ("POST //h/a%20b/{id}/x", "/a%20b/**"), ("/a/**", "/a/**"),
      ("/*/a", nil), ("/**", nil), ("/a*/b", nil), ("/", nil),
    ] as [(String, String?)])
  func aWidenedPatternKeepsTheFirstSegment(_ text: String, _ widened: String?) throws {
    #expect(try RoutePattern(parsing: text).widened?.source == widened)
  }

  @Test(arguments: ["h.example", "*.h.example:8080", "[::1]:81"]) func aHostIsReadAsItIsWritten(
    _ text: String
  ) throws {
    #expect(try RoutePattern.HostPattern(parsing: text).text == text)
  }

  @Test func aTargetHasNoMethods() throws {
    #expect(try RoutePattern(parsing: "GET|HEAD //h/a/*").target == "//h/a/*")
    #expect(try RoutePattern(parsing: "/a").target == "/a")
  }
}
