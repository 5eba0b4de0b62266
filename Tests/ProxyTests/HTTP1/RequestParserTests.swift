import Backends
import CachePolicy
import Testing

@testable import Proxy

struct RequestParserTests {
  private static func request(_ line: String, _ fields: String...) -> String {
    ([line] + fields).map { $0 + "\r\n" }.joined() + "\r\n"
  }

  // MARK: What is refused

  @Test(
    arguments: [
      ("no target", request("GET HTTP/1.1", "Host: a"), 400),
      ("an empty target", request("GET  HTTP/1.1", "Host: a"), 400),
      ("a double space", request("GET  / HTTP/1.1", "Host: a"), 400),
      ("a tab for a space", request("GET\t/ HTTP/1.1", "Host: a"), 400),
      ("a space behind the version", request("GET / HTTP/1.1 ", "Host: a"), 400),
      ("a space first", request(" GET / HTTP/1.1", "Host: a"), 400),
      ("an empty first line", request("", "GET / HTTP/1.1"), 400),
      ("no method", request("/ HTTP/1.1", "Host: a"), 400),
      ("a method that is no token", request("G(T / HTTP/1.1", "Host: a"), 400),
      ("HTTP/0.9", request("GET /"), 400),
      ("a version in lower case", request("GET / http/1.1", "Host: a"), 400),
      ("a version with two digits", request("GET / HTTP/1.10", "Host: a"), 400),
      ("a version without a dot", request("GET / HTTP/1_1", "Host: a"), 400),
      ("a version without digits", request("GET / HTTP/x.y", "Host: a"), 400),
      ("HTTP/2", request("GET / HTTP/2.0", "Host: a"), 505),
      ("HTTP/0", request("GET / HTTP/0.9", "Host: a"), 505),
      ("a relative target", request("GET a HTTP/1.1", "Host: a"), 400),
      ("an asterisk for GET", request("GET * HTTP/1.1", "Host: a"), 400),
      ("a fragment", request("GET /a#b HTTP/1.1", "Host: a"), 400),
      ("a fragment behind a query", request("GET /a?b#c HTTP/1.1", "Host: a"), 400),
      ("a control in the target", request("GET /\u{1} HTTP/1.1", "Host: a"), 400),
      ("DEL in the target", request("GET /\u{7F} HTTP/1.1", "Host: a"), 400),
      ("bytes above ASCII in the target", request("GET /é HTTP/1.1", "Host: a"), 400),
      ("another scheme", request("GET ftp://a/ HTTP/1.1", "Host: a"), 400),
      ("no authority", request("GET http:///a HTTP/1.1", "Host: a"), 400),
      ("user information", request("GET http://u@a/ HTTP/1.1", "Host: a"), 400),
      ("absolute-form without Host", request("GET http://a/ HTTP/1.1"), 400),
      ("CONNECT", request("CONNECT a:443 HTTP/1.1", "Host: a:443"), 405),

      ("a folded line", request("GET / HTTP/1.1", "Host: a", " b"), 400),
      ("a line folded by a tab", request("GET / HTTP/1.1", "Host: a", "\tb"), 400),
      ("a folded first line", request("GET / HTTP/1.1", " Host: a"), 400),
      ("a space before the colon", request("GET / HTTP/1.1", "Host : a"), 400),
      ("a tab before the colon", request("GET / HTTP/1.1", "Host\t: a"), 400),
      ("no colon", request("GET / HTTP/1.1", "Host: a", "b"), 400),
      ("no name", request("GET / HTTP/1.1", "Host: a", ": b"), 400),
      ("a name that is no token", request("GET / HTTP/1.1", "Host: a", "b(c): d"), 400),
      ("a bare CR in a value", request("GET / HTTP/1.1", "Host: a", "b: c\rd: e"), 400),
      ("a bare CR at a value's end", request("GET / HTTP/1.1", "Host: a", "b: c\r"), 400),
      ("a bare CR in the request line", request("GET /\r HTTP/1.1", "Host: a"), 400),
      ("a bare CR in a name", request("GET / HTTP/1.1", "Host: a", "b\r: c"), 400),
      ("a bare LF", request("GET / HTTP/1.1", "Host: a", "b: c\nd: e"), 400),
      ("NUL in a value", request("GET / HTTP/1.1", "Host: a", "b: \u{0}"), 400),
      ("a control in a value", request("GET / HTTP/1.1", "Host: a", "b: \u{1F}"), 400),
      ("DEL in a value", request("GET / HTTP/1.1", "Host: a", "b: c\u{7F}"), 400),

      ("no Host", request("GET / HTTP/1.1"), 400),
      ("two Hosts", request("GET / HTTP/1.1", "Host: a", "Host: b"), 400),
      ("twice the same Host", request("GET / HTTP/1.1", "Host: a", "host: a"), 400),
      ("two Hosts in HTTP/1.0", request("GET / HTTP/1.0", "Host: a", "Host: b"), 400),
      ("a Host with a path", request("GET / HTTP/1.1", "Host: a/b"), 400),
      ("a Host with user information", request("GET / HTTP/1.1", "Host: u@a"), 400),
      ("a list for a Host", request("GET / HTTP/1.1", "Host: a, b"), 400),
      ("a Host with a space", request("GET / HTTP/1.1", "Host: a b"), 400),
      ("a Host with a word for a port", request("GET / HTTP/1.1", "Host: a:b"), 400),
      ("a Host with an endless port", request("GET / HTTP/1.1", "Host: a:123456"), 400),
      ("a Host with two ports", request("GET / HTTP/1.1", "Host: a:1:2"), 400),
      ("an open bracket", request("GET / HTTP/1.1", "Host: [::1"), 400),
      ("no address in brackets", request("GET / HTTP/1.1", "Host: [x]"), 400),
      ("something behind brackets", request("GET / HTTP/1.1", "Host: [::1]a"), 400),

      ("an empty length", request("GET / HTTP/1.1", "Host: a", "Content-Length:"), 400),
      ("a signed length", request("GET / HTTP/1.1", "Host: a", "Content-Length: +1"), 400),
      ("a negative length", request("GET / HTTP/1.1", "Host: a", "Content-Length: -1"), 400),
      ("a hexadecimal length", request("GET / HTTP/1.1", "Host: a", "Content-Length: 0x1"), 400),
      (
        "a length with a fraction", request("GET / HTTP/1.1", "Host: a", "Content-Length: 1.0"), 400
      ),
      ("a length in two words", request("GET / HTTP/1.1", "Host: a", "Content-Length: 1 2"), 400),
      ("a list of lengths", request("GET / HTTP/1.1", "Host: a", "Content-Length: 1, 1"), 400),
      (
        "a length beyond 64 bits",
        request("GET / HTTP/1.1", "Host: a", "Content-Length: 18446744073709551617"), 400
      ),
      (
        "differing lengths",
        request("POST / HTTP/1.1", "Host: a", "Content-Length: 1", "Content-Length: 2"), 400
      ),
      (
        "a length twice",
        request("POST / HTTP/1.1", "Host: a", "Content-Length: 1", "Content-Length: 1"), 400
      ),
      (
        "a length beside a coding",
        request(
          "POST / HTTP/1.1", "Host: a", "Content-Length: 1", "Transfer-Encoding: chunked"), 400
      ),
      (
        "a length behind a coding",
        request(
          "POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "Content-Length: 1"), 400
      ),
      (
        "a coding in HTTP/1.0",
        request("POST / HTTP/1.0", "Host: a", "Transfer-Encoding: chunked"), 400
      ),
      (
        "chunked twice",
        request("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked, chunked"), 400
      ),
      (
        "chunked in two lines",
        request(
          "POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        400
      ),
      (
        "chunked not last",
        request("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked, gzip"), 400
      ),
      ("identity", request("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: identity"), 400),
      ("gzip alone", request("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: gzip"), 400),
      ("an empty coding", request("POST / HTTP/1.1", "Host: a", "Transfer-Encoding:"), 400),
      ("an unknown coding", request("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: x"), 400),
      (
        "chunked with a parameter",
        request("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked;a=b"), 400
      ),
      (
        "chunked with a control before it",
        request("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: \u{B}chunked"), 400
      ),
      (
        "gzip below chunked",
        request("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: gzip, chunked"), 501
      ),
      ("another expectation", request("POST / HTTP/1.1", "Host: a", "Expect: tea"), 417),
    ] as [(String, String, UInt16)])
  func whatCouldBeReadInTwoWaysIsRefused(_ name: String, _ head: String, _ status: UInt16) {
    #expect(HeadReading.refusal(Array(head.utf8)) == status)
  }

  @Test(arguments: UInt8(0)...UInt8(0x1F))
  func noControlByteStandsInAFieldValue(_ byte: UInt8) {
    let head = Array("GET / HTTP/1.1\r\nHost: a\r\nb: c".utf8) + [byte] + Array("d\r\n\r\n".utf8)
    #expect(HeadReading.refusal(head) == (byte == 0x09 ? nil : 400))
  }

  @Test(arguments: UInt8(0)...UInt8(0xFF))
  func aFieldNameHoldsTokenBytesAlone(_ byte: UInt8) {
    let head = Array("GET / HTTP/1.1\r\nHost: a\r\nb".utf8) + [byte] + Array("c: d\r\n\r\n".utf8)
    let tokenBytes = Array(
      "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
    // A colon ends the name earlier.
    let isAccepted = tokenBytes.contains(byte) || byte == UInt8(ascii: ":")
    #expect(HeadReading.refusal(head) == (isAccepted ? nil : 400))
  }

  // MARK: What is read

  @Test(
    arguments: [
      ("origin-form", "/a/b", "Host: h", "/a/b", nil, "h"),
      ("a query", "/a?b=c&d", "Host: h", "/a", "b=c&d", "h"),
      ("an empty query", "/a?", "Host: h", "/a", "", "h"),
      ("a question mark in the query", "/a?b?c", "Host: h", "/a", "b?c", "h"),
      ("nothing is decoded", "/%2e%2F;x//", "Host: h", "/%2e%2F;x//", nil, "h"),
      ("a port", "/", "Host: h:8080", "/", nil, "h:8080"),
      ("an empty port", "/", "Host: h:", "/", nil, "h:"),
      ("an empty Host", "/", "Host:", "/", nil, ""),
      ("an IPv6 Host", "/", "Host: [2001:db8::1]:80", "/", nil, "[2001:db8::1]:80"),
      ("absolute-form beats Host", "http://x:81/a?b", "Host: h", "/a", "b", "x:81"),
      ("a scheme in capitals", "HTTP://x/a", "Host: h", "/a", nil, "x"),
      ("https in absolute-form", "https://x/a", "Host: h", "/a", nil, "x"),
      ("IPv6 in absolute-form", "http://[::1]:81/a", "Host: h", "/a", nil, "[::1]:81"),
    ] as [(String, String, String, String, String?, String)])
  func theTargetIsTakenApart(
    _ name: String, _ target: String, _ host: String, _ path: String, _ query: String?,
    _ authority: String
  ) throws {
    let head = try #require(try HeadReading.head(Self.request("GET \(target) HTTP/1.1", host)))
    #expect(text(head.path) == path)
    #expect(head.query.map { text($0) } == query)
    #expect(text(head.authority) == authority)
    #expect(!head.isAsterisk)
  }

  @Test func optionsMayAskOfTheServerAsAWhole() throws {
    let head = try #require(try HeadReading.head(Self.request("OPTIONS * HTTP/1.1", "Host: a")))
    #expect(head.isAsterisk)
    #expect(head.path.isEmpty)
  }

  @Test func fieldsAreKeptAsTheyCame() throws {
    let head = try #require(
      try HeadReading.head(
        Array("GET / HTTP/1.1\r\nHost: a\r\nX-A:  b \t\r\nx-a:\r\nZ: ".utf8) + [0xE9, 0x09, 0x80]
          + Array("\r\n\r\n".utf8)))
    let fields = head.fields
    #expect((0..<fields.count).map { text(fields.name(at: $0)) } == ["Host", "X-A", "x-a", "Z"])
    #expect(Array(fields.value(at: 1)) == Array("b".utf8))
    #expect(fields.value(at: 2).isEmpty)
    #expect(Array(fields.value(at: 3)) == [0xE9, 0x09, 0x80])
  }

  @Test(
    arguments: [
      ("GET", .get), ("HEAD", .head), ("POST", .post), ("PURGE", .purge), ("get", .other),
      ("PROPFIND", .other), ("M-SEARCH", .other),
    ] as [(String, CachePolicy.Method)])
  func theMethodIsReadCaseSensitively(_ token: String, _ method: CachePolicy.Method) throws {
    let head = try #require(try HeadReading.head(Self.request("\(token) / HTTP/1.1", "Host: a")))
    #expect(head.method == method)
    #expect(text(head.methodToken) == token)
  }

  @Test(
    arguments: [
      ("none", "X: y", MessageFraming.none, false),
      ("a length", "Content-Length: 12", .length(12), true),
      ("zero", "Content-Length: 0", .length(0), false),
      ("leading zeros", "Content-Length: 007", .length(7), true),
      ("chunked", "Transfer-Encoding: chunked", .chunked, true),
      ("Chunked", "Transfer-Encoding: \tChunked ", .chunked, true),
    ] as [(String, String, MessageFraming, Bool)])
  func theBodysFramingIsRead(
    _ name: String, _ field: String, _ framing: MessageFraming, _ hasBody: Bool
  ) throws {
    let head = try #require(
      try HeadReading.head(Self.request("POST / HTTP/1.1", "Host: a", field)))
    #expect(head.framing == framing)
    #expect(head.hasBody == hasBody)
  }

  @Test(
    arguments: [
      ("HTTP/1.1", "X: y", true), ("HTTP/1.1", "Connection: close", false),
      ("HTTP/1.1", "Connection: x, CLOSE", false), ("HTTP/1.1", "Connection: keep-alive", true),
      ("HTTP/1.1", "Connection: closed", true), ("HTTP/1.2", "X: y", true),
      ("HTTP/1.0", "X: y", false), ("HTTP/1.0", "Connection: Keep-Alive", true),
      ("HTTP/1.0", "Connection: close", false),
    ])
  func theConnectionLivesOnAsVersionAndFieldSay(
    _ version: String, _ field: String, _ isPersistent: Bool
  ) throws {
    let head = try #require(
      try HeadReading.head(Self.request("GET / \(version)", "Host: a", field)))
    #expect(head.isPersistent == isPersistent)
    #expect(head.minorVersion == (version == "HTTP/1.0" ? 0 : 1))
  }

  @Test(
    arguments: [
      ("with a body", "HTTP/1.1", "Content-Length: 1", true),
      ("chunked", "HTTP/1.1", "Transfer-Encoding: chunked", true),
      ("without a body", "HTTP/1.1", "X: y", false),
      ("with an empty body", "HTTP/1.1", "Content-Length: 0", false),
      ("HTTP/1.0 does not know it", "HTTP/1.0", "Content-Length: 1", false),
    ])
  func expectContinueCountsWhereThereIsABody(
    _ name: String, _ version: String, _ framing: String, _ expects: Bool
  ) throws {
    let head = try #require(
      try HeadReading.head(
        Self.request("POST / \(version)", "Host: a", "Expect: 100-Continue", framing)))
    #expect(head.expectsContinue == expects)
  }

  @Test func nothingOfAnEarlierHeadStaysBehind() throws {
    let head = RequestHead()
    let first = Self.request(
      "POST http://x/a?b HTTP/1.0", "Host: h", "Connection: keep-alive", "Content-Length: 3")
    let second = Self.request("GET / HTTP/1.1", "Host: i")
    for text in [first, second] { try HeadReading.parse(Array(text.utf8), into: head) }
    #expect(head.method == .get)
    #expect(head.query == nil)
    #expect(text(head.authority) == "i")
    #expect(head.framing == .none)
    #expect(head.fields.count == 1)
    #expect(head.minorVersion == 1)
    #expect(head.isPersistent)
  }

  // MARK: Header blocks that come again

  /// What of a head there is to see.
  private static func facts(_ head: RequestHead) -> [String] {
    let fields = head.fields
    return [
      text(head.methodToken), text(head.path), head.query.map { "?" + text($0) } ?? "-",
      text(head.authority), "\(head.framing)", "\(head.isPersistent)", "\(head.expectsContinue)",
      "\(head.isAsterisk)", "\(head.minorVersion)", "\(head.method)",
    ] + (0..<fields.count).map { text(fields.name(at: $0)) + "=" + text(fields.value(at: $0)) }
  }

  private static let comingAgain: [String] = {
    let lines = [
      "GET / HTTP/1.1", "GET /other?query HTTP/1.1", "HEAD http://elsewhere/ HTTP/1.1",
      "GET / HTTP/1.0", "GET /#fragment HTTP/1.0", "GET /#fragment HTTP/1.1", "GET / HTTP/2.0",
      "OPTIONS * HTTP/1.1", "POST / HTTP/1.1",
    ]
    let blocks = [
      ["Host: a", "Connection: keep-alive"], ["Host: b", "Connection: keep-alive"],
      ["Host: a", "Content-Length: 1", "Expect: 100-continue"],
      ["Host: a", "Transfer-Encoding: chunked"], ["Host: a", "Host: a"], ["X: y"], [],
    ]
    return lines.flatMap { line in
      blocks.map { block in ([line] + block).map { $0 + "\r\n" }.joined() + "\r\n" }
    }
  }()

  /// Into one head, one after the other in many orders: each is read as it is into a new one.
  @Test func aHeadIsReadTheSameWhateverWasReadBefore() throws {
    var random: UInt64 = 7
    let reused = RequestHead()
    var differing: [String] = []
    for _ in 0..<20_000 {
      random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let text = Self.comingAgain[Int(random >> 33) % Self.comingAgain.count]
      let read = try Self.outcome(text, into: reused)
      if try read != Self.outcome(text, into: RequestHead()) { differing.append(text) }
    }
    #expect(differing.isEmpty)
  }

  private static func outcome(_ text: String, into head: RequestHead) throws -> [String] {
    do throws(RequestRefusal) {
      try HeadReading.parse(Array(text.utf8), into: head)
      return facts(head)
    } catch {
      return ["\(error.status)"]
    }
  }

  @Test func aCopyKeepsWhatTheNextHeadReplaces() throws {
    let head = RequestHead()
    let first = Self.request("GET /first?a HTTP/1.1", "Host: h", "X: 1")
    try HeadReading.parse(Array(first.utf8), into: head)
    let copy = head.copy()
    let facts = Self.facts(head)
    for next in [
      Self.request("GET /other HTTP/1.1", "Host: h", "X: 1"),
      Self.request("PUT /x?y HTTP/1.0", "Host: i", "Y: 2"),
    ] {
      try HeadReading.parse(Array(next.utf8), into: head)
      #expect(Self.facts(copy) == facts)
      #expect(Self.facts(head) != facts)
    }
  }
}
