internal import CachePolicy

/// Whether a call of the admin listener may be carried out: the token, and for calls that change
/// something also that no web page sent it.
///
/// A browser on the operator's machine reaches the admin listener, and sends a form or a plain POST
/// there for any page that asks it to, without asking back. So what changes something is refused
/// with a form's content types (which are all that a page may send unasked) and with an `Origin`
/// that is not an address of this machine: a name could be the page's own, made to lead here. By
/// such a name a page may also read; where neither a token nor an address that is open to other
/// machines lets one think that names are meant, a `Host` that is one is refused.
enum AdminGuard {
  enum Refusal: Equatable {
    case token
    case host(String)
    case origin(String)
    case contentType(String)

    var problem: Problem {
      switch self {
      case .token:
        Problem(
          status: 401, detail: "the admin token is missing or wrong",
          fields: [("WWW-Authenticate", "Bearer")])
      case .host(let text):
        Problem(
          status: 403,
          detail: "without admin.token this is served by an IP address or localhost, not as \(text)"
        )
      case .origin(let text):
        Problem(status: 403, detail: "calls from web pages are refused; this one is from \(text)")
      case .contentType(let text):
        Problem(
          status: 415,
          detail: "a form's content type (\(text)) is refused; send no body, or application/json")
      }
    }
  }

  /// nil: it may. `isOpen`: other machines reach the listener.
  static func refusal(of head: RequestHead, token: String?, isOpen: Bool) -> Refusal? {
    if let token, !holds(token, head) { return .token }
    let authority = String(decoding: head.authority, as: UTF8.self)
    if token == nil, !isOpen, !authority.isEmpty, !isAddressOrLocal(authority) {
      return .host(authority)
    }
    if head.method.isSafe { return nil }
    for line in head.fields.lines {
      let name = String(decoding: head.fields.bytes[line.name], as: UTF8.self).lowercased()
      let value = String(decoding: head.fields.bytes[line.value], as: UTF8.self)
      switch name {
      case "origin" where !isOwn(value): return .origin(value)
      case "sec-fetch-site" where value != "same-origin" && value != "none": return .origin(value)
      case "content-type" where isForm(value): return .contentType(value)
      default: continue
      }
    }
    return nil
  }

  /// Compares in a time that does not depend on where the difference is.
  private static func holds(_ token: String, _ head: RequestHead) -> Bool {
    let expected = Array("bearer \(token)".utf8)
    var given = Array(head.fields.first(.authorization) ?? [])
    // The scheme's letters may be of either case (RFC 9110 §11.1).
    for index in given.indices.prefix(6) { given[index] = ASCII.lowercased(given[index]) }
    guard given.count == expected.count else { return false }
    return zip(given, expected).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
  }

  /// `http://127.0.0.1:8081`, `http://[::1]:8081`, `http://localhost:8081`.
  private static func isOwn(_ origin: String) -> Bool {
    guard origin.hasPrefix("http://"), let host = host(of: origin.dropFirst(7)) else {
      return false
    }
    return host == "localhost" || host == "127.0.0.1" || host == "[::1]"
  }

  /// No page is served under an address that is not its server's own, nor under these names.
  private static func isAddressOrLocal(_ authority: String) -> Bool {
    guard let host = host(of: authority[...]) else { return false }
    return host.hasPrefix("[") || host.allSatisfy { $0.isNumber || $0 == "." }
      || host == "localhost" || host.hasSuffix(".localhost")
  }

  /// The host in lower case, without a port; nil: it is neither.
  private static func host(of authority: Substring) -> String? {
    let end =
      authority.hasPrefix("[")
      ? authority.firstIndex(of: "]").map { authority.index(after: $0) }
      : authority.firstIndex(of: ":") ?? authority.endIndex
    guard let end else { return nil }
    let port = authority[end...]
    guard port.isEmpty || port.first == ":" && port.dropFirst().allSatisfy(\.isNumber) else {
      return nil
    }
    return authority[..<end].lowercased()
  }

  private static func isForm(_ contentType: String) -> Bool {
    let type = contentType.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
    return ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"].contains(type)
  }
}
