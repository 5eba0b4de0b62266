/// Writes the whole cache key of a request: length-prefixed parts, so that no crafted URL can meet
/// another's key.
///
/// The parts in their order: the upstream's name, the authority that the client asked for (lower
/// case, default port removed), the path as matched, and the query byte for byte, with one byte
/// that tells no query from an empty one. Called by the repository for each request.
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
