/// JSON that keeps the order of its keys, for files that people read and compare.
///
/// Foundation's writer sorts or shuffles them. Used for the schema; small, and writes only.
indirect enum OrderedJSON {
  case text(String)
  case integer(Int)
  case boolean(Bool)
  case list([OrderedJSON])
  case object([(String, OrderedJSON)])
  /// Text that is JSON already.
  case verbatim(String)

  /// Indented by two spaces, without a line end behind it.
  var formatted: String { formatted(indent: "") }

  private func formatted(indent: String) -> String {
    let inner = indent + "  "
    switch self {
    case .text(let text): return Self.quoted(text)
    case .integer(let value): return "\(value)"
    case .boolean(let value): return value ? "true" : "false"
    case .verbatim(let text): return text
    case .list(let elements):
      if elements.isEmpty { return "[]" }
      let flat = "[" + elements.map { $0.formatted(indent: "") }.joined(separator: ", ") + "]"
      if flat.utf8.count <= 80, !flat.contains("\n") { return flat }
      let lines = elements.map { inner + $0.formatted(indent: inner) }
      return "[\n" + lines.joined(separator: ",\n") + "\n\(indent)]"
    case .object(let members):
      if members.isEmpty { return "{}" }
      let lines = members.map { name, value in
        "\(inner)\(Self.quoted(name)): \(value.formatted(indent: inner))"
      }
      return "{\n" + lines.joined(separator: ",\n") + "\n\(indent)}"
    }
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      default:
        if scalar.value < 0x20 {
          let hex = String(scalar.value, radix: 16)
          result += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
        } else {
          result.unicodeScalars.append(scalar)
        }
      }
    }
    return result + "\""
  }
}
