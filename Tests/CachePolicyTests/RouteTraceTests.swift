import CachePolicy
import Support
import Testing

struct RouteTraceTests {
  private func trace(
    _ sources: [String], _ method: String, _ host: String, _ path: String
  ) throws -> [[RouteTable.Mismatch]] {
    let table = RouteTable(
      patterns: try sources.map { source in try RoutePattern(parsing: source) })
    let (method, host, path) = (Array(method.utf8), Array(host.utf8), Array(path.utf8))
    let found = table.trace(method: method.span, host: host.span, path: path.span)
    #expect(found.map(\.route) == Array(0..<found.count))
    return found.map(\.mismatches)
  }

  @Test(
    arguments: [
      ("the first matches", ["/a", "/b"], "GET", "x", "/a", []),
      ("the path", ["/b", "/a/b", "/a/", "/a"], "GET", "x", "/a", [[.path], [.path], [.path]]),
      ("the method", ["POST /a", "GET /a"], "HEAD", "x", "/a", [[.method]]),
      (
        "the host", ["//y/a", "//*.x/a", "//x:81/a", "/a"], "GET", "x", "/a",
        [[.host], [.host], [.host]]
      ),
      ("all of them", ["POST //y/b"], "GET", "x", "/a", [[.method, .host, .path]]),
      ("none matches", ["/b", "POST /**"], "GET", "x", "/a", [[.path], [.method]]),
      ("no path", ["/**"], "OPTIONS", "x", "*", [[.path]]),
      ("no routes", [], "GET", "x", "/a", []),
    ] as [(String, [String], String, String, String, [[RouteTable.Mismatch]])])
  func everyRouteThatWasPassedHasItsReasons(
    _ name: String, _ sources: [String], _ method: String, _ host: String, _ path: String,
    _ expected: [[RouteTable.Mismatch]]
  ) throws {
    #expect(try trace(sources, method, host, path) == expected, "\(name)")
  }

  @Test func traceAndMatchAgree() throws {
    var dice = Dice(seed: 3)
    var matches = 0
    for _ in 0..<60 {
      let patterns = try (0..<Int.random(in: 0...25, using: &dice)).map { _ in
        try RandomRoutes.pattern(&dice)
      }
      let table = RouteTable(patterns: patterns)
      for _ in 0..<60 {
        let request = RandomRoutes.request(&dice)
        let match = table.match(
          method: request.method.span, host: request.host.span, path: request.path.span)
        let passed = table.trace(
          method: request.method.span, host: request.host.span, path: request.path.span)
        if match != nil { matches += 1 }
        #expect(
          passed.count == match ?? patterns.count,
          "\(request.description) with \(patterns.map(\.source))")
      }
    }
    // Enough of both kinds to see a difference.
    #expect((500...3_100).contains(matches))
  }
}
