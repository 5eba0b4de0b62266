import Backends
internal import Foundation
import Proxy
import Support
import Testing

/// What the server does not wait for, and does not take.
struct ServerLimitsTests {
  @Test func aRequestLineThatIsTooLongIsRefused() throws {
    try scenario("") { origin, proxy in
      origin.on("/" + String(repeating: "a", count: 8192 - 14), .text("fits"))
      let path = "/" + String(repeating: "a", count: 8192 - 14)
      #expect(try proxy.get(path).text == "fits")
      let client = try RawClient(proxy)
      client.send("GET \(path)a HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [414])
      #expect(client.text.contains("\r\nConnection: close\r\n"))
      #expect(origin.requests.count == 1)
    }
  }

  @Test func anEndlessRequestLineIsRefusedBeforeItEnds() throws {
    try scenario("") { _, proxy in
      let client = try RawClient(proxy)
      client.send(String(repeating: "a", count: 10_000))
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [414])
    }
  }

  @Test func aHeaderBlockThatIsTooLargeIsRefused() throws {
    try scenario("") { origin, proxy in
      origin.on("/a", .text("fits"))
      // "Host: h\r\n" and "A: …\r\n" make 64 KiB.
      let value = String(repeating: "v", count: 65_536 - 9 - 5)
      let client = try RawClient(proxy)
      client.send("GET /a HTTP/1.1\r\nHost: h\r\nA: \(value)\r\n\r\n")
      #expect(try client.read(until: "fits"))
      client.send("GET /a HTTP/1.1\r\nHost: h\r\nA: \(value)v\r\n\r\n")
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [200, 431])
    }
  }

  @Test func moreFieldsThanAHundredAreRefused() throws {
    try scenario("") { origin, proxy in
      origin.on("/a", .text("fits"))
      let client = try RawClient(proxy)
      let fields = String(repeating: "a: b\r\n", count: 99)
      client.send("GET /a HTTP/1.1\r\nHost: h\r\n\(fields)\r\n")
      #expect(try client.read(until: "fits"))
      client.send("GET /a HTTP/1.1\r\nHost: h\r\n\(fields)a: b\r\n\r\n")
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [200, 431])
      #expect(origin.requestCount("/a") == 1)
    }
  }

  // MARK: Time

  @Test func aHeadThatTakesTooLongIsTimedOut() throws {
    try scenario("", limits: #""headerTimeout": "1s""#) { origin, proxy in
      let client = try RawClient(proxy)
      client.send("GET /a HTTP/1.1\r\nHost: h\r\n")
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [408])
      #expect(client.text.contains("\r\nConnection: close\r\n"))
      #expect(origin.requests.isEmpty)
      #expect(try proxy.statistics().counts == .init(errors: 1))
    }
  }

  @Test func aConnectionWithoutARequestIsClosedWithoutAWord() throws {
    try scenario("", limits: #""headerTimeout": "1s""#) { _, proxy in
      let client = try RawClient(proxy)
      #expect(try client.readToEnd() == .orderly)
      #expect(client.text.isEmpty)
      #expect(try proxy.statistics().requests == 0)
    }
  }

  @Test func anIdleConnectionIsClosedWithoutAWord() throws {
    try scenario("", limits: #""headerTimeout": "1s", "idle": "1s""#) { origin, proxy in
      origin.on("/a", .text("served"))
      let client = try RawClient(proxy)
      client.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [200])
      #expect(client.text.hasSuffix("served"))
      #expect(try proxy.statistics().requests == 1)
    }
  }

  @Test(arguments: ["Content-Length: 10", "Transfer-Encoding: chunked"])
  func aBodyThatStallsIsTimedOut(_ framing: String) throws {
    try scenario("", limits: #""bodyStall": "200ms""#) { origin, proxy in
      origin.on("/a", .text("reached"))
      let client = try RawClient(proxy)
      client.send("POST /a HTTP/1.1\r\nHost: h\r\n\(framing)\r\n\r\n3\r\nabc")
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [408])
      #expect(origin.requestCount("/a") == 0, "the origin records whole requests")
      #expect(try proxy.statistics().counts == .init(errors: 1))
    }
  }

  @Test func aBodyThatNeverBeginsIsTimedOut() throws {
    try scenario("", limits: #""bodyStall": "200ms""#) { origin, proxy in
      origin.on("/a", .text("reached"))
      let client = try RawClient(proxy)
      client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n")
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [408])
    }
  }

  @Test func aClientThatDoesNotReadIsCutAndTheOriginIsLetGo() throws {
    try scenario("", limits: #""bodyStall": "200ms""#) { origin, proxy in
      origin.on("/a", .bytes([UInt8](repeating: 1, count: 64 << 20)))
      let connection = try proxy.connect(receiveBufferBytes: 4096)
      connection.send("GET", "/a")
      try connection.readHead()
      // The origin cannot deliver all of it, and learns that nobody wants it.
      #expect(origin.waitForAnswers("/a", 1))
      #expect(try connection.finishAnswer().isCut)
    }
  }

  @Test func aSlowAnswerIsNotAnIdleConnection() throws {
    let limits = #""headerTimeout": "1s", "idle": "1s", "bodyStall": "1s""#
    try scenario("", limits: limits) { origin, proxy in
      let gate = Gate()
      let other = Gate()
      origin.on("/a", .text("late").waiting(for: gate))
      origin.on("/b", .text("b").waiting(for: other))
      let connection = try proxy.connect()
      connection.send("GET", "/a")
      #expect(gate.waitUntilReached())
      // An idle connection that is closed meanwhile shows that the limits have passed.
      let idle = try RawClient(proxy)
      #expect(try idle.readToEnd() == .orderly)
      gate.open()
      #expect(try connection.readAnswer().text == "late")
    }
  }

  // MARK: Connections

  @Test func aConnectionTooManyIsRefusedPolitelyAndCounted() throws {
    try scenario("", limits: #""connections": 2"#) { origin, proxy in
      origin.on("/a", .text("served"))
      try proxy.settle()
      let first = try proxy.connect()
      let second = try proxy.connect()
      #expect(try first.get("/a").text == "served")
      #expect(try second.get("/a").text == "served")
      let third = try RawClient(proxy)
      #expect(try third.readToEnd() == .orderly)
      #expect(third.statuses == [503])
      #expect(third.text.contains("\r\nRetry-After: "))
      #expect(third.text.contains("\r\nConnection: close\r\n"))
      let full = try proxy.statistics()
      #expect(full.connections.refused == 1)
      #expect(full.connections.open == 2)
      #expect(full.connections.accepted == 2)
      first.close()
      #expect(try proxy.hasOpenConnections(1))
      let fourth = try proxy.connect()
      #expect(try fourth.get("/a").text == "served")
      #expect(try second.get("/a").text == "served")
    }
  }

  // MARK: IPv6

  @Test(.enabled(if: RawClient.hasIPv6, "this machine has no ::1"))
  func clientsOverIPv6AreServed() throws {
    let origin = try ScriptedOrigin()
    defer { origin.stop() }
    origin.on("/a", .text("over six"))
    let folder = try TemporaryFolder()
    let text = scenarioPolicies("").replacingOccurrences(
      of: "{ORIGIN}", with: "127.0.0.1:\(origin.port)")
    guard
      case .loaded(var configuration, _) = ConfigurationLoader.load(
        text: text, file: "policies.json", environment: [:])
    else {
      Issue.record("the configuration is refused")
      return
    }
    configuration.listen = [
      .init(host: "::1", port: 0), .init(host: "127.0.0.1", port: 0),
    ]
    configuration.store.path = folder.path + "/store"
    configuration.loops = 1
    let server = try Server.start(configuration, log: .silent)
    defer { server.drain() }
    #expect(server.publicAddresses[0].description.hasPrefix("[::1]:"))
    let port = server.publicAddresses[0].port
    let client = try RawClient(port: port, overIPv6: true)
    client.send("GET /a HTTP/1.1\r\nHost: [::1]:\(port)\r\nConnection: close\r\n\r\n")
    #expect(try client.readToEnd() == .orderly)
    #expect(client.statuses == [200])
    #expect(client.text.hasSuffix("over six"))
    let request = try #require(origin.requests("/a").first)
    #expect(request.first("X-Forwarded-For") == "::1")
    #expect(request.first("Forwarded")?.hasPrefix("for=\"[::1]\"") == true)
    let other = try ClientConnection(port: server.publicAddresses[1].port)
    #expect(try other.get("/a").text == "over six")
  }
}
