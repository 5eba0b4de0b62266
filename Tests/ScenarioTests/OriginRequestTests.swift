internal import Foundation
import Support
import Testing

private let storing =
  #"{ "name": "stored", "match": "/stored/**", "strategy": "cache-first", "ttl": "1h" }"#

/// What an origin sees of a request, and a client of an answer.
struct OriginRequestTests {
  private static func names(_ fields: [(name: String, value: String)]) -> [String] {
    fields.map { $0.name.lowercased() }
  }

  @Test func aBareRequestGetsNothingButWhatTheProxyKnows() throws {
    try scenario(storing) { origin, proxy in
      for path in ["/a", "/stored/a"] {
        origin.on(path, .text("a"))
        _ = try proxy.get(path)
        let request = try #require(origin.requests(path).first)
        // No User-Agent, Accept or Accept-Encoding of our own.
        #expect(
          Self.names(request.fields).sorted() == [
            "forwarded", "host", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto",
          ])
      }
    }
  }

  @Test func hostIsTheUpstreamsOwn() throws {
    try scenario(storing) { origin, proxy in
      for path in ["/a", "/stored/a"] {
        origin.on(path, .text("a"))
        _ = try proxy.get(path, "Host: evil.example")
        #expect(origin.requests(path)[0].first("Host") == "127.0.0.1:\(origin.port)")
      }
    }
  }

  @Test func hostIsTheClientsWhereTheUpstreamSaysSo() throws {
    try scenario(storing, upstream: #""retries": 0, "hostHeader": "client""#) { origin, proxy in
      origin.on("/a", .text("a"))
      _ = try proxy.get("/a", "Host: shop.example:81")
      #expect(origin.requests("/a")[0].first("Host") == "shop.example:81")
    }
  }

  @Test func forwardingFieldsAreOurs() throws {
    try scenario(storing) { origin, proxy in
      for path in ["/a", "/stored/a"] {
        origin.on(path, .text("a"))
        _ = try proxy.get(
          path, "Host: shop.example", "Forwarded: for=1.2.3.4;proto=https",
          "X-Forwarded-For: 1.2.3.4",
          "X-Forwarded-Proto: https", "x-forwarded-host: evil.example", "X-FORWARDED-FOR: 5.6.7.8")
        let request = try #require(origin.requests(path).first)
        for (name, value) in [
          ("X-Forwarded-For", "127.0.0.1"), ("X-Forwarded-Proto", "http"),
          ("X-Forwarded-Host", "shop.example"),
          ("Forwarded", "for=127.0.0.1;host=\"shop.example\";proto=http"),
        ] {
          let values = request.fields.filter { $0.name.lowercased() == name.lowercased() }
          #expect(values.map(\.value) == [value], "\(name)")
        }
      }
    }
  }

  static let rewriting = [
    "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Server", "X-Forwarded-Scheme",
    "X-Forwarded-Anything", "X-Original-URL", "X-Original-Host", "X-Original-Method",
    "X-Rewrite-URL", "X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override",
  ]

  @Test func fieldsThatRewriteARequestAreDropped() throws {
    try scenario(storing) { origin, proxy in
      for path in ["/a", "/stored/a"] {
        origin.on(path, .text("a"))
        _ = try proxy.send(
          "GET", path,
          Self.rewriting.map { "\($0): evil" } + Self.rewriting.map { "\($0.lowercased()): evil" }
            + ["X-Forward: kept", "X-Methods: kept", "X-Originals: kept"])
        let request = try #require(origin.requests(path).first)
        let names = Self.names(request.fields)
        for name in Self.rewriting { #expect(!names.contains(name.lowercased()), "\(name)") }
        for name in ["X-Forward", "X-Methods", "X-Originals"] {
          #expect(request.first(name) == "kept")
        }
      }
    }
  }

  @Test func aRouteMayLetSuchFieldsThrough() throws {
    let route = #"""
      { "name": "r", "match": "/**", "strategy": "network-only",
        "forwardHeaders": ["X-Original-URL", "X-Forwarded-Port"] }
      """#
    try scenario(route) { origin, proxy in
      origin.on("/a", .text("a"))
      _ = try proxy.send("GET", "/a", Self.rewriting.map { "\($0): asked" })
      let request = try #require(origin.requests("/a").first)
      #expect(request.first("X-Original-URL") == "asked")
      #expect(request.first("X-Forwarded-Port") == "asked")
      #expect(request.first("X-Rewrite-URL") == nil)
      #expect(request.first("X-Forwarded-Prefix") == nil)
    }
  }

  // MARK: Hop by hop

  @Test func fieldsForOneConnectionDoNotReachTheOrigin() throws {
    try scenario(storing) { origin, proxy in
      for path in ["/a", "/stored/a"] {
        origin.on(path, .text("a"))
        _ = try proxy.get(
          path, "Connection: X-Private , keep-alive,x-other", "X-Private: secret",
          "X-Other: secret", "X-PRIVATE: again", "Keep-Alive: timeout=5",
          "Proxy-Connection: keep-alive", "Proxy-Authorization: Basic eDp5", "TE: trailers",
          "Trailer: X-T", "Upgrade: websocket", "HTTP2-Settings: AAMAAABk", "X-Public: kept")
        let request = try #require(origin.requests(path).first)
        let names = Self.names(request.fields)
        for name in [
          "connection", "x-private", "x-other", "keep-alive", "proxy-connection",
          "proxy-authorization", "te", "trailer", "upgrade", "http2-settings",
        ] {
          #expect(!names.contains(name), "\(name)")
        }
        #expect(request.first("X-Public") == "kept")
      }
    }
  }

  @Test func fieldsForOneConnectionDoNotReachTheClientOrTheStore() throws {
    try scenario(storing) { origin, proxy in
      for path in ["/a", "/stored/a"] {
        origin.on(
          path,
          .text(
            "a", "Connection: X-Private, keep-alive", "X-Private: secret", "x-private: again",
            "Keep-Alive: timeout=5", "Proxy-Authenticate: Basic", "Proxy-Connection: keep-alive",
            "Trailer: X-T", "Upgrade: h2c", "TE: trailers", "X-Public: kept"))
        for _ in 0..<2 {
          let answer = try proxy.get(path)
          let names = Self.names(answer.fields)
          for name in [
            "connection", "x-private", "keep-alive", "proxy-authenticate", "proxy-connection",
            "trailer", "upgrade", "te",
          ] {
            #expect(!names.contains(name), "\(name)")
          }
          #expect(answer.first("X-Public") == "kept")
        }
      }
      #expect(origin.requestCount("/stored/a") == 1)
    }
  }

  @Test func viaIsAddedBothWays() throws {
    try scenario(storing) { origin, proxy in
      for path in ["/a", "/stored/a"] {
        origin.on(path, .text("a", "Via: 1.1 origin-cache"))
        let answer = try proxy.get(path, "Via: 1.0 earlier")
        #expect(answer.all("Via") == ["1.1 origin-cache", "1.1 larder"])
        let request = try #require(origin.requests(path).first)
        #expect(
          request.fields.filter { $0.name.lowercased() == "via" }.map(\.value)
            == ["1.0 earlier", "1.1 larder"])
      }
      #expect(try proxy.get("/stored/a").all("Via") == ["1.1 origin-cache", "1.1 larder"])
    }
  }

  @Test func viaNamesTheVersionThatWasReceived() throws {
    try scenario(storing) { origin, proxy in
      origin.on("/a", .text("a"))
      let client = try RawClient(proxy)
      client.send("GET /a HTTP/1.0\r\n\r\n")
      #expect(try client.readToEnd() == .orderly)
      // RFC 9110 §7.6.3
      #expect(origin.requests("/a")[0].first("Via") == "1.0 larder")
    }
  }

  // MARK: Targets

  @Test(
    arguments: [
      ("/a/b", "/a/b"), ("/a/../b", "/b"), ("/a/./b", "/a/b"), ("/a/%2e%2E/b", "/b"),
      ("/../../x", "/x"), ("/a/..", "/"), ("/%61", "/a"), ("/a%2fb", "/a%2Fb"),
      ("/a%5cb", "/a%5Cb"), ("/a%2Fb", "/a%2Fb"), ("//x", "//x"), ("/a//b", "/a//b"),
      ("/%00", "/%00"), ("/a%20b", "/a%20b"), ("/a;b=c", "/a;b=c"), ("/a...b", "/a...b"),
      ("/%252e%252e/x", "/%252e%252e/x"), ("/x?y=/../z", "/x?y=/../z"), ("/x?", "/x?"),
      ("/x?a=%2f%61&b", "/x?a=%2f%61&b"), ("/~!$&'()*+,=:@", "/~!$&'()*+,=:@"),
    ])
  func theTargetThatWasKeyedIsTheTargetThatIsSent(_ asked: String, _ seen: String) throws {
    try scenario(#"{ "name": "r", "match": "/**", "strategy": "cache-first", "ttl": "1h" }"#) {
      origin, proxy in
      origin.on(String(seen.prefix { $0 != "?" })) { .text("v\($0.number)") }
      let answer = try proxy.get(asked)
      #expect(answer.text == "v1")
      #expect(origin.requests.map(\.target) == [seen])
      // One copy, however its address was written.
      #expect(try proxy.get(seen).text == "v1")
      #expect(origin.requests.count == 1)
    }
  }

  @Test func thePathOfTheUpstreamGoesBeforeEveryTarget() throws {
    let origin = try ScriptedOrigin()
    defer { origin.stop() }
    origin.on("/v2/a", .text("below"))
    let proxy = try TestProxy(
      policies: scenarioPolicies("").replacingOccurrences(of: "{ORIGIN}", with: "{ORIGIN}/v2"),
      origin: origin)
    #expect(try proxy.get("/x/../../a?b").text == "below")
    #expect(origin.requests.map(\.target) == ["/v2/a?b"])
  }

  // MARK: What is not done for a client

  @Test func cookiesAreNotKept() throws {
    try scenario("") { origin, proxy in
      origin.on("/a", .text("a", "Set-Cookie: id=secret; Path=/"))
      let first = try proxy.get("/a", "Cookie: mine=1")
      #expect(first.first("Set-Cookie") == "id=secret; Path=/")
      _ = try proxy.get("/a")
      #expect(origin.requests("/a").map { $0.first("Cookie") } == ["mine=1", nil])
    }
  }

  @Test(arguments: [301, 302, 303, 307, 308])
  func redirectsArePassedOnAndNotFollowed(_ status: Int) throws {
    try scenario("") { origin, proxy in
      origin.on("/b", .text("b"))
      origin.on("/a", .text("see /b", status: status, "Location: /b"))
      let answer = try proxy.get("/a")
      #expect(answer.status == status)
      #expect(answer.first("Location") == "/b")
      #expect(answer.text == "see /b")
      #expect(origin.requestCount("/b") == 0)
    }
  }

  @Test func codedBodiesStayAsTheyAre() throws {
    try scenario(storing) { origin, proxy in
      // No gzip at all: whoever tried to decode it would fail.
      let body = (0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
      for path in ["/a", "/stored/a"] {
        origin.on(path, .bytes(body, "Content-Encoding: gzip", "ETag: \"z\""))
        for _ in 0..<2 {
          let answer = try proxy.get(path, "Accept-Encoding: gzip, br;q=0.5")
          #expect(answer.body == body)
          #expect(answer.first("Content-Encoding") == "gzip")
          #expect(answer.first("ETag") == "\"z\"")
        }
        #expect(origin.requests(path)[0].first("Accept-Encoding") == "gzip, br;q=0.5")
      }
    }
  }

  @Test func interimAnswersDoNotCutTheFinalOne() throws {
    try scenario(storing) { origin, proxy in
      origin.on(
        "/stored/a",
        .text("final", "X-A: b").after(interim: 103, "Link: </x>").after(interim: 102))
      let connection = try proxy.connect()
      for round in 0..<2 {
        let answer = try connection.get("/stored/a")
        #expect(answer.status == 200)
        #expect(answer.text == "final")
        #expect(answer.first("Link") == nil)
        // They go to who waits for the network, and not with the copy.
        #expect(answer.interimStatuses == (round == 0 ? [103, 102] : []))
      }
      #expect(origin.requestCount("/stored/a") == 1)
    }
  }

  @Test func interimAnswersPassWhole() throws {
    try scenario(storing) { origin, proxy in
      origin.on(
        "/passed/a",
        .text("final").after(interim: 103, "Link: </x>", "Connection: X-Hop", "X-Hop: 1"))
      let connection = try RawClient(port: proxy.port)
      connection.send("GET /passed/a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
      _ = try connection.readToEnd()
      let text = connection.text
      #expect(
        text.hasPrefix(
          "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nVia: 1.1 larder\r\n\r\nHTTP/1.1 200"),
        "\(text)")
      let old = try RawClient(port: proxy.port)
      old.send("GET /passed/a HTTP/1.0\r\nHost: h\r\n\r\n")
      _ = try old.readToEnd()
      let answer = old.text
      #expect(answer.hasPrefix("HTTP/1.1 200"), "\(answer)")
    }
  }

  @Test func optionsGoAsFarAsMaxForwardsSays() throws {
    try scenario(storing) { origin, proxy in
      origin.on("/passed/a", .text("origin", "Allow: GET"))
      let here = try proxy.send("OPTIONS", "/passed/a", ["Max-Forwards: 0"])
      #expect(here.status == 204 && here.first("Allow") != nil)
      #expect(origin.requestCount("/passed/a") == 0)
      let there = try proxy.send("OPTIONS", "/passed/a", ["Max-Forwards: 3"])
      #expect(there.text == "origin")
      #expect(origin.requests("/passed/a")[0].first("Max-Forwards") == "2")
    }
  }
}
