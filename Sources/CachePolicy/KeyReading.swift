/// Reads what a route adds to a key behind its target: fields, cookies, and the user.
///
/// The counterpart of `KeyRecipe.append` and `UserIdentity.append`, for a person who asks what a
/// key holds; nothing that serves calls it. It refuses what these two did not write.
extension CacheKey {
  /// Goes before the `queryRules` of a key whose query was filtered.
  public static let filterMark = UInt8(ascii: "f")

  /// A field or cookie of a key.
  public struct KeyedPart: Sendable, Equatable {
    public enum Value: Sendable, Equatable {
      /// The request has no such field or cookie.
      case absent
      /// The lines' values, byte for byte.
      case clear([[UInt8]])
      /// What stands for values that no key holds in clear.
      case digest([UInt8])
    }

    public var name: String
    public var value: Value
  }

  /// Everything behind a key's target.
  public struct Additions: Sendable, Equatable {
    /// First the recipe's fields, then its cookies.
    public var parts: [KeyedPart] = []
    /// The digest that stands for the user; nil: the copy is everybody's.
    public var identity: [UInt8]?
  }

  /// Nil where the key was not written as keys are.
  public static func additions(of wholeKey: Span<UInt8>) -> Additions? {
    guard let target = Parts(wholeKey) else { return nil }
    var offset = target.further.lowerBound
    var additions = Additions()
    if offset < wholeKey.count, wholeKey[offset] == filterMark {
      offset += 1 + KeyRecipe.queryRulesBytes
    }
    if offset + 1 < wholeKey.count, wholeKey[offset] == UInt8(ascii: "h") {
      let count = wholeKey[offset + 1]
      offset += 2
      for _ in 0..<count {
        guard let part = keyedPart(wholeKey, &offset) else { return nil }
        additions.parts.append(part)
      }
    }
    if offset < wholeKey.count, wholeKey[offset] == UInt8(ascii: "u") {
      offset += 1
      guard let identity = bytes(wholeKey, &offset) else { return nil }
      additions.identity = identity
    }
    return offset == wholeKey.count ? additions : nil
  }

  private static func keyedPart(_ key: Span<UInt8>, _ offset: inout Int) -> KeyedPart? {
    guard let name = bytes(key, &offset), offset < key.count else { return nil }
    let presence = key[offset]
    offset += 1
    let text = String(decoding: name, as: UTF8.self)
    if presence == KeyRecipe.Presence.absent { return KeyedPart(name: text, value: .absent) }
    guard let value = bytes(key, &offset) else { return nil }
    if presence == KeyRecipe.Presence.digest {
      return KeyedPart(name: text, value: .digest(value))
    }
    guard presence == KeyRecipe.Presence.clear, let values = RequestPart.values(of: value.span)
    else { return nil }
    return KeyedPart(name: text, value: .clear(values))
  }

  /// The part whose length stands at `offset`, which goes behind it.
  private static func bytes(_ key: Span<UInt8>, _ offset: inout Int) -> [UInt8]? {
    guard let range = Parts.part(key, &offset) else { return nil }
    return range.map { key[$0] }
  }
}

extension RequestPart {
  /// The values that the bytes of a part hold, whatever their kinds; nil where they are none.
  static func values(of bytes: Span<UInt8>) -> [[UInt8]]? {
    var values: [[UInt8]] = []
    var offset = 0
    while offset < bytes.count {
      offset += 1
      guard let range = CacheKey.Parts.part(bytes, &offset) else { return nil }
      values.append(range.map { bytes[$0] })
    }
    return values
  }
}
