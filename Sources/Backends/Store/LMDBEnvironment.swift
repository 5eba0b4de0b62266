/// The owner of an open LMDB environment and of its write transactions; the only place, beside
/// WriteTransaction, StoreReader and StoreSchema, that calls LMDB.
///
/// What LMDB asks of its users, and how it is kept here:
/// - One environment for one file in a process, and not across processes: StoreFolder's lock.
/// - A write transaction belongs to one thread: the store's writer (before it starts, the opener).
/// - Values that `mdb_get` returns end with the next write in the same transaction: whoever needs
///   them longer copies the fields out first.
/// - Read transactions keep old pages alive: readers hold one for a loop turn at most.
/// - Pages that are freed can be used again two transactions later: the map is larger than the
///   store may grow, so that deleting always has pages to work with.
/// - A file that is shorter than the newest tree says raises SIGBUS on reading: the length is
///   checked before opening, and the file is kept (sparsely) longer than any commit needs. Where
///   somebody cuts it short later, or the disk fails, CMapGuard has the signal: LMDB's call is left
///   with MDB_CORRUPTED, and what is read in place reads as zeros, of a map that `isDamaged`. Nothing
///   here calls LMDB past it (LMDBCalls). A write that was left so holds LMDB's lock and cursors on the
///   stack that are gone: the environment is a wreck and is not closed, which costs its descriptors
///   and addresses until the process ends.
/// - LMDB trusts the pages that it walks: on one of zeros its assertions abort, or it runs wild. The
///   guard lets it meet none but in holes: `guarded_txn_commit` has what is left of that.
/// - A short write, as a full disk makes it, is reported as EIO: `isDiskFull` tells the two apart.
/// - A lock file is not opened twice in one process: who opens a data file again, while an old
///   environment is being left, removes the old lock file first.
/// - The map's size may change only while no transaction is open in this process, and LMDB does not
///   look: `growMap` unmaps the file and maps it again, most likely elsewhere, and whoever holds a
///   pointer into the old map reads freed memory. Read transactions that are reset, with their
///   cursors, survive it: both take everything from the environment when they are renewed. So
///   SnapshotSlots holds the readers out, and the writer, which alone writes, does it between two
///   transactions. A map that cannot be had again is lost: nothing is read or written from then on,
///   until StoreFile has opened the file anew.
///   A shorter map would need the file's end unused: a smaller store keeps its map.
/// - With MDB_WRITEMAP a full disk raises SIGBUS too: it is never used.
/// - Tree pages carry no checksum: damage in them shows as an error at best. Records and chunks
///   carry ours.
internal import CLMDB
internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// What an LMDB call returned other than success.
struct LMDBError: Error, Equatable {
  var code: Int32

  /// No room in the map or on the disk: removing entries may help.
  var isFull: Bool { code == MDB_MAP_FULL || code == ENOSPC || code == EDQUOT }
  /// The file is not, or no more, what LMDB wrote.
  var isDamage: Bool {
    code == MDB_CORRUPTED || code == MDB_INVALID || code == MDB_VERSION_MISMATCH
      || code == MDB_PAGE_NOTFOUND || code == MDB_INCOMPATIBLE || code == MDB_PANIC
      || code == MDB_NOTFOUND
  }
  /// As `isDamage`, in a file that was whole when it was opened.
  var isTreeDamage: Bool { code == MDB_CORRUPTED || code == MDB_PAGE_NOTFOUND }
  /// Something failed earlier in the transaction.
  var isFailedTransaction: Bool { code == MDB_BAD_TXN }
  /// A commit failed at its last step: this environment does nothing more.
  var isPanic: Bool { code == MDB_PANIC }
  var text: String { String(cString: mdb_strerror(code)) }

  static func check(_ code: Int32) throws(LMDBError) {
    if code != MDB_SUCCESS { throw LMDBError(code: code) }
  }
}

/// The named databases in one environment.
struct StoreTables: Sendable {
  var meta: MDB_dbi = 0
  var entries: MDB_dbi = 0
  var chunks: MDB_dbi = 0
  var order: MDB_dbi = 0
  var expiry: MDB_dbi = 0
  var tags: MDB_dbi = 0
  var pending: MDB_dbi = 0
  var purges: MDB_dbi = 0
  var routes: MDB_dbi = 0
  static let count: MDB_dbi = 9
}

final class LMDBEnvironment: @unchecked Sendable {
  // @unchecked Sendable: the handle is constant and LMDB locks what threads share; `tables` is set
  // once, by the thread that opens, before the object is handed on; the map's state is the
  // writer's.
  let handle: OpaquePointer
  /// What stands between a read of the map and SIGBUS.
  let map: GuardedStoreMap
  /// Of the writer alone, once it has begun.
  private(set) var mapSizeBytes: UInt64
  private var isMapLost = false
  private(set) var tables = StoreTables()
  /// Held until the environment is closed: the lock must outlive it.
  let folder: StoreFolder
  /// Another one has taken its place, or will: whoever reads turns to that one.
  let isRetired = Atomic<Bool>(false)
  /// How often the file was mapped: what lay at one place of it may lie elsewhere since.
  let mapCount = Atomic<UInt64>(1)
  /// The longest that the file has been; of the writer alone. It never shrinks by itself.
  private var fileBytesMax: off_t = 0 {
    didSet { map.requireFileBytes(UInt64(fileBytesMax)) }
  }

  /// Opens the data file in `folder`, which holds the lock; makes an empty one where there is none.
  init(folder: StoreFolder, mapSizeBytes: UInt64, readersMax: UInt32) throws(LMDBError) {
    let guardedMap = try GuardedStoreMap()
    var created: OpaquePointer?
    try LMDBError.check(mdb_env_create(&created))
    guard let created else { throw LMDBError(code: ENOMEM) }
    do throws(LMDBError) {
      mdb_env_set_userctx(created, UnsafeMutableRawPointer(guardedMap.writer))
      try LMDBError.check(mdb_env_set_mapsize(created, Int(mapSizeBytes)))
      try LMDBError.check(mdb_env_set_maxreaders(created, readersMax + 2))
      try LMDBError.check(mdb_env_set_maxdbs(created, StoreTables.count))
      let flags = UInt32(MDB_NOTLS | MDB_NOMETASYNC | MDB_NORDAHEAD)
      try LMDBError.check(mdb_env_open(created, folder.path, flags, 0o600))
      var deadReaders: Int32 = 0
      try LMDBError.check(mdb_reader_check(created, &deadReaders))
      try guardedMap.locate(created)
    } catch {
      mdb_env_close(created)
      throw error
    }
    handle = created
    map = guardedMap
    self.mapSizeBytes = mapSizeBytes
    self.folder = folder
  }

  // SAFETY: readers and the writer keep this object, so that none has a transaction any more.
  deinit { mdb_env_close(handle) }

  func use(_ tables: StoreTables) { self.tables = tables }

  /// After the first commit into an empty file: from then on there is something to read.
  func guardMap() throws(LMDBError) { try map.locate(handle) }

  func beginWrite() throws(LMDBError) -> WriteTransaction {
    try checkUse()
    return try WriteTransaction(self)
  }

  private func checkUse() throws(LMDBError) {
    if isRetired.load(ordering: .relaxed) { throw LMDBError(code: ESTALE) }
    if isMapLost { throw LMDBError(code: ENOMEM) }
  }

  enum MapGrowth: Equatable {
    case grown
    /// There is no room for the longer map; the one that there was is in use.
    case kept
    case lost
  }

  /// Maps the file anew with more room. Called while nobody has a transaction.
  func growMap(toBytes bytes: UInt64) -> MapGrowth {
    guard !isMapLost else { return .lost }
    // Tried beforehand, since LMDB gives its map up before it asks for another.
    let probe = mmap(nil, Int(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0)
    guard let probe, probe != MAP_FAILED else { return .kept }
    munmap(probe, Int(bytes))
    mapCount.wrappingAdd(1, ordering: .relaxed)
    map.forget()
    defer {
      // Where it cannot be found, nothing is read in it.
      if (try? map.locate(handle)) == nil { isMapLost = true }
    }
    if mdb_env_set_mapsize(handle, Int(bytes)) == MDB_SUCCESS {
      mapSizeBytes = bytes
      return .grown
    }
    if mdb_env_set_mapsize(handle, Int(mapSizeBytes)) == MDB_SUCCESS { return .kept }
    isMapLost = true
    return .lost
  }

  /// Makes durable what NOMETASYNC left to the next commit.
  func sync() throws(LMDBError) { try LMDBError.check(mdb_env_sync(handle, 1)) }

  func markForSettingAside() { folder.markForSettingAside() }

  /// Counts the pages in use and the entries, in a read transaction of its own. Costs a step for
  /// each transaction whose free pages are not in use again.
  func measure() throws(LMDBError) -> (usedBytes: UInt64, entryCount: UInt64) {
    try checkUse()
    var opened: OpaquePointer?
    try LMDBError.check(mdb_txn_begin(handle, nil, UInt32(MDB_RDONLY), &opened))
    guard let transaction = opened else { throw LMDBError(code: ENOMEM) }
    defer { mdb_txn_abort(transaction) }
    var information = MDB_envinfo()
    try LMDBError.check(mdb_env_info(handle, &information))
    var statistics = MDB_stat()
    try LMDBError.check(mdb_stat(transaction, tables.entries, &statistics))
    let freePages = try Self.countFreePages(transaction)
    let pages = UInt64(information.me_last_pgno) + 1
    return (
      (pages - min(freePages, pages)) * UInt64(statistics.ms_psize),
      UInt64(statistics.ms_entries)
    )
  }

  /// The free list is database 0: each row is a list of page numbers, its length first.
  private static func countFreePages(_ transaction: OpaquePointer) throws(LMDBError) -> UInt64 {
    var opened: OpaquePointer?
    try LMDBError.check(mdb_cursor_open(transaction, 0, &opened))
    guard let cursor = opened else { throw LMDBError(code: ENOMEM) }
    defer { mdb_cursor_close(cursor) }
    var pages: UInt64 = 0
    var key = MDB_val()
    var value = MDB_val()
    while mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == MDB_SUCCESS {
      guard value.mv_size >= 8, let data = value.mv_data else { continue }
      // SAFETY: the row is at least a word long, and the transaction is open.
      pages += UInt64(data.loadUnaligned(as: UInt.self))
    }
    return pages
  }

  /// What has become of the file behind our back.
  enum FileLoss: Equatable {
    /// The name is gone, or leads to another file.
    case deleted
    /// It is shorter than it was.
    case cutShort
    /// A page could not be read, though it should be there: the disk fails, or the file was cut short
    /// and made longer again.
    case unreadable
    var text: String {
      switch self {
      case .deleted: "its file was deleted or replaced"
      case .cutShort: "its file was cut short"
      case .unreadable: "a page of its file could not be read"
      }
    }
  }

  /// Looks at the file from outside, and whether a read of the map met a lost page; nil: it is as it
  /// should be. Two system calls.
  func findLoss() -> FileLoss? {
    guard let (descriptor, bytes) = fileDescriptorAndBytes() else {
      return map.isDamaged ? .unreadable : nil
    }
    if bytes < fileBytesMax { return .cutShort }
    if map.isDamaged { return .unreadable }
    return folder.holdsDataFile(descriptor) ? nil : .deleted
  }

  /// Whether the file at the store's path is this one.
  var isFileInPlace: Bool {
    fileDescriptorAndBytes().map { folder.holdsDataFile($0.descriptor) } ?? false
  }

  private func fileDescriptorAndBytes() -> (descriptor: Int32, bytes: off_t)? {
    var descriptor: Int32 = -1
    var status = stat()
    guard mdb_env_get_fd(handle, &descriptor) == MDB_SUCCESS, fstat(descriptor, &status) == 0
    else { return nil }
    return (descriptor, status.st_size)
  }

  /// Whether the file system has next to no room left for us.
  var isDiskFull: Bool {
    var system = statvfs()
    guard let (descriptor, _) = fileDescriptorAndBytes(), fstatvfs(descriptor, &system) == 0
    else { return false }
    return UInt64(system.f_bavail) * UInt64(system.f_frsize) < 1024 * 1024
  }

  /// What of `measure` costs nothing to know: the number of entries, and the bytes in use with those
  /// of free pages.
  func estimate() throws(LMDBError) -> (usedBytesMax: UInt64, entryCount: UInt64) {
    try checkUse()
    var opened: OpaquePointer?
    try LMDBError.check(mdb_txn_begin(handle, nil, UInt32(MDB_RDONLY), &opened))
    guard let transaction = opened else { throw LMDBError(code: ENOMEM) }
    defer { mdb_txn_abort(transaction) }
    var information = MDB_envinfo()
    try LMDBError.check(mdb_env_info(handle, &information))
    var statistics = MDB_stat()
    try LMDBError.check(mdb_stat(transaction, tables.entries, &statistics))
    let pages = UInt64(information.me_last_pgno) + 1
    return (pages * UInt64(statistics.ms_psize), UInt64(statistics.ms_entries))
  }

  /// Keeps the file longer, without using disk, than `usedEndBytes` and any one commit's growth.
  func keepFileLongEnough() {
    var information = MDB_envinfo()
    var statistics = MDB_stat()
    guard mdb_env_info(handle, &information) == MDB_SUCCESS,
      mdb_env_stat(handle, &statistics) == MDB_SUCCESS
    else { return }
    let end = (UInt64(information.me_last_pgno) + 1) * UInt64(statistics.ms_psize)
    // What was cut short must not look whole again: `findLoss` is to find it.
    guard let (descriptor, bytes) = fileDescriptorAndBytes(), bytes >= fileBytesMax else { return }
    fileBytesMax = bytes
    let slackBytes: UInt64 = 64 * 1024 * 1024
    let wanted = min(end + slackBytes, UInt64(information.me_mapsize))
    if UInt64(bytes) < wanted {
      let longer = off_t(min(wanted + slackBytes, UInt64(information.me_mapsize)))
      // A failure leaves the file as long as LMDB makes it, and it looks again after the next
      // commit.
      if ftruncate(descriptor, longer) == 0 { fileBytesMax = longer }
    }
  }
}
