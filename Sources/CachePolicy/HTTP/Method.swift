/// The request methods that the proxy tells apart; any other is `.other` and is only passed on.
///
/// Method names are case-sensitive (RFC 9110 §9.1): `get` is not GET. Called by the request
/// parser, `RouteTable`, Storability and Invalidation.
public enum Method: UInt8, Sendable, CaseIterable {
  case get, head, post, put, patch, delete, options, connect, trace
  /// Not of any RFC: names by which caches are told to drop copies. Refused on public listeners.
  case purge, ban
  case other

  public static func lookup(_ name: Span<UInt8>) -> Method {
    switch name.count {
    case 3:
      if equals(name, "GET") { return .get }
      if equals(name, "PUT") { return .put }
      if equals(name, "BAN") { return .ban }
    case 4:
      if equals(name, "HEAD") { return .head }
      if equals(name, "POST") { return .post }
    case 5:
      if equals(name, "PATCH") { return .patch }
      if equals(name, "TRACE") { return .trace }
      if equals(name, "PURGE") { return .purge }
    case 6: if equals(name, "DELETE") { return .delete }
    case 7:
      if equals(name, "OPTIONS") { return .options }
      if equals(name, "CONNECT") { return .connect }
    default: break
    }
    return .other
  }

  /// The name on the wire; `.other` has none of its own and gives the empty string.
  public var name: String {
    switch self {
    case .get: "GET"
    case .head: "HEAD"
    case .post: "POST"
    case .put: "PUT"
    case .patch: "PATCH"
    case .delete: "DELETE"
    case .options: "OPTIONS"
    case .connect: "CONNECT"
    case .trace: "TRACE"
    case .purge: "PURGE"
    case .ban: "BAN"
    case .other: ""
    }
  }

  /// RFC 9110 §9.2.1. A method that is not known counts as unsafe.
  public var isSafe: Bool {
    switch self {
    case .get, .head, .options, .trace: true
    default: false
    }
  }

  /// RFC 9110 §9.2.2: whether sending the request once more is harmless.
  public var isIdempotent: Bool { isSafe || self == .put || self == .delete }

  private static func equals(_ name: Span<UInt8>, _ literal: StaticString) -> Bool {
    guard name.count == literal.utf8CodeUnitCount else { return false }
    // SAFETY: a StaticString literal lives for the whole program, and the counts are equal.
    let bytes = unsafe literal.utf8Start
    for index in name.indices where unsafe name[index] != bytes[index] { return false }
    return true
  }
}
