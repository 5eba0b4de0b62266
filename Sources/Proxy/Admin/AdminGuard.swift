internal import CachePolicy

/// Whether a call of the admin listener may be carried out: the token, and for calls that change
/// something also that no web page sent it.
///
/// A browser on the operator's machine reaches the admin listener, and sends a form or a plain POST
/// there for any page that asks it to, without asking back. So what changes something is refused
/// with a form's content types (which are all that a page may send unasked) and with an `Origin`
/// that is not an address of this machine: a name could be the page's own, made to lead here (DNS
/// rebinding). For the same reason a listener of this machine alone that has no token answers by
/// address only.
enum AdminGuard {
  enum Refusal: Equatable {
    case token
    case origin(String)
    case contentType(String)
    case host(String)

    var problem: Problem {
      switch self {
      case .token:
        Problem(
          status: 401, detail: "the admin token is missing or wrong",
          fields: [("WWW-Authenticate", "Bearer")])
      case .origin(let text):
        Problem(status: 403, detail: "calls from web pages are refused; this one is from \(text)")
      case .host(let text):
        Problem(
          status: 403,
          detail: "\(text) is no address of this machine; a name may be a web page's own: ask by "
            + "127.0.0.1 or localhost, or give the listener a token")
      case .contentType(let text):
        Problem(
          status: 415,
          detail: "a form's content type (\(text)) is refused; send no body, or application/json")
      }
    }
  }

  /// nil: it may. `isPrivate`: it tells of more than counts, or changes something.
  static func refusal(
    of head: RequestHead, isPrivate: Bool, _ admin: Configuration.Admin
  ) -> Refusal? {
    if let token = admin.token {
      if !holds(token, head) { return .token }
    } else if isPrivate, admin.listen.allSatisfy({ AddressParsing.isLoopback($0.host) }) {
      let authority = String(decoding: head.authority, as: UTF8.self)
      if !authority.isEmpty, !isAddressOrLocal(authority) { return .host(authority) }
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
