/// The body chunks of entries: stored one after the other while their fill runs, owned by a record
/// from its commit on, and deleted once nobody serves from them.
///
/// Chunks without a record are noted in `pending`, so that none is ever forgotten: the record takes
/// the note over, a fill that ends badly has it carried out (`reclaim`), and what a dead process
/// left is carried out in the background, a bounded step at a time. Used by EntryTransaction and
/// StoreWriter.
internal import CLMDB
internal import CachePolicy

extension EntryTransaction {
  /// Stores a body chunk. Chunks come in order; a gap means that one was lost, and the entry with
  /// it.
  func put(
    _ chunk: BodyChunk, _ key: ChunkKey
  ) throws(LMDBError) -> NotStoredReason? {
    guard key.entryID >= context.purgeFloor else {
      try reclaim(key.entryID)
      return .invalidated
    }
    var row =
      try pendingRow(key.entryID) ?? PendingRow(chunkBytes: 0, chunkCount: 0, isOrphan: 0)
    guard row.isOrphan == 0, row.chunkCount == key.index else {
      try reclaim(key.entryID)
      return .storeFailed
    }
    row.chunkCount += 1
    row.chunkBytes += UInt64(chunk.count)
    guard row.chunkBytes <= context.chunkedBytesMax else {
      try reclaim(key.entryID)
      return .tooLarge
    }
    try transaction.put(tables.pending, key.entryID.bigEndian, value: row)
    let target = try transaction.reserve(
      tables.chunks, key, byteCount: ChunkRow.headerBytes + chunk.count)
    ChunkRow.write(chunk.bytes, key, into: target)
    return nil
  }

  /// Deletes the chunks that no record owns, unless they are pinned.
  func reclaim(_ entryID: UInt64) throws(LMDBError) {
    guard var row = try pendingRow(entryID) else { return }
    guard pins.claimForDeletion(entryID) else {
      row.isOrphan = 1
      return try transaction.put(tables.pending, entryID.bigEndian, value: row)
    }
    claimed.append(entryID)
    try deleteChunks(entryID)
    try transaction.delete(tables.pending, entryID.bigEndian)
  }

  func deleteChunks(_ entryID: UInt64) throws(LMDBError) {
    let cursor = try transaction.cursor(tables.chunks)
    defer { mdb_cursor_close(cursor) }
    while let found = try transaction.row(atOrAfter: ChunkKey(entryID, 0), cursor),
      let key = ChunkKey(found.key), key.entryID == entryID
    {
      try LMDBError.check(mdb_cursor_del(cursor, 0))
    }
  }

  /// Deletes at most `rowsMax` rows of chunks that no record owns and no fill goes on with: those of
  /// entries below `entryIDsEnd`. Chunks that are being served go with their last pin. True: there
  /// may be more.
  func reclaimLeftovers(below entryIDsEnd: UInt64, rowsMax: Int) throws(LMDBError) -> Bool {
    let pending = try transaction.cursor(tables.pending)
    defer { mdb_cursor_close(pending) }
    let chunks = try transaction.cursor(tables.chunks)
    defer { mdb_cursor_close(chunks) }
    var rows = 0
    var next: UInt64 = 0
    while let first = try transaction.row(atOrAfter: next.bigEndian, pending),
      let word = first.key.row(UInt64.self), UInt64(bigEndian: word) < entryIDsEnd
    {
      let entryID = UInt64(bigEndian: word)
      next = entryID + 1
      guard pins.claimForDeletion(entryID) else {
        guard var row = first.value.row(PendingRow.self) else { continue }
        row.isOrphan = 1
        try transaction.put(tables.pending, word, value: row)
        continue
      }
      claimed.append(entryID)
      while let found = try transaction.row(atOrAfter: ChunkKey(entryID, 0), chunks),
        let key = ChunkKey(found.key), key.entryID == entryID
      {
        if rows >= rowsMax { return true }
        counts.freedBytes += UInt64(found.value.count)
        try LMDBError.check(mdb_cursor_del(chunks, 0))
        rows += 1
      }
      try transaction.delete(tables.pending, word)
      rows += 1
    }
    return false
  }
}
