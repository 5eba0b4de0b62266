/// Whose copies a route keeps apart (`perUser`): what of a request says who the user is.
///
/// It refuses fields that cannot say so: those that Larder makes, changes or drops, those of one
/// connection, and every one that holds an address, since many users share one and anybody can
/// claim one. Made by the reading of policies.json; called by whoever writes a request's key. A
/// request without the identity is not cached.
public enum UserIdentity: Sendable, Equatable, CustomStringConvertible {
  /// A request field, its name in lower case.
  case header(String)
  case cookie(String)

  /// Reads `header:NAME` or `cookie:NAME`.
  public init(parsing source: String) throws(UserIdentityError) {
    guard let colon = source.firstIndex(of: ":") else { throw .unknownKind(source) }
    let name = String(source[source.index(after: colon)...])
    let bytes = Array(name.utf8)
    switch source[..<colon] {
    case "header":
      guard ASCII.isToken(bytes.span) else { throw .badName(name) }
      if Self.isAddress(name) { throw .address(name) }
      if Self.isOurs(bytes) { throw .fieldOfTheProxy(name) }
      self = .header(name.lowercased())
    case "cookie":
      guard ASCII.isToken(bytes.span) else { throw .badName(name) }
      self = .cookie(name)
    default: throw .unknownKind(source)
    }
  }

  /// As policies.json has it, the name of a field in lower case.
  public var description: String {
    switch self {
    case .header(let name): "header:\(name)"
    case .cookie(let name): "cookie:\(name)"
    }
  }

  /// Appends the identity as one part of a key. False, and nothing appended, where the request has
  /// none, or an empty one.
  ///
  /// `digest` is a keyed hash (HMAC) with the store's secret: it is given the identity's kind and
  /// name and all its values, and the key holds what it returns.
  public func append(
    identityOf fields: Fields, to key: inout [UInt8], digest: (Span<UInt8>) -> [UInt8]
  ) -> Bool {
    let part: RequestPart
    switch self {
    case .header(let name): part = RequestPart(header: name, of: fields)
    case .cookie(let name): part = RequestPart(cookie: name, of: fields)
    }
    guard part.hasValue else { return false }
    let name = Array(description.utf8)
    var material: [UInt8] = []
    CacheKey.append(part: name.span, to: &material)
    material += part.bytes
    let hash = digest(material.span)
    CacheKey.append(part: hash.span, to: &key)
    return true
  }

  // MARK: Fields that are refused

  private static func isAddress(_ name: String) -> Bool {
    let plain = name.lowercased().map { $0 == "_" ? "-" : $0 }
    let endings = ["-ip", "clientip", "-ipv6", "-addr", "-address", "forwarded-for"]
    return plain.elementsEqual("forwarded") || endings.contains { plain.hasSuffix($0) }
  }

  /// Fields that the origin gets otherwise than the client sent them, or not at all.
  private static func isOurs(_ name: [UInt8]) -> Bool {
    let plain = name.map { $0 == UInt8(ascii: "_") ? UInt8(ascii: "-") : ASCII.lowercased($0) }
    if let known = KnownField.lookup(plain.span) {
      switch known {
      case .host, .via, .contentLength, .expect, .larderStrategy, .maxForwards, .range, .ifMatch,
        .ifModifiedSince, .ifNoneMatch, .ifRange, .ifUnmodifiedSince:
        return true
      default:
        if known.isHopByHop { return true }
      }
    }
    let prefixes = [
      "x-forwarded-", "x-original-", "x-rewrite-", "x-http-method", "x-method-override",
    ]
    return prefixes.contains { plain.starts(with: $0.utf8) }
  }
}

extension [Character] {
  fileprivate func hasSuffix(_ ending: String) -> Bool {
    suffix(ending.count).elementsEqual(ending)
  }
}

/// Why an identity is refused; `message` is what policies.json's reader prints.
public enum UserIdentityError: Error, Sendable, Equatable {
  case unknownKind(String)
  case badName(String)
  case address(String)
  case fieldOfTheProxy(String)

  public var message: String {
    switch self {
    case .unknownKind(let text):
      "\"\(text)\" is no identity: \"header:NAME\" or \"cookie:NAME\", as in "
        + "\"header:Authorization\""
    case .badName(let text): "\"\(text)\" is no name of a field or cookie"
    case .address(let text):
      "\"\(text)\" says an address, and an address is never an identity: many users share one, and "
        + "anybody can claim one"
    case .fieldOfTheProxy(let text):
      "\"\(text)\" does not reach the origin as the client sent it, and so identifies nobody"
    }
  }
}
