public import CachePolicy

/// A request's head as it was parsed: one block of bytes, and ranges into it.
///
/// Reused from request to request (`fields` keeps its memory), so that parsing allocates nothing.
/// Written by `RequestParser`, read by everyone behind it. A reference, so that handing it on costs
/// nothing; who keeps it beyond the turn keeps a `copy()`.
public final class RequestHead: @unchecked Sendable {
  // @unchecked Sendable: a loop's own is written and read on its loop alone, and a copy is never
  // written again.

  /// How the request's body is delimited (RFC 9112 §6.3).
  public enum Framing: Sendable, Equatable {
    case none
    case length(UInt64)
    case chunked
  }

  public internal(set) var method: Method = .get
  /// The header fields; their `bytes` are the whole head, which all ranges here point into.
  public internal(set) var fields = Fields()
  var methodRange = 0..<0
  /// Absolute path, without the query; empty for `OPTIONS *`.
  var pathRange = 0..<0
  /// The query without its `?`; nil where there is no `?`.
  var queryRange: Range<Int>?
  /// The authority that the client asked for, port included; empty in HTTP/1.0 without Host.
  var authorityRange = 0..<0
  public internal(set) var minorVersion: UInt8 = 1
  public internal(set) var framing = Framing.none
  /// Whether the client lets the connection live on after the answer.
  public internal(set) var isPersistent = true
  /// Whether the client waits for 100 (Continue) before it sends its body.
  public internal(set) var expectsContinue = false
  /// The target is `*` (OPTIONS only).
  public internal(set) var isAsterisk = false

  public init() {}

  /// The head in memory of its own.
  func copy() -> RequestHead {
    let copy = RequestHead()
    copy.method = method
    copy.fields = fields.copy()
    copy.methodRange = methodRange
    copy.pathRange = pathRange
    copy.queryRange = queryRange
    copy.authorityRange = authorityRange
    copy.minorVersion = minorVersion
    copy.framing = framing
    copy.isPersistent = isPersistent
    copy.expectsContinue = expectsContinue
    copy.isAsterisk = isAsterisk
    return copy
  }

  public var hasBody: Bool { framing != .none && framing != .length(0) }
  public var methodToken: ArraySlice<UInt8> { fields.bytes[methodRange] }
  public var path: ArraySlice<UInt8> { fields.bytes[pathRange] }
  public var query: ArraySlice<UInt8>? { queryRange.map { fields.bytes[$0] } }
  public var authority: ArraySlice<UInt8> { fields.bytes[authorityRange] }
}

/// Why a request is refused before it reaches a route: the answer's status, and a word for it.
/// Source: the client.
public struct RequestRefusal: Error, Sendable, Equatable {
  public let status: UInt16
  public let reason: StaticString
  /// Whether the connection's framing is lost, so that it has to be closed.
  public let mustClose: Bool

  init(_ status: UInt16, _ reason: StaticString, mustClose: Bool = true) {
    self.status = status
    self.reason = reason
    self.mustClose = mustClose
  }

  public static func == (left: RequestRefusal, right: RequestRefusal) -> Bool {
    left.status == right.status && left.reason.description == right.reason.description
  }
}
