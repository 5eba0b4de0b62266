import Support
import Testing

/// A Range is honoured whatever has been asked of the network before, by every strategy (RG3), and
/// an origin's error is never dressed as a part (RG4).
struct RangeRevalidationScenarios {
  static let letters = WholeRangeScenarios.letters
  static let capitals = WholeRangeScenarios.letters.uppercased()

  private static func expectPart(
    _ answer: Answer, _ body: String, _ location: SourceLocation = #_sourceLocation
  ) {
    expectText(answer, body, status: 206, location)
    #expect(answer.all("Content-Range") == ["bytes 2-3/26"], sourceLocation: location)
  }

  @Test(arguments: [true, false]) func thePartIsOfWhatTheValidationBrought(_ isNew: Bool) throws {
    try scenario(WholeRangeScenarios.route) { origin, proxy in
      origin.on("/a", .text(Self.letters, "ETag: \"1\""))
      _ = try proxy.get("/a")
      proxy.advance(seconds: 4000)
      origin.on(
        "/a",
        isNew ? .text(Self.capitals, "ETag: \"2\"") : .empty(status: 304, "ETag: \"1\""))
      let answer = try proxy.get("/a", "Range: bytes=2-3")
      Self.expectPart(answer, isNew ? "CD" : "cd")
      #expect(origin.requests("/a").last?.first("If-None-Match") == "\"1\"")
      #expect(origin.requests("/a").last?.first("Range") == nil)
      // If-Range is held against the new one.
      let again = try proxy.get("/a", "Range: bytes=2-3", "If-Range: \"\(isNew ? 2 : 1)\"")
      Self.expectPart(again, isNew ? "CD" : "cd")
    }
  }

  @Test func severalPartsComeFromAConfirmedCopy() throws {
    try scenario(WholeRangeScenarios.route) { origin, proxy in
      origin.on(
        "/a", inTurn: [.text(Self.letters, "ETag: \"1\""), .empty(status: 304, "ETag: \"1\"")])
      _ = try proxy.get("/a")
      proxy.advance(seconds: 4000)
      let answer = try proxy.get("/a", "Range: bytes=2-3,-1")
      #expect(MultipartAnswer(answer)?.parts.map { $0.body } == [Array("cd".utf8), [0x7A]])
      #expect(origin.requestCount("/a") == 2)
    }
  }

  @Test(arguments: [404, 410, 500, 503]) func anErrorOfTheOriginStaysAnError(_ status: Int) throws {
    try scenario(WholeRangeScenarios.route) { origin, proxy in
      origin.on("/a", .text(Self.letters, "ETag: \"1\""))
      _ = try proxy.get("/a")
      proxy.advance(seconds: 4000)
      origin.on("/a", .text(Self.capitals, status: status))
      let answer = try proxy.get("/a", "Range: bytes=2-3")
      expectText(answer, Self.capitals, status: status)
      #expect(answer.first("Content-Range") == nil)
    }
  }

  /// With a copy that may stand in, the part is the copy's: on either kind of route, however the
  /// network fails.
  @Test(
    arguments: [NetworkFailure.refusesConnections, .resetsInsteadOfAnswering, .answers503],
    ["cache-first", "network-first"])
  func theCopyStandsInWithThePart(_ failure: NetworkFailure, _ strategy: String) throws {
    for range in ["pass", "fetch-whole"] {
      let route = windowedRoute(strategy, "\"range\": \"\(range)\"")
      try scenario(route, upstream: failure.upstream) { origin, proxy in
        origin.on("/a", .text(Self.letters, "ETag: \"1\""))
        _ = try proxy.get("/a")
        proxy.advance(seconds: Age.older)
        failure.begin(origin, "/a")
        let answer = try proxy.get("/a", "Range: bytes=2-3")
        Self.expectPart(answer, "cd")
        #expect(answer.cacheStatus.forwardStatus == failure.forwardStatus)
        let several = try proxy.get("/a", "Range: bytes=2-3,5-6")
        #expect(MultipartAnswer(several)?.parts.count == 2)
      }
    }
  }

  @Test func aStaleCopyServesThePartAndTheWholeIsRefreshed() throws {
    try scenario(windowedRoute("stale-while-revalidate")) { origin, proxy in
      origin.on("/a", .text(Self.letters))
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.stale)
      origin.on("/a", .text(Self.capitals))
      Self.expectPart(try proxy.get("/a", "Range: bytes=2-3"), "cd")
      try proxy.settle(after: origin, "/a", answers: 2)
      #expect(origin.requests("/a").last?.first("Range") == nil)
      Self.expectPart(try proxy.get("/a", "Range: bytes=2-3"), "CD")
    }
  }

  @Test func aLateNetworkLeavesThePartToTheCopy() throws {
    let route = windowedRoute("network-first", "\"deadline\": \"50ms\"")
    try scenario(route) { origin, proxy in
      origin.on("/a", .text(Self.letters))
      _ = try proxy.get("/a")
      let gate = Gate()
      origin.on("/a", OriginAnswer.text(Self.capitals).waiting(for: gate))
      Self.expectPart(try proxy.get("/a", "Range: bytes=2-3"), "cd")
      gate.open()
    }
  }

  @Test(arguments: ["cache-only", "cache-first", "network-first"])
  func withoutTheNetworkTheCopyServesThePart(_ strategy: String) throws {
    let routes = windowedRoute(
      "cache-first", "\"clientStrategies\": [\"cache-only\", \"network-first\"]")
    try scenario(routes) { origin, proxy in
      origin.on("/a", .text(Self.letters))
      _ = try proxy.get("/a")
      for age in [Age.fresh, Age.stale] {
        proxy.advance(seconds: age)
        let answer = try proxy.get(
          "/a", "Range: bytes=2-3", "Larder-Strategy: \(strategy)",
          "Cache-Control: only-if-cached")
        Self.expectPart(answer, "cd")
        let beyond = try proxy.get(
          "/a", "Range: bytes=26-", "Larder-Strategy: \(strategy)",
          "Cache-Control: only-if-cached")
        #expect(beyond.status == 416 && beyond.first("Content-Range") == "bytes */26")
      }
      let missing = try proxy.get("/b", "Range: bytes=2-3", "Cache-Control: only-if-cached")
      #expect(missing.status == 504)
      #expect(origin.requestCount("/a") == 1)
    }
  }
}
