import Support
import Testing

private let storing =
  #"{ "name": "stored", "match": "/stored/**", "strategy": "cache-first", "ttl": "1h" }"#

/// A request's body on its way to the origin.
struct RequestBodyTests {
  private static func pattern(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
  }

  @Test(arguments: [0, 1, 1000, 65_536, 300_000])
  func aBodyWithALengthReachesTheOriginWhole(_ count: Int) throws {
    try scenario("") { origin, proxy in
      origin.on("/a") { .text("\($0.body.count)") }
      let body = Self.pattern(count)
      let connection = try proxy.connect()
      for method in ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"] {
        connection.send(method, "/a", ["Content-Type: x/y"], body: body)
        #expect(try connection.readAnswer().text == "\(count)")
      }
      #expect(
        origin.requests("/a").map(\.method) == ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"])
      for request in origin.requests("/a") {
        #expect(request.body == body)
        #expect(request.first("Content-Length") == "\(count)")
        #expect(request.first("Transfer-Encoding") == nil)
        #expect(request.first("Content-Type") == "x/y")
      }
    }
  }

  @Test func aChunkedBodyReachesTheOriginChunked() throws {
    try scenario("") { origin, proxy in
      origin.on("/a") { .text("\($0.body.count)") }
      let connection = try proxy.connect()
      for _ in 0..<2 {
        connection.send(
          raw: "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
            + "5\r\nhello\r\n6;e=f\r\n world\r\n0\r\nTrailer-Field: x\r\n\r\n")
        #expect(try connection.readAnswer().text == "11")
      }
      for request in origin.requests("/a") {
        #expect(request.bodyText == "hello world")
        #expect(request.first("Transfer-Encoding") == "chunked")
        #expect(request.first("Content-Length") == nil)
        #expect(request.first("Trailer-Field") == nil)
      }
    }
  }

  @Test func aBodyOnGetGoesWhereNothingIsStoredAlone() throws {
    try scenario(storing) { origin, proxy in
      origin.on("/a", .text("a"))
      origin.on("/stored/a", .text("kept"))
      for path in ["/a", "/stored/a", "/stored/a"] {
        let answer = try proxy.send("GET", path, body: Array("poison".utf8))
        #expect(answer.status == 200)
      }
      #expect(origin.requests("/a").map(\.bodyText) == ["poison"])
      #expect(origin.requests("/stored/a").map(\.bodyText) == [""])
      #expect(origin.requests("/stored/a")[0].first("Content-Length") == nil)
    }
  }

  @Test func aBrokenOffBodyNeverLooksWholeToTheOrigin() throws {
    for framing in ["Content-Length: 10", "Transfer-Encoding: chunked"] {
      let rest = Left<String>()
      try rawScenario { connection in
        connection.readHead()
        rest.leave(String(decoding: connection.read(100), as: UTF8.self))
      } _: { origin, proxy in
        let client = try RawClient(proxy)
        client.send("POST /a HTTP/1.1\r\nHost: h\r\n\(framing)\r\n\r\n3\r\nabc\r\n")
        #expect(origin.waitForHeads(1))
        client.close()
        // The proxy ends the connection; neither all ten bytes nor a last chunk came.
        let rest = try #require(rest.wait())
        #expect(["", "3\r\nabc\r\n"].contains(rest))
      }
    }
  }

  // MARK: Expect

  @Test func aClientIsToldToContinueWhereItsBodyIsWanted() throws {
    try scenario(storing) { origin, proxy in
      origin.on("/a") { .text("got " + $0.bodyText) }
      let client = try RawClient(proxy)
      client.send(
        "POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
      #expect(try client.read(until: "\r\n\r\n"))
      #expect(client.text == "HTTP/1.1 100 Continue\r\n\r\n")
      client.send("body")
      #expect(try client.read(until: "got body"))
      #expect(client.statuses == [100, 200])
      // The connection is good for another.
      client.send("GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [100, 200, 200])
      #expect(origin.requests("/a")[0].first("Expect") == nil)
    }
  }

  @Test(
    arguments: [
      ("no route's method", "PURGE /a", 405), ("a path that could climb", "POST /..%2fa", 400),
      ("a copy answers", "GET /stored/a", 200),
      ("a body on a route that stores", "GET /stored/b", 200),
    ])
  func aClientIsNotToldToContinueWhereItsBodyIsNotWanted(
    _ name: String, _ line: String, _ status: Int
  ) throws {
    try scenario(storing) { origin, proxy in
      origin.on("/stored/a", .text("kept"))
      let gate = Gate()
      origin.on("/stored/b", .text("fetched").waiting(for: gate))
      _ = try proxy.get("/stored/a", "Host: h")
      let client = try RawClient(proxy)
      client.send(
        "\(line) HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
      if line.contains("/stored/b") {
        #expect(gate.waitUntilReached())
        try proxy.settle()
        gate.open()
      }
      // The body may or may not follow: the connection cannot go on (RFC 9110 §10.1.1).
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [status])
      #expect(client.text.contains("\r\nConnection: close\r\n"))
    }
  }

  @Test func aClientThatDoesNotWaitIsServedToo() throws {
    try scenario("") { origin, proxy in
      origin.on("/a") { .text("got \($0.body.count)") }
      let connection = try proxy.connect()
      for _ in 0..<2 {
        connection.send("POST", "/a", ["Expect: 100-continue"], body: Self.pattern(200_000))
        #expect(try connection.readAnswer().text == "got 200000")
      }
    }
  }

  // MARK: Back-pressure and early answers

  @Test func anUploadOf8MegabytesArrivesWhole() throws {
    try scenario("") { origin, proxy in
      let body = Self.pattern(8 << 20)
      origin.on("/a") { .text($0.body == body ? "same" : "different") }
      #expect(try proxy.send("POST", "/a", body: body).text == "same")
      let client = try RawClient(proxy)
      client.send("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
      client.send(Array("800000\r\n".utf8) + body + Array("\r\n0\r\n\r\n".utf8))
      #expect(try client.read(until: "same"))
    }
  }

  @Test func anOriginThatDoesNotReadHoldsTheUploadBack() throws {
    let mayRead = Gate()
    let count = 48 << 20
    let body = Self.pattern(count)
    try rawScenario { connection in
      connection.readHead()
      mayRead.waitUntilOpen()
      let isSame = connection.read(count) == body
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\(isSame ? "same" : "diff")")
    } _: { origin, proxy in
      let client = try RawClient(proxy)
      client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: \(count)\r\n\r\n")
      #expect(origin.waitForHeads(1))
      // Offers more until nothing has been taken for several rounds of the proxy's loop.
      var sent = 0
      var idleRounds = 0
      while sent < count, idleRounds < 5 {
        let taken = client.sendWithoutWaiting(body[sent...])
        sent += taken
        idleRounds = taken == 0 ? idleRounds + 1 : 0
        try proxy.settle()
      }
      // The rest is in the kernel's buffers, of which a loopback connection may have megabytes.
      #expect(sent < 24 << 20)
      mayRead.open()
      client.send(Array(body[sent...]))
      #expect(try client.read(until: "same"))
    }
  }

  @Test(arguments: [413, 200])
  func anAnswerBeforeTheBodysEndReachesTheClient(_ status: Int) throws {
    let done = Gate()
    try rawScenario { connection in
      connection.readHead()
      _ = connection.read(3)
      connection.send("HTTP/1.1 \(status) Early\r\nContent-Length: 5\r\n\r\nearly")
      done.waitUntilOpen()
    } _: { _, proxy in
      defer { done.open() }
      let client = try RawClient(proxy)
      client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\nabc")
      #expect(try client.read(until: "early"))
      #expect(client.statuses == [status])
      #expect(client.text.contains("\r\nConnection: close\r\n"))
    }
  }

  @Test func aConnectionThatSaidCloseIsClosedThoughTheBodyArrivesAfterAll() throws {
    try rawScenario { connection in
      connection.readHead()
      _ = connection.read(3)
      connection.send("HTTP/1.1 200 Early\r\nContent-Length: 5\r\n\r\nea")
      _ = connection.read(7)
      connection.send("rly")
      connection.readHead()
    } _: { origin, proxy in
      let client = try RawClient(proxy)
      client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc")
      #expect(try client.read(until: "\r\n\r\nea"))
      #expect(client.text.contains("\r\nConnection: close\r\n"))
      client.send("defghijGET /b HTTP/1.1\r\nHost: h\r\n\r\n")
      // RFC 9112 §9.6: nothing more is served.
      #expect(try client.readToEnd() == .orderly)
      #expect(client.text.hasSuffix("early"))
      #expect(origin.heads.count == 1)
    }
  }
}
