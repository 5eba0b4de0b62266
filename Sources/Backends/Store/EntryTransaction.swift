/// One write transaction in terms of entries: all rows of an entry change together, or none.
///
/// Applies the writes of a batch, one after the other, by the rules of `PendingRecord.applies`.
/// Rows that do not fit together (damage) are removed where they are met; reading never fails over
/// them. Made and committed by StoreWriter; Eviction adds the ways to choose what goes.
internal import CLMDB
internal import CachePolicy

final class EntryTransaction {
  let transaction: WriteTransaction
  let context: Context
  /// As it is with this transaction.
  var eviction: EvictionState
  /// Entries whose chunks this transaction deletes.
  var claimed: [UInt64] = []
  private var routeDeltas: [UInt64: RouteRow] = [:]
  private var isCommitted = false
  var counts = Counts()
  // One a table for all puts: the rows of new entries lie at the ends of two of these tables, and
  // the third is looked at just before it is written. They end with the transaction.
  private var entriesCursor: OpaquePointer?
  private var orderCursor: OpaquePointer?
  private var expiryCursor: OpaquePointer?

  var tables: StoreTables { transaction.tables }
  var pins: PinTable { context.pins }

  /// What a transaction goes by.
  struct Context {
    var pins: PinTable
    var secret: (UInt64, UInt64)
    var purgeFloor: UInt64
    var purges: PurgeRules
    var variantsMax: Int
    /// The longest body: one that is nearly as large as the store would empty it first.
    var chunkedBytesMax: UInt64
    var marks: VisitedMarks
    var names: DepartedNames
  }

  /// What the transaction did, for the statistics: counted once it is committed.
  struct Counts {
    var evicted: UInt64 = 0
    var expired: UInt64 = 0
    var variantsDropped: UInt64 = 0
    var purged: UInt64 = 0
    var damaged: UInt64 = 0
    var removed = 0
    /// About what the removals free.
    var freedBytes: UInt64 = 0
  }

  /// Why an entry goes.
  enum Cause {
    case replaced, removed, purged, evicted, expired, variantsMax, damaged
  }

  init(
    _ environment: LMDBEnvironment, _ context: Context, _ eviction: EvictionState
  ) throws(LMDBError) {
    transaction = try environment.beginWrite()
    self.context = context
    self.eviction = eviction
  }

  deinit {
    if !isCommitted { pins.rollBack(claimed) }
  }

  /// Commits; `routes` is brought up to date, and the time of the next removal returned.
  func commit(
    routes: inout [UInt64: RouteRow], generation: UInt64
  ) throws(LMDBError) -> Int64? {
    var changed = routes
    for (routeID, delta) in routeDeltas {
      var row = changed[routeID] ?? RouteRow(entryCount: 0, bytes: 0)
      row.entryCount += delta.entryCount
      row.bytes += delta.bytes
      if row.entryCount <= 0 {
        changed[routeID] = nil
        try transaction.delete(tables.routes, routeID.bigEndian)
      } else {
        changed[routeID] = row
        try transaction.put(tables.routes, routeID.bigEndian, value: row)
      }
    }
    let nextKeepUntil = try firstExpiry(.keepUntil)?.timeMilliseconds
    try transaction.commit()
    isCommitted = true
    pins.commit(claimed, generation: generation)
    routes = changed
    return nextKeepUntil
  }

  // MARK: Records

  /// Puts the record in place, if the rules let it; a reason: they did not.
  func put(
    _ record: RecordBuffer, key: StoreKey, mode: WriteMode, variantsMax: Int? = nil
  ) throws(LMDBError) -> NotStoredReason? {
    let view = record.view
    let entryID = view.entryID
    let rowKey = EntriesKey(key, variantHash: view.variantHash)
    let hasVariants = try hasVariants(key)
    var current = hasVariants ? try undamagedRecord(rowKey) : nil
    if let purged = current, isPurged(purged, rowKey) {
      try removeRow(rowKey, entryID: purged.entryID, because: .purged)
      current = nil
    }
    let currentID = current?.entryID
    let pending = PendingRecord(
      sequence: 0, mode: mode, entryID: entryID, variantHash: view.variantHash, record: record)
    let isRefused = context.purges.refuses(view, pathHash: key.high, mode: mode)
    guard entryID >= context.purgeFloor, pending.applies(over: current.map { StandingEntry($0) }),
      !isRefused
    else {
      if isRefused, mode == .refresh, currentID == entryID {
        // The entry was purged by what its confirmation says of it, such as a new tag.
        try removeRow(rowKey, entryID: entryID, because: .purged)
      }
      if mode == .insert && currentID != entryID { try reclaim(entryID) }
      return .invalidated
    }
    if currentID == entryID {
      let keepsChunks =
        current?.isInline == view.isInline && current?.chunkCount == view.chunkCount
        && (view.isInline || current?.bodyLength == view.bodyLength)
      return keepsChunks ? try replaceRecord(record, rowKey) : .storeFailed
    }
    var chunkBytes: UInt64 = 0
    if !view.isInline {
      guard let row = try pendingRow(entryID), row.chunkCount == view.chunkCount,
        row.chunkBytes == view.bodyLength, row.isOrphan == 0
      else {
        // A chunk was lost on the way: half an entry is none.
        try reclaim(entryID)
        return .storeFailed
      }
      chunkBytes = row.chunkBytes
      try transaction.delete(tables.pending, entryID.bigEndian)
    }
    noteArrival(entryID, rowKey, replaces: currentID != nil)
    if let currentID {
      try removeEntry(currentID, because: .replaced)
    } else if hasVariants {
      try makeRoomForVariant(rowKey, variantsMax: max(1, variantsMax ?? context.variantsMax))
    }
    try writeRows(record, rowKey, chunkBytes: chunkBytes)
    return nil
  }

  private func replaceRecord(
    _ record: RecordBuffer, _ rowKey: EntriesKey
  ) throws(LMDBError) -> NotStoredReason? {
    let entryID = record.view.entryID
    guard let (old, tagHashes) = try orderRowAndTags(entryID), old.key == rowKey else {
      return .storeFailed
    }
    try deleteExpiry(of: old, entryID)
    try deleteTags(tagHashes, entryID)
    noteBytes(old, entryID, sign: -1)
    try writeRows(record, rowKey, chunkBytes: old.chunkBytes)
    return nil
  }

  private func writeRows(
    _ record: RecordBuffer, _ rowKey: EntriesKey, chunkBytes: UInt64
  ) throws(LMDBError) {
    let view = record.view
    let entryID = view.entryID
    let row = OrderRow(
      key: rowKey, evictAfterMilliseconds: view.evictAfterMilliseconds,
      keepUntilMilliseconds: view.keepUntilMilliseconds ?? -1, routeID: view.routeID,
      chunkBytes: chunkBytes, recordBytes: UInt32(record.bytes.count),
      chunkCount: view.chunkCount)
    try transaction.put(by: kept(&entriesCursor, tables.entries), rowKey, record.bytes)
    let tagHashes = tagHashes(of: view)
    if tagHashes.isEmpty {
      try transaction.put(by: kept(&orderCursor, tables.order), entryID.bigEndian, value: row)
    } else {
      try transaction.put(tables.order, entryID.bigEndian, row.value(tagHashes: tagHashes))
      try putTags(tagHashes, entryID)
    }
    for key in expiryKeys(of: row, entryID) {
      try transaction.put(
        by: kept(&expiryCursor, tables.expiry), key,
        UnsafeRawBufferPointer(start: nil, count: 0))
    }
    noteBytes(row, entryID, sign: 1)
  }

  private func kept(
    _ cursor: inout OpaquePointer?, _ table: MDB_dbi
  ) throws(LMDBError) -> OpaquePointer {
    if let cursor { return cursor }
    let opened = try transaction.cursor(table)
    cursor = opened
    return opened
  }

  /// Whether there is any row of the key.
  private func hasVariants(_ key: StoreKey) throws(LMDBError) -> Bool {
    let found = try transaction.row(
      atOrAfter: EntriesKey(key, variantHash: 0), kept(&entriesCursor, tables.entries))
    return found.flatMap { EntriesKey($0.key) }?.storeKey == key
  }

  /// A key may have so many variants; the oldest go when there comes one more.
  private func makeRoomForVariant(
    _ rowKey: EntriesKey, variantsMax: Int
  ) throws(LMDBError) {
    let cursor = try transaction.cursor(tables.entries)
    defer { mdb_cursor_close(cursor) }
    var entryIDs: [UInt64] = []
    var next: UInt64? = 0
    while let from = next,
      let found = try transaction.row(
        atOrAfter: EntriesKey(rowKey.storeKey, variantHash: from), cursor),
      let key = EntriesKey(found.key), key.storeKey == rowKey.storeKey
    {
      if let entryID = RecordView(found.value)?.entryID { entryIDs.append(entryID) }
      next = key.variantHash == .max ? nil : key.variantHash + 1
    }
    guard entryIDs.count >= variantsMax else { return }
    for entryID in entryIDs.sorted().prefix(entryIDs.count - variantsMax + 1) {
      try removeEntry(entryID, because: .variantsMax)
    }
  }

  /// Removes all variants of a key.
  func remove(_ key: StoreKey) throws(LMDBError) {
    let cursor = try transaction.cursor(tables.entries)
    defer { mdb_cursor_close(cursor) }
    while let found = try transaction.row(
      atOrAfter: EntriesKey(key, variantHash: 0), cursor),
      let rowKey = EntriesKey(found.key), rowKey.storeKey == key
    {
      try removeRow(rowKey, entryID: RecordView(found.value)?.entryID, because: .removed)
    }
  }

  /// Removes a row of `entries`, and the entry, where there is one (`entryID`) that leads back here.
  func removeRow(
    _ rowKey: EntriesKey, entryID: UInt64?, because cause: Cause
  ) throws(LMDBError) {
    try transaction.delete(tables.entries, rowKey)
    if let entryID, try orderRow(entryID)?.key == rowKey {
      try removeEntry(entryID, because: cause)
    }
  }

  private func isPurged(_ view: RecordView, _ rowKey: EntriesKey) -> Bool {
    view.entryID < context.purgeFloor
      || context.purges.hides(view, pathHash: rowKey.storeKey.high)
  }

  /// Removes a record that a reader found damaged, unless it has been replaced meanwhile.
  func removeDamaged(_ rowKey: EntriesKey) throws(LMDBError) {
    guard let bytes = try transaction.value(tables.entries, rowKey) else { return }
    if let view = RecordView(bytes), view.isUndamaged { return }
    // The damage may be in the ID: only an order row that leads back here counts. Another one is
    // met by the eviction's hand.
    let offset = RecordLayout.entryID
    let entryID =
      bytes.count >= offset + 8
      ? UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) : 0
    try transaction.delete(tables.entries, rowKey)
    counts.damaged += 1
    if try orderRow(entryID)?.key == rowKey { try removeEntry(entryID, because: .replaced) }
  }

  /// Removes an entry of which a reader found a chunk missing or damaged, if that is so.
  func removeDamaged(_ key: ChunkKey) throws(LMDBError) {
    guard let row = try orderRow(key.entryID), key.index < row.chunkCount else { return }
    if let bytes = try transaction.value(tables.chunks, key),
      ChunkRow.body(bytes, key) != nil
    {
      return
    }
    try removeEntry(key.entryID, because: .damaged)
  }

  /// Removes all rows of an entry; its chunks once nobody serves from them.
  func removeEntry(_ entryID: UInt64, because cause: Cause) throws(LMDBError) {
    let found = try orderRowAndTags(entryID)
    // A row that cannot be read goes too: whoever walks the order must not meet it again.
    guard try transaction.delete(tables.order, entryID.bigEndian),
      let (row, tagHashes) = found
    else { return }
    try deleteExpiry(of: row, entryID)
    try deleteTags(tagHashes, entryID)
    noteBytes(row, entryID, sign: -1)
    if let bytes = try transaction.value(tables.entries, row.key) {
      let view = RecordView(bytes)
      if view == nil || view?.entryID == entryID {
        try transaction.delete(tables.entries, row.key)
      }
    }
    if row.chunkCount > 0 {
      if pins.claimForDeletion(entryID) {
        claimed.append(entryID)
        try deleteChunks(entryID)
      } else {
        try transaction.put(
          tables.pending, entryID.bigEndian,
          value: PendingRow(chunkBytes: row.chunkBytes, chunkCount: row.chunkCount, isOrphan: 1))
      }
    }
    counts.removed += 1
    counts.freedBytes +=
      StoreSizes.recordBytes(Int(row.recordBytes), tagCount: tagHashes.count) + row.chunkBytes
    switch cause {
    case .evicted: counts.evicted += 1
    case .expired: counts.expired += 1
    case .variantsMax: counts.variantsDropped += 1
    case .damaged: counts.damaged += 1
    case .purged: counts.purged += 1
    case .replaced, .removed: break
    }
  }

  // MARK: Rows

  func orderRow(_ entryID: UInt64) throws(LMDBError) -> OrderRow? {
    try transaction.value(tables.order, entryID.bigEndian).flatMap { OrderRow($0) }
  }

  private func orderRowAndTags(
    _ entryID: UInt64
  ) throws(LMDBError) -> (row: OrderRow, tagHashes: [UInt64])? {
    guard let value = try transaction.value(tables.order, entryID.bigEndian),
      let row = OrderRow(value)
    else { return nil }
    return (row, OrderRow.tagHashes(value))
  }

  func pendingRow(_ entryID: UInt64) throws(LMDBError) -> PendingRow? {
    try transaction.value(tables.pending, entryID.bigEndian)?.row(PendingRow.self)
  }

  /// The record there, if it can be read. Valid until the next write.
  private func undamagedRecord(_ key: EntriesKey) throws(LMDBError) -> RecordView? {
    guard let bytes = try transaction.value(tables.entries, key),
      let view = RecordView(bytes), view.isUndamaged
    else { return nil }
    return view
  }

  private func expiryKeys(of row: OrderRow, _ entryID: UInt64) -> [ExpiryKey] {
    var keys: [ExpiryKey] = []
    if row.evictAfterMilliseconds != .max {
      keys.append(
        ExpiryKey(
          .evictAfter, timeMilliseconds: row.evictAfterMilliseconds, entryID: entryID))
    }
    if row.keepUntilMilliseconds >= 0 {
      keys.append(
        ExpiryKey(.keepUntil, timeMilliseconds: row.keepUntilMilliseconds, entryID: entryID))
    }
    return keys
  }

  private func deleteExpiry(of row: OrderRow, _ entryID: UInt64) throws(LMDBError) {
    for key in expiryKeys(of: row, entryID) { try transaction.delete(tables.expiry, key) }
  }

  func firstExpiry(_ kind: ExpiryKey.Kind) throws(LMDBError) -> ExpiryKey? {
    let cursor = try transaction.cursor(tables.expiry)
    defer { mdb_cursor_close(cursor) }
    let from = ExpiryKey(kind, timeMilliseconds: 0, entryID: 0)
    guard let found = try transaction.row(atOrAfter: from, cursor),
      let key = ExpiryKey(found.key), key.kind == kind
    else { return nil }
    return key
  }

  private func noteBytes(_ row: OrderRow, _ entryID: UInt64, sign: Int64) {
    eviction.noteBytes(row.bytes, of: entryID, sign: sign)
    var delta = routeDeltas[row.routeID] ?? RouteRow(entryCount: 0, bytes: 0)
    delta.entryCount += sign
    delta.bytes += sign * Int64(clamping: row.bytes)
    routeDeltas[row.routeID] = delta
  }
}
