/// A write transaction of LMDB's, and how values of ours become its keys and rows.
///
/// The thread that begins one ends it: the store's writer, or whoever opens the file. Used by
/// EntryTransaction, StoreSchema and StoreWriter.
internal import CLMDB

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// One write transaction. Dropped without `commit()`, it changes nothing.
///
/// Keys are values whose memory is the key's bytes: integers in big-endian order, no padding.
final class WriteTransaction {
  private let handle: OpaquePointer
  private var isOpen = true
  /// Keeps the environment open.
  let environment: LMDBEnvironment
  var tables: StoreTables { environment.tables }

  init(_ environment: LMDBEnvironment) throws(LMDBError) {
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
    let code = mdb_txn_commit(handle)
    // LMDB takes a write that the last free blocks cut short for an error of the disk's.
    if code == EIO, environment.isDiskFull { throw LMDBError(code: ENOSPC) }
    try LMDBError.check(code)
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

  /// As `put`, by a cursor: next to where the cursor is, the row's place is found at once.
  func put<Key: BitwiseCopyable>(
    by cursor: OpaquePointer, _ key: Key, _ value: UnsafeRawBufferPointer
  ) throws(LMDBError) {
    // SAFETY: LMDB copies key and value during the call.
    let code = withUnsafeBytes(of: key) { bytes in
      var keyValue = MDB_val(bytes)
      var dataValue = MDB_val(value)
      return mdb_cursor_put(cursor, &keyValue, &dataValue, 0)
    }
    try LMDBError.check(code)
  }

  /// As `put(by:)`, of a fixed-size value: its memory, as it is.
  func put<Key: BitwiseCopyable, Value: BitwiseCopyable>(
    by cursor: OpaquePointer, _ key: Key, value: Value
  ) throws(LMDBError) {
    let code = withUnsafeBytes(of: value) { valueBytes in
      withUnsafeBytes(of: key) { bytes in
        var keyValue = MDB_val(bytes)
        var dataValue = MDB_val(valueBytes)
        return mdb_cursor_put(cursor, &keyValue, &dataValue, 0)
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
