/// The protocol version in which a message was received, as `Via` names it (RFC 9110 §7.6.3).
///
/// Only versions that a peer of ours can speak; a later minor version of HTTP/1 is read as 1.1, the
/// highest that is known (§2.5). Found by whoever reads a status line, kept beside a copy as a flag.
public enum ReceivedVersion: Sendable, CaseIterable {
  case http10
  case http11
  case http2

  /// `received-protocol`, without the protocol's name, which is HTTP.
  public var text: StaticString {
    switch self {
    case .http10: "1.0"
    case .http11: "1.1"
    case .http2: "2.0"
    }
  }
}

extension StoredFlags {
  /// The origin answered by HTTP/1.0; neither this nor the next: by HTTP/1.1.
  public static let receivedByHTTP10 = StoredFlags(rawValue: 1 << 14)
  public static let receivedByHTTP2 = StoredFlags(rawValue: 1 << 15)

  /// The version in which the origin last answered for this copy.
  public var receivedVersion: ReceivedVersion {
    get {
      if contains(.receivedByHTTP10) { return .http10 }
      return contains(.receivedByHTTP2) ? .http2 : .http11
    }
    set {
      subtract([.receivedByHTTP10, .receivedByHTTP2])
      switch newValue {
      case .http10: insert(.receivedByHTTP10)
      case .http11: break
      case .http2: insert(.receivedByHTTP2)
      }
    }
  }
}
