/// The folder a store lies in: made where it is missing, locked for one process, looked at before
/// LMDB maps its file, and its damaged files set aside.
///
/// LMDB maps a file that is too short without a word and the process dies by SIGBUS later, so the
/// length is compared with what the newest meta page says. Called by LMDBStore.open; the lock is
/// held as long as the object lives.
#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

final class StoreFolder: Sendable {
  /// What the data file is, seen from outside.
  enum DataFile: Equatable {
    case absent
    /// LMDB's, and as long as it must be; `endBytes`: where its last page ends.
    case usable(endBytes: UInt64)
    case damaged(String)
  }

  let path: String
  private let lockDescriptor: Int32
  private var dataPath: String { path + "/data.mdb" }
  private var markerPath: String { path + "/set-aside-at-next-open" }
  /// How many files that were set aside are kept; the oldest goes first.
  private static let asideCountMax = 3

  init(path: String) throws(StoreError) {
    self.path = path
    if mkdir(path, 0o700) != 0 && errno != EEXIST {
      throw .cannotCreate(path: path, reason: Self.lastErrorText())
    }
    var status = stat()
    guard stat(path, &status) == 0 else {
      throw .cannotOpen(path: path, reason: Self.lastErrorText())
    }
    guard status.st_mode & S_IFMT == S_IFDIR else { throw .notADirectory(path: path) }
    let lockPath = path + "/lock"
    lockDescriptor = openPrivately(lockPath, O_RDWR | O_CREAT | O_CLOEXEC)
    guard lockDescriptor >= 0 else {
      throw .cannotOpen(path: path, reason: "\(lockPath): \(Self.lastErrorText())")
    }
    if flock(lockDescriptor, LOCK_EX | LOCK_NB) != 0 {
      let code = errno
      let owner = Self.readProcessID(lockDescriptor)
      // Not closed here: every property is set, so `deinit` runs when this throws.
      guard code == EWOULDBLOCK else {
        throw .cannotOpen(path: path, reason: "\(lockPath): \(Self.text(code))")
      }
      throw .inUse(path: path, processID: owner)
    }
    Self.writeProcessID(lockDescriptor)
  }

  deinit {
    // Closing is not enough: a child of this process has a copy until it executes its program.
    flock(lockDescriptor, LOCK_UN)
    close(lockDescriptor)
  }

  static func text(_ code: Int32) -> String { String(cString: strerror(code)) }
  static func lastErrorText() -> String { text(errno) }

  private static func readProcessID(_ descriptor: Int32) -> Int32? {
    var text = [UInt8](repeating: 0, count: 16)
    let count = pread(descriptor, &text, text.count, 0)
    guard count > 0 else { return nil }
    let digits = text[..<count].prefix { $0 >= 0x30 && $0 <= 0x39 }
    return Int32(String(decoding: digits, as: UTF8.self))
  }

  private static func writeProcessID(_ descriptor: Int32) {
    // Only a message for people reads it: a failure is no reason not to open.
    _ = ftruncate(descriptor, 0)
    let text = Array("\(getpid())\n".utf8)
    _ = pwrite(descriptor, text, text.count, 0)
  }

  /// Looks at the data file without mapping it.
  func inspect() throws(StoreError) -> DataFile {
    if access(markerPath, F_OK) == 0 { return .damaged("damage was found while it was in use") }
    let descriptor = openPrivately(dataPath, O_RDONLY | O_CLOEXEC)
    if descriptor < 0 {
      if errno == ENOENT { return .absent }
      throw .cannotOpen(path: path, reason: "\(dataPath): \(Self.lastErrorText())")
    }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      throw .cannotOpen(path: path, reason: "\(dataPath): \(Self.lastErrorText())")
    }
    if status.st_size == 0 { return .absent }
    guard let newest = Self.newestMeta(descriptor) else {
      return .damaged("it is not an LMDB file of a known version")
    }
    guard newest.endBytes <= UInt64(status.st_size) else {
      return .damaged("it is truncated: \(status.st_size) of \(newest.endBytes) bytes")
    }
    return .usable(endBytes: newest.endBytes)
  }

  /// Reads both meta pages as LMDB 0.9 writes them on 64-bit machines: behind the 16-byte page
  /// header the magic number, the version, two words, two 48-byte trees (the first one's first
  /// field is the page size), the last page's number and the transaction's.
  private static func newestMeta(_ descriptor: Int32) -> (transactionID: UInt64, endBytes: UInt64)?
  {
    func meta(at offset: Int) -> (transactionID: UInt64, endBytes: UInt64, pageBytes: UInt64)? {
      var page = [UInt8](repeating: 0, count: 152)
      guard pread(descriptor, &page, page.count, off_t(offset)) == page.count else { return nil }
      return page.withUnsafeBytes { bytes in
        // SAFETY: all offsets end within the 152 bytes.
        func word(_ offset: Int) -> UInt64 {
          UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        let pageBytes = word(40) & 0xffff_ffff
        let lastPage = word(136)
        guard word(16) == 0x0000_0001_beef_c0de, pageBytes >= 256, pageBytes <= 65536,
          lastPage < UInt64(1) << 46
        else { return nil }
        return (word(144), (lastPage + 1) * pageBytes, pageBytes)
      }
    }
    guard let first = meta(at: 0), let second = meta(at: Int(first.pageBytes)) else { return nil }
    let newest = first.transactionID >= second.transactionID ? first : second
    return (newest.transactionID, newest.endBytes)
  }

  /// Renames the data file to `data.mdb.damaged-1`, so that an empty one can take its place; what
  /// was set aside earlier gets the next numbers, and the oldest goes.
  func setAside(because reason: String, log: (String) -> Void) throws(StoreError) {
    let asidePath = dataPath + ".damaged-"
    for number in (1..<Self.asideCountMax).reversed() {
      // Most of them do not exist.
      _ = rename("\(asidePath)\(number)", "\(asidePath)\(number + 1)")
    }
    let target = asidePath + "1"
    if rename(dataPath, target) != 0 && errno != ENOENT {
      throw .cannotOpen(path: path, reason: "cannot set \(dataPath) aside: \(Self.lastErrorText())")
    }
    removeReaderTable()
    unlink(markerPath)
    log("store \(path): \(reason); set aside as \(target), starting with an empty store")
  }

  /// Whether the folder at the path is still the one that is locked.
  var isInPlace: Bool {
    Self.isAt(path + "/lock", lockDescriptor) != false
  }

  /// Whether the data file at the path is the one that is open as `descriptor`; true where the
  /// system does not say.
  func holdsDataFile(_ descriptor: Int32) -> Bool {
    Self.isAt(dataPath, descriptor) != false
  }

  var hasDataFile: Bool { access(dataPath, F_OK) == 0 }

  /// Nil: the system does not say.
  private static func isAt(_ path: String, _ descriptor: Int32) -> Bool? {
    var named = stat()
    var opened = stat()
    guard fstat(descriptor, &opened) == 0 else { return nil }
    guard stat(path, &named) == 0 else { return errno == ENOENT || errno == ENOTDIR ? false : nil }
    return named.st_ino == opened.st_ino && named.st_dev == opened.st_dev
  }

  /// Removes LMDB's table of readers: the next environment makes one of its own.
  func removeReaderTable() { unlink(path + "/lock.mdb") }

  /// Leaves a word for the next open: LMDB found damage that it cannot work around.
  func markForSettingAside() {
    let descriptor = openPrivately(markerPath, O_RDWR | O_CREAT | O_CLOEXEC)
    if descriptor >= 0 { close(descriptor) }
  }
}

/// `open` for files that only we may read: it is variadic in C.
private func openPrivately(_ path: String, _ flags: Int32) -> Int32 {
  open(path, flags, 0o600)
}
