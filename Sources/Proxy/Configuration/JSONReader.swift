/// Reads policies.json: JSON with comments, trailing commas, single-quoted strings and unquoted
/// keys (the parts of JSON5 that people write by hand), and the line and column of everything.
///
/// Goes on behind an error where it can tell how, so that one run shows all of them; where it
/// cannot, it stops and `isWhole` is false: what was read is then no base for further checks.
/// Refuses repeated keys, bytes that are no UTF-8 and nesting beyond a limit. It knows nothing of
/// what the fields mean. Called by `ConfigurationLoader`.
struct JSONReader {
  struct Document {
    var root: JSONNode
    /// Whether the reading reached the end of the text.
    var isWhole: Bool
    var findings: [Finding]
  }

  static func read(_ bytes: [UInt8], depthMax: Int) -> Document {
    var reader = JSONReader(bytes: bytes, depthMax: depthMax)
    return reader.readDocument()
  }

  private let bytes: [UInt8]
  private let depthMax: Int
  private var index = 0
  private var place = SourcePlace(line: 1, column: 1)
  private var findings: [Finding] = []

  /// The reading cannot go on; the reason is among the findings.
  private struct Stop: Error {}

  private init(bytes: [UInt8], depthMax: Int) {
    self.bytes = bytes
    self.depthMax = depthMax
  }

  private mutating func readDocument() -> Document {
    let start = place
    if let wrong = Self.firstInvalidPlace(bytes) {
      report(at: wrong, "", "not UTF-8")
      return Document(
        root: JSONNode(place: start, value: .invalid), isWhole: false, findings: findings)
    }
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }
    do {
      try skipSpace()
      let root = try readValue("", depth: 0)
      try skipSpace()
      if index < bytes.count { report("", "nothing may follow the end of the configuration") }
      return Document(root: root, isWhole: true, findings: findings)
    } catch {
      return Document(
        root: JSONNode(place: start, value: .invalid), isWhole: false, findings: findings)
    }
  }

  // MARK: Values

  private mutating func readValue(_ path: String, depth: Int) throws(Stop) -> JSONNode {
    let start = place
    guard let byte = peek else { throw stop(path, "the text ends where a value should stand") }
    switch byte {
    case UInt8(ascii: "{"):
      try checkDepth(depth, path)
      return JSONNode(place: start, value: .object(try readMembers(path, depth: depth + 1)))
    case UInt8(ascii: "["):
      try checkDepth(depth, path)
      return JSONNode(place: start, value: .list(try readElements(path, depth: depth + 1)))
    case UInt8(ascii: "\""), UInt8(ascii: "'"):
      return JSONNode(place: start, value: .text(try readText(path)))
    case UInt8(ascii: "}"), UInt8(ascii: "]"), UInt8(ascii: ","), UInt8(ascii: ":"):
      throw stop(path, "expected a value, got \"\(Character(Unicode.Scalar(byte)))\"")
    default:
      return JSONNode(place: start, value: readWord(path))
    }
  }

  private mutating func checkDepth(_ depth: Int, _ path: String) throws(Stop) {
    if depth >= depthMax { throw stop(path, "nested deeper than \(depthMax) levels") }
  }

  private mutating func readMembers(_ path: String, depth: Int) throws(Stop) -> [JSONMember] {
    var members: [JSONMember] = []
    var firstPlaces: [String: SourcePlace] = [:]
    let opening = place
    advance()
    while true {
      try skipSpace()
      guard let byte = peek else {
        throw stop(path, "the object that opens at line \(opening.line) is not closed")
      }
      if byte == UInt8(ascii: "}") {
        advance()
        return members
      }
      let keyPlace = place
      let key = try readKey(path)
      let memberPath = path.isEmpty ? key : "\(path).\(key)"
      if let first = firstPlaces[key] {
        report(
          at: keyPlace, memberPath,
          "given twice, first at line \(first.line), column \(first.column)")
      }
      try skipSpace()
      guard peek == UInt8(ascii: ":") else { throw stop(memberPath, "expected \":\" behind a key") }
      advance()
      try skipSpace()
      let value = try readValue(memberPath, depth: depth)
      if firstPlaces[key] == nil {
        firstPlaces[key] = keyPlace
        members.append(JSONMember(key: key, keyPlace: keyPlace, value: value))
      }
      try readComma(closing: UInt8(ascii: "}"), path)
    }
  }

  private mutating func readElements(_ path: String, depth: Int) throws(Stop) -> [JSONNode] {
    var elements: [JSONNode] = []
    let opening = place
    advance()
    while true {
      try skipSpace()
      guard let byte = peek else {
        throw stop(path, "the list that opens at line \(opening.line) is not closed")
      }
      if byte == UInt8(ascii: "]") {
        advance()
        return elements
      }
      elements.append(try readValue("\(path)[\(elements.count)]", depth: depth))
      try readComma(closing: UInt8(ascii: "]"), path)
    }
  }

  /// Takes the comma behind an element; a missing one is reported and passed over, where another
  /// element follows.
  private mutating func readComma(closing: UInt8, _ path: String) throws(Stop) {
    let end = place
    try skipSpace()
    guard let byte = peek, byte != closing else { return }
    if byte == UInt8(ascii: ",") {
      advance()
      return
    }
    let other = closing == UInt8(ascii: "}") ? UInt8(ascii: "]") : UInt8(ascii: "}")
    guard byte != other, byte != UInt8(ascii: ":") else {
      throw stop(
        path,
        "expected \",\" or \"\(Character(Unicode.Scalar(closing)))\", got "
          + "\"\(Character(Unicode.Scalar(byte)))\"")
    }
    report(at: end, path, "a comma is missing here")
  }

  private mutating func readKey(_ path: String) throws(Stop) -> String {
    guard let byte = peek else { throw stop(path, "expected a key") }
    if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") { return try readText(path) }
    let word = takeWord()
    guard let first = word.utf8.first, first < UInt8(ascii: "0") || first > UInt8(ascii: "9"),
      first != UInt8(ascii: "-"), first != UInt8(ascii: "+"), first != UInt8(ascii: ".")
    else { throw stop(path, "expected a key or \"}\"") }
    return word
  }

  private mutating func readWord(_ path: String) -> JSONValue {
    let start = place
    let word = takeWord()
    switch word {
    case "true": return .boolean(true)
    case "false": return .boolean(false)
    case "null": return .null
    case "":
      report(at: start, path, "expected a value, got \"\(takeScalar())\"")
      return .invalid
    default:
      if Self.isNumber(word) { return .number(word) }
      let first = word.utf8.first ?? 0
      let looksLikeNumber = first < UInt8(ascii: "A")
      report(
        at: start, path,
        looksLikeNumber
          ? "\"\(word)\" is no number; durations and sizes stand in quotes, as in \"15m\""
          : "\"\(word)\" is no value; strings stand in quotes")
      return .invalid
    }
  }

  /// The grammar of RFC 8259 §6.
  private static func isNumber(_ word: String) -> Bool {
    var rest = Array(word.utf8)[...]
    func takeDigits() -> Int {
      let digits = rest.prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
      rest = rest.dropFirst(digits.count)
      return digits.count
    }
    if rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
    let leadsWithZero = rest.first == UInt8(ascii: "0")
    let count = takeDigits()
    guard count > 0, !(leadsWithZero && count > 1) else { return false }
    if rest.first == UInt8(ascii: ".") {
      rest = rest.dropFirst()
      guard takeDigits() > 0 else { return false }
    }
    if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
      rest = rest.dropFirst()
      if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") {
        rest = rest.dropFirst()
      }
      guard takeDigits() > 0 else { return false }
    }
    return rest.isEmpty
  }

  // MARK: Strings

  private mutating func readText(_ path: String) throws(Stop) -> String {
    let opening = place
    let quote = bytes[index]
    advance()
    var content: [UInt8] = []
    while let byte = peek {
      switch byte {
      case quote:
        advance()
        return String(decoding: content, as: UTF8.self)
      case UInt8(ascii: "\\"):
        readEscape(into: &content, path)
      case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
        throw stop(at: opening, path, "the string is not closed on its line")
      default:
        if byte < 0x20 && byte != UInt8(ascii: "\t") || byte == 0x7F {
          report(path, "a control character in a string must be escaped")
        }
        content.append(byte)
        advance()
      }
    }
    throw stop(at: opening, path, "the string is not closed")
  }

  private mutating func readEscape(into content: inout [UInt8], _ path: String) {
    let start = place
    advance()
    guard let byte = peek else { return }
    let simple: [UInt8: UInt8] = [
      UInt8(ascii: "b"): 0x08, UInt8(ascii: "f"): 0x0C, UInt8(ascii: "n"): 0x0A,
      UInt8(ascii: "r"): 0x0D, UInt8(ascii: "t"): 0x09, UInt8(ascii: "v"): 0x0B,
      UInt8(ascii: "\""): UInt8(ascii: "\""), UInt8(ascii: "'"): UInt8(ascii: "'"),
      UInt8(ascii: "\\"): UInt8(ascii: "\\"), UInt8(ascii: "/"): UInt8(ascii: "/"),
    ]
    if let plain = simple[byte] {
      content.append(plain)
      advance()
    } else if byte == UInt8(ascii: "\n") {
      // JSON5: the string goes on in the next line.
      advance()
    } else if byte == UInt8(ascii: "u") {
      advance()
      readUnicodeEscape(from: start, into: &content, path)
    } else {
      report(at: start, path, "unknown escape \"\\\(takeScalar())\"")
    }
  }

  private mutating func readUnicodeEscape(
    from start: SourcePlace, into content: inout [UInt8], _ path: String
  ) {
    guard var value = takeFourHexDigits() else {
      report(at: start, path, "\"\\u\" needs four hex digits")
      return
    }
    if value >= 0xD800, value < 0xDC00, peek == UInt8(ascii: "\\"),
      index + 1 < bytes.count, bytes[index + 1] == UInt8(ascii: "u")
    {
      advance()
      advance()
      if let low = takeFourHexDigits(), low >= 0xDC00, low < 0xE000 {
        value = 0x10000 + (value - 0xD800) << 10 + (low - 0xDC00)
      }
    }
    guard let scalar = Unicode.Scalar(value) else {
      report(at: start, path, "half of a surrogate pair is no character")
      return
    }
    content += Array(String(Character(scalar)).utf8)
  }

  private mutating func takeFourHexDigits() -> UInt32? {
    guard index + 4 <= bytes.count,
      bytes[index..<index + 4].allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
      let value = UInt32(String(decoding: bytes[index..<index + 4], as: UTF8.self), radix: 16)
    else { return nil }
    for _ in 0..<4 { advance() }
    return value
  }

  // MARK: Bytes

  private var peek: UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func advance() {
    let byte = bytes[index]
    index += 1
    if byte == UInt8(ascii: "\n") {
      place = SourcePlace(line: place.line + 1, column: 1)
    } else if index == bytes.count || bytes[index] & 0xC0 != 0x80 {
      place.column += 1
    }
  }

  /// White space and comments.
  private mutating func skipSpace() throws(Stop) {
    while let byte = peek {
      switch byte {
      case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"):
        advance()
      case UInt8(ascii: "/"):
        try skipComment()
      default:
        return
      }
    }
  }

  private mutating func skipComment() throws(Stop) {
    let opening = place
    let next = index + 1 < bytes.count ? bytes[index + 1] : 0
    switch next {
    case UInt8(ascii: "/"):
      while let byte = peek, byte != UInt8(ascii: "\n") { advance() }
    case UInt8(ascii: "*"):
      advance()
      advance()
      while index < bytes.count {
        if bytes[index] == UInt8(ascii: "*"), index + 1 < bytes.count,
          bytes[index + 1] == UInt8(ascii: "/")
        {
          advance()
          advance()
          return
        }
        advance()
      }
      throw stop(at: opening, "", "the comment is not closed")
    default:
      throw stop("", "\"/\" opens a comment only as \"//\" or \"/*\"")
    }
  }

  /// Letters, digits and what numbers and unquoted keys are made of.
  private mutating func takeWord() -> String {
    let start = index
    while let byte = peek {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"),
        UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."):
        advance()
      default:
        return String(decoding: bytes[start..<index], as: UTF8.self)
      }
    }
    return String(decoding: bytes[start..<index], as: UTF8.self)
  }

  /// One whole character, for an error to quote.
  private mutating func takeScalar() -> String {
    let start = index
    if index < bytes.count { advance() }
    while index < bytes.count, bytes[index] & 0xC0 == 0x80 { advance() }
    return String(decoding: bytes[start..<index], as: UTF8.self)
  }

  private static func firstInvalidPlace(_ bytes: [UInt8]) -> SourcePlace? {
    guard String(validating: bytes, as: UTF8.self) == nil else { return nil }
    var place = SourcePlace(line: 1, column: 1)
    var iterator = bytes.makeIterator()
    var decoder = UTF8()
    while case .scalarValue(let scalar) = decoder.decode(&iterator) {
      if scalar == "\n" {
        place = SourcePlace(line: place.line + 1, column: 1)
      } else {
        place.column += 1
      }
    }
    return place
  }

  // MARK: Findings

  private mutating func report(at place: SourcePlace? = nil, _ path: String, _ message: String) {
    findings.append(Finding(place: place ?? self.place, path: path, message: message))
  }

  private mutating func stop(
    at place: SourcePlace? = nil, _ path: String, _ message: String
  ) -> Stop {
    report(at: place, path, message)
    return Stop()
  }
}
