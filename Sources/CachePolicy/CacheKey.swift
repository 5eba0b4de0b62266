/// Writes the whole cache key of a request, and reads its parts: they are length-prefixed, so that
/// no crafted URL can meet another's key.
///
/// The parts in their order: the upstream's name, the authority that the client asked for (lower
/// case, default port removed) and the path as matched; then the query byte for byte, behind a
/// `?`, which tells no query from an empty one; then whatever else tells copies apart, each behind
/// a byte of its own. Written by the repository for each request; read by the store, which purges
/// by path, and by who explains a copy.
public enum CacheKey {
  /// Appends one part: its length in four bytes, then its bytes.
  @inlinable
  public static func append(part: Span<UInt8>, to key: inout [UInt8]) {
    appendLength(part.count, to: &key)
    // SAFETY: the span outlives the call, and the array copies before it returns.
    unsafe part.withUnsafeBufferPointer { unsafe key.append(contentsOf: $0) }
  }

  /// Appends the authority as a part: lower case, without the scheme's default port.
  @inlinable
  public static func append(
    authority: Span<UInt8>, defaultPort: StaticString, to key: inout [UInt8]
  ) {
    let count = lengthWithoutPort(authority, defaultPort)
    append(part: authority.extracting(0..<count), to: &key)
    for index in key.count - count..<key.count { key[index] = ASCII.lowercased(key[index]) }
  }

  /// Where the parts of a whole key lie in it.
  public struct Parts: Sendable, Equatable {
    public let upstream: Range<Int>
    public let authority: Range<Int>
    public let path: Range<Int>
    /// nil: the request had none, not even an empty one.
    public let query: Range<Int>?
    /// All that comes behind: fields, cookies, the user. What it says is known to its writer only.
    public let further: Range<Int>

    /// Nil where the bytes are no whole key.
    public init?(_ wholeKey: Span<UInt8>) {
      var offset = 0
      guard let upstream = Self.part(wholeKey, &offset),
        let authority = Self.part(wholeKey, &offset), let path = Self.part(wholeKey, &offset)
      else { return nil }
      var query: Range<Int>?
      if offset < wholeKey.count, wholeKey[offset] == UInt8(ascii: "?") {
        offset += 1
        query = Self.part(wholeKey, &offset)
        if query == nil { return nil }
      }
      self.upstream = upstream
      self.authority = authority
      self.path = path
      self.query = query
      further = offset..<wholeKey.count
    }

    /// The part whose length stands at `offset`, which goes behind it.
    static func part(_ key: Span<UInt8>, _ offset: inout Int) -> Range<Int>? {
      guard key.count - offset >= 4 else { return nil }
      var count = 0
      for index in 0..<4 { count |= Int(key[offset + index]) << (8 * index) }
      let start = offset + 4
      guard count <= key.count - start else { return nil }
      offset = start + count
      return start..<offset
    }
  }

  @inlinable
  static func appendLength(_ count: Int, to key: inout [UInt8]) {
    var length = UInt32(truncatingIfNeeded: count).littleEndian
    // SAFETY: the four bytes of a local number, copied before the call returns.
    unsafe withUnsafeBytes(of: &length) { unsafe key.append(contentsOf: $0) }
  }

  /// How much of an authority is left when its default port is taken off (also an empty port).
  @inlinable
  public static func lengthWithoutPort(_ authority: Span<UInt8>, _ defaultPort: StaticString) -> Int
  {
    let digits = defaultPort.utf8CodeUnitCount
    let count = authority.count
    if count > 0, authority[count - 1] == 0x3A { return count - 1 }
    guard count > digits, authority[count - digits - 1] == 0x3A else { return count }
    let tail = authority.extracting(count - digits..<count)
    return ASCII.equalsIgnoringCase(tail, defaultPort) ? count - digits - 1 : count
  }
}
