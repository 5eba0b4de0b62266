/// How origins read the name of a query parameter (or cookie), so far as they are known to differ.
///
/// A cache that reads names otherwise than its origin can be poisoned: `b%61se`, `BASE`, `base[]`,
/// `[base]` and `base%00x` are all `base` to some widely used framework, while a byte-for-byte
/// reader sees another parameter that does not count. So a name that *any* of them might take for a
/// listed one counts as it, and a name that is left out is left out by all readings. Names are read
/// where they lie, decoded byte by byte: nothing here allocates, and every call is given the same
/// bytes again. Called by `QueryFilter` and `CookieHeader`.
struct ParameterName {
  /// The name holds what origins decode differently: a `%` without two digits, a control, or what
  /// is not ASCII. No list can say what it is, and it always counts.
  let isDoubtful: Bool
  /// Where the first bracket is, in the raw bytes; the count where there is none.
  private let firstBracket: Int
  /// Whether it has a `.`, a space or an open bracket, which some origins read as `_`.
  let hasHiddenUnderscore: Bool
  let hasUnderscore: Bool

  init(_ raw: Span<UInt8>) {
    var (isDoubtful, hasHidden, hasUnderscore) = (false, false, false)
    var firstBracket = raw.count
    var open = 0
    var index = 0
    while index < raw.count {
      let start = index
      guard let byte = Self.decode(raw, &index) else {
        isDoubtful = true
        continue
      }
      switch byte {
      case 0...0x1F, 0x7F...0xFF: isDoubtful = true
      case UInt8(ascii: "."), UInt8(ascii: " "): hasHidden = true
      case UInt8(ascii: "_"): hasUnderscore = true
      case UInt8(ascii: "["):
        firstBracket = min(firstBracket, start)
        open += 1
      case UInt8(ascii: "]"):
        firstBracket = min(firstBracket, start)
        open -= 1
      default: continue
      }
    }
    self.isDoubtful = isDoubtful
    self.firstBracket = firstBracket
    hasHiddenUnderscore = hasHidden || open != 0
    self.hasUnderscore = hasUnderscore
  }

  // MARK: Names that count

  /// A listed name in the form that `mayBe` compares with.
  static func stem(_ listed: String) -> [UInt8] {
    var stem: [UInt8] = []
    for byte in listed.utf8.drop(while: isPassedOver) {
      if isBracket(byte) { break }
      stem.append(folded(byte))
    }
    return stem
  }

  /// Whether an origin may take this name for the listed one: letters of any case (ASP.NET), `.`,
  /// space and an open `[` for `_` (PHP), a bracket, or a space or `?` before the name (Rack, qs,
  /// PHP, URLSearchParams), and a member of it (`base[]`, `base[x]`, `base.x`).
  func mayBe(stem: [UInt8], _ raw: Span<UInt8>) -> Bool {
    var index = Self.start(raw)
    for byte in stem {
      guard index < raw.count, let own = Self.decode(raw, &index), Self.folded(own) == byte else {
        return false
      }
    }
    guard index < raw.count else { return true }
    let next = Self.decode(raw, &index)
    return next.map { Self.isBracket($0) || $0 == UInt8(ascii: ".") } ?? true
  }

  // MARK: Names that are left out

  /// Whether the pattern, with `*` for any number of characters, takes the decoded name, and what
  /// stands before the first bracket of the one that before the other's: PHP and qs read
  /// `base[]_src` as `base`, so that `*_src` must not take it.
  func isTaken(by pattern: [UInt8], _ raw: Span<UInt8>) -> Bool {
    let patternRoot = pattern.firstIndex(where: Self.isBracket) ?? pattern.count
    return Self.matches(pattern[...], raw, 0..<raw.count)
      && (firstBracket == raw.count
        || Self.matches(pattern[..<patternRoot], raw, 0..<firstBracket))
  }

  /// Goes back to the last star only, so that its cost is at most the product of both lengths.
  private static func matches(
    _ pattern: ArraySlice<UInt8>, _ raw: Span<UInt8>, _ range: Range<Int>
  ) -> Bool {
    var position = pattern.startIndex
    var text = range.lowerBound
    var star = -1
    var resume = 0
    while text < range.upperBound {
      var next = text
      let byte = decode(raw, &next)
      if position < pattern.endIndex, pattern[position] == UInt8(ascii: "*") {
        star = position
        resume = text
        position += 1
      } else if position < pattern.endIndex, pattern[position] == byte {
        position += 1
        text = next
      } else if star >= 0 {
        position = star + 1
        _ = decode(raw, &resume)
        text = resume
      } else {
        return false
      }
    }
    return pattern[position...].allSatisfy { $0 == UInt8(ascii: "*") }
  }

  // MARK: Order

  /// What parameters are sorted by: names that an origin may read as one, or as members of one,
  /// have the same root, and so stay in their order.
  func appendRoot(of raw: Span<UInt8>, to root: inout [UInt8]) {
    var index = Self.start(raw)
    while index < raw.count, let byte = Self.decode(raw, &index) {
      if Self.isBracket(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: " ") { return }
      root.append(Self.folded(byte))
    }
  }

  // MARK: Bytes

  /// Behind what some origins pass over before a name.
  private static func start(_ raw: Span<UInt8>) -> Int {
    var index = 0
    var next = 0
    while next < raw.count, let byte = decode(raw, &next), isPassedOver(byte) {
      index = next
    }
    return index
  }

  /// The byte at the index, which moves on; nil for a `%` without two hex digits behind it.
  private static func decode(_ raw: Span<UInt8>, _ index: inout Int) -> UInt8? {
    let byte = raw[index]
    index += 1
    if byte == UInt8(ascii: "+") { return UInt8(ascii: " ") }
    guard byte == UInt8(ascii: "%") else { return byte }
    guard index + 1 < raw.count, let high = ASCII.hexValue(raw[index]),
      let low = ASCII.hexValue(raw[index + 1])
    else { return nil }
    index += 2
    return high << 4 | low
  }

  private static func folded(_ byte: UInt8) -> UInt8 {
    switch byte {
    case UInt8(ascii: "."), UInt8(ascii: " "), UInt8(ascii: "["): UInt8(ascii: "_")
    default: ASCII.lowercased(byte)
    }
  }

  private static func isBracket(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "[") || byte == UInt8(ascii: "]")
  }

  private static func isPassedOver(_ byte: UInt8) -> Bool {
    isBracket(byte) || byte == UInt8(ascii: " ") || byte == UInt8(ascii: "?")
  }
}
