/// Computes the digests of identities beside a store that another process may hold.
///
/// It reads the secret in the store's folder and changes nothing there: no file is made, no mode is
/// narrowed, no lock is taken. Used by commands; a running proxy asks its store.
#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

public struct IdentityDigester: Sendable {
  private let secret: [UInt8]

  /// Nil where the folder has no secret that can be read.
  public init?(folder: String) {
    guard let file = fopen(folder + "/identity-secret", "rb") else { return nil }
    defer { fclose(file) }
    // One byte more than a secret has: a longer file is none.
    var bytes = [UInt8](repeating: 0, count: IdentitySecret.byteCount + 1)
    guard fread(&bytes, 1, bytes.count, file) == IdentitySecret.byteCount else { return nil }
    bytes.removeLast()
    secret = bytes
  }

  /// The same as the store's own `identityDigest`.
  public func digest(_ identity: UnsafeRawBufferPointer) -> IdentityDigest {
    secret.withUnsafeBytes { IdentityDigest(key: $0, data: identity) }
  }
}
