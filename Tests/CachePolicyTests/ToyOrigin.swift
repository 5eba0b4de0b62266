/// Readers of queries as origins have them, as simple as can be, to hold `QueryFilter` against.
enum ToyOrigin: CaseIterable, Sendable {
  /// The URL standard: `&` parts.
  case ampersand
  /// HTML 4 and older frameworks: `;` parts as well.
  case semicolon
  /// Go: what has a `;` or a bad `%` is dropped.
  case strict
  /// PHP: spaces before a name go, it ends at NUL or a bracket, `.` and space become `_`; an empty
  /// name is none.
  case underscores
  /// qs of Express: the first pair of brackets, or what stands before it.
  case brackets
  /// ASP.NET: letters of any case.
  case anyCase

  struct Parameter: Hashable {
    var name: String
    var value: String
  }

  /// The parameters in the order of the query.
  func read(_ query: String) -> [Parameter] {
    let parts = query.split { $0 == "&" || (self == .semicolon && $0 == ";") }
    return parts.compactMap { part in
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = decoded(pair[0]), let value = decoded(pair.count > 1 ? pair[1] : "") else {
        return nil
      }
      if self == .strict, part.contains(";") { return nil }
      if self == .underscores, own(name).isEmpty { return nil }
      return Parameter(name: own(name), value: value)
    }
  }

  /// A name, decoded, as this origin looks it up.
  func own(_ name: String) -> String {
    switch self {
    case .ampersand, .semicolon, .strict: return name
    case .anyCase: return name.lowercased()
    case .underscores:
      let shown = name.drop { $0 == " " }.prefix { $0 != "\0" }
      let isList = shown.contains("]")
      let root = isList ? shown.prefix { $0 != "[" } : shown
      return String(root.map { " .[".contains($0) ? "_" : $0 })
    case .brackets:
      guard let open = name.firstIndex(of: "["), name[open...].contains("]") else { return name }
      if open > name.startIndex { return String(name[..<open]) }
      return String(name.dropFirst().prefix { $0 != "]" })
    }
  }

  private func decoded(_ text: Substring) -> String? {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%") {
        if let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16),
          rest.count >= 2
        {
          bytes.append(value)
          rest = rest.dropFirst(2)
          continue
        }
        if self == .strict { return nil }
      }
      bytes.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
