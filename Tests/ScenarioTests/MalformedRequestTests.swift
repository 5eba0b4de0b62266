import Support
import Testing

/// What is refused before it is a request: each gets its status, an end of the connection, and no
/// origin.
struct MalformedRequestTests {
  /// Refuses for its own reason alone: everything else about the request is sound.
  private static func request(_ fields: String, line: String = "POST /a HTTP/1.1") -> String {
    "\(line)\r\nHost: app.example\r\n\(fields)\r\n\r\n"
  }

  static let malformed: [(name: String, text: String, status: Int)] = [
    (
      "Content-Length beside Transfer-Encoding",
      request("Content-Length: 3\r\nTransfer-Encoding: chunked") + "0\r\n\r\n", 400
    ),
    ("differing lengths", request("Content-Length: 3\r\nContent-Length: 4") + "abcd", 400),
    ("a list of lengths", request("Content-Length: 3, 3") + "abc", 400),
    ("a malformed length", request("Content-Length: +3") + "abc", 400),
    ("a negative length", request("Content-Length: -3"), 400),
    ("a coding that is not chunked", request("Transfer-Encoding: gzip"), 400),
    ("chunked not last", request("Transfer-Encoding: chunked, gzip"), 400),
    ("chunked twice", request("Transfer-Encoding: chunked, chunked"), 400),
    ("a coding below chunked", request("Transfer-Encoding: gzip, chunked"), 501),
    ("a folded line", request("A: b\r\n c"), 400),
    ("a space before the colon", request("A : b"), 400),
    ("a bare CR", request("A: b\rC: d"), 400),
    ("a bare LF", request("A: b\nC: d"), 400),
    ("NUL", request("A: b\u{0}"), 400),
    ("a control character", request("A: b\u{8}"), 400),
    ("no Host", "GET /a HTTP/1.1\r\n\r\n", 400),
    ("two Hosts", request("Host: app.example"), 400),
    ("a malformed Host", "GET /a HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
    ("no version", "GET /a\r\n\r\n", 400),
    ("another version", "GET /a HTTP/2.0\r\nHost: h\r\n\r\n", 505),
    ("a space in the target", request("A: b", line: "GET /a b HTTP/1.1"), 400),
    ("another expectation", request("Expect: x\r\nContent-Length: 0"), 417),
    ("TLS", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\n\n", 400),
  ]

  @Test(arguments: malformed)
  func ambiguityIsRefusedAndTheConnectionEnds(
    _ row: (name: String, text: String, status: Int)
  ) throws {
    try scenario("") { origin, proxy in
      origin.on("/a", .text("reached"))
      let client = try RawClient(proxy)
      client.send(row.text)
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [row.status])
      #expect(client.text.contains("\r\nConnection: close\r\n"))
      #expect(client.text.contains("\r\nContent-Type: application/problem+json\r\n"))
      #expect(client.text.contains("\"status\":\(row.status),"))
      #expect(origin.requests.isEmpty)
      let statistics = try proxy.statistics()
      #expect(statistics.counts == .init(errors: 1))
      #expect(statistics.routes["(none)"]?.errors == 1)
    }
  }

  @Test func theRefusalArrivesHoweverMuchIsStillOnItsWay() throws {
    try scenario("") { origin, proxy in
      origin.on("/a", .text("reached"))
      let client = try RawClient(proxy)
      let rest = [UInt8](repeating: UInt8(ascii: "x"), count: 4_000_000)
      client.send(
        Array(Self.request("Content-Length: 4000000\r\nTransfer-Encoding: chunked").utf8) + rest)
      client.finishSending()
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [400])
      #expect(client.text.hasSuffix("}\n"))
      #expect(origin.requests.isEmpty)
    }
  }

  @Test func whatFollowsAMalformedRequestIsNotServed() throws {
    try scenario("") { origin, proxy in
      origin.on("/a", .text("reached"))
      let client = try RawClient(proxy)
      client.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n" + Self.request("A : b"))
      client.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
      client.finishSending()
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [200, 400])
      #expect(origin.requestCount("/a") == 1)
    }
  }

  @Test(
    arguments: [
      ("a size that is no number", "x\r\nabc\r\n0\r\n\r\n"),
      ("a size that overflows", "fffffffffffffffff\r\nabc"),
      ("data longer than its size", "2\r\nabc\r\n0\r\n\r\n"),
      ("a size ended by LF", "3\nabc\r\n0\r\n\r\n"),
      ("a malformed trailer", "3\r\nabc\r\n0\r\n a\r\n\r\n"),
    ])
  func aMalformedChunkIsRefused(_ name: String, _ body: String) throws {
    // The origin of the second answers only to a whole body: what it gets must not look whole.
    for route in ["", #"{ "name": "r", "match": "/**", "strategy": "cache-first" }"#] {
      try scenario(route) { origin, proxy in
        origin.on("/a", .text("reached"))
        let client = try RawClient(proxy)
        client.send(Self.request("Transfer-Encoding: chunked") + body)
        #expect(try client.readToEnd() == .orderly)
        #expect(client.statuses == [400])
        #expect(client.text.contains("\r\nConnection: close\r\n"))
        #expect(origin.requestCount("/a") == 0)
        #expect(try proxy.statistics().counts == .init(errors: 1))
      }
    }
  }

  @Test(
    arguments: [
      "/a/..%2fb", "/a/%2e%2e%2fb", "/..%5cb", "/a%zz", "/a%2", "/a/..\\b",
    ])
  func aPathThatCouldClimbIsRefused(_ path: String) throws {
    try scenario("") { origin, proxy in
      let connection = try proxy.connect()
      let answer = try connection.get(path)
      #expect(answer.status == 400)
      #expect(answer.first("Content-Type") == "application/problem+json")
      #expect(origin.requests.isEmpty)
      // Its framing was sound: the connection goes on.
      #expect(try connection.get("/x").status == 404)
      #expect(origin.requests.map(\.target) == ["/x"])
    }
  }
}
