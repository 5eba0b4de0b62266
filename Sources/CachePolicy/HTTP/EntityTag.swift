/// Entity tags (RFC 9110 §8.8.3): where the opaque text lies, and the two ways to compare.
///
/// A tag that is not in the grammar is none: it never equals anything. Called by Validation and by
/// whoever evaluates If-Range.
public struct EntityTag: Sendable, Equatable {
  public var isWeak: Bool
  /// The text within the quotes, as a range into the span that was read.
  public var opaque: Range<Int>

  /// Reads `range` of `span` as one tag: `"x"` or `W/"x"`.
  public init?(_ span: Span<UInt8>, _ range: Range<Int>) {
    var start = range.lowerBound
    isWeak = range.count >= 2 && span[start] == 0x57 && span[start + 1] == 0x2F
    if isWeak { start += 2 }
    guard range.upperBound - start >= 2, span[start] == 0x22, span[range.upperBound - 1] == 0x22
    else { return nil }
    opaque = start + 1..<range.upperBound - 1
    for index in opaque where !EntityTag.isOpaque(span[index]) { return nil }
  }

  public init?(_ span: Span<UInt8>) { self.init(span, ASCII.trimmed(span)) }

  /// etagc: visible characters but the quote, and obs-text. A backslash escapes nothing.
  private static func isOpaque(_ byte: UInt8) -> Bool {
    byte == 0x21 || (byte >= 0x23 && byte != 0x7F)
  }

  /// Whether one of the tags in a list (a value of If-None-Match) equals `tag` by the weak
  /// comparison (RFC 9110 §8.8.3.2). Members that are no tags are passed over. `*` is not looked
  /// for.
  public static func list(_ list: Span<UInt8>, hasWeakly tag: Span<UInt8>) -> Bool {
    guard let wanted = EntityTag(tag) else { return false }
    // Most lists are the one tag that the client was given.
    if ASCII.equals(list, tag) { return true }
    var position = 0
    while let member = nextMember(list, &position) {
      guard let found = EntityTag(list, member) else { continue }
      if ASCII.equals(list.extracting(found.opaque), tag.extracting(wanted.opaque)) { return true }
    }
    return false
  }

  /// The strong comparison: the same text, and neither is weak.
  public static func equalStrongly(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
    guard let one = EntityTag(left), let other = EntityTag(right) else { return false }
    return !one.isWeak && !other.isWeak
      && ASCII.equals(left.extracting(one.opaque), right.extracting(other.opaque))
  }

  /// The next member of a list of tags. Not `ASCII.nextListMember`: a backslash within a tag is
  /// an ordinary character (RFC 9110 §8.8.3), where in a quoted string it escapes.
  private static func nextMember(_ span: Span<UInt8>, _ position: inout Int) -> Range<Int>? {
    while position < span.count {
      let start = position
      var quoted = false
      while position < span.count, quoted || span[position] != 0x2C {
        if span[position] == 0x22 { quoted.toggle() }
        position += 1
      }
      let member = ASCII.trimmed(span, start..<position)
      position = min(position + 1, span.count)
      if !member.isEmpty { return member }
    }
    return nil
  }
}
