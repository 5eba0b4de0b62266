import Support
import Testing

/// Several ranges of a stored copy: `multipart/byteranges`, byte for byte (RFC 9110 §14.6).
@Suite(.serialized)
struct MultipartRangeScenarios {
  private typealias Part = MultipartAnswer.Part

  static let route = windowedRoute("cache-first")
  static let letters = "abcdefghijklmnopqrstuvwxyz"
  /// Beside its head, and in several chunks.
  static let bodies = [testBytes(10_000, seed: 3), testBytes(300_000, seed: 4)]

  private func asked(_ ranges: [Range<Int>]) -> String {
    "Range: bytes="
      + ranges.map { "\($0.lowerBound)-\($0.upperBound - 1)" }.joined(separator: ", ")
  }

  @Test(arguments: bodies, ["Content-Type: text/x; charset=\"a;b\"", "X-Type: none"])
  func eachPartComesWithItsTypeAndRange(_ body: [UInt8], _ field: String) throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .bytes(body, field, "ETag: \"1\"", "Content-Digest: sha-256=:x:"))
      _ = try proxy.get("/a")
      let before = try proxy.statistics().bytes.fromStore
      let last = body.count - 1
      let answer = try proxy.get("/a", "Range: bytes=5-9,0-0,-1,\(body.count)-,100-8000")
      let found = try #require(MultipartAnswer(answer))
      let type = field.hasPrefix("Content-Type: ") ? String(field.dropFirst(14)) : nil
      let ranges = [5..<10, 0..<1, last..<last + 1, 100..<8001]
      #expect(found.parts == ranges.map { Part($0, of: body, type) })
      #expect(found.boundary.utf8.count == 32)
      #expect(answer.first("ETag") == "\"1\"" && answer.cacheStatus.isHit)
      // It is of the whole's content, which this is not (RFC 9530 §2).
      #expect(answer.first("Content-Digest") == nil)
      #expect(try proxy.statistics().bytes.fromStore - before == 5 + 1 + 1 + 7901)
      #expect(try MultipartAnswer(proxy.get("/a", asked(ranges)))?.boundary != found.boundary)
      #expect(origin.requestCount("/a") == 1)
    }
  }

  /// Every byte against a slice of the body, on one connection: an answer that is a byte too long
  /// or too short would show in the next.
  @Test(arguments: bodies) func randomSetsOfRangesAreExact(_ body: [UInt8]) throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .bytes(body))
      _ = try proxy.get("/a")
      let connection = try proxy.connect()
      var dice = Dice(seed: UInt64(body.count))
      for _ in 0..<300 {
        let starts = (0..<2 * (2 + dice.below(15))).map { _ in dice.below(body.count) }.sorted()
        var ranges = stride(from: 0, to: starts.count, by: 2)
          .map { starts[$0]..<starts[$0 + 1] }
          .filter { !$0.isEmpty }
        // A gap between each two, so that none are put together.
        ranges = zip(ranges, ranges.dropFirst()).filter { $0.upperBound < $1.lowerBound }.map(\.0)
        guard ranges.count > 1 else { continue }
        ranges.shuffle(using: &dice)
        let answer = try connection.get("/a", [asked(ranges)])
        let found = try #require(MultipartAnswer(answer))
        #expect(found.parts == ranges.map { Part($0, of: body, nil) })
      }
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test(arguments: bodies) func randomOverlapsGiveEachByteOnce(_ body: [UInt8]) throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .bytes(body))
      _ = try proxy.get("/a")
      let connection = try proxy.connect()
      var dice = Dice(seed: UInt64(body.count) + 1)
      for _ in 0..<100 {
        let ranges = (0..<1 + dice.below(16)).map { _ in
          let first = dice.below(body.count)
          return first..<min(body.count, first + 1 + dice.below(body.count / 3))
        }
        let answer = try connection.get("/a", [asked(ranges)])
        #expect(answer.body.count < body.count + 16 * 200)
        let parts =
          answer.first("Content-Range").map {
            [Part(contentType: nil, contentRange: $0, body: answer.body)]
          } ?? MultipartAnswer(answer)?.parts ?? []
        var isThere = [Bool](repeating: false, count: body.count)
        for part in parts {
          let ends = part.contentRange.split { " -/".contains($0) }.compactMap { Int($0) }
          let range = ends[0]..<ends[1] + 1
          #expect(part == Part(range, of: body, nil))
          for index in range {
            #expect(!isThere[index])
            isThere[index] = true
          }
        }
        var isWanted = [Bool](repeating: false, count: body.count)
        for range in ranges { for index in range { isWanted[index] = true } }
        #expect(isThere == isWanted)
      }
    }
  }

  @Test(
    arguments: [
      ("one is left of several", "0-1,26-", 206, "bytes 0-1/26", "ab"),
      ("they overlap", "0-3,2-5", 206, "bytes 0-5/26", "abcdef"),
      ("they touch", "3-5,0-2", 206, "bytes 0-5/26", "abcdef"),
      ("the same many times", "1-1,1-1,1-1,1-1", 206, "bytes 1-1/26", "b"),
      ("none is left", "26-,99-100,-0", 416, "bytes */26", ""),
      ("from the beginning", "0-", 206, "bytes 0-25/26", letters),
      ("one too many", (0..<17).map { "\($0)-\($0)" }.joined(separator: ","), 200, nil, letters),
      ("one of them is none", "0-1,x", 200, nil, letters),
      ("another unit follows", "0-1,items=3-4", 200, nil, letters),
    ] as [(String, String, Int, String?, String)])
  func whatIsNotSeveralPartsIsNotSentAsSuch(
    _ name: String, _ ranges: String, _ status: Int, _ contentRange: String?, _ body: String
  ) throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .text(Self.letters, "Content-Type: text/plain"))
      _ = try proxy.get("/a")
      let connection = try proxy.connect()
      for _ in 0..<2 {
        let answer = try connection.get("/a", ["Range: bytes=\(ranges)"])
        #expect(answer.status == status && answer.text == body)
        #expect(answer.first("Content-Range") == contentRange)
        #expect(answer.first("Content-Type") == (status == 416 ? nil : "text/plain"))
      }
    }
  }

  @Test func sixteenPartsAreTheMost() throws {
    try scenario(Self.route) { origin, proxy in
      let body = Self.bodies[1]
      origin.on("/a", .bytes(body))
      _ = try proxy.get("/a")
      let ranges = (0..<16).map { $0 * 18_000..<$0 * 18_000 + 17_000 }
      let answer = try proxy.get("/a", asked(ranges))
      #expect(MultipartAnswer(answer)?.parts == ranges.map { Part($0, of: body, nil) })
    }
  }

  /// A condition goes before the ranges, and If-Range decides whether they count (RFC 9110
  /// §13.2.2).
  @Test(
    arguments: [
      (["If-None-Match: \"1\""], 304), (["If-None-Match: \"2\""], 206),
      (["If-None-Match: \"2\"", "If-Range: \"1\""], 206), (["If-Range: \"1\""], 206),
      (["If-Range: \"2\""], 200), (["If-Range: W/\"1\""], 200),
      (["If-Range: \"1\"", "If-Range: \"1\""], 200), (["Range: bytes=0-1"], 200),
    ] as [([String], Int)])
  func conditionsDecideWhetherRangesCount(_ fields: [String], _ status: Int) throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .text(Self.letters, "ETag: \"1\""))
      _ = try proxy.get("/a")
      let answer = try proxy.send("GET", "/a", ["Range: bytes=0-1,4-5"] + fields)
      #expect(answer.status == status)
      if status == 206 { #expect(MultipartAnswer(answer)?.parts.map(\.body.count) == [2, 2]) }
      if status == 200 { #expect(answer.text == Self.letters) }
    }
  }

  @Test func rangesOnHeadAreNone() throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .text(Self.letters))
      _ = try proxy.get("/a")
      let answer = try proxy.send("HEAD", "/a", ["Range: bytes=0-1,4-5"])
      #expect(answer.status == 200 && answer.first("Content-Length") == "26")
    }
  }

  /// A 200 that carries a Content-Range keeps it as any field; a part says its own alone.
  @Test func aPartSaysOnceWhichItIs() throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .text(Self.letters, "Content-Range: bytes 0-1/2"))
      _ = try proxy.get("/a")
      let answer = try proxy.get("/a", "Range: bytes=3-4")
      #expect(answer.all("Content-Range") == ["bytes 3-4/26"] && answer.text == "de")
      let several = try proxy.get("/a", "Range: bytes=3-4,6-7")
      #expect(MultipartAnswer(several)?.parts.count == 2)
    }
  }

  @Test(arguments: bodies) func requestsBehindAreAnsweredInOrder(_ body: [UInt8]) throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .bytes(body))
      origin.on("/b", .text(Self.letters))
      for path in ["/a", "/b"] { _ = try proxy.get(path) }
      let connection = try proxy.connect()
      let ranges = [9_000..<body.count, 0..<8_000]
      for _ in 0..<3 {
        connection.send("GET", "/a", [asked(ranges)])
        connection.send("GET", "/b", [asked([0..<1, 3..<4])])
        connection.send("GET", "/b")
      }
      for _ in 0..<3 {
        #expect(
          MultipartAnswer(try connection.readAnswer())?.parts
            == ranges.map { Part($0, of: body, nil) })
        #expect(
          MultipartAnswer(try connection.readAnswer())?.parts.map(\.body) == [[0x61], [0x64]])
        #expect(try connection.readAnswer().text == Self.letters)
      }
    }
  }

  @Test(arguments: bodies) func anOldClientGetsThePartsToo(_ body: [UInt8]) throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", .bytes(body))
      _ = try proxy.get("/a")
      let connection = try proxy.connect()
      connection.send(
        raw: "GET /a HTTP/1.0\r\nHost: app.example\r\nRange: bytes=9000-, 0-7999\r\n\r\n",
        method: "GET")
      let ranges = [9_000..<body.count, 0..<8_000]
      #expect(
        MultipartAnswer(try connection.readAnswer())?.parts
          == ranges.map { Part($0, of: body, nil) })
      #expect(try connection.isClosedByPeer())
    }
  }

  /// Parts larger than any buffer on the way, to a client that takes them late, out of a copy that
  /// is replaced meanwhile.
  @Test func aSlowClientGetsTheCopyItBeganWith() throws {
    try scenario(Self.route) { origin, proxy in
      let body = testBytes(6_000_000, seed: 9)
      origin.on("/a", inTurn: [.bytes(body), .text("new")])
      _ = try proxy.get("/a")
      let connection = try proxy.connect(receiveBufferBytes: 16 * 1024)
      let ranges = [3_000_000..<6_000_000, 0..<10, 100..<2_900_000]
      connection.send("GET", "/a", [asked(ranges)])
      try connection.readHead()
      try proxy.settle()
      proxy.advance(seconds: Age.beyondAll)
      expectText(try proxy.get("/a"), "new")
      try proxy.settle()
      let answer = try connection.finishAnswer()
      #expect(MultipartAnswer(answer)?.parts == ranges.map { Part($0, of: body, nil) })
    }
  }

  @Test func clientsThatLeaveInAPartLeaveNothingBehind() throws {
    try scenario(Self.route) { origin, proxy in
      let body = testBytes(6_000_000, seed: 10)
      origin.on("/a", .bytes(body))
      _ = try proxy.get("/a")
      let ranges = [3_000_000..<6_000_000, 0..<2_900_000]
      for leavesAfter in [0, 1, 100_000, 3_100_000] {
        let connection = try proxy.connect(receiveBufferBytes: 16 * 1024)
        connection.send("GET", "/a", [asked(ranges)])
        if leavesAfter > 0 {
          try connection.readHead()
          try connection.readBody(atLeast: leavesAfter)
        }
        connection.reset()
      }
      let answer = try proxy.get("/a", asked(ranges))
      #expect(MultipartAnswer(answer)?.parts == ranges.map { Part($0, of: body, nil) })
      #expect(try proxy.hasOpenConnections(0))
      #expect(origin.requestCount("/a") == 1)
    }
  }
}
