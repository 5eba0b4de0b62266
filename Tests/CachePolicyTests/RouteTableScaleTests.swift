import CachePolicy
import Support
import Testing

/// Tables of many routes find what plain readings of one pattern after the other find.
struct RouteTableScaleTests {
  /// So many globs in one place that they are looked up by their ends.
  @Test func manyGlobsAgreeWithTryingEachInTurn() throws {
    var dice = Dice(seed: 11)
    var matches = 0
    for _ in 0..<40 {
      let patterns = try (0..<60).map { _ in
        let glob = (0..<Int.random(in: 2...5, using: &dice)).map { _ in dice.pick(["a", "b", "*"]) }
        let segment = glob.joined().split(separator: "*", omittingEmptySubsequences: true)
          .joined(separator: "*")
        let ends = dice.pick([("*", ""), ("", "*"), ("*", "*"), ("", "*b"), ("a*", "")])
        let path = "/" + ends.0 + segment + ends.1 + dice.pick(["", "", "/x", "/*y"])
        return try RoutePattern(parsing: path.contains("**") ? "/b*a" : path)
      }
      let table = RouteTable(patterns: patterns)
      for _ in 0..<80 {
        let segment = (0..<Int.random(in: 0...6, using: &dice)).map { _ in
          dice.pick(["a", "b", "b", "c"])
        }
        let path = "/" + segment.joined() + dice.pick(["", "", "/x", "/zy"])
        let request = (Array("GET".utf8), Array("x".utf8), Array(path.utf8))
        let match = table.match(
          method: request.0.span, host: request.1.span, path: request.2.span)
        let passed = table.trace(
          method: request.0.span, host: request.1.span, path: request.2.span)
        if match != nil { matches += 1 }
        #expect(passed.count == match ?? patterns.count, "\(path) with \(patterns.map(\.source))")
      }
    }
    #expect((800...3_000).contains(matches))
  }

  /// Names longer than a slot of the hash table holds, that differ at the end only.
  @Test func longNamesAreToldApart() throws {
    let stem = String(repeating: "segment", count: 5)
    let patterns = try (0..<300).flatMap { index in
      [
        try RoutePattern(parsing: "/\(stem)\(index)/x"),
        try RoutePattern(parsing: "//host\(index).\(stem).example/x"),
        try RoutePattern(parsing: "/\(stem)\(index)*\(stem)\(index)"),
      ]
    }
    let table = RouteTable(patterns: patterns)
    func match(_ host: String, _ path: String) -> Int? {
      let (method, host, path) = (Array("GET".utf8), Array(host.utf8), Array(path.utf8))
      return table.match(method: method.span, host: host.span, path: path.span)
    }
    for index in 0..<300 {
      #expect(match("y", "/\(stem)\(index)/x") == index * 3)
      #expect(match("HOST\(index).\(stem.uppercased()).example:80", "/x") == index * 3 + 1)
      let found = try #require(match("y", "/\(stem)\(index)!\(stem)\(index)"))
      #expect(found == index * 3 + 2)
    }
    #expect(match("y", "/\(stem)300/x") == nil)
    #expect(match("host300.\(stem).example", "/x") == nil)
    #expect(match("y", "/\(stem)1!\(stem)") == nil)
  }

  /// A route is lost where the earlier ones that cover it, each asked alone, share out its methods.
  @Test func unreachableRoutesAreThoseThatEarlierOnesCover() throws {
    var dice = Dice(seed: 5)
    var lost = 0
    for _ in 0..<25 {
      var patterns = try (0..<40).map { _ in try RandomRoutes.pattern(&dice) }
      patterns += try (0..<40).map { _ in
        let ends = dice.pick(["", "", "a", "b", "ab", "ba", "aa"])
        let glob =
          dice.pick(["a", "b", "ab", "", ""]) + "*" + dice.pick(["", "a*", "b*a*"]) + ends
        return try RoutePattern(parsing: "/g/a" + glob + dice.pick(["", "/**", "/c"]))
      }
      patterns.shuffle(using: &dice)
      let expected = try Self.plainly(patterns)
      lost += expected.count
      let found = RouteTable.unreachableRoutes(patterns).map { [$0.route] + $0.takenBy }
      #expect(found == expected, "\(patterns.map(\.source))")
    }
    #expect(lost > 100)
  }

  /// Each lost route, with those that take it behind it.
  private static func plainly(_ patterns: [RoutePattern]) throws -> [[Int]] {
    // Without methods, so that a pair tells whether the one covers the other's host and path.
    let bare = try patterns.map { pattern in
      let source = pattern.source
      let path = source.firstIndex(of: " ").map { String(source[source.index(after: $0)...]) }
      return try RoutePattern(parsing: path ?? source)
    }
    return patterns.indices.compactMap { route in
      var takenBy: [Int] = []
      var methodsLeft = Set(patterns[route].methods)
      for earlier in 0..<route {
        if RouteTable.unreachableRoutes([bare[earlier], bare[route]]).isEmpty { continue }
        let methods = patterns[earlier].methods
        if methods.isEmpty {
          return [route, earlier]
        }
        guard !methodsLeft.isDisjoint(with: methods) else { continue }
        methodsLeft.subtract(methods)
        takenBy.append(earlier)
        if methodsLeft.isEmpty {
          return [route] + takenBy
        }
      }
      return nil
    }
  }

  /// No request finds a route that is reported.
  @Test func noRequestFindsAnUnreachableRoute() throws {
    var dice = Dice(seed: 8)
    for _ in 0..<40 {
      let patterns = try (0..<30).map { _ in try RandomRoutes.pattern(&dice) }
      let lost = Set(RouteTable.unreachableRoutes(patterns).map(\.route))
      let table = RouteTable(patterns: patterns)
      for _ in 0..<80 {
        let request = RandomRoutes.request(&dice)
        let match = table.match(
          method: request.method.span, host: request.host.span, path: request.path.span)
        if let match { #expect(!lost.contains(match), "\(request.description)") }
      }
    }
  }
}
