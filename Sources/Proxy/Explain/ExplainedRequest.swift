/// The request that somebody asks about: on the command line, or of the admin listener.
///
/// Refuses what is no question at all (a method of lower case, a URL that is neither a path nor
/// absolute, a header without a colon). What a client may send and the proxy refuses is a question
/// like any other, and the refusal its answer.
public struct ExplainedRequest: Sendable, Equatable {
  public let method: String
  /// A path with its query (`//admin` is a path), or an absolute URL.
  public let target: String
  public let headers: [PolicyTest.HeaderLine]

  /// `headers` are lines: `Name: value`.
  init(method: String = "GET", target: String, headers: [String] = []) throws(ValueError) {
    guard FieldNameRules.isToken(method) else {
      throw ValueError(message: "\"\(method)\" is no method")
    }
    if method != method.uppercased() {
      throw ValueError(message: "methods are upper case, did you mean \"\(method.uppercased())\"?")
    }
    self.method = method
    self.target = try Self.checked(target)
    var lines: [PolicyTest.HeaderLine] = []
    for text in headers { lines.append(try Self.line(text)) }
    self.headers = lines
  }

  /// The head as the server's own parser reads it. `authority`: of a target that is a path.
  func head(authority: String) throws(RequestRefusal) -> RequestHead {
    try SyntheticRequest.head(
      method: method, target: target, authority: authority,
      headers: headers.map { ($0.name, $0.value) })
  }

  private static func checked(_ target: String) throws(ValueError) -> String {
    let scheme = ["http://", "https://"].first { target.lowercased().hasPrefix($0) }
    guard scheme != nil || target.hasPrefix("/") else {
      throw ValueError(
        message: "\"\(target)\": a path, which starts with \"/\", or a URL that starts with "
          + "\"http://\" or \"https://\"")
    }
    if let scheme {
      let authority = target.dropFirst(scheme.count).prefix { !"/?#".contains($0) }
      if authority.contains("@") {
        throw ValueError(message: "a URL here has no user and no password")
      }
    }
    if target.contains("#") {
      throw ValueError(message: "\"\(target)\": a request has no fragment")
    }
    guard target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw ValueError(
        message: "\"\(target)\": a space, a control or a character beyond ASCII must be "
          + "percent-encoded in a URL")
    }
    return target
  }

  /// The value is not quoted in a message: it may be a secret.
  private static func line(_ text: String) throws(ValueError) -> PolicyTest.HeaderLine {
    guard let colon = text.firstIndex(of: ":") else {
      throw ValueError(message: "a header is \"Name: value\", and this one has no colon")
    }
    let name = String(text[..<colon])
    guard FieldNameRules.isToken(name) else {
      throw ValueError(message: "\"\(name)\" is no field name")
    }
    let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
    // RFC 9110 §5.5: no control but the tab.
    if value.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) {
      throw ValueError(message: "\(name): a field's value holds no control character")
    }
    return PolicyTest.HeaderLine(name: name, value: String(value))
  }
}
