/// Gathers what a request says under one field name or cookie name, for its key.
///
/// The bytes it makes are unambiguous: each value has its length before it and its kind before that.
/// Lines that the origin will not see because `Connection` names them are no lines (RFC 9110
/// §7.6.1). Called by `KeyRecipe` and `UserIdentity`.
struct RequestPart {
  private enum Kind {
    static let value: UInt8 = 1
    /// A line whose name has a `_` for a `-`: to origins behind CGI or WSGI it is the same field,
    /// to others it is none.
    static let variant: UInt8 = 2
    /// A whole Cookie line, where origins may differ in what the cookie is.
    static let cookieLine: UInt8 = 3
  }

  private(set) var bytes: [UInt8] = []
  /// Whether there is a line or cookie of just this name.
  private(set) var isPresent = false
  /// Whether one of these has a value, a pair of quotes not counted.
  private(set) var hasValue = false

  init(header name: String, of fields: Fields) {
    let wanted = Array(name.utf8)
    let all = fields.bytes.span
    let ending = fields.contains(.connection) ? fields.hopByHopLines() : []
    for (index, line) in fields.lines.enumerated() where !ending.contains(index) {
      let own = all.extracting(line.name)
      if ASCII.equalsIgnoringCase(own, wanted.span) {
        add(Kind.value, all, line.value)
      } else if Self.isVariant(own, of: wanted.span) {
        append(Kind.variant, all, line.value)
      }
    }
  }

  init(cookie name: String, of fields: Fields) {
    let all = fields.bytes.span
    for value in CookieHeader.values(of: name, in: fields) { add(Kind.value, all, value) }
    guard CookieHeader.isDoubtful(name, in: fields) else { return }
    for line in fields.lines where line.known == .cookie {
      append(Kind.cookieLine, all, line.value)
    }
  }

  private mutating func add(_ kind: UInt8, _ all: Span<UInt8>, _ value: Range<Int>) {
    append(kind, all, value)
    isPresent = true
    let quotes = UInt8(ascii: "\"")
    let isPairOfQuotes =
      value.count == 2 && all[value.lowerBound] == quotes && all[value.lowerBound + 1] == quotes
    if !value.isEmpty, !isPairOfQuotes { hasValue = true }
  }

  private mutating func append(_ kind: UInt8, _ all: Span<UInt8>, _ value: Range<Int>) {
    bytes.append(kind)
    CacheKey.append(part: all.extracting(value), to: &bytes)
  }

  private static func isVariant(_ own: Span<UInt8>, of wanted: Span<UInt8>) -> Bool {
    guard own.count == wanted.count else { return false }
    for index in own.indices {
      let (one, other) = (ASCII.lowercased(own[index]), ASCII.lowercased(wanted[index]))
      let isDash = one == UInt8(ascii: "_") || one == UInt8(ascii: "-")
      let isOtherDash = other == UInt8(ascii: "_") || other == UInt8(ascii: "-")
      if one != other, !(isDash && isOtherDash) { return false }
    }
    return true
  }
}
