internal import Backends
internal import CachePolicy

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Parses a complete request head strictly (RFC 9112): whatever two parsers could read in two ways
/// is refused.
///
/// A pure function of bytes; `HeadScanner` has found where the head ends. A header block that is
/// the same as the one that `head` holds is not read again. Called by `Connection` for every
/// listener there is.
enum RequestParser {
  /// Reads the head into `head`, whose earlier content is lost.
  static func parse(
    _ bytes: UnsafeRawBufferPointer, into head: RequestHead
  ) throws(RequestRefusal) {
    let lineEnd = end(ofLineAt: 0, bytes)
    try parseRequestLine(UnsafeRawBufferPointer(rebasing: bytes[0..<lineEnd]), head)
    let block = UnsafeRawBufferPointer(rebasing: bytes[(lineEnd + 2)...])
    if !head.hasRead(block: block) { try parseBlock(block, head) }
  }

  private static func parseBlock(
    _ block: UnsafeRawBufferPointer, _ head: RequestHead
  ) throws(RequestRefusal) {
    head.beginBlock(block)
    head.framing = .none
    head.expectsContinue = false
    head.hostRange = 0..<0
    var position = 0
    while position < block.count - 2 {
      let fieldEnd = end(ofLineAt: position, block)
      try parseField(block, position..<fieldEnd, head)
      position = fieldEnd + 2
    }
    try checkFraming(head)
    try checkHost(head)
    checkPersistence(head)
    head.endBlock()
  }

  /// Where the CR of a line's end is; the scanner has seen to it that there is one.
  private static func end(ofLineAt start: Int, _ bytes: UnsafeRawBufferPointer) -> Int {
    // SAFETY: the search stays within `bytes`, which ends with CR LF.
    let found = memchr(bytes.baseAddress! + start, 0x0A, bytes.count - start)!
    return UnsafeRawPointer(found) - bytes.baseAddress! - 1
  }

  // MARK: Request line

  // What nearly all request lines begin and end with, as words.
  private static let getAndSpace = UInt32(bigEndian: 0x4745_5420)
  private static let http11 = UInt64(bigEndian: 0x4854_5450_2F31_2E31)

  private static func parseRequestLine(
    _ line: UnsafeRawBufferPointer, _ head: RequestHead
  ) throws(RequestRefusal) {
    head.setLine(line)
    head.isAsterisk = false
    head.queryRange = nil
    head.targetAuthorityRange = nil
    var position = 3
    if line.count >= 4, line.loadUnaligned(as: UInt32.self) == getAndSpace {
      head.method = .get
    } else {
      position = 0
      while position < line.count, ASCII.isToken(line[position]) { position += 1 }
      guard position > 0, position < line.count, line[position] == 0x20 else {
        throw RequestRefusal(400, "malformed request line")
      }
      head.method = Method.lookup(Span(_unsafeElements: slice(line, 0..<position)))
    }
    head.methodRange = 0..<position
    let target = try scanTarget(line, from: position + 1)
    head.targetRange = target.range
    try parseVersion(line, target.range.upperBound + 1..<line.count, head)
    try parseTarget(line, target, head)
  }

  /// A request target, and what else one look at its bytes says.
  private struct Target {
    var range: Range<Int>
    /// The first `?`; the range's end where there is none.
    var question: Int
    var hasFragment = false
  }

  private static func scanTarget(
    _ line: UnsafeRawBufferPointer, from start: Int
  ) throws(RequestRefusal) -> Target {
    var position = start
    var question: Int?
    var hasFragment = false
    while position < line.count {
      let byte = line[position]
      guard byte &- 0x21 < 0x5E else { break }
      if byte == 0x3F { question = question ?? position }
      if byte == 0x23 { hasFragment = true }
      position += 1
    }
    guard position > start, position < line.count, line[position] == 0x20 else {
      throw RequestRefusal(400, "malformed request target")
    }
    return Target(
      range: start..<position, question: question ?? position, hasFragment: hasFragment)
  }

  private static func parseVersion(
    _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, _ head: RequestHead
  ) throws(RequestRefusal) {
    let prefix: StaticString = "HTTP/"
    guard range.count == 8 else { throw RequestRefusal(400, "malformed HTTP version") }
    if bytes.loadUnaligned(fromByteOffset: range.lowerBound, as: UInt64.self) == http11 {
      head.minorVersion = 1
      return
    }
    for index in 0..<5 where bytes[range.lowerBound + index] != prefix.utf8Start[index] {
      throw RequestRefusal(400, "malformed HTTP version")
    }
    let major = bytes[range.lowerBound + 5]
    let minor = bytes[range.lowerBound + 7]
    guard ASCII.isDigit(major), bytes[range.lowerBound + 6] == 0x2E, ASCII.isDigit(minor) else {
      throw RequestRefusal(400, "malformed HTTP version")
    }
    guard major == 0x31 else { throw RequestRefusal(505, "HTTP version not supported") }
    head.minorVersion = min(minor - 0x30, 1)
  }

  private static func parseTarget(
    _ line: UnsafeRawBufferPointer, _ target: Target, _ head: RequestHead
  ) throws(RequestRefusal) {
    let range = target.range
    if head.method == .connect { throw RequestRefusal(405, "method not allowed") }
    if line[range.lowerBound] == 0x2F {
      try splitQuery(target, pathStart: range.lowerBound, head)
    } else if range.count == 1, line[range.lowerBound] == 0x2A, head.method == .options {
      head.isAsterisk = true
      head.pathRange = range.lowerBound..<range.lowerBound
    } else {
      try parseAbsolute(line, target, head)
    }
  }

  /// absolute-form (RFC 9112 §3.2.2): its authority replaces the Host field.
  private static func parseAbsolute(
    _ line: UnsafeRawBufferPointer, _ target: Target, _ head: RequestHead
  ) throws(RequestRefusal) {
    let range = target.range
    var start = range.lowerBound
    if hasPrefix(line, range, "http://") {
      start += 7
    } else if hasPrefix(line, range, "https://") {
      start += 8
    } else {
      throw RequestRefusal(400, "malformed request target")
    }
    var position = start
    while position < range.upperBound, line[position] != 0x2F, line[position] != 0x3F {
      position += 1
    }
    guard isHost(line, start..<position), position > start else {
      throw RequestRefusal(400, "malformed authority in the request target")
    }
    guard position < range.upperBound, line[position] == 0x2F else {
      // `http://host` and `http://host?query` mean the path "/", which has no place in the line;
      // no client of a gateway sends them, so that they are refused rather than rebuilt.
      throw RequestRefusal(400, "absolute request target without a path")
    }
    try splitQuery(target, pathStart: position, head)
    head.targetAuthorityRange = start..<position
  }

  private static func hasPrefix(
    _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, _ prefix: StaticString
  ) -> Bool {
    guard range.count > prefix.utf8CodeUnitCount else { return false }
    let start = range.lowerBound
    return ASCII.equalsIgnoringCase(
      Span(_unsafeElements: slice(bytes, start..<start + prefix.utf8CodeUnitCount)), prefix)
  }

  private static func splitQuery(
    _ target: Target, pathStart: Int, _ head: RequestHead
  ) throws(RequestRefusal) {
    if target.hasFragment { throw RequestRefusal(400, "fragment in the request target") }
    head.pathRange = pathStart..<target.question
    let end = target.range.upperBound
    if target.question < end { head.queryRange = target.question + 1..<end }
  }

  // MARK: Fields

  private static func parseField(
    _ bytes: UnsafeRawBufferPointer, _ line: Range<Int>, _ head: RequestHead
  ) throws(RequestRefusal) {
    var colon = line.lowerBound
    while colon < line.upperBound, ASCII.isToken(bytes[colon]) { colon += 1 }
    guard colon > line.lowerBound, colon < line.upperBound, bytes[colon] == 0x3A else {
      let isFolded = ASCII.isSpace(bytes[line.lowerBound])
      throw RequestRefusal(400, isFolded ? "folded header line" : "malformed header field name")
    }
    var start = colon + 1
    var end = line.upperBound
    while start < end, ASCII.isSpace(bytes[start]) { start += 1 }
    while end > start, ASCII.isSpace(bytes[end - 1]) { end -= 1 }
    for position in start..<end {
      let byte = bytes[position]
      if byte < 0x20 && byte != 0x09 || byte == 0x7F {
        throw RequestRefusal(400, "control character in a header field")
      }
    }
    head.fields.appendLine(name: line.lowerBound..<colon, value: start..<end)
  }

  // MARK: Framing (RFC 9112 §6.3)

  private static func checkFraming(_ head: RequestHead) throws(RequestRefusal) {
    let hasCoding = head.fields.contains(.transferEncoding)
    let hasLength = head.fields.contains(.contentLength)
    if hasCoding {
      if hasLength { throw RequestRefusal(400, "Content-Length beside Transfer-Encoding") }
      try checkTransferCoding(head)
      head.framing = .chunked
    } else if hasLength {
      head.framing = .length(try contentLength(head))
    }
    if head.fields.contains(.expect) {
      guard let value = head.fields.first(.expect),
        ASCII.equalsIgnoringCase(value.span, "100-continue")
      else { throw RequestRefusal(417, "expectation not supported") }
      head.expectsContinue = head.minorVersion == 1 && head.hasBody
    }
  }

  private static func checkTransferCoding(_ head: RequestHead) throws(RequestRefusal) {
    let ambiguous = RequestRefusal(400, "ambiguous Transfer-Encoding")
    guard head.minorVersion == 1, let index = head.fields.firstIndex(of: .transferEncoding),
      head.fields.firstIndex(of: .transferEncoding, from: index + 1) == nil
    else { throw ambiguous }
    let value = head.fields.value(at: index)
    if ASCII.equalsIgnoringCase(value.span, "chunked") { return }
    // A list of known codings that ends with chunked is clear, but not supported; all else is not.
    let members = value.split(separator: 0x2C, omittingEmptySubsequences: false).map { member in
      String(decoding: member, as: UTF8.self).lowercased().filter { $0 != " " && $0 != "\t" }
    }
    let known: Set = ["gzip", "x-gzip", "deflate", "compress", "x-compress"]
    guard members.last == "chunked", members.dropLast().allSatisfy(known.contains) else {
      throw ambiguous
    }
    throw RequestRefusal(501, "transfer coding not supported")
  }

  private static func contentLength(_ head: RequestHead) throws(RequestRefusal) -> UInt64 {
    var found: UInt64?
    for line in head.fields.lines where line.known == .contentLength {
      let value = head.fields.bytes[line.value]
      guard !value.isEmpty, value.count <= 18, value.allSatisfy(ASCII.isDigit) else {
        throw RequestRefusal(400, "malformed Content-Length")
      }
      let length = value.reduce(UInt64(0)) { $0 * 10 + UInt64($1 - 0x30) }
      if let found, found != length { throw RequestRefusal(400, "differing Content-Length") }
      if found != nil { throw RequestRefusal(400, "repeated Content-Length") }
      found = length
    }
    return found ?? 0
  }

  // MARK: Host and persistence

  private static func checkHost(_ head: RequestHead) throws(RequestRefusal) {
    if let index = head.fields.firstIndex(of: .host) {
      guard head.fields.firstIndex(of: .host, from: index + 1) == nil else {
        throw RequestRefusal(400, "more than one Host")
      }
      head.hostRange = head.fields.lines[index].value
      let isValid = head.fields.bytes.withUnsafeBytes { isHost($0, head.hostRange) }
      guard isValid else { throw RequestRefusal(400, "malformed Host") }
    } else if head.minorVersion == 1 {
      throw RequestRefusal(400, "missing Host")
    }
  }

  /// uri-host [ ":" port ] (RFC 9110 §7.2): a name, an IPv4 address or a bracketed IPv6 address.
  private static func isHost(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> Bool {
    var position = range.lowerBound
    if position < range.upperBound, bytes[position] == 0x5B {
      position += 1
      while position < range.upperBound, bytes[position] != 0x5D {
        let byte = bytes[position]
        guard ASCII.isDigit(byte) || byte == 0x3A || byte == 0x2E || isHexLetter(byte) else {
          return false
        }
        position += 1
      }
      guard position < range.upperBound else { return false }
      position += 1
    } else {
      while position < range.upperBound, bytes[position] != 0x3A {
        guard isNameByte(bytes[position]) else { return false }
        position += 1
      }
    }
    if position == range.upperBound { return true }
    guard bytes[position] == 0x3A, range.upperBound - position <= 6 else { return false }
    return bytes[position + 1..<range.upperBound].allSatisfy(ASCII.isDigit)
  }

  private static func isHexLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 6 }

  /// unreserved, `%` and sub-delims but those that would confuse a list or a quoted string.
  private static func isNameByte(_ byte: UInt8) -> Bool {
    if ASCII.isDigit(byte) || (byte | 0x20) &- 0x61 < 26 { return true }
    switch byte {
    case 0x2D, 0x2E, 0x5F, 0x7E, 0x25, 0x21, 0x24, 0x26, 0x2B, 0x3D: return true
    default: return false
    }
  }

  private static func checkPersistence(_ head: RequestHead) {
    if head.minorVersion == 1 {
      head.isPersistent =
        !head.fields.contains(.connection) || !head.fields.connectionHas(option: "close")
    } else {
      head.isPersistent = head.fields.connectionHas(option: "keep-alive")
    }
  }

  private static func slice(
    _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>
  ) -> UnsafeBufferPointer<UInt8> {
    UnsafeRawBufferPointer(rebasing: bytes[range]).assumingMemoryBound(to: UInt8.self)
  }
}
