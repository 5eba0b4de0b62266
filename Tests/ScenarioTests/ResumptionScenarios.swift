import Support
import Testing

/// Bodies that break off and are continued by asking for the rest (RFC 9110 §15.3.7.3): for all who
/// read and for the store, or not at all.
@Suite(.serialized)
struct ResumptionScenarios {
  static let route = WholeRangeScenarios.route
  static let upstream = "\"retries\": 2"
  static let body = testBytes(3_000_000, seed: 8)
  static let strong = ["ETag: \"1\"", "Accept-Ranges: bytes"]

  /// Fields as "Name: value".
  private static func answer(
    _ body: some Sequence<UInt8>, status: Int = 200, _ fields: [String]
  ) -> OriginAnswer {
    var answer = OriginAnswer.bytes(Array(body), status: status)
    answer.fields = fields.map {
      let colon = $0.firstIndex(of: ":")!
      return (String($0[..<colon]), String($0[$0.index(colon, offsetBy: 2)...]))
    }
    return answer
  }

  /// The first byte asked for by `bytes=N-`.
  private static func start(_ request: RecordedRequest) -> Int? {
    request.first("Range").flatMap { Int($0.dropFirst(6).dropLast()) }
  }

  /// An origin that breaks off after so many bytes of each answer, one after the other, and that
  /// knows how to send the rest.
  private static func breaking(
    _ fields: [String] = strong, after counts: [Int], by how: OriginAnswer.Break = .close,
    rest: @escaping @Sendable (Int) -> OriginAnswer = { rest(from: $0) }
  ) -> ScriptedOrigin.Script {
    { request in
      let answer = start(request).map(rest) ?? answer(body, fields)
      guard request.number <= counts.count else { return answer }
      return answer.broken(after: counts[request.number - 1], by: how)
    }
  }

  private static func rest(from start: Int, _ fields: [String] = ["ETag: \"1\""]) -> OriginAnswer {
    answer(
      body[start...], status: 206,
      fields + ["Content-Range: bytes \(start)-\(body.count - 1)/\(body.count)"])
  }

  /// A body that is seen to break off, at most so far in; or an error, where it broke before any of
  /// it was out.
  private static func expectBroken(
    _ answer: Answer, after count: Int = body.count, _ location: SourceLocation = #_sourceLocation
  ) {
    if answer.status == 502 { return expect(answer, "", status: 502, .failed, location) }
    #expect(answer.status == 200 && answer.isCut, sourceLocation: location)
    #expect(answer.body.count <= count, sourceLocation: location)
    #expect(body.starts(with: answer.body), sourceLocation: location)
  }

  @Test(arguments: [OriginAnswer.Break.close, .reset], [0, 10, 65_536, 1_000_000])
  func theRestIsAskedForAndTheWholeIsStored(_ how: OriginAnswer.Break, _ count: Int) throws {
    try scenario(Self.route, upstream: Self.upstream) { origin, proxy in
      origin.on("/a", Self.breaking(after: [count], by: how))
      let answer = try proxy.get("/a", "If-None-Match: \"0\"", "X-Mine: 1")
      // A reset may overtake the head; then there was no answer, and a retry brings one.
      #expect(answer.status == 200 && answer.body == Self.body && !answer.isCut)
      #expect(answer.cacheStatus.isStored && answer.all("Content-Length") == ["3000000"])
      try proxy.settle()
      let copy = try proxy.get("/a")
      #expect(copy.cacheStatus.isHit && copy.body == Self.body && copy.first("ETag") == "\"1\"")
      #expect(copy.first("Content-Range") == nil)
      let requests = origin.requests("/a")
      #expect(requests.count == 2)
      let statistics = try proxy.statistics()
      #expect(statistics.store.notStored.isEmpty)
      if how == .close {
        #expect(requests[1].first("Range") == "bytes=\(count)-")
        #expect(requests[1].first("If-Range") == "\"1\"")
        #expect(requests[1].first("If-None-Match") == nil && requests[1].first("X-Mine") == "1")
        #expect(statistics.origin.resumed == 1)
      }
    }
  }

  @Test func aBodyMayBreakOffTwice() throws {
    try scenario(Self.route, upstream: Self.upstream) { origin, proxy in
      origin.on("/a", Self.breaking(after: [1_000_000, 700_000]))
      let answer = try proxy.get("/a")
      #expect(answer.body == Self.body && !answer.isCut)
      let ranges = origin.requests("/a").map { $0.first("Range") }
      #expect(ranges == [nil, "bytes=1000000-", "bytes=1700000-"])
      #expect(try proxy.statistics().origin.resumed == 2)
    }
  }

  @Test(
    arguments: [("0", 1, 1_000_000), ("1", 2, 1_000_010), ("5", 3, 1_000_020)]
      as [(String, Int, Int)])
  func itIsAskedForNoMoreThanRetriesAndTwice(_ retries: String, _ requests: Int, _ bytes: Int)
    throws
  {
    try scenario(Self.route, upstream: "\"retries\": \(retries)") { origin, proxy in
      origin.on("/a", Self.breaking(after: [1_000_000, 10, 10, 10, 10]))
      let answer = try proxy.get("/a")
      Self.expectBroken(answer, after: bytes)
      try proxy.settle(after: origin, "/a", answers: requests)
      #expect(origin.requestCount("/a") == requests)
      #expect(try proxy.statistics().store.notStored == ["incomplete": 1])
      #expect(try proxy.statistics().store.entries == 0)
    }
  }

  /// What makes the rest unfit: a new representation, another place, another length.
  enum Unfit: String, CaseIterable, CustomTestStringConvertible {
    case newWhole, newTag, noTag, earlier, later, otherWhole, unknownWhole, notFound, refused, less
    case otherCoding, longerThanItSays, shorterThanItSays

    var testDescription: String { rawValue }

    func rest(_ start: Int) -> OriginAnswer {
      let whole = ResumptionScenarios.body
      let last = whole.count - 1
      let tag = "ETag: \"1\""
      func part(_ bytes: ArraySlice<UInt8>, _ range: String, _ fields: String...) -> OriginAnswer {
        answer(bytes, status: 206, fields + ["Content-Range: bytes \(range)"])
      }
      let due = "\(start)-\(last)/\(whole.count)"
      return switch self {
      case .newWhole: answer(testBytes(3_000_000, seed: 99), ["ETag: \"2\""])
      case .newTag: part(whole[start...], due, "ETag: \"2\"")
      case .noTag: part(whole[start...], due)
      case .earlier: part(whole[(start - 1)...], "\(start - 1)-\(last)/\(whole.count)", tag)
      case .later: part(whole[(start + 1)...], "\(start + 1)-\(last)/\(whole.count)", tag)
      case .otherWhole: part(whole[start...], "\(start)-\(last)/\(whole.count + 1)", tag)
      case .unknownWhole: part(whole[start...], "\(start)-\(last)/*", tag)
      case .notFound: answer("gone".utf8, status: 404, [])
      case .refused: answer([], status: 416, ["Content-Range: bytes */\(whole.count)", tag])
      case .less: part(whole[start..<last], "\(start)-\(last - 1)/\(whole.count)", tag)
      case .otherCoding: part(whole[start...], due, tag, "Content-Encoding: gzip")
      case .longerThanItSays: part(whole[start...] + [1, 2], due, tag).framed(.chunked)
      case .shorterThanItSays: part(whole[start..<last], due, tag).framed(.chunked)
      }
    }
  }

  @Test(arguments: Unfit.allCases) func whatIsNotTheRestLeavesTheBodyBroken(_ unfit: Unfit) throws {
    try scenario(Self.route, upstream: "\"retries\": 1") { origin, proxy in
      origin.on(
        "/a", Self.breaking(after: [1_000_000]) { unfit.rest($0) })
      let answer = try proxy.get("/a")
      // What is out is of the first answer, or of a rest that lied about its length alone.
      Self.expectBroken(answer)
      try proxy.settle(after: origin, "/a", answers: 2)
      #expect(origin.requestCount("/a") == 2)
      #expect(try proxy.statistics().store.entries == 0)
      #expect(try proxy.statistics().store.notStored == ["incomplete": 1])
      origin.on("/a", .text("good"))
      expect(try proxy.get("/a"), "good", .stored("uri-miss"))
    }
  }

  @Test(
    arguments: [
      ["ETag: W/\"1\"", "Accept-Ranges: bytes"], ["ETag: \"1\""], ["Accept-Ranges: bytes"],
      ["ETag: \"1\"", "Accept-Ranges: none"],
    ]) func withoutGroundsNobodyIsAskedAgain(_ fields: [String]) throws
  {
    try scenario(Self.route, upstream: Self.upstream) { origin, proxy in
      origin.on("/a", Self.breaking(fields, after: [1_000_000]))
      let answer = try proxy.get("/a")
      Self.expectBroken(answer, after: 1_000_000)
      try proxy.settle()
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test func aBodyWithoutALengthIsNotContinued() throws {
    try scenario(Self.route, upstream: Self.upstream) { origin, proxy in
      origin.on("/a") { _ in
        Self.answer(Self.body, Self.strong).framed(.chunked).broken(after: 1_000_000, by: .close)
      }
      Self.expectBroken(try proxy.get("/a"))
      try proxy.settle()
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test(arguments: [1, 3]) func everyoneWhoReadsGetsTheRest(_ loops: Int) throws {
    try scenario(Self.route, upstream: Self.upstream, top: "\"loops\": \(loops),") {
      origin, proxy in
      let gate = Gate()
      origin.on("/a") { request in
        guard let start = Self.start(request) else {
          return Self.answer(Self.body, Self.strong).broken(after: 1_000_000, by: .close)
        }
        return Self.rest(from: start).after(interim: 103, "Link: </x>").waiting(for: gate)
      }
      let parts = [nil, 0..<10, 900_000..<1_100_000, 2_999_000..<3_000_000]
      let clients = try parts.map { part in
        let client = try proxy.connect()
        client.send(
          "GET", "/a", part.map { ["Range: bytes=\($0.lowerBound)-\($0.upperBound - 1)"] } ?? [])
        return client
      }
      #expect(gate.waitUntilReached())
      try proxy.settle()
      gate.open()
      for (part, client) in zip(parts, clients) {
        let answer = try client.readAnswer()
        #expect(!answer.isCut && answer.body == Array(Self.body[part ?? 0..<3_000_000]))
        #expect(answer.interimStatuses.isEmpty)
      }
      #expect(origin.requestCount("/a") == 2)
    }
  }

  /// The origin has come to forbid what it allowed: those who read have the whole, the store none.
  @Test(
    arguments: [
      "Cache-Control: no-store", "Cache-Control: private", "Vary: X-Other", "Surrogate-Key: other",
    ])
  func aRestThatForbidsStoringIsObeyed(_ field: String) throws {
    try scenario(Self.route, upstream: Self.upstream) { origin, proxy in
      origin.on(
        "/a", Self.breaking(after: [1_000_000]) { Self.rest(from: $0, ["ETag: \"1\"", field]) })
      let answer = try proxy.get("/a")
      #expect(answer.body == Self.body && !answer.isCut)
      try proxy.settle()
      #expect(try proxy.statistics().store.entries == 0)
      #expect(try !proxy.get("/a").cacheStatus.isHit)
    }
  }

  /// What changed while the rest was on its way keeps the whole out of the store.
  @Test func aChangeMeanwhileKeepsItOut() throws {
    try scenario(Self.route, upstream: Self.upstream) { origin, proxy in
      let gate = Gate()
      origin.on("/a") { request in
        if request.method == "POST" { return .text("done") }
        guard let start = Self.start(request) else {
          return Self.answer(Self.body, Self.strong).broken(after: 1_000_000, by: .close)
        }
        return Self.rest(from: start).waiting(for: gate)
      }
      let client = try proxy.connect()
      client.send("GET", "/a")
      #expect(gate.waitUntilReached())
      expectText(try proxy.send("POST", "/a", body: []), "done")
      gate.open()
      #expect(try client.readAnswer().body == Self.body)
      try proxy.settle()
      #expect(try proxy.statistics().store.entries == 0)
    }
  }

  /// Nothing is stored, and the client reads late: the rest waits for it as the beginning did.
  @Test(arguments: ["network-only", "cache-first"])
  func aSlowReaderOfWhatIsNotStoredGetsTheRest(_ strategy: String) throws {
    let route = #"{ "name": "r", "match": "/**", "strategy": "\#(strategy)" }"#
    try scenario(route, upstream: Self.upstream) { origin, proxy in
      let large = testBytes(12_000_000, seed: 11)
      let fields = Self.strong + ["Cache-Control: no-store"]
      origin.on("/a") { request in
        guard let start = Self.start(request) else {
          return Self.answer(large, fields).broken(after: 7_000_000, by: .close)
        }
        return Self.answer(
          large[start...], status: 206,
          ["ETag: \"1\"", "Content-Range: bytes \(start)-11999999/12000000"])
      }
      let client = try proxy.connect(receiveBufferBytes: 16 * 1024)
      client.send("GET", "/a")
      try client.readHead()
      try proxy.settle()
      let answer = try client.finishAnswer()
      #expect(answer.body == large && !answer.isCut)
      #expect(try proxy.statistics().origin.resumed == 1)
    }
  }

  @Test func nobodyIsAskedForTheRestOfAChange() throws {
    let route = #"{ "name": "r", "match": "/**", "strategy": "network-only" }"#
    try scenario(route, upstream: Self.upstream) { origin, proxy in
      origin.on("/a", Self.breaking(after: [1_000_000]))
      Self.expectBroken(try proxy.send("POST", "/a", body: []))
      let part = try proxy.get("/b", "Range: bytes=0-")
      #expect(part.status == 404)
      origin.on("/b", Self.breaking(after: [0, 1_000_000]))
      let broken = try proxy.get("/b", "Range: bytes=0-")
      #expect(broken.isCut || broken.status == 502)
      try proxy.settle()
      #expect(origin.requestCount("/a") == 1 && origin.requestCount("/b") == 2)
    }
  }

  /// A silence has used up the upstream's time.
  @Test func aStallIsNotFollowedByAnotherRequest() throws {
    try scenario(
      Self.route, upstream: "\"retries\": 2, \"firstByteTimeout\": \"1s\", \"totalTimeout\": \"1s\""
    ) { origin, proxy in
      origin.on(
        "/a", Self.answer(Self.body, Self.strong).pausing(after: 1_000_000, for: Gate()))
      let answer = try proxy.get("/a")
      #expect(answer.isCut && answer.body == Array(Self.body[..<1_000_000]))
      #expect(origin.requestCount("/a") == 1)
    }
  }

  /// While a copy may stand in, the rest is tried first; what cannot be had leaves the copy.
  @Test(arguments: [true, false]) func theRescueWaitsForTheRest(_ hasRest: Bool) throws {
    try scenario(windowedRoute("cache-first"), upstream: "\"retries\": 1") { origin, proxy in
      origin.on("/a", .text("the old one"))
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      let new = Array("the new one".utf8)
      origin.on("/a") { request in
        guard let start = Self.start(request) else {
          return Self.answer(new, Self.strong).broken(after: 5, by: .close)
        }
        guard hasRest else { return .silence(.close) }
        return Self.answer(
          new[start...], status: 206, ["ETag: \"1\"", "Content-Range: bytes \(start)-10/11"])
      }
      let answer = try proxy.get("/a")
      expectText(answer, hasRest ? "the new one" : "the old one")
      try proxy.settle()
      #expect(try proxy.get("/a").cacheStatus.isHit == hasRest)
    }
  }

  /// Over kept connections an answer may come at once, while the request goes out.
  @Test(arguments: [206, 500])
  func whatIsNotTheRestIsNeverJoinedHoweverSoonItComes(_ status: Int) throws {
    let whole = [UInt8](repeating: 0x41, count: 1000)
    try scenario(Self.route, upstream: Self.upstream) { origin, proxy in
      origin.on("/keep") { _ in .text("k", "Cache-Control: no-store") }
      let clients = try (0..<16).map { _ in try proxy.connect() }
      for client in clients { client.send("GET", "/keep") }
      for client in clients { #expect(try client.readAnswer().status == 200) }
      for number in 0..<60 {
        origin.on("/\(number)") { request in
          guard request.first("Range") != nil else {
            return Self.answer(whole, Self.strong).broken(after: 500, by: .close)
          }
          return Self.answer(
            [UInt8](repeating: 0x42, count: 500), status: status,
            ["ETag: \"2\"", "Content-Range: bytes 500-999/1000"])
        }
        let answer = try proxy.get("/\(number)")
        #expect(answer.isCut || answer.status == 502)
        #expect(answer.status == 502 || !answer.body.contains(0x42))
      }
    }
  }
}
