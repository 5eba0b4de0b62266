/// `Accept` and `Accept-Language` as sets (RFC 9110 §12.5.1, §12.5.4): which requests accept the same
/// ranges alike.
///
/// Neither order nor whitespace means anything, nor the case of ranges and of parameters' names; so
/// copies are shared by all spellings of one set (RFC 9111 §4.1). Nothing else is folded: parameters
/// keep their order and the case of their values, and weights count to the thousandth. A field that
/// is not in this grammar (quoted parameters, something behind the weight), or is longer than any
/// browser's, is no set: nil, and `Vary` then compares its text. Called by `Vary` alone.
struct AcceptedRanges {
  /// Of media, or of languages.
  static let media = AcceptedRanges(field: .accept)
  static let languages = AcceptedRanges(field: .acceptLanguage)

  private let field: KnownField

  /// More ranges than this are compared as text: comparing sets costs the square of their size.
  static let rangesMax = 24

  /// An entry of the set: the range's count (2 bytes, little-endian), the range in its one spelling,
  /// its weight in thousandths (2 bytes). Entries rise bytewise and are unique.
  func canonical(_ request: Fields) -> [UInt8]? {
    var entries: [[UInt8]] = []
    let isRead = forEachRange(request) { range, weight in
      var entry: [UInt8] = [0, 0]
      var isValue = false
      for index in range.indices where !ASCII.isSpace(range[index]) {
        entry.append(Self.spelling(range[index], &isValue))
      }
      let count = entry.count - 2
      (entry[0], entry[1]) = (UInt8(count & 0xFF), UInt8(count >> 8))
      entry += [UInt8(weight & 0xFF), UInt8(weight >> 8)]
      if !entries.contains(entry) { entries.append(entry) }
    }
    guard isRead else { return nil }
    entries.sort { $0.lexicographicallyPrecedes($1) }
    return Array(entries.joined())
  }

  /// Whether the request's set is the one that `canonical` wrote; nil where it is no set. Allocates
  /// nothing.
  func equals(_ set: Span<UInt8>, _ request: Fields) -> Bool? {
    var (found, isSubset): (UInt32, Bool) = (0, true)
    let isRead = forEachRange(request) { range, weight in
      if let index = index(of: range, weight, in: set) {
        found |= 1 << UInt32(index)
      } else {
        isSubset = false
      }
    }
    guard isRead else { return nil }
    var (count, position) = (0, 0)
    while position + 2 <= set.count {
      position += Int(set[position]) + Int(set[position + 1]) << 8 + 4
      count += 1
    }
    return isSubset && position == set.count && found.nonzeroBitCount == count
  }

  private func index(of range: Span<UInt8>, _ weight: Int, in set: Span<UInt8>) -> Int? {
    var (index, position) = (0, 0)
    while position + 4 <= set.count, index < Self.rangesMax {
      let weightStart = position + 2 + Int(set[position]) + Int(set[position + 1]) << 8
      guard weightStart + 2 <= set.count else { return nil }
      if Int(set[weightStart]) | Int(set[weightStart + 1]) << 8 == weight,
        Self.isSpelt(range, as: set.extracting(position + 2..<weightStart))
      {
        return index
      }
      position = weightStart + 2
      index += 1
    }
    return nil
  }

  private static func isSpelt(_ range: Span<UInt8>, as text: Span<UInt8>) -> Bool {
    var (offset, isValue) = (0, false)
    for index in range.indices where !ASCII.isSpace(range[index]) {
      guard offset < text.count, spelling(range[index], &isValue) == text[offset] else {
        return false
      }
      offset += 1
    }
    return offset == text.count
  }

  /// A byte of a range in its one spelling. `isValue`: within the value of a parameter.
  private static func spelling(_ byte: UInt8, _ isValue: inout Bool) -> UInt8 {
    if byte == 0x3B { isValue = false }
    defer { if byte == 0x3D { isValue = true } }
    return isValue ? byte : ASCII.lowercased(byte)
  }

  /// Calls with each range without its weight, and the weight in thousandths; false where the field
  /// is no set. In a range that is called with, spaces stand around semicolons alone.
  private func forEachRange(
    _ request: Fields, _ body: (Span<UInt8>, Int) -> Void
  ) -> Bool {
    let all = request.bytes.span
    var count = 0
    for line in request.lines where line.known == field {
      let value = all.extracting(line.value)
      var position = 0
      while let member = ASCII.nextListMember(value, &position) {
        let item = value.extracting(member)
        count += 1
        guard count <= Self.rangesMax, item.count <= Int(UInt16.max), let end = rangeEnd(item),
          let weight = Weight.thousandths(item.extracting(end..<item.count))
        else { return false }
        body(item.extracting(0..<end), weight)
      }
    }
    return true
  }

  /// Where the weight of a member begins, or its end; nil: it is no range.
  private func rangeEnd(_ item: Span<UInt8>) -> Int? {
    guard field == .acceptLanguage else { return Self.mediaRangeEnd(item) }
    let end = Self.partEnd(item, 0)
    return Self.isLanguageRange(item.extracting(ASCII.trimmed(item, 0..<end))) ? end : nil
  }

  private static func mediaRangeEnd(_ item: Span<UInt8>) -> Int? {
    var end = partEnd(item, 0)
    guard isType(item.extracting(ASCII.trimmed(item, 0..<end))) else { return nil }
    while end < item.count {
      let next = partEnd(item, end + 1)
      let part = item.extracting(ASCII.trimmed(item, end + 1..<next))
      var equals = 0
      while equals < part.count, part[equals] != 0x3D { equals += 1 }
      let name = part.extracting(0..<equals)
      if ASCII.equalsIgnoringCase(name, "q") { return next == item.count ? end : nil }
      guard equals < part.count, ASCII.isToken(name),
        ASCII.isToken(part.extracting(equals + 1..<part.count))
      else { return nil }
      end = next
    }
    return end
  }

  private static func partEnd(_ item: Span<UInt8>, _ start: Int) -> Int {
    var end = start
    while end < item.count, item[end] != 0x3B { end += 1 }
    return end
  }

  /// `type/subtype`, either of them `*` or any token.
  private static func isType(_ span: Span<UInt8>) -> Bool {
    var slash = 0
    while slash < span.count, span[slash] != 0x2F { slash += 1 }
    return slash < span.count && ASCII.isToken(span.extracting(0..<slash))
      && ASCII.isToken(span.extracting(slash + 1..<span.count))
  }

  /// `*`, or letters, digits and hyphens (RFC 4647 §2.1).
  private static func isLanguageRange(_ span: Span<UInt8>) -> Bool {
    if span.isEmpty { return false }
    if span.count == 1, span[0] == 0x2A { return true }
    for index in span.indices {
      let byte = span[index]
      guard ASCII.isDigit(byte) || ASCII.lowercased(byte) &- 0x61 < 26 || byte == 0x2D else {
        return false
      }
    }
    return true
  }
}
