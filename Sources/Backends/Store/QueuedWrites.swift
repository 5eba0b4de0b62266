/// How each queued write is carried out within a transaction, and what room it takes.
///
/// Called by StoreWriter for the writes of a batch, one after the other.
internal import CachePolicy

extension StoreWrite {
  /// About what the write takes in the file.
  var storedBytes: UInt64 {
    switch self {
    case .record(let record, _, _, _):
      StoreSizes.recordBytes(record.bytes.count, tagCount: record.view.tags.count)
    case .chunk(let chunk, _, _, _): StoreSizes.chunkBytes(chunk.count)
    default: 0
    }
  }
}

extension EntryTransaction {
  /// Carries a write out; a reason: it was not let. `roomBytes` is what is left of the store's size.
  func apply(
    _ write: StoreWrite, roomBytes: inout Int64
  ) throws(LMDBError) -> NotStoredReason? {
    let size = Int64(clamping: write.storedBytes)
    if write.isRefusable {
      guard size <= roomBytes else {
        if case .chunk(_, let entryID, _, _) = write { try reclaim(entryID) }
        if case .record(let record, _, .insert, _) = write {
          try reclaim(record.view.entryID)
        }
        return .storeFull
      }
      roomBytes -= size
    }
    switch write {
    case .record(let record, let key, let mode, let variantsMax):
      return try put(record, key: key, mode: mode, variantsMax: variantsMax)
    case .chunk(let chunk, let entryID, let index, _):
      return try put(chunk, ChunkKey(entryID, index))
    case .reclaim(let entryID): try reclaim(entryID)
    case .remove(let key): try remove(key)
    case .purge(let floor):
      try transaction.put(tables.meta, MetaKey.purgeFloor.bytes, value: floor)
      try deleteRules(floor: floor)
    case .purgeRule(let purge): try putRule(purge)
    case .forgetRule(let purge): try deleteRule(purge)
    case .damagedRecord(let key): try removeDamaged(key)
    case .damagedChunk(let key): try removeDamaged(key)
    case .sweep, .resize: break
    }
    return nil
  }
}
