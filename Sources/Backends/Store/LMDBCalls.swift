/// LMDB's functions that read the map or stand for a transaction that does, through the guard.
///
/// They have LMDB's own names, so that whoever writes calls no other by mistake: a read of a page that
/// is lost ends such a call with MDB_CORRUPTED, where the bare function would end the process. For all
/// who are not readers; a reader has its own way in (`StoreReader`). MapGuardTests has the list of those
/// that need no guard.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

internal import CLMDB
internal import CMapGuard

/// What the environment was given when it was made.
private func visitor(_ environment: OpaquePointer?) -> OpaquePointer {
  guard let context = mdb_env_get_userctx(environment) else {
    fatalError("store: an environment without a guarded map")
  }
  return OpaquePointer(context)
}

private func visitor(transaction: OpaquePointer) -> OpaquePointer {
  visitor(mdb_txn_env(transaction))
}

private func visitor(cursor: OpaquePointer) -> OpaquePointer {
  visitor(mdb_txn_env(mdb_cursor_txn(cursor)))
}

// MARK: Environments

func mdb_env_open(
  _ environment: OpaquePointer, _ path: String, _ flags: UInt32, _ mode: mode_t
) -> Int32 {
  guarded_env_open(visitor(environment), environment, path, flags, Int32(mode))
}

func mdb_env_set_mapsize(_ environment: OpaquePointer, _ bytes: Int) -> Int32 {
  guarded_env_set_mapsize(visitor(environment), environment, bytes)
}

func mdb_env_info(
  _ environment: OpaquePointer, _ information: UnsafeMutablePointer<MDB_envinfo>
) -> Int32 {
  guarded_env_info(visitor(environment), environment, information)
}

func mdb_env_stat(
  _ environment: OpaquePointer, _ statistics: UnsafeMutablePointer<MDB_stat>
) -> Int32 {
  guarded_env_stat(visitor(environment), environment, statistics)
}

func mdb_reader_check(
  _ environment: OpaquePointer, _ dead: UnsafeMutablePointer<Int32>
) -> Int32 {
  guarded_reader_check(visitor(environment), environment, dead)
}

/// What a call left amid a write stays as it is.
func mdb_env_close(_ environment: OpaquePointer) {
  guarded_env_close(visitor(environment), environment)
}

// MARK: Transactions

func mdb_txn_begin(
  _ environment: OpaquePointer, _: Void?, _ flags: UInt32,
  _ transaction: UnsafeMutablePointer<OpaquePointer?>
) -> Int32 {
  guarded_txn_begin(visitor(environment), environment, flags, transaction)
}

func mdb_txn_commit(_ transaction: OpaquePointer) -> Int32 {
  guarded_txn_commit(visitor(transaction: transaction), transaction)
}

func mdb_txn_abort(_ transaction: OpaquePointer) {
  guarded_txn_abort(visitor(transaction: transaction), transaction)
}

func mdb_dbi_open(
  _ transaction: OpaquePointer, _ name: String?, _ flags: UInt32,
  _ table: UnsafeMutablePointer<MDB_dbi>
) -> Int32 {
  guarded_dbi_open(visitor(transaction: transaction), transaction, name, flags, table)
}

func mdb_stat(
  _ transaction: OpaquePointer, _ table: MDB_dbi, _ statistics: UnsafeMutablePointer<MDB_stat>
) -> Int32 {
  guarded_stat(visitor(transaction: transaction), transaction, table, statistics)
}

func mdb_get(
  _ transaction: OpaquePointer, _ table: MDB_dbi, _ key: UnsafeMutablePointer<MDB_val>,
  _ value: UnsafeMutablePointer<MDB_val>
) -> Int32 {
  guarded_get(visitor(transaction: transaction), transaction, table, key, value)
}

func mdb_put(
  _ transaction: OpaquePointer, _ table: MDB_dbi, _ key: UnsafeMutablePointer<MDB_val>,
  _ value: UnsafeMutablePointer<MDB_val>, _ flags: UInt32
) -> Int32 {
  guarded_put(visitor(transaction: transaction), transaction, table, key, value, flags)
}

func mdb_del(
  _ transaction: OpaquePointer, _ table: MDB_dbi, _ key: UnsafeMutablePointer<MDB_val>,
  _ value: UnsafeMutablePointer<MDB_val>?
) -> Int32 {
  guarded_del(visitor(transaction: transaction), transaction, table, key, value)
}

// MARK: Cursors

func mdb_cursor_open(
  _ transaction: OpaquePointer, _ table: MDB_dbi,
  _ cursor: UnsafeMutablePointer<OpaquePointer?>
) -> Int32 {
  guarded_cursor_open(visitor(transaction: transaction), transaction, table, cursor)
}

func mdb_cursor_close(_ cursor: OpaquePointer) {
  guarded_cursor_close(visitor(cursor: cursor), cursor)
}

func mdb_cursor_get(
  _ cursor: OpaquePointer, _ key: UnsafeMutablePointer<MDB_val>,
  _ value: UnsafeMutablePointer<MDB_val>, _ operation: MDB_cursor_op
) -> Int32 {
  guarded_cursor_get(visitor(cursor: cursor), cursor, key, value, operation)
}

func mdb_cursor_put(
  _ cursor: OpaquePointer, _ key: UnsafeMutablePointer<MDB_val>,
  _ value: UnsafeMutablePointer<MDB_val>, _ flags: UInt32
) -> Int32 {
  guarded_cursor_put(visitor(cursor: cursor), cursor, key, value, flags)
}

func mdb_cursor_del(_ cursor: OpaquePointer, _ flags: UInt32) -> Int32 {
  guarded_cursor_del(visitor(cursor: cursor), cursor, flags)
}
