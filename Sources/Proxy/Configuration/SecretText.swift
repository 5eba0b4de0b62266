/// Shows a secret value of the configuration as the file has it, without the secret.
///
/// `${NAME}` stays, since the name is no secret; what stands literally in the file is shown as
/// `${REDACTED}`, which nobody's environment has: a configuration that was printed with a secret in
/// it does not load by mistake. Called by the rows' printing.
enum SecretText {
  static let placeholder = "${REDACTED}"

  /// `source`: the file's text where it names variables.
  static func shown(_ value: String, source: String?, _ secrecy: Secrecy) -> String {
    switch secrecy {
    case .open: value
    case .fromEnvironment: source ?? value
    case .whole: source.map(masked) ?? placeholder
    case .credentials: withoutCredentials(source ?? value)
    }
  }

  /// Variables stay, without defaults that say something; the rest is masked.
  private static func masked(_ source: String) -> String {
    // A text that cannot be taken apart is masked as a whole.
    guard let parts = try? EnvironmentExpansion.parts(source) else { return placeholder }
    return parts.map { part in
      switch part {
      case .literal: placeholder
      case .variable(let name, let fallback): fallback == "" ? part.source : "${\(name)}"
      }
    }.joined()
  }

  /// A URL without what stands before `@`.
  private static func withoutCredentials(_ source: String) -> String {
    // A text that cannot be taken apart is masked as a whole.
    guard let parts = try? EnvironmentExpansion.parts(source) else { return placeholder }
    let text = parts.map { part in
      guard case .variable(let name, let fallback?) = part, fallback.contains("@") else {
        return part.source
      }
      return "${\(name)}"
    }.joined()
    guard let at = text.lastIndex(of: "@") else { return text }
    let start = text.firstRange(of: "://")?.upperBound ?? text.startIndex
    guard start < at else { return text }
    return text[..<start] + masked(String(text[start..<at])) + text[at...]
  }
}
