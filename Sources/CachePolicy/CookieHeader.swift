/// Finds a cookie in the Cookie lines of a request (RFC 6265 §4.2, §5.4).
///
/// Lines are cut at `;`, with or without a space behind it; names are compared byte for byte; quotes
/// around a value belong to it. All cookies of a name are given, since origins differ in which one
/// they take, and `isDoubtful` tells where they differ in what a cookie is. It refuses nothing: what
/// is no `name=value` is passed over. Called by `UserIdentity` and `KeyRecipe`.
public enum CookieHeader {
  /// Where the values of all cookies of this name lie in the fields' bytes, in their order.
  public static func values(of name: String, in fields: Fields) -> [Range<Int>] {
    let wanted = Array(name.utf8)
    let all = fields.bytes.span
    var found: [Range<Int>] = []
    for line in fields.lines where line.known == .cookie {
      var position = line.value.lowerBound
      while let pair = nextPair(all, &position, line.value.upperBound, isAlsoCutAtComma: false) {
        guard let equals = firstEquals(all, pair) else { continue }
        let own = ASCII.trimmed(all, pair.lowerBound..<equals)
        guard ASCII.equals(all.extracting(own), wanted.span) else { continue }
        found.append(ASCII.trimmed(all, equals + 1..<pair.upperBound))
      }
    }
    return found
  }

  /// Whether some origin may see another cookie of this name than `values` gives: a quoted string
  /// that goes on behind a `;` (Python), a `,` before the name (RFC 2965), a name that is
  /// percent-decoded or has a `.` for a `_` (PHP) or other letters (ASP.NET), white space beside the
  /// `=` (a `_` to PHP), or no `=`. Whoever relies on the cookie then has to take the whole lines.
  public static func isDoubtful(_ name: String, in fields: Fields) -> Bool {
    let wanted = Array(name.utf8)
    let stem = ParameterName.stem(name)
    let all = fields.bytes.span
    for line in fields.lines where line.known == .cookie {
      var position = line.value.lowerBound
      while let pair = nextPair(all, &position, line.value.upperBound, isAlsoCutAtComma: true) {
        let equals = firstEquals(all, pair)
        let raw = all.extracting(ASCII.trimmed(all, pair.lowerBound..<(equals ?? pair.upperBound)))
        let isPlain =
          equals != nil && ASCII.equals(raw, wanted.span)
          && (pair.lowerBound == line.value.lowerBound
            || all[pair.lowerBound - 1] == UInt8(ascii: ";"))
        let own = ParameterName(raw)
        if !isPlain || hasInnerSpace(all, pair), own.isDoubtful || own.mayBe(stem: stem, raw) {
          return true
        }
        if let equals, isOpenString(all, equals + 1..<pair.upperBound) { return true }
      }
    }
    return false
  }

  /// The next stretch between separators; nil at the end.
  private static func nextPair(
    _ all: Span<UInt8>, _ position: inout Int, _ end: Int, isAlsoCutAtComma: Bool
  ) -> Range<Int>? {
    guard position < end else { return nil }
    let start = position
    while position < end, all[position] != UInt8(ascii: ";"),
      !(isAlsoCutAtComma && all[position] == UInt8(ascii: ","))
    { position += 1 }
    defer { position += 1 }
    return start..<position
  }

  private static func firstEquals(_ all: Span<UInt8>, _ pair: Range<Int>) -> Int? {
    for index in pair where all[index] == UInt8(ascii: "=") { return index }
    return nil
  }

  /// Whether there is white space on either side of the first `=`.
  private static func hasInnerSpace(_ all: Span<UInt8>, _ pair: Range<Int>) -> Bool {
    guard let equals = firstEquals(all, pair) else { return false }
    return equals > pair.lowerBound && ASCII.isSpace(all[equals - 1])
      || equals + 1 < pair.upperBound && ASCII.isSpace(all[equals + 1])
  }

  /// Whether a value opens a quoted string and does not close it at its end.
  private static func isOpenString(_ all: Span<UInt8>, _ range: Range<Int>) -> Bool {
    let value = ASCII.trimmed(all, range)
    guard let first = value.first, all[first] == UInt8(ascii: "\"") else { return false }
    return ASCII.quotedStringEnd(all.extracting(value), 0) != value.count || value.count < 2
  }
}
