/// JSON that keeps the order of its keys, for files that people read and compare.
///
/// Foundation's writer sorts or shuffles them. Used for the schema and for what `larder config`
/// prints; small, and writes only.
indirect enum OrderedJSON: Sendable {
  case text(String)
  case integer(Int)
  case boolean(Bool)
  case list([OrderedJSON])
  case object([(String, OrderedJSON)])
  /// Text that is JSON already.
  case verbatim(String)

  /// As policies.json writes it: `"15m"`.
  static func duration(milliseconds: Int64) -> OrderedJSON {
    .text(Quantity.text(milliseconds: milliseconds))
  }

  /// As policies.json writes it: `"64MiB"`.
  static func size(bytes: UInt64) -> OrderedJSON { .text(Quantity.text(bytes: bytes)) }

  static func texts(_ texts: [String]) -> OrderedJSON { .list(texts.map(OrderedJSON.text)) }

  /// Indented by two spaces, without a line end behind it.
  var formatted: String {
    var result = ""
    append(to: &result, indent: "")
    return result
  }

  /// On one line.
  var compact: String {
    switch self {
    case .text(let text): return Self.quoted(text)
    case .integer(let value): return "\(value)"
    case .boolean(let value): return value ? "true" : "false"
    case .verbatim(let text): return text
    case .list(let elements):
      return "[" + elements.map(\.compact).joined(separator: ", ") + "]"
    case .object(let members):
      if members.isEmpty { return "{}" }
      let pairs = members.map { name, value in "\(Self.quoted(name)): \(value.compact)" }
      return "{ " + pairs.joined(separator: ", ") + " }"
    }
  }

  private func append(to result: inout String, indent: String) {
    let inner = indent + "  "
    switch self {
    case .list(let elements) where !elements.isEmpty:
      let isFlat = !elements.contains { if case .object = $0 { true } else { false } }
      let flat = isFlat ? compact : ""
      if isFlat, flat.utf8.count <= 80, !flat.contains("\n") {
        result += flat
        return
      }
      result += "[\n"
      for (index, element) in elements.enumerated() {
        result += inner
        element.append(to: &result, indent: inner)
        result += index < elements.count - 1 ? ",\n" : "\n"
      }
      result += "\(indent)]"
    case .object(let members) where !members.isEmpty:
      result += "{\n"
      for (index, member) in members.enumerated() {
        result += "\(inner)\(Self.quoted(member.0)): "
        member.1.append(to: &result, indent: inner)
        result += index < members.count - 1 ? ",\n" : "\n"
      }
      result += "\(indent)}"
    default: result += compact
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
        if scalar.value < 0x20 || scalar.value == 0x7F {
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
