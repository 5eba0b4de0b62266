import Support
import Testing

private let storing =
  #"{ "name": "stored", "match": "/stored/**", "strategy": "cache-first", "ttl": "1h" }"#

/// A client's connection over the length of several requests.
struct ServerConnectionTests {
  @Test func aConnectionServesOneRequestAfterAnother() throws {
    try scenario(storing) { origin, proxy in
      origin.on("/a") { .text("a\($0.number)") }
      origin.on("/stored/a", .text("kept"))
      let connection = try proxy.connect()
      for number in 1...3 {
        #expect(try connection.get("/a").text == "a\(number)")
        #expect(try connection.get("/stored/a").text == "kept")
      }
      #expect(try connection.get("/missing").status == 404)
      #expect(try connection.get("/a", ["Connection: keep-alive"]).first("Connection") == nil)
      #expect(try proxy.statistics().connections.accepted == 1)
    }
  }

  @Test func pipelinedRequestsAreAnsweredInOrder() throws {
    try scenario(storing) { origin, proxy in
      let gate = Gate()
      origin.on("/quick") { .text("quick\($0.number)") }
      origin.on("/slow", .text("slow").waiting(for: gate))
      origin.on("/stored/a", .text("kept"))
      _ = try proxy.get("/stored/a")
      let connection = try proxy.connect()
      let requests = [
        "GET /quick", "GET /stored/a", "GET /slow", "HEAD /stored/a", "GET /quick", "GET /stored/a",
      ]
      for request in requests { connection.noteMethod(of: request) }
      connection.send(
        raw: requests.map { "\($0) HTTP/1.1\r\nHost: app.example\r\n\r\n" }.joined())
      #expect(try connection.readAnswer().text == "quick1")
      #expect(try connection.readAnswer().text == "kept")
      #expect(gate.waitUntilReached())
      // The one behind it has not overtaken it.
      try proxy.settle()
      #expect(origin.requestCount("/quick") == 1)
      gate.open()
      #expect(try connection.readAnswer().text == "slow")
      #expect(try connection.readAnswer().text == "")
      #expect(try connection.readAnswer().text == "quick2")
      #expect(try connection.readAnswer().text == "kept")
    }
  }

  @Test func aHundredPipelinedHitsComeWholeAndInOrder() throws {
    try scenario(storing) { origin, proxy in
      for number in 0..<10 {
        origin.on("/stored/\(number)", .text(String(repeating: "\(number)", count: 12_000)))
        _ = try proxy.get("/stored/\(number)")
      }
      let connection = try proxy.connect(receiveBufferBytes: 4096)
      connection.send(
        raw: (0..<100).map { "GET /stored/\($0 % 10) HTTP/1.1\r\nHost: app.example\r\n\r\n" }
          .joined())
      for number in 0..<100 {
        #expect(
          try connection.readAnswer().text == String(repeating: "\(number % 10)", count: 12_000))
      }
    }
  }

  @Test func aRequestMayComeByteByByte() throws {
    try scenario(storing) { origin, proxy in
      origin.on("/a") { .text("got " + $0.bodyText) }
      let client = try RawClient(proxy)
      let request =
        "\r\nPOST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        + "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: u\r\n\r\nGET /missing HTTP/1.1\r\nHost: h\r\n"
        + "Connection: close\r\n\r\n"
      for character in request.utf8 {
        client.send([character])
      }
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [200, 404])
      #expect(client.text.contains("got abcde"))
    }
  }

  // MARK: HEAD

  @Test func headHasTheFieldsAndNoBody() throws {
    try scenario(storing) { origin, proxy in
      origin.on("/a", .text("12345", "X-A: b"))
      origin.on("/stored/a", .text("kept", "X-A: b"))
      let connection = try proxy.connect()
      for (path, length) in [("/a", "5"), ("/stored/a", "4")] {
        connection.send("HEAD", path)
        let head = try connection.readAnswer()
        #expect(head.status == 200)
        #expect(head.first("Content-Length") == length)
        #expect(head.first("X-A") == "b")
        let whole = try connection.get(path)
        #expect(whole.body.count == Int(length))
      }
      #expect(origin.requests("/a").map(\.method) == ["HEAD", "GET"])
    }
  }

  // MARK: HTTP/1.0

  @Test func http10ConnectionsEndAfterTheirAnswer() throws {
    try scenario(storing) { origin, proxy in
      origin.on("/a", .text("sized"))
      let client = try RawClient(proxy)
      client.send("GET /a HTTP/1.0\r\n\r\nGET /a HTTP/1.0\r\n\r\n")
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [200])
      #expect(client.text.hasSuffix("\r\n\r\nsized"))
      #expect(client.text.contains("\r\nConnection: close\r\n"))
    }
  }

  @Test func http10ConnectionsLiveOnWhereAsked() throws {
    try scenario(storing) { origin, proxy in
      origin.on("/a", .text("sized"))
      let connection = try proxy.connect()
      for _ in 0..<2 {
        connection.send(raw: "GET /a HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n")
        let answer = try connection.readAnswer()
        #expect(answer.text == "sized")
        #expect(answer.first("Connection") == "keep-alive")
      }
    }
  }

  @Test func http10GetsABodyOfUnknownLengthUpToTheEndOfTheConnection() throws {
    try scenario(storing) { origin, proxy in
      let gate = Gate()
      origin.on("/a", .text("unsized").framed(.chunked).pausing(after: 2, for: gate))
      let client = try RawClient(proxy)
      client.send("GET /a HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n")
      #expect(try client.read(until: "\r\n\r\nun"))
      gate.open()
      #expect(try client.readToEnd() == .orderly)
      #expect(client.text.hasSuffix("\r\n\r\nunsized"))
      #expect(client.text.contains("\r\nConnection: close\r\n"))
      #expect(!client.text.contains("Transfer-Encoding"))
      #expect(!client.text.contains("Content-Length"))
    }
  }

  @Test func aBodyOfUnknownLengthThatBreaksOffDoesNotLookWholeToHTTP10() throws {
    try scenario(storing) { origin, proxy in
      let gate = Gate()
      origin.on(
        "/a",
        .text("unsized").framed(.chunked).pausing(after: 3, for: gate).broken(after: 3, by: .close))
      let client = try RawClient(proxy)
      client.send("GET /a HTTP/1.0\r\nHost: h\r\n\r\n")
      #expect(try client.read(until: "\r\n\r\nuns"))
      gate.open()
      // Without framing only a reset can tell.
      #expect(try client.readToEnd() == .reset)
    }
  }

  @Test func aBodyOfUnknownLengthIsChunkedForHTTP11() throws {
    try scenario(storing) { origin, proxy in
      for (path, framing) in [("/a", OriginAnswer.Framing.chunked), ("/b", .untilClose)] {
        let connection = try proxy.connect()
        for _ in 0..<2 {
          // A body that were whole when its head goes out would have a length.
          let gate = Gate()
          origin.on(
            path,
            .text(String(repeating: "x", count: 100_000)).framed(framing)
              .pausing(after: 50_000, for: gate))
          connection.send("GET", path)
          _ = try connection.readHead()
          gate.open()
          let answer = try connection.finishAnswer()
          #expect(answer.all("Transfer-Encoding") == ["chunked"])
          #expect(answer.first("Content-Length") == nil)
          #expect(answer.body.count == 100_000)
          #expect(!answer.isCut)
        }
      }
    }
  }

  // MARK: Targets

  @Test func absoluteFormIsServedAsOriginForm() throws {
    try scenario(storing) { origin, proxy in
      origin.on("/stored/a") { .text("v\($0.number)") }
      let connection = try proxy.connect()
      connection.send(
        raw: "GET http://App.Example:80/stored/a?b HTTP/1.1\r\nHost: other\r\n\r\n")
      #expect(try connection.readAnswer().text == "v1")
      #expect(origin.requests("/stored/a").map(\.target) == ["/stored/a?b"])
      // Its authority is the key's, and Host does not count beside it (RFC 9112 §3.2.2).
      #expect(try proxy.get("/stored/a?b").text == "v1")
      #expect(try proxy.get("/stored/a?b", "Host: other").text == "v2")
    }
  }

  @Test func authorityAndQueryTellCopiesApart() throws {
    try scenario(storing) { origin, proxy in
      origin.on("/stored/a") { .text("v\($0.number)") }
      try proxy.settle()
      var number = 0
      for host in ["a", "a:8080", "a:81", "b", "[::1]", "[::1]:81"] {
        for query in ["", "?", "?a", "?A", "?a=1&b=2", "?b=2&a=1"] {
          number += 1
          for _ in 0..<2 {
            #expect(
              try proxy.get("/stored/a" + query, "Host: \(host)").text == "v\(number)",
              "\(host) \(query)")
          }
        }
      }
      for same in ["A", "a:80", "a:"] {
        #expect(try proxy.get("/stored/a", "Host: \(same)").text == "v1")
      }
    }
  }

  @Test func optionsOfTheServerIsAnsweredHere() throws {
    try scenario(storing) { origin, proxy in
      let answer = try proxy.send("OPTIONS", "*")
      #expect(answer.status == 204)
      #expect(answer.first("Allow")?.contains("GET") == true)
      #expect(answer.first("Content-Length") == nil)
      #expect(origin.requests.isEmpty)
    }
  }

  @Test(arguments: ["PURGE", "BAN", "TRACE"])
  func cacheMethodsAreRefusedAndReachNoOrigin(_ method: String) throws {
    try scenario(storing) { origin, proxy in
      origin.on("/stored/a", .text("kept"))
      _ = try proxy.get("/stored/a")
      let connection = try proxy.connect()
      connection.send(method, "/stored/a")
      let answer = try connection.readAnswer()
      #expect(answer.status == 405)
      #expect(answer.first("Allow")?.contains("GET") == true)
      #expect(answer.first("Content-Type") == "application/problem+json")
      #expect(try connection.get("/stored/a").cacheStatus.isHit)
      #expect(origin.requestCount("/stored/a") == 1)
      #expect(try proxy.statistics().routes["(none)"]?.errors == 1)
    }
  }

  @Test func connectIsRefusedAndReachesNoOrigin() throws {
    try scenario(storing) { origin, proxy in
      let client = try RawClient(proxy)
      client.send("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n")
      #expect(try client.readToEnd() == .orderly)
      #expect(client.statuses == [405])
      // RFC 9110 §15.5.6
      #expect(client.text.contains("\r\nAllow: GET, HEAD"))
      #expect(origin.requests.isEmpty)
    }
  }

  // MARK: The end of a connection

  @Test func closeIsAnnouncedAndDone() throws {
    try scenario(storing) { origin, proxy in
      origin.on("/a", .text("last"))
      origin.on("/stored/a", .text("kept"))
      for path in ["/a", "/stored/a", "/stored/a", "/missing"] {
        let connection = try proxy.connect()
        let answer = try connection.get(path, ["Connection: close"])
        #expect(answer.first("Connection") == "close")
        #expect(!answer.isCut)
        #expect(try connection.isClosedByPeer())
      }
    }
  }

  @Test func aClientThatHasFinishedSendingGetsItsAnswer() throws {
    try scenario(storing) { origin, proxy in
      let gate = Gate()
      let body = String(repeating: "x", count: 3_000_000)
      origin.on("/a", .text(body).waiting(for: gate))
      let connection = try proxy.connect(receiveBufferBytes: 4096)
      connection.send("GET", "/a")
      connection.finishSending()
      #expect(gate.waitUntilReached())
      try proxy.settle()
      gate.open()
      let answer = try connection.readAnswer()
      #expect(answer.text == body)
      #expect(!answer.isCut)
      #expect(try connection.isClosedByPeer())
    }
  }

  @Test func aClientThatHasFinishedSendingGetsAllItsPipelinedAnswers() throws {
    try scenario(storing) { origin, proxy in
      let gate = Gate()
      origin.on("/a", .text("first").waiting(for: gate))
      origin.on("/b", .text("second"))
      origin.on("/stored/a", .text("kept"))
      _ = try proxy.get("/stored/a")
      let connection = try proxy.connect()
      connection.send(
        raw: ["/a", "/stored/a", "/b", "/stored/a"]
          .map { "GET \($0) HTTP/1.1\r\nHost: app.example\r\n\r\n" }.joined())
      connection.finishSending()
      #expect(gate.waitUntilReached())
      try proxy.settle()
      gate.open()
      #expect(try connection.readAnswer().text == "first")
      #expect(try connection.readAnswer().text == "kept")
      #expect(try connection.readAnswer().text == "second")
      let last = try connection.readAnswer()
      #expect(last.text == "kept")
      #expect(last.first("Connection") == "close")
      #expect(try connection.isClosedByPeer())
    }
  }

  @Test func aClientThatLeavesHalfARequestIsForgotten() throws {
    try scenario(storing) { origin, proxy in
      origin.on("/a", .text("a"))
      for text in ["GET /a HTTP/1.1\r\nHo", "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /a HT"] {
        let client = try RawClient(proxy)
        client.send(text)
        client.finishSending()
        #expect(try client.readToEnd() == .orderly)
        #expect(client.statuses == (text.contains("\r\n\r\n") ? [200] : []))
      }
      let statistics = try proxy.statistics()
      #expect(statistics.connections.open == 0)
      #expect(statistics.requests == 1)
    }
  }
}
