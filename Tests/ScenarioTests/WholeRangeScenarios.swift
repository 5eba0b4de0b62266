import Support
import Testing

/// Routes that fetch the whole for whoever asks for a part (`range: "fetch-whole"`): the part comes
/// out of the running fill, and the whole is stored for those who come later.
struct WholeRangeScenarios {
  static let route = """
    { "name": "r", "match": "/**", "strategy": "cache-first", "ttl": "1h",
      "range": "fetch-whole" }
    """
  static let letters = "abcdefghijklmnopqrstuvwxyz"
  /// Several chunks of the store, and more than any window of memory.
  static let large = testBytes(3_000_000, seed: 7)

  private static func expectPart(
    _ answer: Answer, _ body: [UInt8], _ contentRange: String,
    _ location: SourceLocation = #_sourceLocation
  ) {
    #expect(answer.status == 206, sourceLocation: location)
    #expect(answer.first("Content-Range") == contentRange, sourceLocation: location)
    #expect(answer.first("Content-Length") == "\(body.count)", sourceLocation: location)
    #expect(!answer.isCut && answer.body == body, sourceLocation: location)
    #expect(answer.all("Content-Range").count == 1, sourceLocation: location)
    #expect(answer.all("Content-Length").count == 1, sourceLocation: location)
  }

  @Test(
    arguments: [
      ("0-0", "a", "0-0"), ("3-5", "def", "3-5"), ("24-", "yz", "24-25"), ("-3", "xyz", "23-25"),
      ("20-99", "uvwxyz", "20-25"), ("-99", letters, "0-25"), ("0-", letters, "0-25"),
    ] as [(String, String, String)])
  func aPartThatMissesIsServedAndTheWholeIsStored(
    _ asked: String, _ part: String, _ range: String
  ) throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .text(Self.letters, "ETag: \"1\""))
      let answer = try proxy.get("/a", "Range: bytes=\(asked)")
      Self.expectPart(answer, Array(part.utf8), "bytes \(range)/26")
      #expect(answer.cacheStatus.isStored && answer.cacheStatus.forward == "uri-miss")
      #expect(origin.requests("/a").first?.first("Range") == nil)
      try proxy.settle(after: origin, "/a", answers: 1)
      expect(try proxy.get("/a"), Self.letters, .hit)
      let again = try proxy.get("/a", "Range: bytes=\(asked)")
      Self.expectPart(again, Array(part.utf8), "bytes \(range)/26")
      #expect(again.cacheStatus.isHit)
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test(arguments: ["26-", "99-120", "-0"])
  func aPartBeyondTheEndIsRefusedAndTheWholeIsStored(_ asked: String) throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .text(Self.letters))
      let connection = try proxy.connect()
      let answer = try connection.get("/a", ["Range: bytes=\(asked)"])
      #expect(answer.status == 416 && answer.body.isEmpty)
      #expect(answer.first("Content-Range") == "bytes */26")
      try proxy.settle(after: origin, "/a", answers: 1)
      expect(try connection.get("/a"), Self.letters, .hit)
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test(
    arguments: ["5-3", "x-y", "", "99999999999999999999999-"])
  func whatIsNotOnePartIsAnsweredSoundly(_ asked: String) throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .text(Self.letters))
      let first = try proxy.get("/a", "Range: bytes=\(asked)")
      // A server may ignore Range; what it must not do is to answer another part.
      #expect(first.status == 200 && first.text == Self.letters || first.status == 416)
      try proxy.settle(after: origin, "/a", answers: 1)
      let second = try proxy.get("/a", "Range: bytes=\(asked)")
      #expect(second.status == first.status && second.body == first.body)
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test(
    arguments: [("\"1\"", true), ("\"2\"", false), ("W/\"1\"", false)] as [(String, Bool)])
  func ifRangeHoldsAgainstWhatTheOriginAnswersNow(_ tag: String, _ holds: Bool) throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .text(Self.letters, "ETag: \"1\""))
      let answer = try proxy.get("/a", "Range: bytes=2-3", "If-Range: \(tag)")
      if holds {
        Self.expectPart(answer, Array("cd".utf8), "bytes 2-3/26")
      } else {
        expectText(answer, Self.letters)
      }
      #expect(origin.requests("/a").first?.first("If-Range") == nil)
    }
  }

  /// Nobody knows in which order they will lie in what has yet to come.
  @Test func severalPartsThatMissAreTheWholeAndComeFromTheCopyAfterwards() throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .text(Self.letters))
      expectText(try proxy.get("/a", "Range: bytes=0-1,4-5"), Self.letters)
      try proxy.settle(after: origin, "/a", answers: 1)
      let again = try proxy.get("/a", "Range: bytes=0-1,4-5")
      #expect(
        MultipartAnswer(again)?.parts.map(\.contentRange) == ["bytes 0-1/26", "bytes 4-5/26"])
      // Of several, one is left or asked for: a part like any other.
      origin.on("/b", .text(Self.letters))
      Self.expectPart(
        try proxy.get("/b", "Range: bytes=30-40,4-5"), Array("ef".utf8), "bytes 4-5/26")
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test(
    arguments: [0..<1, 65_535..<65_537, 1_999_990..<2_500_000, 2_999_999..<3_000_000])
  func aPartOfALargeBodyIsCutOutOfTheRunningFill(_ part: Range<Int>) throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .bytes(Self.large))
      let asked = "Range: bytes=\(part.lowerBound)-\(part.upperBound - 1)"
      let range = "bytes \(part.lowerBound)-\(part.upperBound - 1)/3000000"
      Self.expectPart(try proxy.get("/a", asked), Array(Self.large[part]), range)
      try proxy.settle(after: origin, "/a", answers: 1)
      Self.expectPart(try proxy.get("/a", asked), Array(Self.large[part]), range)
      let whole = try proxy.get("/a")
      #expect(whole.body == Self.large)
      #expect(origin.requestCount("/a") == 1)
    }
  }

  /// The client begins to read far behind what has come, while nothing is being stored.
  @Test(arguments: ["Cache-Control: no-store", "Set-Cookie: a=b", "Cache-Control: private"])
  func aPartOfALargeBodyThatIsNotStoredIsTheRightOne(_ field: String) throws {
    try scenario(Self.route) { origin, proxy in
      let gate = Gate()
      origin.on(
        "/a", OriginAnswer.bytes(Self.large, field).pausing(after: 10_000, for: gate))
      let connection = try proxy.connect()
      connection.send("GET", "/a", ["Range: bytes=500000-600099"])
      try connection.readHead()
      #expect(gate.waitUntilReached())
      try proxy.settle()
      gate.open()
      let answer = try connection.finishAnswer()
      Self.expectPart(answer, Array(Self.large[500_000..<600_100]), "bytes 500000-600099/3000000")
      #expect(!answer.cacheStatus.isStored)
    }
  }

  @Test func joinersOfOneFillEachGetTheirOwnPart() throws {
    try scenario(Self.route) { origin, proxy in
      let gate = Gate()
      origin.on("/a", OriginAnswer.bytes(Self.large).pausing(after: 1_000_000, for: gate))
      let asked = [nil, 0..<10, 999_000..<1_200_000, 2_999_000..<3_000_000, 500..<600]
      let connections = try asked.map { part in
        let connection = try proxy.connect()
        let fields = part.map { ["Range: bytes=\($0.lowerBound)-\($0.upperBound - 1)"] } ?? []
        connection.send("GET", "/a", fields)
        if part == nil { try connection.readHead() }
        return connection
      }
      // Two of the parts are in already: nobody waits for the rest of the fill (RG7).
      for index in [1, 4] {
        let early = try connections[index].readAnswer()
        #expect(early.body == Array(Self.large[asked[index]!]))
      }
      gate.open()
      #expect(try connections[0].finishAnswer().body == Self.large)
      for index in [2, 3] {
        let part = asked[index]!
        Self.expectPart(
          try connections[index].readAnswer(), Array(Self.large[part]),
          "bytes \(part.lowerBound)-\(part.upperBound - 1)/3000000")
      }
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test func aClientThatLeavesDoesNotEndTheFill() throws {
    let route = windowedRoute(
      "cache-first", #""range": "fetch-whole", "whenAbandoned": "finish""#)
    try scenario(route) { origin, proxy in
      let gate = Gate()
      origin.on("/a", OriginAnswer.bytes(Self.large).pausing(after: 1_000_000, for: gate))
      let connection = try proxy.connect()
      connection.send("GET", "/a", ["Range: bytes=2000000-2000009"])
      try connection.readHead()
      #expect(gate.waitUntilReached())
      connection.reset()
      try proxy.settle()
      gate.open()
      try proxy.settle(after: origin, "/a", answers: 1)
      let answer = try proxy.get("/a", "Range: bytes=2000000-2000009")
      Self.expectPart(
        answer, Array(Self.large[2_000_000..<2_000_010]), "bytes 2000000-2000009/3000000")
      #expect(answer.cacheStatus.isHit && origin.requestCount("/a") == 1)
    }
  }

  @Test func aBodyThatBreaksOffBeforeThePartCutsTheAnswerAndStoresNothing() throws {
    try scenario(Self.route) { origin, proxy in
      origin.on(
        "/a",
        inTurn: [
          OriginAnswer.bytes(Self.large).broken(after: 1_000_000, by: .reset),
          .bytes(Self.large),
        ])
      let first = try proxy.get("/a", "Range: bytes=2000000-2000009")
      #expect(first.status >= 500 || first.isCut)
      let second = try proxy.get("/a", "Range: bytes=2000000-2000009")
      #expect(second.body == Array(Self.large[2_000_000..<2_000_010]))
      #expect(origin.requestCount("/a") == 2)
    }
  }

  @Test(arguments: [404, 503])
  func anErrorIsNeverDressedAsAPart(_ status: Int) throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .text(Self.letters, status: status))
      let answer = try proxy.get("/a", "Range: bytes=2-3")
      expectText(answer, Self.letters, status: status)
      #expect(answer.first("Content-Range") == nil)
    }
  }

  @Test func aRangeOnHeadIsNoRange() throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .text(Self.letters))
      let answer = try proxy.send("HEAD", "/a", ["Range: bytes=2-3"])
      #expect(answer.status == 200 && answer.first("Content-Length") == "26")
    }
  }

  /// A copy that is revalidated for a request of a part still serves the part (RG3).
  @Test func aConfirmedCopyServesThePart() throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a") { request in
        request.first("If-None-Match") == "\"1\""
          ? .empty(status: 304, "ETag: \"1\"") : .text(Self.letters, "ETag: \"1\"")
      }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 4000)
      Self.expectPart(
        try proxy.get("/a", "Range: bytes=2-3"), Array("cd".utf8), "bytes 2-3/26")
      #expect(origin.requests("/a").last?.first("If-None-Match") == "\"1\"")
      #expect(origin.requests("/a").last?.first("Range") == nil)
    }
  }

  @Test func otherRoutesSendThePartOn() throws {
    let passing = Self.route.replacing("fetch-whole", with: "pass")
    try scenario(passing) { origin, proxy in
      origin.on(
        "/a", .text("cd", status: 206, "Content-Range: bytes 2-3/26", "Cache-Control: max-age=9"))
      let answer = try proxy.get("/a", "Range: bytes=2-3")
      expectText(answer, "cd", status: 206)
      #expect(!answer.cacheStatus.isStored)
      #expect(origin.requests("/a").first?.first("Range") == "bytes=2-3")
    }
  }
}
