internal import CachePolicy

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Reads an origin's header lines, one a call, strictly.
///
/// Owns the limits on an origin's header block (interim answers and trailers included) and the
/// framing rules of RFC 9112 §6.3. Whatever is ambiguous makes the answer broken. One a connection or
/// transfer, which it serves for one answer after another.
final class ResponseHeadReader {
  enum Outcome: Equatable {
    case more
    case interim(status: UInt16)
    case final
    /// A line after the final head: a trailer field, which is not merged (RFC 9110 §6.5.1).
    case trailer
    case broken(String)
  }

  static let bytesMax = 64 * 1024
  static let fieldsMax = 100

  private(set) var status: UInt16 = 0
  private(set) var fields = Fields()
  private(set) var contentLength: UInt64?
  private(set) var isChunked = false
  private(set) var version = ReceivedVersion.http11
  private var bytesTotal = 0
  private var isFinal = false

  /// Begins with another answer.
  func reset() {
    bytesTotal = 0
    isFinal = false
    beginNext()
  }

  /// The fields, which leave the reader: whoever changes them copies nothing.
  func takeFields() -> Fields {
    let taken = fields
    fields = Fields()
    return taken
  }

  func read(_ line: UnsafeRawBufferPointer) -> Outcome {
    bytesTotal += line.count
    guard bytesTotal <= ResponseHeadReader.bytesMax else {
      return .broken("header block too large")
    }
    if isFinal { return .trailer }
    var end = line.count
    if end > 0, line[end - 1] == 0x0A { end -= 1 }
    if end > 0, line[end - 1] == 0x0D { end -= 1 }
    let content = UnsafeRawBufferPointer(rebasing: line[0..<end])
    if status == 0 { return readStatusLine(content) }
    if content.isEmpty { return finishHead() }
    return readField(content)
  }

  private func readStatusLine(_ line: UnsafeRawBufferPointer) -> Outcome {
    // "HTTP/1.1 200 OK", "HTTP/2 200".
    guard let version = ResponseHeadReader.version(line) else {
      return .broken("not an answer of HTTP")
    }
    guard let space = line.firstIndex(of: UInt8(ascii: " ")), space + 3 < line.count,
      space + 4 == line.count || line[space + 4] == UInt8(ascii: " ")
    else { return .broken("malformed status line") }
    var value: UInt16 = 0
    for digit in line[(space + 1)...(space + 3)] {
      guard digit >= 0x30, digit <= 0x39 else { return .broken("malformed status") }
      value = value * 10 + UInt16(digit - 0x30)
    }
    guard value >= 100 else { return .broken("malformed status") }
    self.version = version
    status = value
    return .more
  }

  /// What a status line begins with (RFC 9112 §2.3); a later minor version is read as HTTP/1.1.
  private static func version(_ line: UnsafeRawBufferPointer) -> ReceivedVersion? {
    guard line.count >= 7, canBeginAnswer(line) else { return nil }
    let major = line[5]
    if major == UInt8(ascii: "2") || major == UInt8(ascii: "3") {
      return line[6] == UInt8(ascii: " ") ? .http2 : nil
    }
    guard line.count >= 9, major == UInt8(ascii: "1"), line[6] == UInt8(ascii: "."),
      ASCII.isDigit(line[7]), line[8] == UInt8(ascii: " ")
    else { return nil }
    return line[7] == UInt8(ascii: "0") ? .http10 : .http11
  }

  /// Whether bytes may be the begin of a status line.
  static func canBeginAnswer(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let name: StaticString = "HTTP/"
    for index in 0..<min(bytes.count, name.utf8CodeUnitCount)
    // SAFETY: the index is below the text's count.
    where bytes[index] != name.utf8Start[index] { return false }
    return true
  }

  private func readField(_ line: UnsafeRawBufferPointer) -> Outcome {
    guard fields.count < ResponseHeadReader.fieldsMax else { return .broken("too many fields") }
    guard line[0] != UInt8(ascii: " "), line[0] != UInt8(ascii: "\t") else {
      return .broken("folded field line")
    }
    // SAFETY: the searches stay within `line` and `value`.
    guard let found = memchr(line.baseAddress!, 0x3A, line.count) else {
      return .broken("field line without a name")
    }
    let colon = UnsafeRawPointer(found) - line.baseAddress!
    guard colon > 0 else { return .broken("field line without a name") }
    for index in 0..<colon where !ASCII.isToken(line[index]) {
      return .broken("malformed field name")
    }
    var start = colon + 1
    var end = line.count
    while start < end, ASCII.isSpace(line[start]) { start += 1 }
    while end > start, ASCII.isSpace(line[end - 1]) { end -= 1 }
    let value = UnsafeRawBufferPointer(rebasing: line[start..<end])
    // The line ends at the first LF.
    if end > start,
      memchr(value.baseAddress!, 0, value.count) != nil
        || memchr(value.baseAddress!, 0x0D, value.count) != nil
    {
      return .broken("control character in a field")
    }
    if fields.count == 0 { fields.reserve(bytes: 512, lines: 16) }
    fields.append(
      checkedLine: Span(_unsafeBytes: line[0..<end]), name: 0..<colon, value: start..<end)
    return readFraming(value)
  }

  private func readFraming(_ value: UnsafeRawBufferPointer) -> Outcome {
    switch fields.lines[fields.count - 1].known {
    case .contentLength:
      guard let length = ResponseHeadReader.decimal(value) else {
        return .broken("malformed Content-Length")
      }
      if let earlier = contentLength, earlier != length {
        return .broken("differing Content-Length")
      }
      contentLength = length
    case .transferEncoding:
      guard !isChunked, ASCII.equalsIgnoringCase(Span(_unsafeBytes: value), "chunked") else {
        return .broken("transfer coding other than chunked")
      }
      isChunked = true
    default: break
    }
    return .more
  }

  private func finishHead() -> Outcome {
    if status >= 100, status < 200 {
      guard status != 101 else { return .broken("protocol switch that was not asked for") }
      return .interim(status: status)
    }
    if isChunked, contentLength != nil {
      return .broken("Content-Length beside Transfer-Encoding")
    }
    isFinal = true
    return .final
  }

  /// Whether the final answer has no body, whatever its fields say (RFC 9112 §6.3).
  func isWithoutBody(answering method: Method) -> Bool {
    method == .head || status == 204 || status == 304
  }

  /// Whether the end of the body will be known to be its end. A transfer coding in HTTP/1.0 is faulty
  /// framing (RFC 9112 §6.1): what it ends with proves nothing.
  func endIsKnown(answering method: Method) -> Bool {
    isWithoutBody(answering: method) || contentLength != nil || isChunked && version != .http10
  }

  /// Forgets an interim answer; the limits go on counting.
  func beginNext() {
    status = 0
    if fields.count > 0 { fields = Fields() }
    contentLength = nil
    isChunked = false
  }

  /// 1*DIGIT without overflow (RFC 9110 §8.6).
  static func decimal(_ bytes: UnsafeRawBufferPointer) -> UInt64? {
    guard !bytes.isEmpty, bytes.count <= 18 else { return nil }
    var value: UInt64 = 0
    for byte in bytes {
      guard byte >= 0x30, byte <= 0x39 else { return nil }
      value = value * 10 + UInt64(byte - 0x30)
    }
    return value
  }
}
