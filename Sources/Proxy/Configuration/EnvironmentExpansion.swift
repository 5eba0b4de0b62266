/// Puts values of the environment into strings of policies.json: `${NAME}` and `${NAME:-default}`.
///
/// A default also stands in for an empty value, as in a shell. A name that is unset and has no
/// default is an error: a gateway that starts with an empty origin or token is worse than one that
/// does not start. A `$` without a brace is a plain character. Pure: it is given the environment.
enum EnvironmentExpansion {
  static func expand(
    _ text: String, _ environment: [String: String]
  ) throws(ValueError) -> String {
    var result = ""
    var rest = text[...]
    while let opening = rest.firstRange(of: "${") {
      result += rest[..<opening.lowerBound]
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
      let value = environment[name]
      if let separator {
        result +=
          value.flatMap { $0.isEmpty ? nil : $0 } ?? String(content[separator.upperBound...])
      } else if let value {
        result += value
      } else {
        throw ValueError(
          message: "the environment has no \(name), and \"${\(name)}\" has no default")
      }
    }
    return result + rest
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
