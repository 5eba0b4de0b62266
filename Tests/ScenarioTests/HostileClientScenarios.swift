import Support
import Testing

/// Clients that leave, flood and lie: nobody else notices.
struct HostileClientScenarios {
  private static let networkOnly = #"{ "name": "r", "match": "/**", "strategy": "network-only" },"#

  /// The connection to the origin is not set up yet when the client is gone: libcurl closes such a
  /// socket by itself.
  @Test func clientsThatLeaveAtOnceHarmNobody() throws {
    try scenario(Self.networkOnly) { origin, proxy in
      origin.on("/a", .text("alive"))
      for _ in 0..<200 {
        let client = try proxy.connect()
        client.send("GET", "/a")
        client.reset()
      }
      #expect(try proxy.get("/a").text == "alive")
    }
  }

  @Test func aClientThatSendsFarAheadOfItsReadingGetsEveryAnswer() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let body = String(repeating: "b", count: 40_000)
      origin.on("/a", .text(body))
      _ = try proxy.get("/a")
      let client = try proxy.connect(receiveBufferBytes: 4096)
      defer { client.close() }
      let padding = "X-Padding: \(String(repeating: "p", count: 2000))"
      for _ in 0..<100 { client.send("GET", "/a", [padding]) }
      for _ in 0..<100 {
        let answer = try client.readAnswer()
        expect(answer, body, .hit)
      }
    }
  }

  @Test func spellingsOfOneHostAreOneForTheOriginToo() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { request in
        .text("\(request.first("X-Forwarded-Host") ?? "") \(request.first("Forwarded") ?? "")")
      }
      let first = try proxy.get("/a", "Host: APP.Example:80")
      #expect(first.text.hasPrefix("app.example for=127.0.0.1;host=\"app.example\""))
      expect(try proxy.get("/a", "Host: app.example"), first.text, .hit)
    }
  }

  @Test(arguments: [
    "X_Forwarded_For", "x-original_url", "X_HTTP_Method_Override", "X_Method-Override",
  ])
  func fieldsThatRewriteARequestAreDroppedWhateverTheirDashes(_ name: String) throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { .text("\($0.first(name) ?? "none")") }
      let answer = try proxy.get("/a", "\(name): /evil")
      #expect(answer.text == "none")
    }
  }

  /// One user's request must not make everybody's answers unshared.
  @Test func anAuthorizedRequestDoesNotEndTheSharingOfOthers() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      let gate = Gate()
      origin.on("/a") { request in
        request.first("Authorization") == nil
          ? OriginAnswer.text("everybody's").waiting(for: gate) : .text("mine")
      }
      expect(try proxy.get("/a", "Authorization: me"), "mine", .notStored("uri-miss"))
      let clients = try (0..<5).map { _ in try proxy.connect() }
      defer { for client in clients { client.close() } }
      for client in clients { client.send("GET", "/a") }
      try proxy.settle()
      gate.open()
      for client in clients { #expect(try client.readAnswer().text == "everybody's") }
      #expect(origin.requestCount("/a") == 2)
    }
  }
}
