import CachePolicy
import Testing

private func patterns(_ sources: [String]) throws -> [RoutePattern] {
  try sources.map { source in try RoutePattern(parsing: source) }
}

private func match(
  _ table: RouteTable, _ method: String, _ path: String, host: String = "x"
) -> Int? {
  table.match(
    method: Array(method.utf8).span, host: Array(host.utf8).span, path: Array(path.utf8).span)
}

@Suite struct RouteTableTests {
  struct Row: Sendable, CustomTestStringConvertible {
    var pattern: String
    var takes: [String]
    var leaves: [String]
    var testDescription: String { pattern }
  }

  @Test(arguments: [
    Row(pattern: "/", takes: ["/", "//", "///"], leaves: ["/a", "*", ""]),
    Row(
      pattern: "/admin", takes: ["/admin", "//admin", "///admin"],
      leaves: ["/", "/admin/", "/Admin", "/admin2", "/adm", "/a/admin", "/%2Fadmin"]),
    Row(pattern: "/a/", takes: ["/a/", "/a//", "//a/"], leaves: ["/a", "/a/b"]),
    Row(
      pattern: "/a/b", takes: ["/a/b", "/a//b", "//a///b"],
      leaves: ["/a/b/", "/a/b/c", "/a%2Fb", "/a\\b", "/ab"]),
    Row(
      pattern: "/rates/**", takes: ["/rates", "/rates/", "/rates/a", "/rates/a/b/", "//rates"],
      leaves: ["/rates2", "/rate", "/rates%2Fa", "/"]),
    Row(pattern: "/**", takes: ["/", "/a", "//", "/a/b/c"], leaves: ["*", "", "a"]),
    Row(
      pattern: "/articles/{id}",
      takes: ["/articles/7", "/articles//7", "/articles/a%2Fb", "/articles/%2A"],
      leaves: ["/articles", "/articles/", "/articles//", "/articles/7/", "/articles/7/x"]),
    Row(
      pattern: "/{a}/x/{b}", takes: ["/1/x/2"], leaves: ["/1/x/", "//x/2", "/1/y/2", "/x/2"]),
    Row(pattern: "/f/*", takes: ["/f/a", "/f/a.b"], leaves: ["/f", "/f/", "/f/a/b"]),
    Row(
      pattern: "/f/*.png", takes: ["/f/a.png", "/f/.png", "/f/a.png.png"],
      leaves: ["/f/a.jpg", "/f/", "/f/a/b.png", "/f/a.pngx", "/f/a%2Fb.jpg"]),
    Row(
      pattern: "/f/a*b*c", takes: ["/f/abc", "/f/aXbYc", "/f/abbcc", "/f/abcbc"],
      leaves: ["/f/ab", "/f/acb", "/f/abcd", "/f/a/b/c"]),
    Row(pattern: "/f/*/x", takes: ["/f/1/x"], leaves: ["/f//x", "/f/1/y", "/f/1/2/x"]),
    Row(pattern: "/caf%c3%a9", takes: ["/caf%C3%A9"], leaves: ["/caf%c3%a9", "/cafe"]),
    Row(pattern: "/%61bc", takes: ["/abc"], leaves: ["/%61bc"]),
    Row(pattern: "/a%2fb", takes: ["/a%2Fb"], leaves: ["/a/b"]),
  ])
  func patternTakesItsPathsAlone(row: Row) throws {
    let table = RouteTable(patterns: try patterns([row.pattern]))
    for path in row.takes { #expect(match(table, "GET", path) == 0, "\(path)") }
    for path in row.leaves { #expect(match(table, "GET", path) == nil, "\(path)") }
  }

  @Test(
    arguments: [
      ("/a", ["GET", "HEAD", "POST", "DELETE", "X-OWN"], []),
      ("GET /a", ["GET", "HEAD"], ["POST", "get", "GE", "GETS", ""]),
      ("HEAD /a", ["HEAD"], ["GET"]),
      ("POST /a", ["POST"], ["GET", "HEAD", "PUT"]),
      ("GET|POST /a", ["GET", "HEAD", "POST"], ["PUT"]),
      ("X-OWN|M-SEARCH /a", ["X-OWN", "M-SEARCH"], ["GET", "X"]),
    ] as [(String, [String], [String])])
  func methodListTakesItsMethodsAlone(
    pattern: String, takes: [String], leaves: [String]
  ) throws {
    let table = RouteTable(patterns: try patterns([pattern]))
    for method in takes { #expect(match(table, method, "/a") == 0, "\(method)") }
    for method in leaves { #expect(match(table, method, "/a") == nil, "\(method)") }
  }

  @Test(
    arguments: [
      (
        "//api.example.com/a",
        [
          "api.example.com", "API.Example.COM", "api.example.com:8080", "api.example.com.",
          "api.example.com.:80", "api.example.com:",
        ],
        ["example.com", "x.api.example.com", "api.example.com.evil", "", "api.example.comx", ":80"]
      ),
      (
        "//API.example.com:8080/a", ["api.example.com:8080"],
        ["api.example.com", "api.example.com:80", "api.example.com:808", "api.example.com:18080"]
      ),
      (
        "//api.example.com:80/a", ["api.example.com", "api.example.com:80", "api.example.com:"],
        ["api.example.com:81", "api.example.com:99999"]
      ),
      (
        "//*.example.com/a",
        ["a.example.com", "a.b.example.com", "A.EXAMPLE.com:9", "a.example.com."],
        ["example.com", "aexample.com", "a.example.org", "a.example.com.evil"]
      ),
      ("//*.example.com:81/a", ["a.example.com:81"], ["a.example.com", "a.example.com:80"]),
      ("//127.0.0.1/a", ["127.0.0.1", "127.0.0.1:80"], ["127.0.0.2", "0.0.1"]),
      ("//[::1]/a", ["[::1]", "[::1]:8080"], ["::1", "[::2]"]),
      ("//[::1]:8080/a", ["[::1]:8080"], ["[::1]", "[::1]:8081"]),
    ] as [(String, [String], [String])])
  func hostPatternTakesItsHostsAlone(
    pattern: String, takes: [String], leaves: [String]
  ) throws {
    let table = RouteTable(patterns: try patterns([pattern]))
    for host in takes { #expect(match(table, "GET", "/a", host: host) == 0, "\(host)") }
    for host in leaves { #expect(match(table, "GET", "/a", host: host) == nil, "\(host)") }
  }

  @Test(
    arguments: [
      (["/a/**", "/a/b"], "/a/b", 0),
      (["/a/b", "/a/**"], "/a/b", 0),
      (["/a/b", "/a/**"], "/a/c", 1),
      (["/{x}/b", "/a/{y}"], "/a/b", 0),
      (["/a/{y}", "/{x}/b"], "/a/b", 0),
      (["/a/{y}/c", "/{x}/b/d"], "/a/b/d", 1),
      (["/a/*.png", "/a/x*", "/a/*"], "/a/x.png", 0),
      (["/a/x*", "/a/*.png", "/a/*"], "/a/x.png", 0),
      (["/a/x*", "/a/*.png", "/a/*"], "/a/y", 2),
      (["POST /a", "/a"], "/a", 1),
      (["POST /**", "/a", "/**"], "/b", 2),
      (["//y/a", "/a"], "/a", 1),
      (["/a", "//x/a"], "/a", 0),
      (["//x/a", "/a"], "/a", 0),
      (["//x:81/a", "//x/a", "/a"], "/a", 1),
      (["/a/b/c/d", "/a/**", "/a/b/{x}/d"], "/a/b/c/e", 1),
    ] as [([String], String, Int)])
  func firstRouteInOrderWins(sources: [String], path: String, winner: Int) throws {
    let table = RouteTable(patterns: try patterns(sources))
    #expect(match(table, "GET", path) == winner)
  }

  @Test func emptyTableTakesNothing() {
    #expect(match(RouteTable(patterns: []), "GET", "/") == nil)
  }

  /// A table of many routes says of every request what trying one pattern after the other says.
  @Test func trieAgreesWithTryingEachPatternInTurn() throws {
    let pieces = ["a", "b", "{x}", "*", "a*", "*b"]
    var sources: [String] = []
    var state: UInt64 = 7
    func random(_ bound: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % bound
    }
    for _ in 0..<150 {
      let segments = (0..<random(4)).map { index in
        let piece = pieces[random(pieces.count)]
        return piece == "{x}" ? "{x\(index)}" : piece
      }
      let method = ["", "", "GET ", "POST "][random(4)]
      let host = ["", "", "//x", "//*.y"][random(4)]
      let end = ["", "/**", "/"][random(3)]
      let path =
        segments.isEmpty ? (end.isEmpty ? "/" : end) : "/" + segments.joined(separator: "/") + end
      sources.append(method + host + path)
    }
    let all = try patterns(sources)
    let table = RouteTable(patterns: all)
    let singles = all.map { RouteTable(patterns: [$0]) }
    let words = ["a", "b", "ab", "c", "", "aab"]
    for _ in 0..<3_000 {
      let path =
        "/" + (0..<random(5)).map { _ in words[random(words.count)] }.joined(separator: "/")
      let method = ["GET", "HEAD", "POST", "PUT"][random(4)]
      let host = ["x", "z.y", "y"][random(3)]
      let expected = singles.firstIndex { match($0, method, path, host: host) != nil }
      #expect(match(table, method, path, host: host) == expected, "\(method) \(host) \(path)")
    }
  }

  @Test func thousandsOfRoutesAreToldApart() throws {
    let all = try patterns((0..<3_000).map { "/r\($0)/{id}" } + ["/**"])
    let table = RouteTable(patterns: all)
    for index in stride(from: 0, to: 3_000, by: 7) {
      #expect(match(table, "GET", "/r\(index)/1") == index)
      #expect(match(table, "GET", "/r\(index)") == 3_000)
    }
  }
}

@Suite struct RouteCoverageTests {
  @Test(
    arguments: [
      (["/a", "/a"], [1], [0]),
      (["/**", "/a"], [1], [0]),
      (["/a/**", "/a"], [1], [0]),
      (["/a/**", "/a/"], [1], [0]),
      (["/a/**", "/a/{x}/b/**"], [1], [0]),
      (["/a/{x}", "/a/b"], [1], [0]),
      (["/a/*", "/a/{x}"], [1], [0]),
      (["/a/*.png", "/a/x.png"], [1], [0]),
      (["/a/*.png", "/a/x*.png"], [1], [0]),
      (["/a/b", "/a/%62"], [1], [0]),
      (["/a", "GET /a"], [1], [0]),
      (["GET /a", "HEAD /a"], [1], [0]),
      (["/a", "//x/a"], [1], [0]),
      (["//*.x/a", "//b.x/a"], [1], [0]),
      (["//*.x/a", "//*.b.x/a"], [1], [0]),
      (["//x/a", "//x:81/a"], [1], [0]),
      (["GET /a", "POST /a", "GET|POST /a"], [2], [0, 1]),
    ] as [([String], [Int], [Int])])
  func routeThatEarlierOnesTakeIsFound(
    sources: [String], routes: [Int], takenBy: [Int]
  ) throws {
    let found = RouteTable.unreachableRoutes(try patterns(sources))
    #expect(found.map(\.route) == routes)
    #expect(found.first?.takenBy == takenBy)
  }

  @Test(arguments: [
    ["/a", "/b"], ["/a", "/**"], ["/a", "/a/"], ["/a/b", "/a/{x}"], ["/a/{x}", "/a/**"],
    ["/a/{x}", "/a/"], ["/a/*.png", "/a/*"], ["/a/x*.png", "/a/*.png"], ["/a/*.png", "/a/x"],
    ["GET /a", "/a"], ["GET /a", "POST /a"], ["HEAD /a", "GET /a"], ["GET /a", "GET|POST /a"],
    ["//x/a", "/a"], ["//x/a", "//y/a"], ["//*.x/a", "//x/a"], ["//b.x/a", "//*.x/a"],
    ["//x:81/a", "//x/a"], ["//x:81/a", "//x:82/a"], ["/a/{x}/c", "/a/b/**"],
  ])
  func routeThatStillMatchesIsNotReported(sources: [String]) throws {
    #expect(RouteTable.unreachableRoutes(try patterns(sources)).isEmpty)
  }
}

@Suite struct RoutePatternTests {
  @Test(
    arguments: [
      ("", .notAbsolute), ("a", .notAbsolute), ("GET", .notAbsolute), ("GET a", .notAbsolute),
      ("GET  /a", .notAbsolute), ("*", .notAbsolute), ("https://x/a", .notAbsolute),
      (" /a", .badMethod("")), ("GET| /a", .badMethod("")), ("GET,POST /a", .badMethod("GET,POST")),
      ("get /a", .lowercaseMethod("get")), ("GET|Post /a", .lowercaseMethod("Post")),
      ("PURGE /a", .unroutedMethod("PURGE")), ("CONNECT /a", .unroutedMethod("CONNECT")),
      ("//x", .hostWithoutPath("//x")), ("//admin", .hostWithoutPath("//admin")),
      ("///a", .badHost("")), ("//*/a", .badHost("*")), ("//x:/a", .badHost("x:")),
      ("//x:0/a", .badHost("x:0")), ("//x:70000/a", .badHost("x:70000")),
      ("//x*.y/a", .badHost("x*.y")), ("//.x/a", .badHost(".x")), ("//x./a", .badHost("x.")),
      ("//u@x/a", .badHost("u@x")), ("//*.[::1]/a", .badHost("*.[::1]")),
      ("/a?b", .queryOrFragment), ("/a#b", .queryOrFragment), ("/a b", .badMethod("/a")),
      ("/é", .forbiddenByte), ("/a%", .malformedPercent("a%")), ("/a%2", .malformedPercent("a%2")),
      ("/a/../b", .dotSegment("..")), ("/./b", .dotSegment(".")), ("/%2e", .dotSegment("%2e")),
      ("/..%2fb", .dotSegment("..%2fb")), ("/a//b", .emptySegment), ("/a//", .emptySegment),
      ("/**/a", .restNotLast), ("/a**", .restNotLast), ("/a/**/", .restNotLast),
      ("/{}", .badName("{}")), ("/{a}b", .badName("{a}b")), ("/{a-b}", .badName("{a-b}")),
      ("/{a", .badName("{a")), ("/{a}/{a}", .repeatedName("a")),
    ] as [(String, RoutePatternError)])
  func patternIsRefused(source: String, error: RoutePatternError) {
    #expect(throws: error) { try RoutePattern(parsing: source) }
    #expect(!error.message.isEmpty)
  }

  @Test(
    arguments: [
      ("/articles/{id}", "/articles/7", ["id=7"]),
      ("/{a}/x/{b}/**", "//1//x/2%2F3/4", ["a=1", "b=2%2F3"]),
      ("/a/*/{b}", "/a/1/2", ["b=2"]),
      ("/a/**", "/a/1", []),
    ] as [(String, String, [String])])
  func namesCaptureTheirSegments(source: String, path: String, expected: [String]) throws {
    let pattern = try RoutePattern(parsing: source)
    let found = pattern.captures(path: Array(path.utf8).span).map { "\($0.name)=\($0.value)" }
    #expect(found == expected)
  }
}
