import Support
import Testing

/// Bodies of all sizes, byte for byte: beside their head, in chunks, and too large to store.
@Suite(.serialized)
struct LargeBodyScenarios {
  /// Around the sizes at which bodies change their place: beside the head up to 16 KiB, in chunks
  /// of 16 pages less a header, and of 64 KiB.
  static let sizes = [
    0, 1, 16_383, 16_384, 16_385, 65_511, 65_512, 65_513, 65_535, 65_536, 65_537, 131_024, 131_025,
    5_000_000,
  ]

  @Test(arguments: [OriginAnswer.Framing.length, .chunked], LargeBodyScenarios.sizes)
  func aBodyIsTheSameFromOriginStoreAndRestartedStore(
    _ framing: OriginAnswer.Framing, _ size: Int
  ) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let body = testBytes(size)
      origin.on("/a", OriginAnswer.bytes(body).framed(framing))
      let first = try proxy.get("/a")
      #expect(first.cacheStatus.isStored)
      #expect(first.body == body && !first.isCut)
      for restarts in 0..<2 {
        if restarts > 0 { try proxy.restart() }
        let copy = try proxy.get("/a")
        #expect(copy.cacheStatus.isHit)
        #expect(copy.body == body && !copy.isCut)
        #expect(copy.all("Content-Length") == ["\(size)"])
      }
      #expect(origin.requestCount("/a") == 1)
      #expect(try proxy.counts("r") == .init(hits: 1))
    }
  }

  @Test func aKeptConnectionCarriesLargeBodiesOneAfterTheOther() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let bodies = (1...3).map { testBytes(700_000, seed: UInt64($0)) }
      for (index, body) in bodies.enumerated() { origin.on("/\(index)", .bytes(body)) }
      let connection = try proxy.connect()
      for _ in 0..<2 {
        // Pipelined: the answers come in order.
        for index in bodies.indices { connection.send("GET", "/\(index)") }
        for body in bodies { #expect(try connection.readAnswer().body == body) }
      }
      #expect(try proxy.counts("r") == .init(hits: 3, misses: 3))
    }
  }

  @Test(arguments: [
    ("within a chunk", 1_000, 2_000), ("across two", 65_000, 66_000),
    ("over many", 60_000, 4_900_000), ("to the last byte", 4_999_990, 4_999_999),
  ])
  func aRangeOfALargeBodyIsExact(_ name: String, _ first: Int, _ last: Int) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let body = testBytes(5_000_000)
      origin.on("/a", .bytes(body))
      _ = try proxy.get("/a")
      let answer = try proxy.get("/a", "Range: bytes=\(first)-\(last)")
      #expect(answer.status == 206)
      #expect(answer.body == Array(body[first...last]))
      #expect(answer.first("Content-Range") == "bytes \(first)-\(last)/5000000")
    }
  }

  @Test(arguments: [OriginAnswer.Framing.length, .chunked])
  func aBodyThatIsTooLargeStreamsThroughUnstored(_ framing: OriginAnswer.Framing) throws {
    try scenario(windowedRoute("cache-first", #""maxEntrySize": "1MiB""#)) { origin, proxy in
      let body = testBytes(5_000_000)
      origin.on("/a", OriginAnswer.bytes(body).framed(framing))
      for _ in 0..<2 {
        let answer = try proxy.get("/a")
        #expect(answer.body == body && !answer.isCut)
        #expect(!answer.cacheStatus.isHit)
      }
      #expect(origin.requestCount("/a") == 2)
      let statistics = try proxy.statistics()
      #expect(statistics.store.notStored["too-large"] == 2)
      #expect(statistics.routes["r"]?.counts.total == 2)
      #expect(statistics.routes["r"]?.hits == 0)
    }
  }

  @Test func aBodyOfExactlyTheLimitIsStored() throws {
    try scenario(windowedRoute("cache-first", #""maxEntrySize": "1MiB""#)) { origin, proxy in
      origin.on("/at", .bytes(testBytes(1 << 20)))
      origin.on("/beyond", .bytes(testBytes(1 << 20 + 1)))
      for path in ["/at", "/beyond"] { _ = try proxy.get(path) }
      #expect(try proxy.get("/at").cacheStatus.isHit)
      #expect(try !proxy.get("/beyond").cacheStatus.isHit)
    }
  }

  @Test func anOldClientGetsABodyOfUnknownLengthToTheEndOfTheConnection() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let body = testBytes(300_000)
      let gate = Gate()
      origin.on("/a", OriginAnswer.bytes(body).framed(.chunked).pausing(after: 10, for: gate))
      let connection = try proxy.connect()
      connection.send(raw: "GET /a HTTP/1.0\r\nHost: app.example\r\n\r\n", method: "GET")
      let head = try connection.readHead()
      #expect(head.first("Transfer-Encoding") == nil && head.first("Content-Length") == nil)
      gate.open()
      #expect(try connection.finishAnswer().body == body)
      #expect(try connection.isClosedByPeer())
    }
  }
}
