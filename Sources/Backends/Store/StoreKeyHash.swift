/// SipHash-2-4 with 128 bits of output: a whole cache key under the store's secret becomes the
/// place where its records lie.
///
/// The place begins with the path's hash alone, so that all copies of one path lie side by side,
/// whatever upstream, authority, query or user they belong to, and can be walked. Keyed, so that
/// nobody outside can choose URLs that collide; the whole key is compared on read all the same.
/// Allocates nothing. Called once a request by whoever looks a key up or writes one.
public import CachePolicy

public enum StoreKeyHash {
  /// The key's hash under `secret`, the two halves of a 128-bit key as little-endian words.
  public static func hash(
    _ secret: (UInt64, UInt64), _ bytes: UnsafeRawBufferPointer
  ) -> StoreKey {
    var state = SipState(secret)
    let count = bytes.count
    let wordsEnd = count & ~7
    var offset = 0
    while offset < wordsEnd {
      // SAFETY: offset + 8 <= wordsEnd <= count; the caller keeps the bytes for the call.
      state.absorb(
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
      offset += 8
    }
    var last = UInt64(truncatingIfNeeded: count) << 56
    var shift: UInt64 = 0
    while offset < count {
      last |= UInt64(bytes[offset]) << shift
      shift += 8
      offset += 1
    }
    state.absorb(last)
    return state.finish()
  }

  /// Where the records of a whole key lie: `high` follows from the path alone, `low` from the whole
  /// key. `path` is the key's own path.
  public static func key(
    _ secret: (UInt64, UInt64), wholeKey: UnsafeRawBufferPointer, path: UnsafeRawBufferPointer
  ) -> StoreKey {
    StoreKey(high: pathHash(secret, path), low: hash(secret, wholeKey).low)
  }

  /// The hash of a path in which repeated slashes count as one, as they do where routes match.
  static func pathHash(_ secret: (UInt64, UInt64), _ path: UnsafeRawBufferPointer) -> UInt64 {
    guard hasRepeatedSlash(path) else { return hash(secret, path).high }
    // The same as the hash of a collapsed copy, a byte at a time.
    var state = SipState(secret)
    var count = 0
    var word: UInt64 = 0
    var previous: UInt8 = 0
    for byte in path {
      if byte == UInt8(ascii: "/"), previous == byte { continue }
      previous = byte
      word |= UInt64(byte) << UInt64(8 * (count & 7))
      count += 1
      if count & 7 == 0 {
        state.absorb(word)
        word = 0
      }
    }
    state.absorb(word | UInt64(truncatingIfNeeded: count) << 56)
    return state.finish().high
  }

  /// The hash of a tag: its place in the index of tags.
  static func tagHash(_ secret: (UInt64, UInt64), _ tag: UnsafeRawBufferPointer) -> UInt64 {
    hash(secret, tag).high
  }

  private static func hasRepeatedSlash(_ path: UnsafeRawBufferPointer) -> Bool {
    var previous: UInt8 = 0
    for byte in path {
      if byte == UInt8(ascii: "/"), previous == byte { return true }
      previous = byte
    }
    return false
  }
}

/// The four words that SipHash mixes.
private struct SipState {
  var word0: UInt64
  var word1: UInt64
  var word2: UInt64
  var word3: UInt64

  init(_ secret: (UInt64, UInt64)) {
    word0 = 0x736f_6d65_7073_6575 ^ secret.0
    word1 = 0x646f_7261_6e64_6f6d ^ secret.1 ^ 0xee
    word2 = 0x6c79_6765_6e65_7261 ^ secret.0
    word3 = 0x7465_6462_7974_6573 ^ secret.1
  }

  @inline(__always)
  static func rotated(_ value: UInt64, _ bits: UInt64) -> UInt64 {
    (value &<< bits) | (value &>> (64 &- bits))
  }

  @inline(__always)
  mutating func round() {
    word0 &+= word1
    word1 = Self.rotated(word1, 13) ^ word0
    word0 = Self.rotated(word0, 32)
    word2 &+= word3
    word3 = Self.rotated(word3, 16) ^ word2
    word0 &+= word3
    word3 = Self.rotated(word3, 21) ^ word0
    word2 &+= word1
    word1 = Self.rotated(word1, 17) ^ word2
    word2 = Self.rotated(word2, 32)
  }

  @inline(__always)
  mutating func absorb(_ word: UInt64) {
    word3 ^= word
    round()
    round()
    word0 ^= word
  }

  @inline(__always)
  mutating func squeeze() -> UInt64 {
    round()
    round()
    round()
    round()
    return word0 ^ word1 ^ word2 ^ word3
  }

  mutating func finish() -> StoreKey {
    word2 ^= 0xee
    let first = squeeze()
    word1 ^= 0xdd
    return StoreKey(high: first, low: squeeze())
  }
}
