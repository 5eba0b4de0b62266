/// Cache-Control fields meant for some caches only (RFC 9213): `CDN-Cache-Control`,
/// `Larder-Cache-Control` and what else an upstream's list names.
///
/// The first field of the list that is there, not empty, and a well-formed dictionary of
/// structured fields (RFC 9651 §3.2) takes the place of Cache-Control and Expires altogether. One
/// that is not well-formed is passed over as if it were absent. Called once an origin's response.
extension ResponseDirectives {
  /// `targeted` names the fields that are looked for, the most specific first.
  public init(_ fields: Fields, targeted: [String]) {
    for name in targeted {
      guard let value = fields[name] else { continue }
      let bytes = Array(value.utf8)
      guard let members = StructuredDictionary.members(of: bytes.span), !members.isEmpty else {
        continue
      }
      self.init()
      isTargeted = true
      let directives = members.map { Directive(bytes.span, $0) }
      var lastOfName: [ArraySlice<UInt8>: Int] = [:]
      for (index, directive) in directives.enumerated() {
        lastOfName[bytes[directive.name]] = index
      }
      // Of several members with one key the last is meant (RFC 9651 §4.2.2).
      for (index, directive) in directives.enumerated()
      where lastOfName[bytes[directive.name]] == index {
        add(directive, of: bytes.span)
      }
      return
    }
    self.init(fields)
  }
}

/// The grammar of a dictionary of structured fields, so far as directives need it: which bytes are
/// a member without its parameters, and whether all is well-formed.
enum StructuredDictionary {
  /// The members as `key` or `key=value` ranges; nil where the field is malformed.
  static func members(of span: Span<UInt8>) -> [Range<Int>]? {
    var result: [Range<Int>] = []
    var position = ASCII.trimmed(span).lowerBound
    let end = ASCII.trimmed(span).upperBound
    while position < end {
      let start = position
      guard skipKey(span, &position, end) else { return nil }
      if position < end, span[position] == 0x3D {
        position += 1
        guard skipValue(span, &position, end) else { return nil }
      }
      result.append(start..<position)
      guard skipParameters(span, &position, end) else { return nil }
      skipSpace(span, &position, end)
      if position == end { break }
      guard span[position] == 0x2C else { return nil }
      position += 1
      skipSpace(span, &position, end)
      // A trailing comma is malformed.
      if position == end { return nil }
    }
    return result
  }

  private static func skipSpace(_ span: Span<UInt8>, _ position: inout Int, _ end: Int) {
    while position < end, ASCII.isSpace(span[position]) { position += 1 }
  }

  private static func skipKey(_ span: Span<UInt8>, _ position: inout Int, _ end: Int) -> Bool {
    guard position < end, isLowercase(span[position]) || span[position] == 0x2A else {
      return false
    }
    while position < end {
      let byte = span[position]
      guard isLowercase(byte) || ASCII.isDigit(byte) || [0x5F, 0x2D, 0x2E, 0x2A].contains(byte)
      else { break }
      position += 1
    }
    return true
  }

  private static func skipParameters(
    _ span: Span<UInt8>, _ position: inout Int, _ end: Int
  ) -> Bool {
    while position < end, span[position] == 0x3B {
      position += 1
      while position < end, span[position] == 0x20 { position += 1 }
      guard skipKey(span, &position, end) else { return false }
      if position < end, span[position] == 0x3D {
        position += 1
        guard skipItem(span, &position, end) else { return false }
      }
    }
    return true
  }

  private static func skipValue(_ span: Span<UInt8>, _ position: inout Int, _ end: Int) -> Bool {
    guard position < end, span[position] == 0x28 else { return skipItem(span, &position, end) }
    position += 1
    while position < end {
      while position < end, span[position] == 0x20 { position += 1 }
      if position < end, span[position] == 0x29 {
        position += 1
        return true
      }
      guard skipItem(span, &position, end), skipParameters(span, &position, end), position < end,
        span[position] == 0x20 || span[position] == 0x29
      else { return false }
    }
    return false
  }

  private static func skipItem(_ span: Span<UInt8>, _ position: inout Int, _ end: Int) -> Bool {
    guard position < end else { return false }
    switch span[position] {
    case 0x22: return skipString(span, &position, end)
    case 0x3F:
      guard position + 1 < end, span[position + 1] == 0x30 || span[position + 1] == 0x31 else {
        return false
      }
      position += 2
      return true
    case 0x3A:
      position += 1
      while position < end, isBase64(span[position]) { position += 1 }
      guard position < end, span[position] == 0x3A else { return false }
      position += 1
      return true
    case 0x2D, 0x30...0x39: return skipNumber(span, &position, end)
    case 0x40:
      // A date is an integer behind the sign.
      let start = position + 1
      position = start
      guard start < end, span[start] == 0x2D || ASCII.isDigit(span[start]),
        skipNumber(span, &position, end)
      else { return false }
      return !(start..<position).contains { span[$0] == 0x2E }
    case 0x25: return skipDisplayString(span, &position, end)
    case 0x2A, 0x41...0x5A, 0x61...0x7A:
      while position < end {
        let byte = span[position]
        guard ASCII.isToken(byte) || byte == 0x3A || byte == 0x2F else { break }
        position += 1
      }
      return true
    default: return false
    }
  }

  private static func skipString(_ span: Span<UInt8>, _ position: inout Int, _ end: Int) -> Bool {
    position += 1
    while position < end {
      switch span[position] {
      case 0x22:
        position += 1
        return true
      case 0x5C:
        guard position + 1 < end, span[position + 1] == 0x22 || span[position + 1] == 0x5C else {
          return false
        }
        position += 2
      case 0x20...0x7E: position += 1
      default: return false
      }
    }
    return false
  }

  /// `%"…"`: visible ASCII, and the bytes of UTF-8 as `%` with two digits in lower case.
  private static func skipDisplayString(
    _ span: Span<UInt8>, _ position: inout Int, _ end: Int
  ) -> Bool {
    guard position + 1 < end, span[position + 1] == 0x22 else { return false }
    position += 2
    while position < end {
      switch span[position] {
      case 0x22:
        position += 1
        return true
      case 0x25:
        guard position + 2 < end, isLowercaseHex(span[position + 1]),
          isLowercaseHex(span[position + 2])
        else { return false }
        position += 3
      case 0x20...0x7E: position += 1
      default: return false
      }
    }
    return false
  }

  private static func isLowercaseHex(_ byte: UInt8) -> Bool {
    ASCII.isDigit(byte) || byte &- 0x61 < 6
  }

  private static func skipNumber(_ span: Span<UInt8>, _ position: inout Int, _ end: Int) -> Bool {
    if span[position] == 0x2D { position += 1 }
    let digitsStart = position
    while position < end, ASCII.isDigit(span[position]) { position += 1 }
    guard (1...15).contains(position - digitsStart) else { return false }
    guard position < end, span[position] == 0x2E else { return true }
    // A decimal has at most twelve digits before its point (RFC 9651 §4.2.4).
    guard position - digitsStart <= 12 else { return false }
    let fractionStart = position + 1
    position += 1
    while position < end, ASCII.isDigit(span[position]) { position += 1 }
    return (1...3).contains(position - fractionStart)
  }

  private static func isBase64(_ byte: UInt8) -> Bool {
    ASCII.isDigit(byte) || (byte | 0x20) &- 0x61 < 26 || [0x2B, 0x2F, 0x3D].contains(byte)
  }

  private static func isLowercase(_ byte: UInt8) -> Bool { byte &- 0x61 < 26 }
}
