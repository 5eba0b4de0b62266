/// Writes a recipe's `headers` and `cookies` into a request's key.
extension KeyRecipe {
  enum Presence {
    static let absent: UInt8 = 0
    static let clear: UInt8 = 1
    static let digest: UInt8 = 2
  }

  /// Appends a part for each of `headers` and `cookies`: its name, whether it is there (absent and
  /// empty differ), and its values.
  ///
  /// `fields` are the request's own. `digest` is a keyed hash (HMAC) with the store's secret: the
  /// values of cookies, and of fields whose name says that they are credentials, go through it, so
  /// that no key holds them in clear. The names are in the key because a reload of policies.json
  /// may give a route other ones and keeps the store.
  public func append(
    headersOf fields: Fields, to key: inout [UInt8], digest: (Span<UInt8>) -> [UInt8]
  ) {
    for name in headers {
      let part = RequestPart(header: name, of: fields)
      let isSecret = Self.isCredential(name)
      Self.append(name, part, isSecret: isSecret, to: &key, digest: digest)
    }
    for name in cookies {
      let part = RequestPart(cookie: name, of: fields)
      Self.append(name, part, isSecret: true, to: &key, digest: digest)
    }
  }

  private static func append(
    _ name: String, _ part: RequestPart, isSecret: Bool, to key: inout [UInt8],
    digest: (Span<UInt8>) -> [UInt8]
  ) {
    let nameBytes = Array(name.utf8)
    CacheKey.append(part: nameBytes.span, to: &key)
    guard !part.bytes.isEmpty else {
      key.append(Presence.absent)
      return
    }
    key.append(isSecret ? Presence.digest : Presence.clear)
    let value = isSecret ? digest(part.bytes.span) : part.bytes
    CacheKey.append(part: value.span, to: &key)
  }

  /// Whether a field's name says that its value is a secret. Too often yes costs a hash.
  public static func isCredential(_ name: String) -> Bool {
    let words = ["auth", "cookie", "token", "secret", "key", "session", "password", "credential"]
    let lowercase = name.lowercased()
    return words.contains { lowercase.contains($0) }
  }
}
