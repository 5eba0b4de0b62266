import Support
import Testing

private let storing =
  #"{ "name": "stored", "match": "/stored/**", "strategy": "cache-first", "ttl": "1h" }"#

/// Clients that leave at every point of an exchange take nothing with them.
struct ClientDepartureTests {
  private static let requests = [
    "", "G", "GET /a HTTP/1.1\r\n", "GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET /stored/a HTTP/1.1\r\nHost: h\r\n\r\n", "GET /stored/large HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET /large HTTP/1.1\r\nHost: h\r\n\r\n", "HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nabc",
    "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
    "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    "POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
    "GET /broken HTTP/1.1\r\nHost: h\r\n\r\n", "GET /stored/new HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /stored/large HTTP/1.1\r\nHost: h\r\n\r\nGET /a HT",
  ]

  @Test func whoeverLeavesWheneverTheProxyServesOn() throws {
    try scenario(storing) { origin, proxy in
      let large = [UInt8](repeating: 7, count: 2_000_000)
      origin.on("/a", .text("a"))
      origin.on("/large", .bytes(large))
      origin.on("/broken", .text("whole").broken(after: 2, by: .reset))
      origin.on("/stored/a", .text("kept"))
      origin.on("/stored/new", .text("new", "Cache-Control: no-store"))
      origin.on("/stored/large", .bytes(large))
      _ = try proxy.get("/stored/a", "Host: h")
      _ = try proxy.get("/stored/large", "Host: h")
      for round in 0..<4 {
        var waiting: [ClientConnection] = []
        for text in Self.requests {
          for isOrderly in [true, false] {
            let client = try proxy.connect(receiveBufferBytes: 4096)
            client.send(raw: text)
            // In every second round the proxy has got to work when they leave.
            if round % 2 == 0 {
              isOrderly ? client.close() : client.reset()
            } else {
              waiting.append(client)
            }
          }
        }
        try proxy.settle()
        for (index, client) in waiting.enumerated() {
          index % 2 == 0 ? client.close() : client.reset()
        }
      }
      #expect(try proxy.hasOpenConnections(0))
      #expect(try proxy.get("/a").text == "a")
      #expect(try proxy.get("/large").body == large)
      #expect(try proxy.get("/stored/large", "Host: h").body == large)
      let statistics = try proxy.statistics()
      #expect(statistics.requests == statistics.counts.total)
    }
  }

  @Test func aFetchThatNobodyWantsAnyMoreIsGivenUp() throws {
    let ended = Left<Bool>()
    try rawScenario { connection in
      connection.readHead()
      // The proxy ends the connection behind what there is of the body, while no answer has begun.
      var body = connection.read(1)
      while !body.isEmpty { body = connection.read(1) }
      ended.leave(true)
    } _: { origin, proxy in
      let client = try RawClient(proxy)
      client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nab")
      #expect(origin.waitForHeads(1))
      client.close()
      #expect(ended.wait() != nil)
      #expect(try proxy.hasOpenConnections(0))
      #expect(try proxy.statistics().requests == 0, "no answer, no count")
    }
  }

  @Test func aBodyThatIsHalfSentIsEndedWithItsClient() throws {
    let gate = Gate()
    try scenario("") { origin, proxy in
      origin.on(
        "/a", .bytes([UInt8](repeating: 1, count: 1_000_000)).pausing(after: 500, for: gate))
      let client = try proxy.connect()
      client.send("GET", "/a")
      try client.readHead()
      #expect(gate.waitUntilReached())
      client.reset()
      #expect(try proxy.hasOpenConnections(0))
      gate.open()
      #expect(origin.waitForAnswers("/a", 1))
      #expect(try proxy.get("/none").status == 404)
    }
  }
}
