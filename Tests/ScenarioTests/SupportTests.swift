import Support
import Testing

/// The tools of the other scenarios do what they say.
struct SupportTests {
  @Test func anAnswerGoesThroughTheProxyAndIsCounted() throws {
    try scenario(#"{ "name": "r", "match": "/**", "strategy": "cache-first", "ttl": "1m" }"#) {
      origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      let first = try proxy.get("/a")
      #expect(first.status == 200)
      #expect(first.text == "v1")
      #expect(first.cacheStatus.forward == "uri-miss")
      let second = try proxy.get("/a")
      #expect(second.text == "v1")
      #expect(second.cacheStatus.isHit)
      #expect(origin.requestCount("/a") == 1)
      #expect(try proxy.counts("r") == .init(hits: 1, misses: 1))
      try proxy.restart()
      #expect(try proxy.get("/a").text == "v1")
    }
  }

  @Test func aStoppedOriginRefusesAndComesBackOnItsPort() throws {
    let origin = try ScriptedOrigin()
    origin.on("/a", .text("here"))
    origin.stop()
    #expect(throws: SocketError.self) { _ = try ClientConnection(port: origin.port) }
    try origin.restart()
    let connection = try ClientConnection(port: origin.port)
    #expect(try connection.get("/a").text == "here")
    origin.stop()
    #expect(try connection.isClosedByPeer())
  }

  @Test func theOriginBreaksOffWhereItIsTold() throws {
    let origin = try ScriptedOrigin()
    let gate = Gate()
    origin.on("/short", .text("whole").broken(after: 2, by: .close))
    origin.on("/chunk", .text("whole").framed(.chunked).broken(after: 2, by: .reset))
    origin.on("/wait", .text("whole").after(interim: 103).pausing(after: 3, for: gate))
    for path in ["/short", "/chunk"] {
      let answer = try ClientConnection(port: origin.port).get(path)
      #expect(answer.isCut)
      #expect(answer.text == "wh")
    }
    let connection = try ClientConnection(port: origin.port)
    connection.send("GET", "/wait")
    #expect(try connection.readHead().interimStatuses == [103])
    #expect(gate.waitUntilReached())
    #expect(try connection.readBody(atLeast: 3).count == 3)
    gate.open()
    #expect(try connection.finishAnswer().text == "whole")
    #expect(origin.waitForAnswers("/wait", 1))
  }
}
