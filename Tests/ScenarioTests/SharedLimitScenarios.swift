import Support
import Testing

/// Limits of what requests share: a fetch's readers, an origin's connections, a key's length.
struct SharedLimitScenarios {
  static let route = #"{ "name": "r", "match": "/**", "strategy": "cache-first", "ttl": "1h" }"#

  @Test func whoIsOneTooManyForAFetchFetchesAlone() throws {
    try scenario(SharedLimitScenarios.route, limits: #""fillWaiters": 2"#) { origin, proxy in
      let gate = Gate()
      origin.on("/a", .text("a").waiting(for: gate))
      let connections = try (0..<3).map { _ in try proxy.connect() }
      for connection in connections { connection.send("GET", "/a") }
      #expect(origin.waitForRequests("/a", 2))
      gate.open()
      for connection in connections {
        let answer = try connection.readAnswer()
        #expect(answer.text == "a")
      }
      #expect(origin.requestCount("/a") == 2)
    }
  }

  @Test func requestsBeyondAnOriginsConnectionsWaitForOne() throws {
    try scenario(SharedLimitScenarios.route, limits: #""upstreamConnections": 1"#) {
      origin, proxy in
      let gate = Gate()
      origin.on("/a", .text("a").waiting(for: gate))
      origin.on("/b", .text("b"))
      let first = try proxy.connect()
      let second = try proxy.connect()
      first.send("GET", "/a")
      #expect(gate.waitUntilReached())
      second.send("GET", "/b")
      try proxy.settle()
      #expect(origin.requestCount("/b") == 0)
      gate.open()
      let (answer, other) = (try first.readAnswer(), try second.readAnswer())
      #expect(answer.text == "a")
      #expect(other.text == "b")
      #expect(origin.connectionCount == 1)
    }
  }

  @Test func aKeyThatIsTooLongIsPassed() throws {
    try scenario(SharedLimitScenarios.route) { origin, proxy in
      origin.on("/a", .text("a"))
      let host = "Host: " + String(repeating: "h", count: 20_000)
      for _ in 0..<2 {
        let connection = try proxy.connect()
        connection.send(raw: "GET /a HTTP/1.1\r\n\(host)\r\n\r\n")
        let answer = try connection.readAnswer()
        #expect(answer.text == "a")
        #expect(answer.first("Cache-Status")?.contains("fwd=bypass") == true)
      }
      #expect(origin.requestCount("/a") == 2)
    }
  }
}
