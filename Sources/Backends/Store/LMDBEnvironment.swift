/// The owner of an open LMDB environment and of its write transactions; the only place, beside
/// StoreReader and StoreSchema, that calls LMDB.
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
///   checked before opening, and the file is kept (sparsely) longer than any commit needs.
/// - The map's size may change only while no transaction is open in this process, and LMDB does not
///   look: `growMap` unmaps the file and maps it again, most likely elsewhere, and whoever holds a
///   pointer into the old map reads freed memory. Read transactions that are reset, with their
///   cursors, survive it: both take everything from the environment when they are renewed. So
///   SnapshotSlots holds the readers out, and the writer, which alone writes, does it between two
///   transactions. A map that cannot be had again is lost: nothing is read or written from then on.
///   A shorter map would need the file's end unused: a smaller store keeps its map.
/// - With MDB_WRITEMAP a full disk raises SIGBUS too: it is never used.
/// - Tree pages carry no checksum: damage in them shows as an error at best. Records and chunks
///   carry ours.
internal import CLMDB

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
  /// Of the writer alone, once it has begun.
  private(set) var mapSizeBytes: UInt64
  private var isMapLost = false
  private(set) var tables = StoreTables()
  /// Held until the environment is closed: the lock must outlive it.
  private let folder: StoreFolder

  /// Opens the data file in `folder`, which holds the lock; makes an empty one where there is none.
  init(folder: StoreFolder, mapSizeBytes: UInt64, readersMax: UInt32) throws(LMDBError) {
    var created: OpaquePointer?
    try LMDBError.check(mdb_env_create(&created))
    guard let created else { throw LMDBError(code: ENOMEM) }
    do {
      try LMDBError.check(mdb_env_set_mapsize(created, Int(mapSizeBytes)))
      try LMDBError.check(mdb_env_set_maxreaders(created, readersMax + 2))
      try LMDBError.check(mdb_env_set_maxdbs(created, StoreTables.count))
      let flags = UInt32(MDB_NOTLS | MDB_NOMETASYNC | MDB_NORDAHEAD)
      try LMDBError.check(mdb_env_open(created, folder.path, flags, 0o600))
      var deadReaders: Int32 = 0
      try LMDBError.check(mdb_reader_check(created, &deadReaders))
    } catch {
      mdb_env_close(created)
      throw error
    }
    handle = created
    self.mapSizeBytes = mapSizeBytes
    self.folder = folder
  }

  // SAFETY: readers and the writer keep this object, so that none has a transaction any more.
  deinit { mdb_env_close(handle) }

  func use(_ tables: StoreTables) { self.tables = tables }

  func beginWrite() throws(LMDBError) -> WriteTransaction {
    if isMapLost { throw LMDBError(code: ENOMEM) }
    return try WriteTransaction(self)
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

  /// Counts the pages in use and the entries, in a read transaction of its own.
  func measure() throws(LMDBError) -> (usedBytes: UInt64, entryCount: UInt64) {
    if isMapLost { throw LMDBError(code: ENOMEM) }
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

  /// Keeps the file longer, without using disk, than `usedEndBytes` and any one commit's growth.
  func keepFileLongEnough() {
    var information = MDB_envinfo()
    var statistics = MDB_stat()
    guard mdb_env_info(handle, &information) == MDB_SUCCESS,
      mdb_env_stat(handle, &statistics) == MDB_SUCCESS
    else { return }
    let end = (UInt64(information.me_last_pgno) + 1) * UInt64(statistics.ms_psize)
    var descriptor: Int32 = -1
    var status = stat()
    guard mdb_env_get_fd(handle, &descriptor) == MDB_SUCCESS,
      fstat(descriptor, &status) == 0
    else { return }
    let slackBytes: UInt64 = 64 * 1024 * 1024
    let wanted = min(end + slackBytes, UInt64(information.me_mapsize))
    if UInt64(status.st_size) < wanted {
      // A failure leaves the file as long as LMDB makes it, and it looks again after the next
      // commit.
      _ = ftruncate(descriptor, off_t(min(wanted + slackBytes, UInt64(information.me_mapsize))))
    }
  }
}

/// One write transaction. Dropped without `commit()`, it changes nothing.
///
/// Keys are values whose memory is the key's bytes: integers in big-endian order, no padding.
final class WriteTransaction {
  private let handle: OpaquePointer
  private var isOpen = true
  /// Keeps the environment open.
  let environment: LMDBEnvironment
  var tables: StoreTables { environment.tables }

  fileprivate init(_ environment: LMDBEnvironment) throws(LMDBError) {
    var opened: OpaquePointer?
    try LMDBError.check(mdb_txn_begin(environment.handle, nil, 0, &opened))
    guard let opened else { throw LMDBError(code: ENOMEM) }
    handle = opened
    self.environment = environment
  }

  deinit {
    if isOpen { mdb_txn_abort(handle) }
  }

  func commit() throws(LMDBError) {
    isOpen = false
    try LMDBError.check(mdb_txn_commit(handle))
  }

  func openTable(_ name: String, flags: UInt32) throws(LMDBError) -> MDB_dbi {
    var table: MDB_dbi = 0
    try LMDBError.check(mdb_dbi_open(handle, name, flags, &table))
    return table
  }

  /// The number of rows of the unnamed database: the names of the others.
  func countNamedTables() throws(LMDBError) -> Int {
    var table: MDB_dbi = 0
    try LMDBError.check(mdb_dbi_open(handle, nil, 0, &table))
    var statistics = MDB_stat()
    try LMDBError.check(mdb_stat(handle, table, &statistics))
    return Int(statistics.ms_entries)
  }

  /// The value under `key`, or nil. Valid until this transaction writes again.
  func value<Key: BitwiseCopyable>(
    _ table: MDB_dbi, _ key: Key
  ) throws(LMDBError) -> UnsafeRawBufferPointer? {
    var found = MDB_val()
    // SAFETY: LMDB reads the key during the call only and does not write to it.
    let code = withUnsafeBytes(of: key) { bytes in
      var keyValue = MDB_val(bytes)
      return mdb_get(handle, table, &keyValue, &found)
    }
    if code == MDB_NOTFOUND { return nil }
    try LMDBError.check(code)
    return UnsafeRawBufferPointer(found)
  }

  func put<Key: BitwiseCopyable>(
    _ table: MDB_dbi, _ key: Key, _ value: UnsafeRawBufferPointer
  ) throws(LMDBError) {
    // SAFETY: LMDB copies key and value during the call.
    let code = withUnsafeBytes(of: key) { bytes in
      var keyValue = MDB_val(bytes)
      var dataValue = MDB_val(value)
      return mdb_put(handle, table, &keyValue, &dataValue, 0)
    }
    try LMDBError.check(code)
  }

  /// Stores a fixed-size value: its memory, as it is.
  func put<Key: BitwiseCopyable, Value: BitwiseCopyable>(
    _ table: MDB_dbi, _ key: Key, value: Value
  ) throws(LMDBError) {
    let code = withUnsafeBytes(of: value) { valueBytes in
      withUnsafeBytes(of: key) { bytes in
        var keyValue = MDB_val(bytes)
        var dataValue = MDB_val(valueBytes)
        return mdb_put(handle, table, &keyValue, &dataValue, 0)
      }
    }
    try LMDBError.check(code)
  }

  func put<Key: BitwiseCopyable>(
    _ table: MDB_dbi, _ key: Key, _ value: [UInt8]
  ) throws(LMDBError) {
    let code = withUnsafeBytes(of: key) { bytes in
      value.withUnsafeBytes { valueBytes in
        var keyValue = MDB_val(bytes)
        var dataValue = MDB_val(valueBytes)
        return mdb_put(handle, table, &keyValue, &dataValue, 0)
      }
    }
    try LMDBError.check(code)
  }

  /// Makes room for a value of `count` bytes, which the caller fills before the next write.
  func reserve<Key: BitwiseCopyable>(
    _ table: MDB_dbi, _ key: Key, byteCount: Int
  ) throws(LMDBError) -> UnsafeMutableRawBufferPointer {
    var dataValue = MDB_val(mv_size: byteCount, mv_data: nil)
    let code = withUnsafeBytes(of: key) { bytes in
      var keyValue = MDB_val(bytes)
      return mdb_put(handle, table, &keyValue, &dataValue, UInt32(MDB_RESERVE))
    }
    try LMDBError.check(code)
    return UnsafeMutableRawBufferPointer(start: dataValue.mv_data, count: dataValue.mv_size)
  }

  /// Deletes the row; false: there was none.
  @discardableResult
  func delete<Key: BitwiseCopyable>(_ table: MDB_dbi, _ key: Key) throws(LMDBError) -> Bool {
    let code = withUnsafeBytes(of: key) { bytes in
      var keyValue = MDB_val(bytes)
      return mdb_del(handle, table, &keyValue, nil)
    }
    if code == MDB_NOTFOUND { return false }
    try LMDBError.check(code)
    return true
  }

  /// A cursor, which ends with the transaction.
  func cursor(_ table: MDB_dbi) throws(LMDBError) -> OpaquePointer {
    var opened: OpaquePointer?
    try LMDBError.check(mdb_cursor_open(handle, table, &opened))
    guard let opened else { throw LMDBError(code: ENOMEM) }
    return opened
  }

  /// The first row at or behind `key`; nil at the end. Valid until this transaction writes again.
  func row<Key: BitwiseCopyable>(
    atOrAfter key: Key, _ cursor: OpaquePointer
  ) throws(LMDBError) -> (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)? {
    var foundKey = MDB_val()
    var found = MDB_val()
    let code = withUnsafeBytes(of: key) { bytes in
      foundKey = MDB_val(bytes)
      return mdb_cursor_get(cursor, &foundKey, &found, MDB_SET_RANGE)
    }
    if code == MDB_NOTFOUND { return nil }
    try LMDBError.check(code)
    return (UnsafeRawBufferPointer(foundKey), UnsafeRawBufferPointer(found))
  }
}

/// Walking a table from its first row to its last, for `StoreAudit`: what is returned is valid
/// until the transaction writes.
extension WriteTransaction {
  typealias Row = (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)

  func firstRow(_ cursor: OpaquePointer) throws(LMDBError) -> Row? {
    try row(cursor, MDB_FIRST)
  }

  func nextRow(_ cursor: OpaquePointer) throws(LMDBError) -> Row? {
    try row(cursor, MDB_NEXT)
  }

  private func row(
    _ cursor: OpaquePointer, _ operation: MDB_cursor_op
  ) throws(LMDBError) -> Row? {
    var key = MDB_val()
    var value = MDB_val()
    let code = mdb_cursor_get(cursor, &key, &value, operation)
    if code == MDB_NOTFOUND { return nil }
    try LMDBError.check(code)
    return (UnsafeRawBufferPointer(key), UnsafeRawBufferPointer(value))
  }
}

extension MDB_val {
  init(_ bytes: UnsafeRawBufferPointer) {
    // SAFETY: LMDB never writes through a key or value that it is given.
    self.init(
      mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
  }
}

extension UnsafeRawBufferPointer {
  init(_ value: MDB_val) {
    self.init(start: value.mv_data, count: value.mv_size)
  }
}
