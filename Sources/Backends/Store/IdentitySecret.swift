/// The secret under which identities become digests: 32 random bytes in the store's folder.
///
/// Made at the first start and kept for ever, also where the data file is set aside: digests go
/// into the logs too, and stay the same there. Whoever has it can tell whether a token that they
/// guess is one of those stored, so the file is its owner's alone; a wider mode is narrowed with a
/// warning. A file of another length is set aside as `identity-secret.damaged`: the copies of users
/// are not found again then, and their time ends as others' does. Opened by LMDBStore.open, which
/// holds the folder's lock.
#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

final class IdentitySecret: Sendable {
  static let byteCount = 32
  let bytes: [UInt8]

  private init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The digest of an identity.
  func digest(_ identity: UnsafeRawBufferPointer) -> IdentityDigest {
    bytes.withUnsafeBytes { IdentityDigest(key: $0, data: identity) }
  }

  /// Reads the secret in `folder`, or makes one. Warnings go to `log`; throws where the file can
  /// be neither read nor made.
  static func open(
    folder: String, log: (String) -> Void
  ) throws(StoreError) -> IdentitySecret {
    let path = folder + "/identity-secret"
    if let found = try read(path, folder, log) {
      if found.count == byteCount { return IdentitySecret(found) }
      let aside = path + ".damaged"
      guard rename(path, aside) == 0 else { throw failure(folder, "cannot set \(path) aside") }
      log(
        "store \(folder): identity-secret is damaged; set aside as \(aside), "
          + "what is stored for single users is not found any more")
    }
    return try make(path, folder)
  }

  /// Nil: there is none. Opened without waiting for a pipe's other end. What is longer than a secret is read one byte too far.
  private static func read(
    _ path: String, _ folder: String, _ log: (String) -> Void
  ) throws(StoreError) -> [UInt8]? {
    let descriptor = openFile(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    if descriptor < 0 {
      if errno == ENOENT { return nil }
      throw failure(folder, path)
    }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure(folder, path) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw .cannotOpen(path: folder, reason: "\(path) is not a file")
    }
    if status.st_mode & 0o177 != 0 {
      guard fchmod(descriptor, 0o600) == 0 else {
        throw failure(folder, "cannot take \(path) from other users")
      }
      log("store \(folder): identity-secret could be read by other users; its mode is 0600 now")
    }
    var bytes = [UInt8](repeating: 0, count: byteCount + 1)
    let count = pread(descriptor, &bytes, bytes.count, 0)
    guard count >= 0 else { throw failure(folder, path) }
    return Array(bytes[..<count])
  }

  /// Under another name first: there is never half a secret.
  private static func make(_ path: String, _ folder: String) throws(StoreError) -> IdentitySecret {
    let newPath = path + ".new"
    // Left by a start that was killed; mostly there is none.
    unlink(newPath)
    let descriptor = openFile(newPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(folder, newPath) }
    defer { close(descriptor) }
    var random = SystemRandomNumberGenerator()
    let bytes = (0..<byteCount).map { _ in UInt8.random(in: 0...255, using: &random) }
    guard write(descriptor, bytes, bytes.count) == bytes.count, fsync(descriptor) == 0,
      rename(newPath, path) == 0
    else { throw failure(folder, newPath) }
    // The name too is to outlive a power cut.
    let folderDescriptor = openFile(folder, O_RDONLY | O_CLOEXEC)
    guard folderDescriptor >= 0 else { throw failure(folder, folder) }
    defer { close(folderDescriptor) }
    guard fsync(folderDescriptor) == 0 else { throw failure(folder, folder) }
    return IdentitySecret(bytes)
  }

  private static func failure(_ folder: String, _ what: String) -> StoreError {
    .cannotOpen(path: folder, reason: "\(what): \(StoreFolder.lastErrorText())")
  }

  /// `open` is variadic in C.
  private static func openFile(_ path: String, _ flags: Int32) -> Int32 {
    #if canImport(Glibc)
      Glibc.open(path, flags, 0o600)
    #else
      Darwin.open(path, flags, 0o600)
    #endif
  }
}
