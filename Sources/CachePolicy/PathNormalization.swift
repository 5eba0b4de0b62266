/// Brings a request's path into the one form in which it is matched, keyed and sent on.
///
/// Once, and no further: percent-encoded unreserved characters are decoded, the hex digits of what
/// stays encoded are upper-cased, dot segments are removed (RFC 3986 §6.2.2). Repeated slashes stay
/// as they are, because origins may tell `/a//b` from `/a/b`; `RouteTable` passes over them when it
/// matches. An encoded separator (`%2F`, `%5C`), `%00` and a backslash are never decoded, and
/// beside a dot segment (`..%2f`) they are refused: an origin that decodes twice would climb out of
/// the folder that the route was chosen for. Called by the exchange with each request, and by the
/// reading of policies.json for the literal parts of patterns.
public enum PathNormalization {
  public enum Outcome: Sendable, Equatable {
    /// The path is in its normal form already; the buffer was not touched, or holds a copy.
    case unchanged
    /// The normal form is in the buffer.
    case rewritten
    /// The path is answered 400; the buffer's content means nothing.
    case refused(Refusal)
  }

  /// Why a path is refused: the same word in the log and the answer's detail.
  public enum Refusal: String, Sendable, Error, CaseIterable {
    /// It is not in origin-form: no slash at its start.
    case notAbsolute = "path-not-absolute"
    /// A `%` without two hex digits behind it.
    case malformedPercent = "path-malformed-percent"
    /// A control, a space, a byte above 0x7E, `#` or `?`.
    case forbiddenByte = "path-forbidden-byte"
    /// `..%2f` and its like.
    case separatorBesideDotSegment = "path-encoded-separator-beside-dot-segment"
  }

  /// Normalises a path (without its query). Allocates only where the buffer's capacity is too
  /// small for a path that needs rewriting.
  public static func normalize(_ path: Span<UInt8>, into buffer: inout [UInt8]) -> Outcome {
    guard path.count > 0, path[0] == slash else { return .refused(.notAbsolute) }
    switch scan(path) {
    case .clean: return .unchanged
    case .refused(let refusal): return .refused(refusal)
    case .needsWork: break
    }
    buffer.removeAll(keepingCapacity: true)
    decodeUnreserved(path, into: &buffer)
    if let refusal = removeDotSegments(&buffer) { return .refused(refusal) }
    return isEqual(path, buffer) ? .unchanged : .rewritten
  }

  private enum ScanResult {
    case clean
    case needsWork
    case refused(Refusal)
  }

  /// One pass that finds every refusal but that of `removeDotSegments`, and whether there is
  /// anything to do.
  private static func scan(_ path: Span<UInt8>) -> ScanResult {
    var needsWork = false
    var index = 0
    while index < path.count {
      let byte = path[index]
      index += 1
      switch byte {
      case slash:
        if isDotSegment(path, from: index) { needsWork = true }
      case percent:
        guard index + 1 < path.count,
          let high = ASCII.hexValue(path[index]), let low = ASCII.hexValue(path[index + 1])
        else { return .refused(.malformedPercent) }
        let value = high << 4 | low
        if isUnreserved(value) || isLowercase(path[index]) || isLowercase(path[index + 1])
          || isEncodedSeparator(value)
        {
          needsWork = true
        }
        index += 2
      case backslash:
        needsWork = true
      case 0...0x20, 0x7F...0xFF, UInt8(ascii: "#"), UInt8(ascii: "?"):
        return .refused(.forbiddenByte)
      default:
        continue
      }
    }
    return needsWork ? .needsWork : .clean
  }

  /// Copies a path whose percent sequences are known to be whole.
  private static func decodeUnreserved(_ path: Span<UInt8>, into buffer: inout [UInt8]) {
    var index = 0
    while index < path.count {
      let byte = path[index]
      guard byte == percent, let high = ASCII.hexValue(path[index + 1]),
        let low = ASCII.hexValue(path[index + 2])
      else {
        buffer.append(byte)
        index += 1
        continue
      }
      let value = high << 4 | low
      if isUnreserved(value) {
        buffer.append(value)
      } else {
        buffer.append(percent)
        buffer.append(upperHexDigit(high))
        buffer.append(upperHexDigit(low))
      }
      index += 3
    }
  }

  /// remove_dot_segments of RFC 3986 §5.2.4, in place.
  private static func removeDotSegments(_ buffer: inout [UInt8]) -> Refusal? {
    var read = 0
    var written = 0
    while read < buffer.count {
      // buffer[read] is the slash that opens a segment.
      var end = read + 1
      while end < buffer.count, buffer[end] != slash { end += 1 }
      let isLast = end == buffer.count
      switch dotCount(buffer, from: read + 1, to: end) {
      case 1:
        if isLast {
          buffer[written] = slash
          written += 1
        }
      case 2:
        while written > 0 {
          written -= 1
          if buffer[written] == slash { break }
        }
        if isLast {
          buffer[written] = slash
          written += 1
        }
      default:
        if hasDotsBesideSeparator(buffer, from: read + 1, to: end) {
          return .separatorBesideDotSegment
        }
        for index in read..<end {
          buffer[written] = buffer[index]
          written += 1
        }
      }
      read = end
    }
    buffer.removeSubrange(written...)
    return nil
  }

  /// 1 or 2 where the range is `.` or `..`, else 0.
  private static func dotCount(_ bytes: [UInt8], from start: Int, to end: Int) -> Int {
    guard end - start == 1 || end - start == 2 else { return 0 }
    for index in start..<end where bytes[index] != dot { return 0 }
    return end - start
  }

  /// Whether a segment, cut at its encoded separators, has a `.` or `..` among its pieces.
  private static func hasDotsBesideSeparator(
    _ bytes: [UInt8], from start: Int, to end: Int
  ) -> Bool {
    var pieceStart = start
    var index = start
    while index < end {
      let width = separatorWidth(bytes, at: index)
      if width > 0 {
        if dotCount(bytes, from: pieceStart, to: index) > 0 { return true }
        index += width
        pieceStart = index
      } else {
        index += 1
      }
    }
    return pieceStart > start && dotCount(bytes, from: pieceStart, to: end) > 0
  }

  /// How many bytes a backslash or an encoded separator takes here; 0: neither.
  private static func separatorWidth(_ bytes: [UInt8], at index: Int) -> Int {
    if bytes[index] == backslash { return 1 }
    guard bytes[index] == percent, let high = ASCII.hexValue(bytes[index + 1]),
      let low = ASCII.hexValue(bytes[index + 2]), isEncodedSeparator(high << 4 | low)
    else { return 0 }
    return 3
  }

  private static func isDotSegment(_ path: Span<UInt8>, from start: Int) -> Bool {
    guard start < path.count, path[start] == dot else { return false }
    var next = start + 1
    if next < path.count, path[next] == dot { next += 1 }
    return next == path.count || path[next] == slash
  }

  private static func isEncodedSeparator(_ value: UInt8) -> Bool {
    value == slash || value == backslash || value == 0
  }

  private static func isEqual(_ path: Span<UInt8>, _ buffer: [UInt8]) -> Bool {
    guard path.count == buffer.count else { return false }
    for index in 0..<path.count where path[index] != buffer[index] { return false }
    return true
  }

  /// RFC 3986 §2.3.
  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), dot, UInt8(ascii: "_"),
      UInt8(ascii: "~"):
      true
    default: false
    }
  }

  private static func isLowercase(_ byte: UInt8) -> Bool {
    byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z")
  }

  private static func upperHexDigit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
  }

  private static let slash = UInt8(ascii: "/")
  private static let backslash = UInt8(ascii: "\\")
  private static let percent = UInt8(ascii: "%")
  private static let dot = UInt8(ascii: ".")
}
