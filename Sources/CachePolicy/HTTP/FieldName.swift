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
    // The length in the high byte, the first letter in the low one: so are the cases below.
    let lengthAndFirst = name.count << 8 | Int(ASCII.lowercased(name[0]))
    switch name.count {
    case 2...7: return lookupShort(name, lengthAndFirst)
    case 8...13: return lookupMedium(name, lengthAndFirst)
    case 14...25: return lookupLong(name, lengthAndFirst)
    default: return nil
    }
  }

  private static func lookupShort(_ name: Span<UInt8>, _ lengthAndFirst: Int) -> KnownField? {
    switch lengthAndFirst {
    case 0x02_74: return check(name, "te", .te)
    case 0x03_61: return check(name, "age", .age)
    case 0x03_76: return check(name, "via", .via)
    case 0x04_64: return check(name, "date", .date)
    case 0x04_65: return check(name, "etag", .eTag)
    case 0x04_68: return check(name, "host", .host)
    case 0x04_76: return check(name, "vary", .vary)
    case 0x05_61: return check(name, "allow", .allow)
    case 0x05_72: return check(name, "range", .range)
    case 0x06_61: return check(name, "accept", .accept)
    case 0x06_63: return check(name, "cookie", .cookie)
    case 0x06_65: return check(name, "expect", .expect)
    case 0x06_6F: return check(name, "origin", .origin)
    case 0x06_70: return check(name, "pragma", .pragma)
    case 0x06_73: return check(name, "server", .server)
    case 0x07_65: return check(name, "expires", .expires)
    case 0x07_74: return check(name, "trailer", .trailer)
    case 0x07_75: return check(name, "upgrade", .upgrade)
    case 0x07_77: return check(name, "warning", .warning)
    default: return nil
    }
  }

  private static func lookupMedium(_ name: Span<UInt8>, _ lengthAndFirst: Int) -> KnownField? {
    switch lengthAndFirst {
    case 0x08_69:
      return check(name, "if-match", .ifMatch)
        ?? check(name, "if-range", .ifRange)
    case 0x08_6C: return check(name, "location", .location)
    case 0x09_63: return check(name, "cache-tag", .cacheTag)
    case 0x09_66: return check(name, "forwarded", .forwarded)
    case 0x0A_63: return check(name, "connection", .connection)
    case 0x0A_6B: return check(name, "keep-alive", .keepAlive)
    case 0x0A_73: return check(name, "set-cookie", .setCookie)
    case 0x0A_75: return check(name, "user-agent", .userAgent)
    case 0x0B_72: return check(name, "retry-after", .retryAfter)
    case 0x0C_63:
      return check(name, "cache-status", .cacheStatus)
        ?? check(name, "content-type", .contentType)
    case 0x0C_6D: return check(name, "max-forwards", .maxForwards)
    case 0x0D_61:
      return check(name, "accept-ranges", .acceptRanges)
        ?? check(name, "authorization", .authorization)
    case 0x0D_63:
      return check(name, "cache-control", .cacheControl)
        ?? check(name, "content-range", .contentRange)
    case 0x0D_69: return check(name, "if-none-match", .ifNoneMatch)
    case 0x0D_6C: return check(name, "last-modified", .lastModified)
    case 0x0D_73: return check(name, "surrogate-key", .surrogateKey)
    default: return nil
    }
  }

  private static func lookupLong(_ name: Span<UInt8>, _ lengthAndFirst: Int) -> KnownField? {
    switch lengthAndFirst {
    case 0x0E_63: return check(name, "content-length", .contentLength)
    case 0x0E_68: return check(name, "http2-settings", .http2Settings)
    case 0x0F_61:
      return check(name, "accept-encoding", .acceptEncoding)
        ?? check(name, "accept-language", .acceptLanguage)
    case 0x0F_6C: return check(name, "larder-strategy", .larderStrategy)
    case 0x0F_78: return check(name, "x-forwarded-for", .xForwardedFor)
    case 0x10_63:
      return check(name, "content-encoding", .contentEncoding)
        ?? check(name, "content-language", .contentLanguage)
        ?? check(name, "content-location", .contentLocation)
    case 0x10_70: return check(name, "proxy-connection", .proxyConnection)
    case 0x10_77: return check(name, "www-authenticate", .wwwAuthenticate)
    case 0x10_78: return check(name, "x-forwarded-host", .xForwardedHost)
    case 0x11_69: return check(name, "if-modified-since", .ifModifiedSince)
    case 0x11_74: return check(name, "transfer-encoding", .transferEncoding)
    case 0x11_78: return check(name, "x-forwarded-proto", .xForwardedProto)
    case 0x12_70: return check(name, "proxy-authenticate", .proxyAuthenticate)
    case 0x13_69: return check(name, "if-unmodified-since", .ifUnmodifiedSince)
    case 0x13_70: return check(name, "proxy-authorization", .proxyAuthorization)
    case 0x19_70: return check(name, "proxy-authentication-info", .proxyAuthenticationInfo)
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
