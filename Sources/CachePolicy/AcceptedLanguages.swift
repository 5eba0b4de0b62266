/// `Accept-Language` as a set (RFC 9110 §12.5.4): which requests ask for the same languages.
///
/// Neither the case of a range nor whitespace means anything, and what is liked better is said by
/// weights, not by order; so copies are shared by all spellings of one set (RFC 9111 §4.1). A field
/// that is not in the grammar, or is longer than any browser's, is no set: nil, and `Vary` then
/// compares its text. Called by `Vary` alone.
enum AcceptedLanguages {
  /// More ranges than this are compared as text: comparing sets costs the square of their size.
  static let rangesMax = 24

  /// An entry of the set: the range's count (1 byte), the range in lower case, its weight in
  /// thousandths (2 bytes, little-endian). Entries rise bytewise and are unique.
  static func canonical(_ request: Fields) -> [UInt8]? {
    var entries: [[UInt8]] = []
    let isRead = forEachRange(request) { range, weight in
      let name = range.indices.map { ASCII.lowercased(range[$0]) }
      let entry = [UInt8(name.count)] + name + [UInt8(weight & 0xFF), UInt8(weight >> 8)]
      if !entries.contains(entry) { entries.append(entry) }
    }
    guard isRead else { return nil }
    entries.sort { $0.lexicographicallyPrecedes($1) }
    return Array(entries.joined())
  }

  /// Whether the request's set is the one that `canonical` wrote; nil where it is no set. Allocates
  /// nothing.
  static func equals(_ set: Span<UInt8>, _ request: Fields) -> Bool? {
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
    while position < set.count {
      position += Int(set[position]) + 3
      count += 1
    }
    return isSubset && found.nonzeroBitCount == count
  }

  private static func index(of range: Span<UInt8>, _ weight: Int, in set: Span<UInt8>) -> Int? {
    var (index, position) = (0, 0)
    while position < set.count, index < rangesMax {
      let weightStart = position + 1 + Int(set[position])
      guard weightStart + 2 <= set.count else { return nil }
      if Int(set[weightStart]) | Int(set[weightStart + 1]) << 8 == weight,
        ASCII.equalsIgnoringCase(set.extracting(position + 1..<weightStart), range)
      {
        return index
      }
      position = weightStart + 2
      index += 1
    }
    return nil
  }

  /// Calls with each range and its weight in thousandths; false where the field is no set.
  private static func forEachRange(
    _ request: Fields, _ body: (Span<UInt8>, Int) -> Void
  ) -> Bool {
    let all = request.bytes.span
    var count = 0
    for line in request.lines where line.known == .acceptLanguage {
      let value = all.extracting(line.value)
      var position = 0
      while let member = ASCII.nextListMember(value, &position) {
        let item = value.extracting(member)
        var end = 0
        while end < item.count, item[end] != 0x3B { end += 1 }
        let range = item.extracting(ASCII.trimmed(item, 0..<end))
        count += 1
        guard count <= rangesMax, range.count <= Int(UInt8.max), isRange(range),
          let weight = Weight.thousandths(item.extracting(end..<item.count))
        else { return false }
        body(range, weight)
      }
    }
    return true
  }

  /// `*`, or letters, digits and hyphens (RFC 4647 §2.1).
  private static func isRange(_ span: Span<UInt8>) -> Bool {
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

/// The weight of a member of an Accept field (RFC 9110 §12.4.2).
enum Weight {
  /// 0 to 1000 for what follows a member: nothing, or `;q=` with 0 to 1 and up to three decimals.
  /// nil for anything else.
  static func thousandths(_ parameters: Span<UInt8>) -> Int? {
    if parameters.isEmpty { return 1000 }
    let weight = parameters.extracting(ASCII.trimmed(parameters, 1..<parameters.count))
    guard (3...7).contains(weight.count), ASCII.lowercased(weight[0]) == 0x71,
      weight[1] == 0x3D, weight[2] == 0x30 || weight[2] == 0x31,
      weight.count < 4 || weight[3] == 0x2E
    else { return nil }
    var (value, unit) = (weight[2] == 0x31 ? 1000 : 0, 100)
    for index in 4..<max(4, weight.count) {
      guard ASCII.isDigit(weight[index]) else { return nil }
      value += Int(weight[index] - 0x30) * unit
      unit /= 10
    }
    return value <= 1000 ? value : nil
  }
}
