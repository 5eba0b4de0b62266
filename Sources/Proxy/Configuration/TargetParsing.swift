internal import CachePolicy

/// A request's target as policies.json writes it, in `tests` and `warm`: a path with its query
/// (`//admin` is a path), or an absolute URL.
///
/// Refuses what no client sends or the server answers 400 before it looks for a route. Pure; called
/// by the decoding and the checks.
struct RequestTarget: Equatable {
  /// Host and perhaps port in lower case; nil: the target is a path.
  var authority: String?
  /// In its normal form.
  var path: [UInt8]

  init(parsing text: String) throws(ValueError) {
    var rest = text[...]
    if let scheme = ["http://", "https://"].first(where: { text.lowercased().hasPrefix($0) }) {
      rest = rest.dropFirst(scheme.count)
      let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
      let written = String(rest[..<end])
      if written.contains("@") {
        throw ValueError(message: "a URL here has no user and no password")
      }
      authority = try AddressParsing.authority(written, of: text, scheme: scheme)
      rest = rest[end...]
    } else if !text.hasPrefix("/") {
      throw ValueError(
        message: "\"\(text)\": a path, which starts with \"/\", or a URL that starts with "
          + "\"http://\" or \"https://\"")
    }
    if rest.contains("#") { throw ValueError(message: "\"\(text)\": a request has no fragment") }
    let pathEnd = rest.firstIndex(of: "?") ?? rest.endIndex
    guard rest[pathEnd...].utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw ValueError(
        message: "\"\(text)\": a space, a control or a character beyond ASCII must be "
          + "percent-encoded in a query")
    }
    let written = Array(rest[..<pathEnd].utf8)
    let whole = written.isEmpty ? [UInt8(ascii: "/")] : written
    var normal: [UInt8] = []
    switch PathNormalization.normalize(whole.span, into: &normal) {
    case .unchanged: path = whole
    case .rewritten: path = normal
    case .refused(let refusal):
      throw ValueError(
        message: "\"\(text)\": such a path is refused with 400 (\(refusal.rawValue))")
    }
  }
}

extension AddressParsing {
  /// Host and port of a URL, in lower case, without the scheme's own port.
  static func authority(
    _ written: String, of text: String, scheme: String
  ) throws(ValueError) -> String {
    let url = try upstreamURL("\(scheme)\(written)")
    return Upstream(name: "", scheme: url.scheme, host: url.host, port: url.port).authority
  }

  /// The authority by which apps reach the proxy: `http://host[:port]`.
  static func publicURL(_ text: String) throws(ValueError) -> String {
    guard text.lowercased().hasPrefix("http://") else {
      throw ValueError(message: "\"\(text)\": a URL that starts with \"http://\"")
    }
    var written = text.dropFirst("http://".count)
    if written.contains("@") {
      throw ValueError(message: "a public URL has no user and no password")
    }
    if written.hasSuffix("/") { written = written.dropLast() }
    guard !written.contains(where: { "/?#".contains($0) }) else {
      throw ValueError(message: "\"\(text)\": a public URL is \"http://host[:port]\", no more")
    }
    return try authority(String(written), of: text, scheme: "http://")
  }

  /// A method and a target, as a policy test has them.
  static func request(_ text: String) throws(ValueError) -> (method: String, target: String) {
    let parts = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else {
      throw ValueError(
        message: "\"\(text)\": a method, a space and a target, as in \"GET /articles/7\"")
    }
    let method = String(parts[0])
    guard FieldNameRules.isToken(method) else {
      throw ValueError(message: "\"\(method)\" is no method")
    }
    if method != method.uppercased() {
      throw ValueError(message: "methods are upper case, did you mean \"\(method.uppercased())\"?")
    }
    if ["CONNECT", "TRACE", "PURGE", "BAN"].contains(method) {
      throw ValueError(message: "\(method) is refused before any route is looked for")
    }
    let target = String(parts[1])
    _ = try RequestTarget(parsing: target)
    return (method, target)
  }
}
