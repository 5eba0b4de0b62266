import Support
import Testing

/// A network that fails in the middle of its answer: rescued while nothing of it went out, shown to
/// the client as broken off after that, and never stored.
struct RescueScenarios {
  /// The ways in which an answer goes wrong behind its head.
  enum Damage: String, CaseIterable, CustomTestStringConvertible {
    case resetBehindTheHead, resetInTheBody, shortBody, noLastChunk, badChunkSize, stall

    var testDescription: String { rawValue }

    /// Breaks off once the gate opens, so that the proxy has seen what came before.
    func answer(_ gate: Gate) -> OriginAnswer {
      let sentBytes = self == .resetBehindTheHead ? 0 : 5
      let whole = OriginAnswer.text("the network's own body").pausing(after: sentBytes, for: gate)
      return switch self {
      case .resetBehindTheHead, .resetInTheBody: whole.broken(after: sentBytes, by: .reset)
      case .shortBody: whole.broken(after: sentBytes, by: .close)
      case .noLastChunk: whole.framed(.chunked).broken(after: sentBytes, by: .close)
      case .badChunkSize: whole.framed(.chunked).broken(after: sentBytes, by: .badChunkSize)
      case .stall: whole
      }
    }

    /// Asks, and lets the answer break once its beginning is with the proxy.
    func get(_ path: String, _ origin: ScriptedOrigin, _ proxy: TestProxy) throws -> Answer {
      let gate = Gate()
      origin.on(path, answer(gate))
      let connection = try proxy.connect()
      connection.send("GET", path)
      #expect(gate.waitUntilReached())
      try proxy.settle()
      if self != .stall { gate.open() }
      return try connection.readAnswer()
    }

    var upstream: String {
      self == .stall
        ? "\"retries\": 0, \"firstByteTimeout\": \"1s\", \"totalTimeout\": \"1s\""
        : "\"retries\": 0"
    }
  }

  static let strategies = ["cache-first", "network-first"]

  @Test(arguments: Damage.allCases, strategies)
  func theCopyServesWhereTheAnswerBreaks(_ damage: Damage, _ strategy: String) throws {
    try scenario(windowedRoute(strategy), upstream: damage.upstream) { origin, proxy in
      origin.on("/a", .text("v1"))
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      expect(try damage.get("/a", origin, proxy), "v1", .copy("stale", 200))
      // The broken one took nobody's place.
      origin.stop()
      expect(try proxy.get("/a"), "v1", .copy("stale", nil))
      #expect(try proxy.counts("r") == .init(stale: 2, misses: 1))
    }
  }

  @Test(arguments: Damage.allCases)
  func withoutACopyTheClientSeesTheBreakAndNothingIsStored(_ damage: Damage) throws {
    try scenario(windowedRoute("cache-first"), upstream: damage.upstream) { origin, proxy in
      let answer = try damage.get("/a", origin, proxy)
      // Either the answer is seen to break off, or it is an error; never a whole answer.
      #expect(answer.isCut || answer.status == 502 || answer.status == 504)
      #expect(!answer.isCut || answer.text.utf8.count <= 5)
      origin.on("/a", .text("good"))
      expect(try proxy.get("/a"), "good", .stored("uri-miss"))
      let statistics = try proxy.statistics()
      #expect(statistics.requests == 2)
      #expect(statistics.store.notStored["incomplete"] == 1)
    }
  }

  @Test(arguments: [
    ("no status line", "this is no answer\r\n\r\n"),
    ("a bad field line", "HTTP/1.1 200 OK\r\nno colon here\r\nContent-Length: 2\r\n\r\nab"),
    (
      "lengths that differ",
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc"
    ),
    ("a transfer coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    ("only half a head", "HTTP/1.1 200 OK\r\nContent-Le"),
    ("nothing", ""),
  ])
  func anAnswerThatIsNoneIs502OrTheCopy(_ name: String, _ raw: String) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .raw(raw))
      expect(try proxy.get("/a"), "", status: 502, .failed)
      origin.on("/a", .text("v1"))
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      origin.on("/a", .raw(raw))
      expect(try proxy.get("/a"), "v1", .copy("stale", nil))
      #expect(try proxy.counts("r") == .init(stale: 1, misses: 1, errors: 1))
    }
  }

  /// The reset comes on the heels of the last byte, mostly before the proxy has read any.
  @Test func anAnswerThatWasWholeBeforeTheResetIsWhole() throws {
    try scenario(windowedRoute("cache-first"), upstream: "\"retries\": 1") { origin, proxy in
      for number in 1...30 {
        let path = "/\(number)"
        origin.on(path, OriginAnswer.text("whole").broken(after: 5, by: .reset))
        expect(try proxy.get(path), "whole", .stored("uri-miss"))
      }
      #expect(try proxy.counts("r") == .init(misses: 30))
    }
  }

  @Test func aConnectionThatWasResetWhileIdleIsNotUsed() throws {
    try scenario(NetworkOnlyScenarios.route) { origin, proxy in
      let body = testBytes(1000)
      for number in 1...10 {
        let gate = Gate()
        origin.on(
          "/idle",
          OriginAnswer.text("whole").pausing(after: 5, for: gate).broken(after: 5, by: .reset))
        expect(try proxy.get("/idle"), "whole", .notStored("bypass"))
        gate.open()
        try proxy.settle(after: origin, "/idle", answers: number)
        origin.on("/change", .text("changed"))
        expect(try proxy.send("POST", "/change", body: body), "changed", .notStored("method"))
        #expect(origin.requestCount("/change") == number)
      }
    }
  }

  static let largeBody = [UInt8](repeating: 0x61, count: 600 * 1024)

  @Test(arguments: [OriginAnswer.Break.close, .reset], strategies)
  func aBodyThatBreaksBeyondTheHoldBackIsCutForTheClient(
    _ how: OriginAnswer.Break, _ strategy: String
  ) throws {
    try scenario(windowedRoute(strategy)) { origin, proxy in
      let gate = Gate()
      origin.on(
        "/a",
        inTurn: [
          .text("v1"),
          OriginAnswer.bytes(RescueScenarios.largeBody)
            .pausing(after: 400 * 1024, for: gate).broken(after: 400 * 1024, by: how),
        ])
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      let connection = try proxy.connect()
      connection.send("GET", "/a")
      try connection.readHead()
      try connection.readBody(atLeast: 300 * 1024)
      gate.open()
      let answer = try connection.finishAnswer()
      #expect(answer.isCut)
      #expect(answer.status == 200)
      #expect(answer.body.count <= 400 * 1024 && answer.body.allSatisfy { $0 == 0x61 })
      try proxy.settle()
      #expect(try proxy.counts("r") == .init(misses: 2))
      origin.stop()
      expect(try proxy.get("/a"), "v1", .copy("stale", nil))
    }
  }

  @Test func theHoldBackEndsWithTheWholeBodyAndItIsStored() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let gate = Gate()
      origin.on(
        "/a", inTurn: [.text("v1"), OriginAnswer.text("version 2").pausing(after: 4, for: gate)])
      _ = try proxy.get("/a")
      proxy.advance(seconds: Age.older)
      let connection = try proxy.connect()
      connection.send("GET", "/a")
      #expect(gate.waitUntilReached())
      gate.open()
      expect(try connection.readAnswer(), "version 2", .stored("stale"))
      expect(try proxy.get("/a"), "version 2", .hit)
    }
  }
}
