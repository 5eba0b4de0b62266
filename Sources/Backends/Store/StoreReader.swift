/// One event loop's way into the store: a read transaction that is renewed for a turn and reset at
/// its end, and a cursor.
///
/// Where the look-ups of a loop's turn share a snapshot, it is the turn's first that renews it, and
/// the turn's end that resets it: what is written meanwhile stays in the overlay for as long.
/// Looks first at what is not committed yet (the overlay), then in the map; compares the whole key,
/// verifies checksums, and reports damage to the writer. What it returns is valid until `end()`.
/// Allocates nothing while the overlay is empty. Used by one thread at a time.
internal import CLMDB
internal import CMapGuard
public import CachePolicy
internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

public final class StoreReader {
  private var environment: LMDBEnvironment
  /// Where another environment is found, when this one is retired.
  private let current: CurrentEnvironment
  private let queue: WriteQueue
  private let shared: StoreShared
  private var transaction: OpaquePointer
  private var cursor: OpaquePointer
  private let slot = SnapshotSlot()
  /// This reader's way past the map's guard: every call of LMDB's here goes through it.
  private var visitor: StoreMapVisitor
  /// Whose connections are given what is read; nil: nobody's, or copies.
  private let loop: EventLoop?
  private let verified = VerifiedTable()
  /// Whether `end()` leaves the snapshot for the next look-up, until `release()`.
  private let sharesSnapshots: Bool
  private var isReading = false
  /// False within `begin()` and `end()`: it could not be had, and everything is a miss.
  private var hasSnapshot = false
  /// What the snapshot is of, and a number that it keeps for as long as nothing is committed.
  private var snapshot = Snapshot(transaction: 0, mapCount: 0)
  public private(set) var snapshotNumber: UInt64 = 1
  private let foundRecords = FoundRecords()
  private struct Snapshot: Equatable {
    var transaction: Int
    /// Of the environment: the file may lie elsewhere in memory since.
    var mapCount: UInt64
  }
  /// Overlay objects whose memory was handed out in this turn.
  private var retained: [AnyObject] = []

  // The search that `nextRecord` goes on with.
  private var key = StoreKey(high: 0, low: 0)
  private var wholeKey = UnsafeRawBufferPointer(start: nil, count: 0)
  private var pending: PendingKey?
  private var pendingIndex = 0
  private var cursorState = CursorState.end
  private enum CursorState { case start, within, end }
  /// The record of the key that the snapshot has, as long as no other has been found.
  private var soleRecord: RecordView?

  init(
    _ environment: LMDBEnvironment, _ current: CurrentEnvironment, _ queue: WriteQueue,
    _ shared: StoreShared, loop: EventLoop?
  ) throws(LMDBError) {
    let visitor = try StoreMapVisitor(environment.map)
    // As within a turn: the map must not move meanwhile.
    shared.slots.register(slot)
    do throws(LMDBError) {
      guard shared.slots.enter(slot, shared.generation) else { throw LMDBError(code: ENOMEM) }
      (transaction, cursor) = try Self.open(environment, visitor.handle)
    } catch {
      shared.slots.unregister(slot)
      throw error
    }
    shared.slots.leave(slot)
    self.environment = environment
    self.current = current
    self.queue = queue
    self.shared = shared
    self.visitor = visitor
    self.loop = loop
    sharesSnapshots = loop != nil
    retained.reserveCapacity(16)
  }

  private static func open(
    _ environment: LMDBEnvironment, _ visitor: OpaquePointer
  ) throws(LMDBError) -> (OpaquePointer, OpaquePointer) {
    var begun: OpaquePointer?
    try LMDBError.check(guarded_txn_begin(visitor, environment.handle, UInt32(MDB_RDONLY), &begun))
    guard let begun else { throw LMDBError(code: ENOMEM) }
    var opened: OpaquePointer?
    let code = guarded_cursor_open(visitor, begun, environment.tables.entries, &opened)
    guard code == MDB_SUCCESS, let opened else {
      guarded_txn_abort(visitor, begun)
      throw LMDBError(code: code)
    }
    guarded_txn_reset(visitor, begun)
    return (begun, opened)
  }

  deinit {
    shared.slots.unregister(slot)
    loop?.reads(by: nil)
    close()
  }

  private func close() {
    guarded_cursor_close(visitor.handle, cursor)
    guarded_txn_abort(visitor.handle, transaction)
  }

  // MARK: The turn

  /// Begins reading: what is committed now, and what is pending, can be found until `end()`.
  public func begin() {
    storeInvariant(!isReading, "begin() follows end()")
    isReading = true
    if !hasSnapshot { renew() }
  }

  private func renew() {
    hasSnapshot =
      shared.slots.enter(slot, shared.generation) && isInUse()
      && guarded_renew(visitor.handle, transaction, cursor) == MDB_SUCCESS
    guard hasSnapshot else { return }
    loop?.reads(by: visitor.handle)
    numberSnapshot()
  }

  /// Gives the snapshot a number of its own, unless it shows what the last one did, where it was.
  private func numberSnapshot() {
    // The map moves while no reader is within a turn: the gate has ordered it before this.
    let seen = Snapshot(
      transaction: mdb_txn_id(transaction),
      mapCount: environment.mapCount.load(ordering: .relaxed))
    guard seen != snapshot else { return }
    snapshot = seen
    snapshotNumber += 1
  }

  /// Whether the environment is the store's, or could be changed for it. Called behind the gate,
  /// which opens only when a retired environment has been replaced.
  @inline(__always)
  private func isInUse() -> Bool {
    !environment.isRetired.load(ordering: .relaxed) || moveToCurrent()
  }

  @inline(never)
  private func moveToCurrent() -> Bool {
    guard let next = current.environment, next !== environment,
      let nextVisitor = try? StoreMapVisitor(next.map),
      // Without a transaction of its own it finds nothing, and tries again in the next turn.
      let (begun, opened) = try? Self.open(next, nextVisitor.handle)
    else { return false }
    close()
    (environment, visitor, transaction, cursor) = (next, nextVisitor, begun, opened)
    // Another file, whose transactions may have the same numbers.
    snapshotNumber += 1
    return true
  }

  /// Ends reading: all views and buffers that it returned are invalid.
  public func end() {
    storeInvariant(isReading, "end() follows begin()")
    isReading = false
    pending = nil
    cursorState = .end
    if !retained.isEmpty { retained.removeAll(keepingCapacity: true) }
    if !sharesSnapshots || !hasSnapshot { leave() }
  }

  /// Gives the turn's snapshot back; not within `begin()` and `end()`.
  func release() {
    storeInvariant(!isReading, "release() follows end()")
    if hasSnapshot { leave() }
    // The disk of a file that was deleted is free once nobody has it open.
    if environment.isRetired.load(ordering: .relaxed) {
      renew()
      leave()
    }
  }

  private func leave() {
    if hasSnapshot {
      guarded_txn_reset(visitor.handle, transaction)
      loop?.reads(by: nil)
    }
    hasSnapshot = false
    shared.slots.leave(slot)
  }

  /// Whether what this turn has read so far is what was stored: a file that is cut short meanwhile
  /// reads as zeros. Asked by who keeps what was read, behind its last read; what goes to a client is
  /// looked after by its stream.
  public var isSound: Bool { !hasSnapshot || !environment.map.isDamaged }

  // MARK: Records

  /// The first variant stored under this key, in no certain order. `wholeKey` is kept valid until
  /// the last `nextRecord`.
  public func firstRecord(
    _ key: StoreKey, wholeKey: UnsafeRawBufferPointer
  ) -> RecordView? {
    storeInvariant(isReading, "reading is between begin() and end()")
    guard hasSnapshot else { return nil }
    self.key = key
    self.wholeKey = wholeKey
    pendingIndex = 0
    cursorState = .start
    if queue.overlayCount.load(ordering: .sequentiallyConsistent) != 0 {
      pending = queue.pending(key)
      if let pending, pending.hidesSnapshot { cursorState = .end }
    } else {
      pending = nil
    }
    soleRecord = nil
    if pending == nil, let record = foundRecords.record(key, snapshotNumber: snapshotNumber) {
      cursorState = .end
      return isWanted(record) ? record : nil
    }
    return nextRecord()
  }

  /// Whether nothing has been put under a key since a look-up within the snapshot of this number
  /// found nothing: another would find nothing either. False: it may, or may not.
  public func stillLacks(_ key: StoreKey, sinceSnapshot number: UInt64) -> Bool {
    // What was put behind the snapshot stays in the overlay as long as the snapshot is held.
    guard hasSnapshot, snapshotNumber == number else { return false }
    return queue.overlayCount.load(ordering: .sequentiallyConsistent) == 0
      || queue.pending(key) == nil
  }

  /// The next variant of the key that `firstRecord` was asked for; nil: there is none.
  public func nextRecord() -> RecordView? {
    if pending != nil, let view = nextPendingRecord() { return view }
    return nextStoredRecord()
  }

  /// Variants with pending writes: these are replayed on what the snapshot holds.
  private func nextPendingRecord() -> RecordView? {
    guard let pending else { return nil }
    let records = pending.records
    while pendingIndex < records.count {
      let index = pendingIndex
      pendingIndex += 1
      let variantHash = records[index].variantHash
      // Each variant once, at its first write.
      if records[..<index].contains(where: { $0.variantHash == variantHash }) { continue }
      let stored = pending.hidesSnapshot ? nil : storedRecord(variantHash)
      // What is purged is no current entry: the writer removes it before it puts another there.
      var current = stored.flatMap { isPurged($0) ? nil : StandingEntry($0) }
      var winner: RecordBuffer?
      var storedIsGone = false
      for record in records[index...] where record.variantHash == variantHash {
        guard record.applies(over: current) else { continue }
        if isPurged(record.record.view) {
          // An entry that is purged by what its confirmation says of it goes, and so does what it
          // confirms; a new entry that is purged leaves what is there.
          if record.mode == .refresh { (current, winner, storedIsGone) = (nil, nil, true) }
          continue
        }
        current = StandingEntry(record.record.view)
        winner = record.record
      }
      if let winner {
        let view = winner.view
        guard isWanted(view) else { continue }
        retained.append(winner)
        return view
      }
      if !storedIsGone, let stored, isWanted(stored) { return stored }
    }
    return nil
  }

  private func storedRecord(_ variantHash: UInt64) -> RecordView? {
    let rowKey = EntriesKey(key, variantHash: variantHash)
    guard let bytes = value(environment.tables.entries, rowKey) else { return nil }
    return undamaged(bytes, rowKey)
  }

  private func nextStoredRecord() -> RecordView? {
    while cursorState != .end {
      var foundValue = MDB_val()
      var foundKey = MDB_val()
      let code: Int32
      let isFirst = cursorState == .start
      if isFirst {
        // SAFETY: LMDB reads the key during the call; what it returns is the map's, valid while
        // the transaction is.
        code = withUnsafeBytes(of: EntriesKey(key, variantHash: 0)) { bytes in
          foundKey = MDB_val(bytes)
          return guarded_cursor_get(visitor.handle, cursor, &foundKey, &foundValue, MDB_SET_RANGE)
        }
        cursorState = .within
      } else {
        code = guarded_cursor_get(visitor.handle, cursor, &foundKey, &foundValue, MDB_NEXT)
      }
      guard code == MDB_SUCCESS, let rowKey = EntriesKey(UnsafeRawBufferPointer(foundKey)),
        rowKey.storeKey == key
      else {
        if let soleRecord, code == MDB_SUCCESS || code == MDB_NOTFOUND {
          foundRecords.put(soleRecord, key, snapshotNumber: snapshotNumber)
        }
        break
      }
      soleRecord = nil
      if let pending {
        let variantHash = rowKey.variantHash
        if pending.records.contains(where: { $0.variantHash == variantHash }) { continue }
      }
      let bytes = UnsafeRawBufferPointer(foundValue)
      guard let view = undamaged(bytes, rowKey), isWanted(view) else { continue }
      if isFirst, pending == nil { soleRecord = view }
      return view
    }
    cursorState = .end
    return nil
  }

  /// Whether it is the key that was asked for, not another with the same hash, and not purged.
  private func isWanted(_ view: RecordView) -> Bool {
    let stored = view.wholeKey
    guard stored.count == wholeKey.count, !isPurged(view) else { return false }
    guard let left = stored.baseAddress, let right = wholeKey.baseAddress else { return true }
    return memcmp(left, right, stored.count) == 0
  }

  @inline(__always)
  private func isPurged(_ view: RecordView) -> Bool {
    // In this order: a purge of everything raises the floor before it takes rules away.
    shared.purges.hides(view, pathHash: key.high)
      || view.entryID < shared.purgeFloor.load(ordering: .sequentiallyConsistent)
  }

  private func undamaged(_ bytes: UnsafeRawBufferPointer, _ rowKey: EntriesKey) -> RecordView? {
    if let view = RecordView(bytes) {
      let identity = VerifiedTable.Identity(view.entryID, .max, view.storedChecksum)
      if verified.contains(identity) { return view }
      if view.isUndamaged {
        verified.insert(identity)
        return view
      }
    }
    queue.append(.damagedRecord(rowKey))
    return nil
  }

  // MARK: Chunks

  /// The bytes of a body chunk; nil: it is missing or damaged, and the body cannot be served on.
  public func chunk(entryID: UInt64, index: UInt32) -> UnsafeRawBufferPointer? {
    storeInvariant(isReading, "reading is between begin() and end()")
    let rowKey = ChunkKey(entryID, index)
    // Also where the file is lost: a body that is on its way goes on.
    if queue.overlayCount.load(ordering: .sequentiallyConsistent) != 0,
      let chunk = queue.chunk(rowKey)
    {
      retained.append(chunk)
      return chunk.bytes
    }
    guard hasSnapshot else { return nil }
    if let row = value(environment.tables.chunks, rowKey),
      let checksum = ChunkRow.storedChecksum(row)
    {
      let identity = VerifiedTable.Identity(entryID, index, checksum)
      if verified.contains(identity) {
        return UnsafeRawBufferPointer(rebasing: row[ChunkRow.headerBytes...])
      }
      if let body = ChunkRow.body(row, rowKey) {
        verified.insert(identity)
        return body
      }
    }
    queue.append(.damagedChunk(rowKey))
    return nil
  }

  private func value<Key: BitwiseCopyable>(
    _ table: MDB_dbi, _ key: Key
  ) -> UnsafeRawBufferPointer? {
    var found = MDB_val()
    // SAFETY: LMDB reads the key during the call; the value is the map's, valid until `end()`.
    let code = withUnsafeBytes(of: key) { bytes in
      var keyValue = MDB_val(bytes)
      return guarded_get(visitor.handle, transaction, table, &keyValue, &found)
    }
    return code == MDB_SUCCESS ? UnsafeRawBufferPointer(found) : nil
  }
}
