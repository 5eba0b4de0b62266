import CachePolicy
import Testing

struct FieldsTests {
  @Test(arguments: KnownField.allCases)
  func everyKnownNameIsFoundInAnyCase(_ field: KnownField) {
    for name in [field.name, field.name.lowercased(), field.name.uppercased()] {
      let bytes = Array(name.utf8)
      #expect(KnownField.lookup(bytes.span) == field)
    }
    for name in [field.name + "x", String(field.name.dropLast()) + "_"] {
      let bytes = Array(name.utf8)
      #expect(KnownField.lookup(bytes.span) == nil)
    }
  }

  @Test func everyKnownFieldHasABitOfItsOwn() {
    #expect(KnownField.allCases.count <= 64)
    for field in KnownField.allCases {
      let fields = Fields([(field.name, "x")])
      #expect(KnownField.allCases.filter { fields.contains($0) } == [field])
    }
  }

  @Test func namesAndValuesStayAsReceived() {
    let fields = Fields([("X-b", "2"), ("accept", "a"), ("X-B", "1"), ("Accept", "b, c")])
    #expect(
      (0..<fields.count).map { text(fields.name(at: $0)) } == ["X-b", "accept", "X-B", "Accept"])
    #expect(text(fields.first(.accept)) == "a")
    #expect(text(fields.combined(.accept)) == "a, b, c")
    #expect(fields.values(of: .accept).map { text($0) } == ["a", "b, c"])
    #expect(fields["x-b"] == "2, 1")
    #expect(fields["X-Other"] == nil)
    #expect(fields.combined(.host) == nil)
    #expect(fields.firstIndex(named: "x-B", from: 1) == 2)
  }

  @Test func aParsersBlockIsCopiedOnceAndItsLinesPointIntoIt() {
    var fields = Fields([("Old", "x")])
    let block = Array("Host: a\r\nAge:7\r\n".utf8)
    fields.setBlock(block.span)
    #expect(fields.count == 0)
    fields.appendLine(name: 0..<4, value: 6..<7)
    fields.appendLine(name: 9..<12, value: 13..<14)
    #expect(fields == Fields([("Host", "a"), ("Age", "7")]))
    #expect(fields.bytes == block)
    fields.removeAll()
    #expect(fields == Fields())
    #expect(!fields.contains(.host))
  }

  /// Blocks whose lines lie as they go out, lie so in part, and lie in another way.
  @Test(arguments: [
    ("Host: a\r\nAge: 7\r\nX: b\r\n", "Host: a\r\nX: b\r\n"),
    ("Age: 7\r\nHost: a\r\n", "Host: a\r\n"), ("Host: a\r\nAge: 7\r\n", "Host: a\r\n"),
    ("Host:a\r\nAge: 7\r\nX: b\r\nY:  c\r\nZ: d\r\n", "Host: a\r\nX: b\r\nY: c\r\nZ: d\r\n"),
    ("Host: a\nX: b\nY: c\r\n", "Host: a\r\nX: b\r\nY: c\r\n"), ("Age: 7\r\n", ""), ("", ""),
    ("X:\r\nY: \r\nZ: a", "X: \r\nY: \r\nZ: a\r\n"),
  ])
  func allLinesButThoseOfOneFieldAreWritten(_ block: String, _ written: String) {
    let fields = Fields.parse(wireLines: Array(block.utf8).span)
    var output = Array("> ".utf8)
    fields.encode(into: &output, without: .age)
    #expect(text(output) == "> " + written)
  }

  @Test func aCopyIsTheSameInMemoryOfItsOwn() {
    var fields = Fields([("X", "a"), ("Age", "b")])
    let copy = fields.copy()
    fields.removeAll()
    fields.append("Y", "other")
    #expect(copy == Fields([("X", "a"), ("Age", "b")]))
    #expect(copy.contains(.age) && copy.bytes == Array("XaAgeb".utf8))
    #expect(Fields().copy() == Fields())
  }

  @Test(arguments: [
    ([Int](), "a b c"), ([0], "b c"), ([1], "a c"), ([2], "a b"), ([0, 2], "b"), ([0, 1, 2], ""),
  ])
  func linesAreRemovedByWhereTheyWere(_ removed: [Int], _ kept: String) {
    var fields = Fields([("X", "a"), ("Age", "b"), ("Y", "c")])
    let before = fields
    fields.removeLines { removed.contains($0) }
    #expect((0..<fields.count).map { text(fields.value(at: $0)) }.joined(separator: " ") == kept)
    #expect(fields.contains(.age) == !removed.contains(1))
    #expect(before.count == 3)
  }

  @Test(arguments: [
    ("a\r\nSet-Cookie: x", "a  Set-Cookie: x"), ("a\u{0}b", "a b"), ("  a\t", "a"), ("", ""),
  ])
  func aValueCannotEndItsLine(_ value: String, _ kept: String) {
    #expect(Fields([("X", value)])["x"] == kept)
  }

  @Test(arguments: ["", "a b", "a:", "a\r\n", "é"])
  func aNameThatIsNoTokenIsRefused(_ name: String) {
    var fields = Fields()
    let (nameBytes, valueBytes) = (Array(name.utf8), Array("v".utf8))
    let added = fields.append(name: nameBytes.span, value: valueBytes.span)
    #expect(!added)
    #expect(fields.count == 0 && fields.bytes.isEmpty)
  }

  @Test func whatIsEncodedIsReadBackTheSame() {
    let fields = Fields([("Date", "x"), ("X-Empty", ""), ("x-a", "b: c"), ("X-A", "é")])
    var wire: [UInt8] = []
    fields.encode(into: &wire)
    #expect(text(wire) == "Date: x\r\nX-Empty: \r\nx-a: b: c\r\nX-A: é\r\n")
    #expect(Fields.parse(wireLines: wire.span) == fields)
  }

  @Test(
    arguments: [
      ("", []), ("\r\n", []), ("a: b", [("a", "b")]), ("a: b\r\n\r\nc: d\r\n", [("a", "b")]),
      ("no colon\r\n: x\r\na b: c\r\nd: e\r\n", [("d", "e")]),
    ] as [(String, [(String, String)])])
  func damagedWireLinesAreLeftOut(_ wire: String, _ pairs: [(String, String)]) {
    let bytes = Array(wire.utf8)
    #expect(Fields.parse(wireLines: bytes.span) == Fields(pairs))
  }

  @Test func removingForgetsWhatWasThere() {
    var fields = Fields([("Age", "1"), ("X", "2"), ("age", "3"), ("x", "4"), ("Vary", "5")])
    fields.remove(.age)
    #expect(!fields.contains(.age) && fields.count == 3)
    let name = Array("X".utf8)
    fields.remove(named: name.span)
    #expect(fields == Fields([("Vary", "5")]))
    fields.remove { _, known in known == .vary }
    #expect(fields.count == 0 && !fields.contains(.vary))
  }

  @Test func aLineOfAnotherBlockIsTakenOver() {
    let other = Fields([("A", "1"), ("ETag", "\"x\"")])
    var fields = Fields([("B", "2")])
    fields.append(line: other.lines[1], of: other)
    #expect(fields == Fields([("B", "2"), ("ETag", "\"x\"")]))
    #expect(fields.contains(.eTag))
  }
}

struct HopByHopTests {
  @Test(
    arguments: [
      ("fixed fields", [("TE", "x"), ("Keep-Alive", "x"), ("A", "1")], ["A"]),
      ("named field", [("Connection", "close, x-Hop"), ("X-Hop", "1"), ("A", "1")], ["A"]),
      ("named on a second line", [("Connection", "close"), ("Connection", "b"), ("B", "1")], []),
      (
        "what the cache depends on stays",
        [
          ("Connection", "host, authorization, cache-control, cookie, x-forwarded-for"),
          ("Host", "h"), ("Authorization", "a"), ("Cache-Control", "no-store"), ("Cookie", "c"),
          ("X-Forwarded-For", "1"),
        ], ["Host", "Authorization", "Cache-Control", "Cookie", "X-Forwarded-For"]
      ),
      (
        "what may be a targeted field stays",
        [
          ("Connection", "CDN-Cache-Control, surrogate-control, control, x-controls"),
          ("CDN-Cache-Control", "no-store"), ("Surrogate-CONTROL", "x"), ("Control", "x"),
          ("X-Controls", "x"),
        ], ["CDN-Cache-Control", "Surrogate-CONTROL"]
      ),
      ("nothing to drop", [("A", "1"), ("Vary", "x")], ["A", "Vary"]),
      (
        "the rest of the fixed ones",
        [
          ("Proxy-Authenticate", "1"), ("Proxy-Authorization", "1"), ("Proxy-Connection", "1"),
          ("Trailer", "1"), ("Transfer-Encoding", "chunked"), ("Upgrade", "h2c"),
          ("HTTP2-Settings", "x"), ("proxy-authentication-info", "x"),
        ], []
      ),
    ] as [(String, [(String, String)], [String])])
  func onlyEndToEndFieldsStay(_ name: String, _ pairs: [(String, String)], _ kept: [String]) {
    var fields = Fields(pairs)
    fields.removeHopByHop()
    #expect((0..<fields.count).map { text(fields.name(at: $0)) } == kept)
  }

  @Test func connectionOptionsAreFoundInAnyCase() {
    let fields = Fields([("Connection", "Keep-Alive, Upgrade"), ("connection", "CLOSE")])
    #expect(fields.connectionHas(option: "close"))
    #expect(fields.connectionHas(option: "upgrade"))
    #expect(!fields.connectionHas(option: "te"))
  }
}
