internal import Foundation
import Support
import Testing

private let storing =
  #"{ "name": "stored", "match": "/stored/**", "strategy": "cache-first", "ttl": "1h" }"#

/// What comes of an origin that breaks off, lies, keeps silent or is gone.
struct OriginFailureTests {
  // MARK: Bodies that break off

  static let broken: [(name: String, answer: OriginAnswer)] = [
    ("a short body", .text("whole body").broken(after: 5, by: .close)),
    ("a length that is not the body's", .text("whole").framed(.declared(100))),
    ("a short body, reset", .text("whole body").broken(after: 5, by: .reset)),
    ("no last chunk", .text("whole body").framed(.chunked).broken(after: 5, by: .close)),
    ("a reset among chunks", .text("whole body").framed(.chunked).broken(after: 5, by: .reset)),
    ("a bad chunk size", .text("whole body").framed(.chunked).broken(after: 5, by: .badChunkSize)),
    (
      "no empty line behind the last chunk",
      .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n")
    ),
    (
      "data longer than its chunk",
      .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole body\r\n0\r\n\r\n")
    ),
  ]

  @Test(arguments: broken, ["/a", "/stored/a"])
  func aBrokenBodyNeverLooksWholeAndIsNotStored(
    _ row: (name: String, answer: OriginAnswer), _ path: String
  ) throws {
    try scenario(storing) { origin, proxy in
      origin.on(path, inTurn: [row.answer, .text("second")])
      let connection = try proxy.connect()
      do {
        let answer = try connection.get(path)
        if answer.status == 502 {
          // The break was found before anything went out: the connection goes on.
          #expect(try connection.get("/other").status == 404)
        } else {
          #expect(answer.isCut)
          #expect("whole body".hasPrefix(answer.text))
          #expect(try connection.isClosedByPeer())
        }
      } catch ClientConnection.Failure.noAnswer {
        // Cut before its head was out: no answer is no wrong answer.
      }
      #expect(try proxy.get(path).text == "second")
      #expect(origin.requestCount(path) == 2)
      #expect(try proxy.get(path).text == "second")
      #expect(origin.requestCount(path) == (path == "/a" ? 3 : 2))
    }
  }

  @Test(
    arguments: [
      (.length, .close), (.length, .reset), (.chunked, .close), (.chunked, .reset),
      (.chunked, .badChunkSize), (.untilClose, .reset),
    ] as [(OriginAnswer.Framing, OriginAnswer.Break)], ["/a", "/stored/a"])
  func aBodyThatBreaksOffOnItsWayIsSeenAsCut(
    _ broken: (framing: OriginAnswer.Framing, how: OriginAnswer.Break), _ path: String
  ) throws {
    try scenario(storing) { origin, proxy in
      let gate = Gate()
      let answer = OriginAnswer.text("whole body").framed(broken.framing)
        .pausing(after: 5, for: gate).broken(after: 5, by: broken.how)
      origin.on(path, inTurn: [answer, .text("second")])
      let connection = try proxy.connect()
      connection.send("GET", path)
      #expect(try connection.readHead().status == 200)
      #expect(try connection.readBody(atLeast: 5) == Array("whole".utf8))
      gate.open()
      #expect(try connection.finishAnswer().isCut)
      #expect(try connection.isClosedByPeer())
      #expect(try proxy.get(path).text == "second")
      #expect(origin.requestCount(path) == 2)
    }
  }

  @Test func aBodyThatStallsIsCut() throws {
    try scenario(storing, upstream: #""retries": 0, "totalTimeout": "500ms""#) { origin, proxy in
      for path in ["/a", "/stored/a"] {
        let gate = Gate()
        origin.on(path, inTurn: [.text("whole").pausing(after: 2, for: gate), .text("second")])
        let answer = try proxy.get(path)
        #expect(answer.status == 200)
        #expect(answer.isCut)
        #expect(answer.text == "wh")
        gate.open()
        #expect(try proxy.get(path).text == "second")
      }
    }
  }

  // MARK: Answers that are none

  static let unacceptable: [(name: String, text: String)] = [
    ("HTTP/0.9", "hello there\n"),
    ("nothing", ""),
    ("half a head", "HTTP/1.1 200 OK\r\nA: b\r\n"),
    ("a malformed status", "HTTP/1.1 2x0 OK\r\n\r\n"),
    (
      "a length beside chunked",
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    (
      "chunked beside a length",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"
    ),
    (
      "gzip below chunked",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"
    ),
    ("gzip alone", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx"),
    (
      "differing lengths",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy"
    ),
    ("a malformed length", "HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\nx"),
    ("a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx"),
    ("a folded line", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n"),
    ("a space before the colon", "HTTP/1.1 200 OK\r\nA : b\r\nContent-Length: 0\r\n\r\n"),
    ("a line without a colon", "HTTP/1.1 200 OK\r\nA\r\nContent-Length: 0\r\n\r\n"),
    ("a switch of protocols", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"),
    (
      "a header block over its limit",
      "HTTP/1.1 200 OK\r\nA: \(String(repeating: "a", count: 70_000))\r\nContent-Length: 0\r\n\r\n"
    ),
    (
      "too many fields",
      "HTTP/1.1 200 OK\r\n\(String(repeating: "A: b\r\n", count: 101))\r\n"
    ),
    (
      "interim answers without end",
      String(
        repeating: "HTTP/1.1 103 Early\r\nA: \(String(repeating: "a", count: 1000))\r\n\r\n",
        count: 80) + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    ),
  ]

  @Test(arguments: unacceptable, ["/a", "/stored/a"])
  func whatIsNoAcceptableAnswerIsABadGateway(
    _ row: (name: String, text: String), _ path: String
  ) throws {
    try scenario(storing) { origin, proxy in
      origin.on(path, .raw(row.text))
      let connection = try proxy.connect()
      let answer = try connection.get(path)
      #expect(answer.status == 502)
      #expect(answer.first("Content-Type") == "application/problem+json")
      #expect(answer.first("Cache-Control") == "no-store")
      #expect(answer.cacheStatus.detail == "origin-failed")
      // The client did nothing wrong: its connection goes on.
      #expect(try connection.get("/other").status == 404)
      let statistics = try proxy.statistics()
      #expect(statistics.errors == 1)
      #expect(statistics.origin.failures == 1)
      #expect(statistics.store.entries == 0)
    }
  }

  // MARK: Silence and absence

  @Test(arguments: ["/a", "/stored/a"])
  func anOriginThatIsGoneIsABadGateway(_ path: String) throws {
    try scenario(storing) { origin, proxy in
      origin.stop()
      let answer = try proxy.get(path)
      #expect(answer.status == 502)
      #expect(answer.first("Content-Type") == "application/problem+json")
      #expect(try proxy.statistics().counts == .init(errors: 1))
      try origin.restart()
      origin.on(path, .text("back"))
      #expect(try proxy.get(path).text == "back")
    }
  }

  @Test func aNameThatCannotBeFoundIsABadGateway() throws {
    let origin = try ScriptedOrigin()
    defer { origin.stop() }
    let proxy = try TestProxy(
      policies: scenarioPolicies("").replacingOccurrences(
        of: "{ORIGIN}", with: "nowhere.invalid"), origin: origin)
    #expect(try proxy.get("/a").status == 502)
  }

  @Test(arguments: ["/a", "/stored/a"])
  func silenceIsAGatewayTimeout(_ path: String) throws {
    try scenario(storing, upstream: #""retries": 3, "firstByteTimeout": "1s""#) {
      origin, proxy in
      let gate = Gate()
      origin.on(path, .text("late").waiting(for: gate))
      let connection = try proxy.connect()
      let answer = try connection.get(path)
      #expect(answer.status == 504)
      #expect(answer.first("Content-Type") == "application/problem+json")
      // What may still be at work is not asked again.
      #expect(origin.requestCount(path) == 1)
      gate.open()
      #expect(try connection.get("/other").status == 404)
    }
  }

  @Test func aHeadThatStopsHalfWayIsAGatewayTimeout() throws {
    let done = Gate()
    try rawScenario(upstream: #""retries": 0, "firstByteTimeout": "200ms""#) { connection in
      connection.readHead()
      connection.send("HTTP/1.1 200 OK\r\nContent-Le")
      done.waitUntilOpen()
    } _: { _, proxy in
      defer { done.open() }
      let answer = try proxy.get("/a")
      #expect(answer.status == 504)
    }
  }

  /// The body is whole: it is the origin that keeps the client waiting, not the client.
  @Test(arguments: ["Content-Length: 0\r\n\r\n", "Content-Length: 2\r\n\r\nhi"])
  func silenceAfterAWholeBodyIsAGatewayTimeout(_ body: String) throws {
    let done = Gate()
    try rawScenario(upstream: #""retries": 0, "firstByteTimeout": "200ms""#) { connection in
      connection.readHead()
      done.waitUntilOpen()
    } _: { _, proxy in
      defer { done.open() }
      let client = try RawClient(proxy)
      client.send("POST /a HTTP/1.1\r\nHost: h\r\n" + body)
      #expect(try client.read(until: "\r\n\r\n"))
      #expect(client.statuses == [504])
    }
  }

  @Test func anOriginThatDoesNotTakeTheBodyIsAGatewayTimeout() throws {
    let done = Gate()
    try rawScenario(upstream: #""retries": 0, "firstByteTimeout": "300ms""#) { connection in
      connection.readHead()
      done.waitUntilOpen()
    } _: { origin, proxy in
      defer { done.open() }
      let client = try RawClient(proxy)
      client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n")
      // Until neither the origin nor the proxy takes any more.
      let piece = [UInt8](repeating: 1, count: 1 << 20)[...]
      while client.sendWithoutWaiting(piece) > 0 { try proxy.settle() }
      #expect(try client.read(until: "\r\n\r\n"))
      #expect(client.statuses == [504])
    }
  }

  // MARK: Connections that died

  /// Keeps its first connection alive for one answer, then takes a request on it and ends it
  /// without a word. Later connections answer.
  private static func dyingOrigin(_ connection: RawOrigin.Connection) {
    while connection.readHead() != nil {
      if connection.number == 1 {
        _ = connection.read(0)
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst")
        connection.readHead()
        return
      }
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nlater")
    }
  }

  @Test(arguments: [0, 1])
  func aGetIsSentAgainWhereItsKeptConnectionDied(_ retries: Int) throws {
    try rawScenario(upstream: "\"retries\": \(retries)", origin: Self.dyingOrigin) {
      origin, proxy in
      let first = try proxy.get("/a")
      #expect(first.text == "first")
      #expect(try proxy.get("/b").text == "later")
      #expect(origin.heads.map { $0.prefix(6) } == ["GET /a", "GET /b", "GET /b"])
    }
  }

  @Test(arguments: ["POST", "PATCH"], [nil, "body"])
  func aPostIsNotSentTwiceWhereItsKeptConnectionDied(_ method: String, _ body: String?) throws {
    try rawScenario(upstream: "\"retries\": 3", origin: Self.dyingOrigin) { origin, proxy in
      #expect(try proxy.get("/a").text == "first")
      // Either on a connection of its own, or it fails: never twice.
      let answer = try proxy.send(method, "/b", body: body.map { Array($0.utf8) })
      #expect(origin.heads.count { $0.hasPrefix("\(method) /b") } == 1)
      #expect(answer.text == "later" || answer.status == 502)
    }
  }

  @Test(arguments: ["GET", "POST"])
  func aKeptConnectionThatTheOriginClosedIsNotUsed(_ method: String) throws {
    let closed = Gate()
    try rawScenario { connection in
      connection.readHead()
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\(connection.number)")
      if connection.number == 1 {
        connection.close()
        closed.open()
      } else {
        connection.readHead()
      }
    } _: { origin, proxy in
      #expect(try proxy.get("/a").text == "1")
      closed.waitUntilOpen()
      try proxy.settle()
      #expect(try proxy.send(method, "/b").text == "2")
      #expect(origin.heads.count == 2)
    }
  }

  @Test func aGetIsRetriedAsOftenAsTheUpstreamSays() throws {
    try rawScenario(upstream: "\"retries\": 2") { connection in
      connection.readHead()
      if connection.number == 3 {
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nthird")
      }
    } _: { origin, proxy in
      let answer = try proxy.get("/a")
      #expect(answer.text == "third")
      #expect(origin.heads.count == 3)
    }
  }

  @Test(
    arguments: [("GET", 3), ("HEAD", 3), ("OPTIONS", 3), ("POST", 1), ("PATCH", 1), ("X", 1)])
  func retriesEnd(_ method: String, _ attempts: Int) throws {
    try rawScenario(upstream: "\"retries\": 2") { connection in
      connection.readHead()
    } _: { origin, proxy in
      let answer = try proxy.send(method, "/a")
      #expect(answer.status == 502)
      #expect(origin.heads.count == attempts)
    }
  }

  @Test func anAnswerThatBeganIsNotAskedForAgain() throws {
    try scenario("", upstream: "\"retries\": 3") { origin, proxy in
      let gate = Gate()
      origin.on("/a", .text("whole").pausing(after: 2, for: gate).broken(after: 2, by: .close))
      let connection = try proxy.connect()
      connection.send("GET", "/a")
      try connection.readHead()
      gate.open()
      #expect(try connection.finishAnswer().isCut)
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test func connectionsToTheOriginAreUsedAgain() throws {
    try scenario(storing) { origin, proxy in
      origin.on("/a", .text("a"))
      for _ in 0..<5 { _ = try proxy.get("/a") }
      #expect(origin.connectionCount == 1)
      let counted = try proxy.statistics().origin
      #expect(counted.requests == 5)
      #expect(counted.connectionsOpened == 1)
      #expect(counted.reused == 4)
    }
  }
}
