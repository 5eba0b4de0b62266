internal import CachePolicy

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Reads the addresses of policies.json: where to listen, and the URLs of origins and proxies.
///
/// Listen addresses are literals (and `localhost`, which is 127.0.0.1): a listener must not depend
/// on a name server. An upstream's URL has a scheme, a host, perhaps a port and a base path, and
/// nothing else: no user, no query, no fragment. Pure; called by the decoding.
enum AddressParsing {
  struct UpstreamURL: Equatable {
    var scheme: Upstream.Scheme
    var host: String
    var port: UInt16
    var basePath: String
  }

  static func listenAddress(
    _ text: String
  ) throws(ValueError) -> Configuration.ListenAddress {
    guard let (host, portText) = splitPort(text), let portText else {
      throw ValueError(
        message: "\"\(text)\": an address and a port, as in \"127.0.0.1:8080\" or \"[::1]:8080\"")
    }
    guard let port = port(portText) else {
      throw ValueError(message: "\"\(text)\": a port is a number from 0 to 65535")
    }
    if host.isEmpty {
      throw ValueError(
        message: "\"\(text)\": which address? \"0.0.0.0:\(port)\" listens on all of IPv4, "
          + "\"127.0.0.1:\(port)\" on this machine alone")
    }
    if host == "localhost" { return Configuration.ListenAddress(host: "127.0.0.1", port: port) }
    guard isAddress(host) else {
      throw ValueError(message: "\"\(text)\": listens on an address, not on a name")
    }
    return Configuration.ListenAddress(host: host, port: port)
  }

  static func upstreamURL(_ whole: String) throws(ValueError) -> UpstreamURL {
    let text = withoutCredentials(whole)
    guard let separator = whole.firstRange(of: "://"),
      let scheme = Upstream.Scheme(rawValue: whole[..<separator.lowerBound].lowercased())
    else {
      throw ValueError(message: "\"\(text)\": a URL that starts with \"http://\" or \"https://\"")
    }
    let rest = whole[separator.upperBound...]
    guard !rest.contains("?"), !rest.contains("#") else {
      throw ValueError(message: "\"\(text)\": an upstream's URL has no query and no fragment")
    }
    let pathStart = rest.firstIndex(of: "/") ?? rest.endIndex
    let authority = String(rest[..<pathStart])
    guard !authority.contains("@") else {
      throw ValueError(message: "an upstream's URL has no user and no password")
    }
    guard let (host, portText) = splitPort(authority), !host.isEmpty, isHost(host) else {
      throw ValueError(message: "\"\(text)\": \"\(authority)\" is no host")
    }
    var number = scheme.defaultPort
    if let portText {
      guard let given = port(portText), given > 0 else {
        throw ValueError(message: "\"\(text)\": a port is a number from 1 to 65535")
      }
      number = given
    }
    return UpstreamURL(
      scheme: scheme, host: host.lowercased(), port: number,
      basePath: try basePath(String(rest[pathStart...]), of: text))
  }

  /// A proxy's URL as libcurl takes it; nil for `none`.
  static func proxyURL(_ text: String) throws(ValueError) -> String? {
    if text == "none" { return nil }
    let schemes = ["http://", "https://", "socks5://", "socks5h://"]
    guard let scheme = schemes.first(where: { text.hasPrefix($0) }),
      let authority = text.dropFirst(scheme.count).split(separator: "/").first,
      let address = splitPort(String(authority.split(separator: "@").last ?? "")),
      isHost(address.host), address.port.map({ port($0) != nil }) ?? true
    else {
      throw ValueError(
        message: "\"none\", or a URL that starts with \(schemes.joined(separator: ", "))")
    }
    return text
  }

  /// A URL as an error may quote it: what stands before `@` may be a password.
  private static func withoutCredentials(_ url: String) -> String {
    guard let at = url.lastIndex(of: "@") else { return url }
    let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
    return start < at ? "\(url[..<start])…\(url[at...])" : url
  }

  /// Whether only this machine can reach the address.
  static func isLoopback(_ host: String) -> Bool { host.hasPrefix("127.") || host == "::1" }

  private static func basePath(_ path: String, of text: String) throws(ValueError) -> String {
    var normal: [UInt8] = []
    let bytes = Array(path.utf8)
    guard !bytes.isEmpty else { return "" }
    switch PathNormalization.normalize(bytes.span, into: &normal) {
    case .unchanged: normal = bytes
    case .rewritten: break
    case .refused: throw ValueError(message: "\"\(text)\": \"\(path)\" is no path")
    }
    while normal.last == UInt8(ascii: "/") { normal.removeLast() }
    return String(decoding: normal, as: UTF8.self)
  }

  /// The host without brackets, and what stands behind its colon; nil where brackets do not close.
  private static func splitPort(_ text: String) -> (host: String, port: String?)? {
    if text.hasPrefix("[") {
      guard let closing = text.firstIndex(of: "]") else { return nil }
      let host = String(text[text.index(after: text.startIndex)..<closing])
      let rest = text[text.index(after: closing)...]
      guard host.contains(":"), rest.isEmpty || rest.hasPrefix(":") else { return nil }
      return (host, rest.isEmpty ? nil : String(rest.dropFirst()))
    }
    guard let colon = text.firstIndex(of: ":") else { return (text, nil) }
    return (String(text[..<colon]), String(text[text.index(after: colon)...]))
  }

  private static func port(_ text: String) -> UInt16? {
    guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
    return UInt16(text)
  }

  private static func isAddress(_ text: String) -> Bool {
    var fourBytes = in_addr()
    var sixteenBytes = in6_addr()
    return inet_pton(AF_INET, text, &fourBytes) == 1
      || inet_pton(AF_INET6, text, &sixteenBytes) == 1
  }

  /// An address literal, or labels of letters, digits, `-` and `_`.
  private static func isHost(_ text: String) -> Bool {
    if text.contains(":") { return isAddress(text) }
    guard !text.isEmpty, text.utf8.count <= 253 else { return false }
    return text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
      !label.isEmpty
        && label.utf8.allSatisfy { byte in
          switch byte {
          case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
          default: false
          }
        }
    }
  }
}
