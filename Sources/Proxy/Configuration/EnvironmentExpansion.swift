/// Puts values of the environment into strings of policies.json: `${NAME}` and `${NAME:-default}`.
///
/// A default also stands in for an empty value, as in a shell. A name that is unset and has no
/// default is an error: a gateway that starts with an empty origin or token is worse than one that
/// does not start. A `$` without a brace is a plain character. Pure: it is given the environment.
enum EnvironmentExpansion {
  /// A piece of a string of the file.
  enum Part: Equatable {
    case literal(String)
    case variable(name: String, fallback: String?)

    /// As the file has it.
    var source: String {
      switch self {
      case .literal(let text): text
      case .variable(let name, let fallback):
        fallback.map { "${\(name):-\($0)}" } ?? "${\(name)}"
      }
    }
  }

  static func parts(_ text: String) throws(ValueError) -> [Part] {
    var parts: [Part] = []
    var rest = text[...]
    while let opening = rest.firstRange(of: "${") {
      if opening.lowerBound > rest.startIndex {
        parts.append(.literal(String(rest[..<opening.lowerBound])))
      }
      guard let closing = rest[opening.upperBound...].firstIndex(of: "}") else {
        throw ValueError(message: "\"${\" is not closed by \"}\"")
      }
      let content = rest[opening.upperBound..<closing]
      rest = rest[rest.index(after: closing)...]
      let separator = content.firstRange(of: ":-")
      let name = String(content[..<(separator?.lowerBound ?? content.endIndex)])
      guard isName(name) else {
        throw ValueError(
          message: "\"${\(content)}\" is neither \"${NAME}\" nor \"${NAME:-default}\"")
      }
      parts.append(
        .variable(name: name, fallback: separator.map { String(content[$0.upperBound...]) }))
    }
    if !rest.isEmpty { parts.append(.literal(String(rest))) }
    return parts
  }

  /// The string with every variable's value, and those values.
  static func expand(
    _ parts: [Part], _ environment: [String: String]
  ) throws(ValueError) -> (text: String, values: [String]) {
    var text = ""
    var values: [String] = []
    for part in parts {
      guard case .variable(let name, let fallback) = part else {
        text += part.source
        continue
      }
      let value = environment[name]
      if let value, !value.isEmpty || fallback == nil {
        text += value
        values.append(value)
      } else if let fallback {
        text += fallback
      } else {
        throw ValueError(
          message: "the environment has no \(name), and \"${\(name)}\" has no default")
      }
    }
    return (text, values)
  }

  private static func isName(_ text: String) -> Bool {
    guard let first = text.utf8.first, first < UInt8(ascii: "0") || first > UInt8(ascii: "9")
    else { return false }
    return text.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
        true
      default: false
      }
    }
  }
}

/// A string of the file that names variables, and what they made of it.
///
/// What the environment holds is nobody's to read in a log: a diagnostic shows the file's text in
/// place of the value, and of pieces that a parser quotes.
struct ExpandedText: Sendable, Equatable {
  /// As the file has it.
  var source: String
  var value: String
  /// The variables' own values.
  var variableValues: [String]

  /// The message without the value and without quoted pieces of it.
  func redacted(_ message: String) -> String {
    guard !variableValues.isEmpty else { return message }
    let whole = "\"\(value)\""
    let marked = "\"\u{0}\""
    var pieces = (value.isEmpty ? message : message.replacing(whole, with: marked))
      .split(separator: "\"", omittingEmptySubsequences: false).map(String.init)
    // A value that holds a quote leaves no telling where a quoted piece ends.
    guard !value.contains("\"") else { return "\"\(source)\": the environment's value is refused" }
    for index in pieces.indices where !index.isMultiple(of: 2) {
      if pieces[index] == "\u{0}" {
        pieces[index] = source
      } else if isPiece(pieces[index]) {
        pieces[index] = "…"
      }
    }
    return pieces.joined(separator: "\"")
  }

  private func isPiece(_ quoted: String) -> Bool {
    let lowered = quoted.lowercased()
    guard lowered.contains(where: { $0.isLetter || $0.isNumber }) else { return false }
    if value.lowercased().contains(lowered) { return true }
    return variableValues.contains { $0.count >= 2 && lowered.contains($0.lowercased()) }
  }
}
