/// What stands for a user in keys and records: an HMAC of what the request says who the user is.
///
/// A token or cookie is never written anywhere; its HMAC-SHA256 under a secret that stays with the
/// store is, and tells users apart without telling who they are. The function is OpenSSL's. Made by
/// `LMDBStore.identityDigest` for each request on a route that keeps copies per user.
internal import CCrypto

/// 32 bytes that stand for one identity.
public struct IdentityDigest: Sendable, Hashable {
  // As they lie in memory, whatever the machine's byte order.
  private let words: (UInt64, UInt64, UInt64, UInt64)

  public static let byteCount = 32

  /// HMAC-SHA256 of `data` under `key`.
  init(key: UnsafeRawBufferPointer, data: UnsafeRawBufferPointer) {
    var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    // SAFETY: 32 bytes are written to 32 bytes; key and data outlive the call. Neither may be a
    // null pointer, which OpenSSL takes for something else.
    let isMade = withUnsafeMutableBytes(of: &words) { digest in
      var nothing: UInt8 = 0
      return withUnsafePointer(to: &nothing) { nothing in
        larder_hmac_sha256(
          key.baseAddress ?? UnsafeRawPointer(nothing), Int32(key.count),
          data.baseAddress ?? UnsafeRawPointer(nothing), data.count,
          digest.baseAddress?.assumingMemoryBound(to: UInt8.self))
      }
    }
    // It fails where OpenSSL was configured without SHA-256, or without memory: no identity can be
    // told from another then.
    storeInvariant(isMade == 1, "libcrypto computes HMAC-SHA256")
    self.words = words
  }

  public var bytes: [UInt8] { withUnsafeBytes(of: words) { Array($0) } }

  /// Appends the 32 bytes.
  public func append(to key: inout [UInt8]) {
    withUnsafeBytes(of: words) { key.append(contentsOf: $0) }
  }

  /// The first eight bytes in hexadecimal: enough to tell identities apart in a log.
  public var hexPrefix: String {
    bytes.prefix(8).reduce(into: "") { text, byte in
      text += String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
    }
  }

  public static func == (left: IdentityDigest, right: IdentityDigest) -> Bool {
    left.words == right.words
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
  }
}
