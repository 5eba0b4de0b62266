import CachePolicy
import Testing

struct ASCIITests {
  @Test func tokenBytesAreThoseOfTheGrammar() {
    let tokens = Set(
      "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
    for byte in UInt8.min...UInt8.max {
      #expect(ASCII.isToken(byte) == tokens.contains(byte), "byte \(byte)")
    }
  }

  @Test(arguments: [
    ("Host", "host", true), ("HOST", "hOsT", true), ("Host", "hos", false), ("", "", true),
    ("[", "{", false), ("@", "`", false), ("K", "\u{212A}", false),
  ])
  func caseIsIgnoredForLettersOnly(_ one: String, _ other: String, _ equal: Bool) {
    let (left, right) = (Array(one.utf8), Array(other.utf8))
    let found = ASCII.equalsIgnoringCase(left.span, right.span)
    #expect(found == equal)
  }

  /// Whatever byte stands wherever: the comparison by words says what one byte by byte says.
  @Test func aNameIsComparedWithALiteralOfAnyLength() {
    let literals: [StaticString] = [
      "te", "etag", "warning", "if-match", "cache-tag", "x{`[~/09z", "accept-encoding",
      "content-encoding", "if-unmodified-since", "proxy-authentication-info",
    ]
    var differing: [String] = []
    for literal in literals {
      let name = Array("\(literal)".utf8)
      for index in name.indices {
        for byte in UInt8.min...UInt8.max {
          var other = name
          other[index] = byte
          let expected = ASCII.lowercased(byte) == name[index]
          let found = ASCII.equalsIgnoringCase(other.span, literal)
          if found != expected { differing.append("\(literal) \(index) \(byte)") }
        }
      }
      let (upper, shorter) = (Array("\(literal)".uppercased().utf8), Array(name.dropFirst()))
      let isFound = ASCII.equalsIgnoringCase(upper.span, literal)
      let isShorterFound = ASCII.equalsIgnoringCase(shorter.span, literal)
      #expect(isFound && !isShorterFound)
    }
    #expect(differing.isEmpty)
  }

  @Test(
    arguments: [
      ("0", 0), ("15", 15), ("0015", 15), ("2147483648", 2_147_483_648),
      ("2147483649", 2_147_483_648), ("99999999999999999999999999", 2_147_483_648), ("", nil),
      ("-1", nil), ("+1", nil), ("1.0", nil), ("1 ", nil), ("'1'", nil), ("1a", nil), ("٣", nil),
    ] as [(String, Int64?)])
  func deltaSecondsAreDigitsAndSaturate(_ value: String, _ seconds: Int64?) {
    let bytes = Array(value.utf8)
    #expect(ASCII.deltaSeconds(bytes.span) == seconds)
  }

  @Test(
    arguments: [
      ("", []), (" , ,\t", []), ("a", ["a"]), (" a , b\t,c ", ["a", "b", "c"]),
      ("a=\"x, y\", b", ["a=\"x, y\"", "b"]), ("a=\"x\\\", y\", b", ["a=\"x\\\", y\"", "b"]),
      ("a=\"x, b", ["a=\"x", "b"]), ("a=\"x\\", ["a=\"x\\"]), ("\"\",,b", ["\"\"", "b"]),
    ] as [(String, [String])])
  func listsSplitAtCommasOutsideQuotes(_ value: String, _ members: [String]) {
    let bytes = Array(value.utf8)
    var found: [String] = []
    var position = 0
    while let member = ASCII.nextListMember(bytes.span, &position) {
      found.append(text(bytes[member]))
    }
    #expect(found == members)
  }

  @Test(arguments: [
    ("GET", Method.get, true, true), ("get", .other, false, false),
    ("HEAD", .head, true, true), ("POST", .post, false, false), ("PUT", .put, false, true),
    ("PATCH", .patch, false, false), ("DELETE", .delete, false, true),
    ("OPTIONS", .options, true, true), ("CONNECT", .connect, false, false),
    ("TRACE", .trace, true, true), ("PURGE", .purge, false, false), ("BAN", .ban, false, false),
    ("PROPFIND", .other, false, false), ("", .other, false, false),
  ])
  func methodsAreCaseSensitive(_ name: String, _ method: Method, _ safe: Bool, _ repeats: Bool) {
    let bytes = Array(name.utf8)
    let found = Method.lookup(bytes.span)
    #expect(found == method)
    #expect(found.isSafe == safe)
    #expect(found.isIdempotent == repeats)
    #expect(method == .other || method.name == name)
  }
}
