/// One environment's map, guarded against pages that are lost while it is in use, and the ways into it.
///
/// CMapGuard tells how. Here are its owners: `GuardedStoreMap` of an environment's map and its
/// writer's way in, `StoreMapVisitor` of a reader's. Made by LMDBEnvironment and StoreReader.
internal import CLMDB
internal import CMapGuard

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

final class GuardedStoreMap: @unchecked Sendable {
  // @unchecked Sendable: the pointers are constant, and what they point to is the guard's own memory,
  // for good; the writer's way in is used by whoever writes, or opens and closes.
  let map: UnsafeMutablePointer<GuardedMap>
  /// The environment's `userctx`: the way in of all calls that are not a reader's.
  let writer: OpaquePointer

  init() throws(LMDBError) {
    guard map_guard_install(), let map = guarded_map_make() else { throw LMDBError(code: ENOMEM) }
    guard let writer = map_visitor_make(map) else {
      guarded_map_free(map)
      throw LMDBError(code: ENOMEM)
    }
    self.map = map
    self.writer = writer
  }

  deinit {
    map_visitor_free(writer)
    guarded_map_free(map)
  }

  /// Whether a page was lost. Asked after something was read in place: false says that it was there.
  @inline(__always)
  var isDamaged: Bool { guarded_map_is_damaged(map) }

  /// Guards what is read in the map. Where nothing is in the file yet, nothing can be read, and it is
  /// called again. Between transactions.
  func locate(_ environment: OpaquePointer) throws(LMDBError) {
    let code = guarded_map_locate(writer, environment)
    if code != MDB_NOTFOUND { try LMDBError.check(code) }
  }

  /// The file is as long as this, and no commit writes into a shorter one. The writer's.
  func requireFileBytes(_ bytes: UInt64) { map.pointee.fileBytesMin = bytes }

  /// The map is about to move.
  func forget() { guarded_map_forget(map) }
}

/// A reader's way into the map of the environment that it reads.
final class StoreMapVisitor {
  let handle: OpaquePointer

  init(_ map: GuardedStoreMap) throws(LMDBError) {
    guard let handle = map_visitor_make(map.map) else { throw LMDBError(code: ENOMEM) }
    self.handle = handle
  }

  deinit { map_visitor_free(handle) }
}
