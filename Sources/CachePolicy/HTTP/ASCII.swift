/// The bytes-level grammar that field values share: tokens, case, optional whitespace, lists and
/// delta-seconds (RFC 9110 §5.6, RFC 9111 §1.2.2).
///
/// Everything here reads a span and allocates nothing; results are ranges into that span. It
/// refuses to guess: what is not in the grammar gives nil or false. Called by `Fields`, by the
/// directive and date parsers, and by the codec of HTTP/1.1.
public enum ASCII {
  /// The byte in lower case, where it is a letter of ASCII.
  @inlinable
  public static func lowercased(_ byte: UInt8) -> UInt8 {
    byte &- 0x41 < 26 ? byte | 0x20 : byte
  }

  @inlinable
  public static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

  /// The value of a hexadecimal digit in either case; nil: it is none.
  public static func hexValue(_ byte: UInt8) -> UInt8? {
    if isDigit(byte) { return byte - 0x30 }
    let letter = lowercased(byte) &- 0x61
    return letter < 6 ? letter + 10 : nil
  }

  /// Space and horizontal tab: OWS of RFC 9110 §5.6.3.
  @inlinable
  public static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  /// tchar of RFC 9110 §5.6.2, as a table of 128 bits.
  @inlinable
  public static func isToken(_ byte: UInt8) -> Bool {
    if byte < 64 { return (0x03FF_6CFA_0000_0000 as UInt64) & (1 << UInt64(byte)) != 0 }
    if byte < 128 { return (0x57FF_FFFF_C7FF_FFFE as UInt64) & (1 << UInt64(byte - 64)) != 0 }
    return false
  }

  /// Whether the whole span is a token; an empty span is none.
  @inlinable
  public static func isToken(_ span: Span<UInt8>) -> Bool {
    if span.isEmpty { return false }
    for index in span.indices where !isToken(span[index]) { return false }
    return true
  }

  @inlinable
  public static func equalsIgnoringCase(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
    guard left.count == right.count else { return false }
    for index in left.indices {
      let (one, other) = (left[index], right[index])
      if one != other && lowercased(one) != lowercased(other) { return false }
    }
    return true
  }

  /// Compares with a literal that the caller writes in lower case.
  @inlinable
  public static func equalsIgnoringCase(_ span: Span<UInt8>, _ lowercase: StaticString) -> Bool {
    let count = span.count
    guard count == lowercase.utf8CodeUnitCount else { return false }
    // SAFETY: a StaticString literal lives for the whole program, and the counts are equal.
    let literal = unsafe UnsafeRawPointer(lowercase.utf8Start)
    guard count >= 8 else {
      for index in span.indices {
        let byte = unsafe literal.load(fromByteOffset: index, as: UInt8.self)
        if lowercased(span[index]) != byte { return false }
      }
      return true
    }
    var offset = 0
    while true {
      let word = unsafe span.bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
      let wanted = unsafe literal.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
      if !equalsIgnoringCase(word, wanted) { return false }
      if offset == count - 8 { return true }
      // The last eight bytes overlap those before them.
      offset = min(offset + 8, count - 8)
    }
  }

  /// Eight bytes at once. They may differ from those in lower case by the bit that makes a letter
  /// small, where these have a letter.
  @inlinable
  static func equalsIgnoringCase(_ word: UInt64, _ lowercase: UInt64) -> Bool {
    let ones: UInt64 = 0x0101_0101_0101_0101
    // The high bit of each byte: it is at least `a`, it is beyond `z`. The literal is ASCII.
    let atLeastA = lowercase &+ ones &* (0x80 - 0x61)
    let beyondZ = lowercase &+ ones &* (0x80 - 0x7B)
    let caseBits = (atLeastA & ~beyondZ & (ones &* 0x80)) &>> 2
    return (word ^ lowercase) & ~caseBits == 0
  }

  @inlinable
  public static func equals(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
    guard left.count == right.count else { return false }
    for index in left.indices where left[index] != right[index] { return false }
    return true
  }

  /// `range` of `span` without optional whitespace at either end.
  @inlinable
  public static func trimmed(_ span: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start < end, isSpace(span[start]) { start += 1 }
    while end > start, isSpace(span[end - 1]) { end -= 1 }
    return start..<end
  }

  @inlinable
  public static func trimmed(_ span: Span<UInt8>) -> Range<Int> { trimmed(span, span.indices) }

  /// The largest delta-seconds value: all larger ones stand for it (RFC 9111 §1.2.2).
  public static let deltaSecondsMax: Int64 = 1 << 31

  /// delta-seconds: one or more digits and nothing else, saturating at `deltaSecondsMax`.
  @inlinable
  public static func deltaSeconds(_ span: Span<UInt8>) -> Int64? {
    if span.isEmpty { return nil }
    var value: Int64 = 0
    for index in span.indices {
      let byte = span[index]
      guard isDigit(byte) else { return nil }
      value = min(value * 10 + Int64(byte - 0x30), deltaSecondsMax)
    }
    return value
  }

  /// The next member of a comma-separated list (RFC 9110 §5.6.1), trimmed; empty members are
  /// passed over. `position` starts at 0 and moves on; nil at the end.
  ///
  /// A comma within a quoted string does not separate. A quote that never closes is an ordinary
  /// byte: otherwise one stray quote would hide the `no-store` that follows it.
  public static func nextListMember(
    _ span: Span<UInt8>, _ position: inout Int, separator: UInt8 = 0x2C
  ) -> Range<Int>? {
    while position < span.count {
      let start = position
      while position < span.count, span[position] != separator {
        position = span[position] == 0x22 ? quotedStringEnd(span, position) : position + 1
      }
      let member = trimmed(span, start..<position)
      position = min(position + 1, span.count)
      if !member.isEmpty { return member }
    }
    return nil
  }

  /// The position after the quoted string that opens at `start`; after the quote alone where the
  /// string does not close.
  static func quotedStringEnd(_ span: Span<UInt8>, _ start: Int) -> Int {
    var index = start + 1
    while index < span.count {
      switch span[index] {
      case 0x22: return index + 1
      case 0x5C: index += 2
      default: index += 1
      }
    }
    return start + 1
  }
}
