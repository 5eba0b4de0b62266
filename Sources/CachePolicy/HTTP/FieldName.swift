/// The header fields that the proxy acts on, each with a number of its own.
///
/// `lookup` turns a name as received into one of them, once for each line, so that everything
/// later compares small integers. A field that is not here is carried along untouched and found by
/// name. There are at most 64, since `Fields` keeps a bit for each. Called by `Fields`.
public enum KnownField: UInt8, Sendable, CaseIterable {
  case accept, acceptEncoding, acceptLanguage, acceptRanges, age, allow, authorization
  case cacheControl, cacheStatus, cacheTag, connection, contentEncoding, contentLanguage
  case contentLength, contentLocation, contentRange, contentType, cookie, date, eTag, expect
  case expires, forwarded, host, http2Settings, ifMatch, ifModifiedSince, ifNoneMatch, ifRange
  case ifUnmodifiedSince, keepAlive, larderStrategy, lastModified, location, maxForwards
  case origin, pragma, proxyAuthenticate, proxyAuthenticationInfo, proxyAuthorization
  case proxyConnection, range
  case retryAfter, server, setCookie, surrogateKey, te, trailer, transferEncoding, upgrade
  case userAgent, vary, via, warning, wwwAuthenticate, xForwardedFor, xForwardedHost
  case xForwardedProto

  /// The field of this name in any case, or nil. Allocates nothing.
  ///
  /// The length settles most names at once; equal lengths are told apart by their first byte.
  public static func lookup(_ name: Span<UInt8>) -> KnownField? {
    guard name.count >= 2 else { return nil }
    switch name.count {
    case 2...7: return lookupShort(name)
    case 8...13: return lookupMedium(name)
    case 14...25: return lookupLong(name)
    default: return nil
    }
  }

  private static func lookupShort(_ name: Span<UInt8>) -> KnownField? {
    let first = ASCII.lowercased(name[0])
    switch (name.count, first) {
    case (2, 0x74): return check(name, "te", .te)
    case (3, 0x61): return check(name, "age", .age)
    case (3, 0x76): return check(name, "via", .via)
    case (4, 0x64): return check(name, "date", .date)
    case (4, 0x65): return check(name, "etag", .eTag)
    case (4, 0x68): return check(name, "host", .host)
    case (4, 0x76): return check(name, "vary", .vary)
    case (5, 0x61): return check(name, "allow", .allow)
    case (5, 0x72): return check(name, "range", .range)
    case (6, 0x61): return check(name, "accept", .accept)
    case (6, 0x63): return check(name, "cookie", .cookie)
    case (6, 0x65): return check(name, "expect", .expect)
    case (6, 0x6F): return check(name, "origin", .origin)
    case (6, 0x70): return check(name, "pragma", .pragma)
    case (6, 0x73): return check(name, "server", .server)
    case (7, 0x65): return check(name, "expires", .expires)
    case (7, 0x74): return check(name, "trailer", .trailer)
    case (7, 0x75): return check(name, "upgrade", .upgrade)
    case (7, 0x77): return check(name, "warning", .warning)
    default: return nil
    }
  }

  private static func lookupMedium(_ name: Span<UInt8>) -> KnownField? {
    let first = ASCII.lowercased(name[0])
    switch (name.count, first) {
    case (8, 0x69):
      return check(name, "if-match", .ifMatch)
        ?? check(name, "if-range", .ifRange)
    case (8, 0x6C): return check(name, "location", .location)
    case (9, 0x63): return check(name, "cache-tag", .cacheTag)
    case (9, 0x66): return check(name, "forwarded", .forwarded)
    case (10, 0x63): return check(name, "connection", .connection)
    case (10, 0x6B): return check(name, "keep-alive", .keepAlive)
    case (10, 0x73): return check(name, "set-cookie", .setCookie)
    case (10, 0x75): return check(name, "user-agent", .userAgent)
    case (11, 0x72): return check(name, "retry-after", .retryAfter)
    case (12, 0x63):
      return check(name, "cache-status", .cacheStatus)
        ?? check(name, "content-type", .contentType)
    case (12, 0x6D): return check(name, "max-forwards", .maxForwards)
    case (13, 0x61):
      return check(name, "accept-ranges", .acceptRanges)
        ?? check(name, "authorization", .authorization)
    case (13, 0x63):
      return check(name, "cache-control", .cacheControl)
        ?? check(name, "content-range", .contentRange)
    case (13, 0x69): return check(name, "if-none-match", .ifNoneMatch)
    case (13, 0x6C): return check(name, "last-modified", .lastModified)
    case (13, 0x73): return check(name, "surrogate-key", .surrogateKey)
    default: return nil
    }
  }

  private static func lookupLong(_ name: Span<UInt8>) -> KnownField? {
    let first = ASCII.lowercased(name[0])
    switch (name.count, first) {
    case (14, 0x63): return check(name, "content-length", .contentLength)
    case (14, 0x68): return check(name, "http2-settings", .http2Settings)
    case (15, 0x61):
      return check(name, "accept-encoding", .acceptEncoding)
        ?? check(name, "accept-language", .acceptLanguage)
    case (15, 0x6C): return check(name, "larder-strategy", .larderStrategy)
    case (15, 0x78): return check(name, "x-forwarded-for", .xForwardedFor)
    case (16, 0x63):
      return check(name, "content-encoding", .contentEncoding)
        ?? check(name, "content-language", .contentLanguage)
        ?? check(name, "content-location", .contentLocation)
    case (16, 0x70): return check(name, "proxy-connection", .proxyConnection)
    case (16, 0x77): return check(name, "www-authenticate", .wwwAuthenticate)
    case (16, 0x78): return check(name, "x-forwarded-host", .xForwardedHost)
    case (17, 0x69): return check(name, "if-modified-since", .ifModifiedSince)
    case (17, 0x74): return check(name, "transfer-encoding", .transferEncoding)
    case (17, 0x78): return check(name, "x-forwarded-proto", .xForwardedProto)
    case (18, 0x70): return check(name, "proxy-authenticate", .proxyAuthenticate)
    case (19, 0x69): return check(name, "if-unmodified-since", .ifUnmodifiedSince)
    case (19, 0x70): return check(name, "proxy-authorization", .proxyAuthorization)
    case (25, 0x70): return check(name, "proxy-authentication-info", .proxyAuthenticationInfo)
    default: return nil
    }
  }

  @inline(__always)
  private static func check(
    _ name: Span<UInt8>, _ lowercase: StaticString, _ field: KnownField
  ) -> KnownField? {
    ASCII.equalsIgnoringCase(name, lowercase) ? field : nil
  }

  /// The name as the RFCs spell it.
  public var name: String {
    switch self {
    case .accept: "Accept"
    case .acceptEncoding: "Accept-Encoding"
    case .acceptLanguage: "Accept-Language"
    case .acceptRanges: "Accept-Ranges"
    case .age: "Age"
    case .allow: "Allow"
    case .authorization: "Authorization"
    case .cacheControl: "Cache-Control"
    case .cacheStatus: "Cache-Status"
    case .cacheTag: "Cache-Tag"
    case .connection: "Connection"
    case .contentEncoding: "Content-Encoding"
    case .contentLanguage: "Content-Language"
    case .contentLength: "Content-Length"
    case .contentLocation: "Content-Location"
    case .contentRange: "Content-Range"
    case .contentType: "Content-Type"
    case .cookie: "Cookie"
    case .date: "Date"
    case .eTag: "ETag"
    case .expect: "Expect"
    case .expires: "Expires"
    case .forwarded: "Forwarded"
    case .host: "Host"
    case .http2Settings: "HTTP2-Settings"
    case .ifMatch: "If-Match"
    case .ifModifiedSince: "If-Modified-Since"
    case .ifNoneMatch: "If-None-Match"
    case .ifRange: "If-Range"
    case .ifUnmodifiedSince: "If-Unmodified-Since"
    case .keepAlive: "Keep-Alive"
    case .larderStrategy: "Larder-Strategy"
    case .lastModified: "Last-Modified"
    case .location: "Location"
    case .maxForwards: "Max-Forwards"
    case .origin: "Origin"
    case .pragma: "Pragma"
    case .proxyAuthenticate: "Proxy-Authenticate"
    case .proxyAuthenticationInfo: "Proxy-Authentication-Info"
    case .proxyAuthorization: "Proxy-Authorization"
    case .proxyConnection: "Proxy-Connection"
    case .range: "Range"
    case .retryAfter: "Retry-After"
    case .server: "Server"
    case .setCookie: "Set-Cookie"
    case .surrogateKey: "Surrogate-Key"
    case .te: "TE"
    case .trailer: "Trailer"
    case .transferEncoding: "Transfer-Encoding"
    case .upgrade: "Upgrade"
    case .userAgent: "User-Agent"
    case .vary: "Vary"
    case .via: "Via"
    case .warning: "Warning"
    case .wwwAuthenticate: "WWW-Authenticate"
    case .xForwardedFor: "X-Forwarded-For"
    case .xForwardedHost: "X-Forwarded-Host"
    case .xForwardedProto: "X-Forwarded-Proto"
    }
  }

  /// Whether the field is meant for one connection only (RFC 9110 §7.6.1), named by `Connection`
  /// or not. HTTP2-Settings belongs to an upgrade that the proxy does not pass on (RFC 9113 §3.1).
  public var isHopByHop: Bool {
    switch self {
    case .connection, .keepAlive, .proxyConnection, .proxyAuthenticate, .proxyAuthenticationInfo,
      .proxyAuthorization, .te, .trailer, .transferEncoding, .upgrade, .http2Settings:
      true
    default: false
    }
  }

  /// The bit of this field in a set of fields.
  @inlinable
  var bit: UInt64 { 1 << UInt64(rawValue) }
}
