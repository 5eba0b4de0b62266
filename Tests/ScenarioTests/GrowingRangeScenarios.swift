import Support
import Testing

/// Parts of a body whose length nobody knows yet (`Transfer-Encoding: chunked` from the origin), on
/// a route that fetches the whole.
struct GrowingRangeScenarios {
  static let route = WholeRangeScenarios.route
  static let letters = WholeRangeScenarios.letters

  /// The letters, with ten of them sent until the gate opens.
  private static func growing(_ gate: Gate, _ field: String = "ETag: \"1\"") -> OriginAnswer {
    OriginAnswer.text(letters, field).framed(.chunked).pausing(after: 10, for: gate)
  }

  private static func expectPart(
    _ answer: Answer, _ body: String, _ contentRange: String,
    _ location: SourceLocation = #_sourceLocation
  ) {
    expectText(answer, body, status: 206, location)
    #expect(answer.all("Content-Range") == [contentRange], sourceLocation: location)
    #expect(answer.all("Content-Length") == ["\(body.utf8.count)"], sourceLocation: location)
    #expect(answer.first("Transfer-Encoding") == nil, sourceLocation: location)
  }

  /// The first, who begins the fill, and one who joins it.
  @Test func aPartThatIsThereIsSentWhileTheRestIsOnItsWay() throws {
    try scenario(Self.route) { origin, proxy in
      let gate = Gate()
      origin.on("/a", Self.growing(gate))
      for asked in ["2-3", "0-9", "9-9"] {
        let ends = asked.split(separator: "-").compactMap { Int($0) }
        let part = String(Array(Self.letters)[ends[0]...ends[1]])
        Self.expectPart(
          try proxy.get("/a", "Range: bytes=\(asked)"), part, "bytes \(asked)/*")
      }
      let held = try proxy.get("/a", "Range: bytes=2-3", "If-Range: \"1\"")
      Self.expectPart(held, "cd", "bytes 2-3/*")
      gate.open()
      try proxy.settle(after: origin, "/a", answers: 1)
      Self.expectPart(try proxy.get("/a", "Range: bytes=2-3"), "cd", "bytes 2-3/26")
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test(
    arguments: [
      ("8-11", 206, "ijkl", "bytes 8-11/"), ("20-40", 206, "uvwxyz", "bytes 20-25/26"),
      ("26-40", 416, "", "bytes */26"), ("5-99999999999999999999", 206, "", "bytes 5-25/26"),
    ] as [(String, Int, String, String)])
  func aPartThatIsNotThereYetIsWaitedFor(
    _ asked: String, _ status: Int, _ body: String, _ contentRange: String
  ) throws {
    try scenario(Self.route, top: "\"loops\": 2,") { origin, proxy in
      let gate = Gate()
      origin.on("/a", Self.growing(gate))
      let clients = try (0..<3).map { _ in
        let client = try proxy.connect()
        client.send("GET", "/a", ["Range: bytes=\(asked)"])
        return client
      }
      #expect(gate.waitUntilReached())
      try proxy.settle()
      // Nothing of an answer is out: one who leaves now is owed none.
      clients[2].reset()
      gate.open()
      for client in clients.prefix(2) {
        let answer = try client.readAnswer()
        #expect(answer.status == status && !answer.isCut)
        #expect(answer.first("Content-Range")?.hasPrefix(contentRange) == true)
        #expect(answer.text == (body.isEmpty && status == 206 ? "fghijklmnopqrstuvwxyz" : body))
      }
      try proxy.settle(after: origin, "/a", answers: 1)
      expect(try proxy.get("/a"), Self.letters, .hit)
      #expect(origin.requestCount("/a") == 1)
    }
  }

  /// What depends on where the body ends, and several parts, get the whole at once.
  @Test(arguments: ["0-", "5-", "-3", "0-1,4-5"])
  func aPartThatDependsOnTheEndIsTheWholeAtOnce(_ asked: String) throws {
    try scenario(Self.route) { origin, proxy in
      let gate = Gate()
      origin.on("/a", Self.growing(gate))
      let connection = try proxy.connect()
      connection.send("GET", "/a", ["Range: bytes=\(asked)"])
      let head = try connection.readHead()
      #expect(head.status == 200 && head.first("Content-Range") == nil)
      #expect(try connection.readBody(atLeast: 10).count == 10)
      gate.open()
      expectText(try connection.finishAnswer(), Self.letters)
    }
  }

  /// A condition goes before the range (RFC 9110 §13.2.2), and If-Range before all waiting.
  @Test(
    arguments: [("If-None-Match: \"1\"", 304), ("If-Range: \"2\"", 200)] as [(String, Int)])
  func whatTheHeadDecidesIsNotWaitedFor(_ field: String, _ status: Int) throws {
    try scenario(Self.route) { origin, proxy in
      let gate = Gate()
      origin.on("/a", Self.growing(gate))
      let connection = try proxy.connect()
      connection.send("GET", "/a", ["Range: bytes=20-25", field])
      #expect(try connection.readHead().status == status)
      gate.open()
      #expect(try connection.finishAnswer().text == (status == 200 ? Self.letters : ""))
    }
  }

  /// Where nothing is stored, to wait would be to hold up what is waited for.
  @Test(arguments: ["Cache-Control: no-store", "Set-Cookie: a=b"])
  func aPartOfWhatIsNotStoredIsNotWaitedFor(_ field: String) throws {
    try scenario(Self.route) { origin, proxy in
      let body = testBytes(3_000_000, seed: 5)
      origin.on("/a", OriginAnswer.bytes(body, field).framed(.chunked))
      let answer = try proxy.get("/a", "Range: bytes=2900000-2900009")
      #expect(answer.status == 200 && answer.body == body && !answer.isCut)
    }
  }

  @Test func aBodyThatTurnsOutTooLargeIsSentWhole() throws {
    let route = Self.route.replacing("\"ttl\"", with: "\"maxEntrySize\": \"1MiB\", \"ttl\"")
    try scenario(route) { origin, proxy in
      let gate = Gate()
      let body = testBytes(5_000_000, seed: 6)
      origin.on(
        "/a", OriginAnswer.bytes(body).framed(.chunked).pausing(after: 500_000, for: gate))
      let clients = try (0..<2).map { _ in
        let client = try proxy.connect()
        client.send("GET", "/a", ["Range: bytes=4900000-4900009"])
        return client
      }
      #expect(gate.waitUntilReached())
      try proxy.settle()
      gate.open()
      for client in clients {
        let answer = try client.readAnswer()
        #expect(answer.status == 200 && answer.body == body && !answer.isCut)
      }
    }
  }

  @Test func aPartOfALargeBodyIsExactAndReadFromBehind() throws {
    try scenario(Self.route) { origin, proxy in
      let gate = Gate()
      let body = testBytes(3_000_000, seed: 7)
      origin.on(
        "/a", OriginAnswer.bytes(body).framed(.chunked).pausing(after: 2_000_000, for: gate))
      let connection = try proxy.connect()
      for part in [0..<1, 65_530..<65_540, 100_000..<1_900_000] {
        let asked = "\(part.lowerBound)-\(part.upperBound - 1)"
        let answer = try connection.get("/a", ["Range: bytes=\(asked)"])
        #expect(answer.status == 206 && answer.body == Array(body[part]))
        #expect(answer.first("Content-Range") == "bytes \(asked)/*")
      }
      gate.open()
      try proxy.settle(after: origin, "/a", answers: 1)
      #expect(try connection.get("/a").body == body)
      #expect(origin.requestCount("/a") == 1)
    }
  }

  /// Nothing was out, so that the client is told by a status.
  @Test func aBodyThatBreaksOffBeforeThePartIsAnError() throws {
    try scenario(Self.route) { origin, proxy in
      let gate = Gate()
      origin.on("/a", Self.growing(gate).broken(after: 12, by: .close))
      let connection = try proxy.connect()
      connection.send("GET", "/a", ["Range: bytes=20-25"])
      #expect(gate.waitUntilReached())
      try proxy.settle()
      gate.open()
      expect(try connection.readAnswer(), "", status: 502, .failed)
      #expect(try proxy.counts("r") == .init(errors: 1))
    }
  }

  /// On other routes a part never waits for a fill (RG7): it goes to the origin as it is.
  @Test(arguments: [OriginAnswer.Framing.length, .chunked])
  func aPartOnAPassingRouteDoesNotWaitForARunningFill(_ framing: OriginAnswer.Framing) throws {
    let passing = Self.route.replacing("fetch-whole", with: "pass")
    try scenario(passing) { origin, proxy in
      let gate = Gate()
      origin.on("/a") { request in
        request.first("Range") == "bytes=20-21"
          ? .text("uv", status: 206, "Content-Range: bytes 20-21/26")
          : OriginAnswer.text(Self.letters).framed(framing).pausing(after: 10, for: gate)
      }
      let whole = try proxy.connect()
      whole.send("GET", "/a")
      try whole.readHead()
      let connection = try proxy.connect()
      for _ in 0..<2 {
        let answer = try connection.get("/a", ["Range: bytes=20-21"])
        Self.expectPart(answer, "uv", "bytes 20-21/26")
        #expect(!answer.cacheStatus.isStored)
      }
      gate.open()
      expectText(try whole.finishAnswer(), Self.letters)
      try proxy.settle(after: origin, "/a", answers: 3)
      #expect(try connection.get("/a", ["Range: bytes=20-21"]).cacheStatus.isHit)
      #expect(origin.requestCount("/a") == 3)
    }
  }
}
