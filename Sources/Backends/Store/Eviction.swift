/// Which entries go when there is no room, and which when their time has come.
///
/// For room: first those that are of no use any more (`evictAfter`). Then the newest tenth (by bytes)
/// of `order` is on trial, and whatever was not served until it is no longer among the newest goes,
/// so that a crawler's pages do not drive out what is in use; its name is remembered for a while,
/// and who comes again passes. What has passed goes by the SIEVE idea (Zhang et al., NSDI 2024): a
/// hand walks from old to new and round again; an entry that was served since the hand last came by
/// loses its mark and stays, another goes. No hit writes to the store. Chosen by EvictionBench, whose
/// figures are in docs/performance.md. Called by StoreWriter.
internal import CLMDB

/// Where the eviction goes on. A value: a transaction that fails has not evicted.
struct EvictionState {
  /// The ID of the next entry past its trial to look at.
  var hand: UInt64 = 0
  /// Entries from this ID on are on trial. At the start none is: what they did is not known.
  var trialStart: UInt64
  /// What their records and chunks hold.
  var trialBytes: Int64 = 0
  /// Entries looked at since the last that was removed.
  var fruitlessSteps: UInt64 = 0

  mutating func noteBytes(_ bytes: UInt64, of entryID: UInt64, sign: Int64) {
    if entryID >= trialStart { trialBytes += sign * Int64(clamping: bytes) }
  }
}

extension EntryTransaction {
  /// How many entries one transaction removes at most.
  static let removalsMax = 1024
  /// How many it looks at.
  static let evictionStepsMax = 65_536

  /// Removes entries whose time of this kind has passed, oldest first, until about `wantedBytes`
  /// are free. True: there may be more.
  func removePassed(
    _ kind: ExpiryKey.Kind, nowMilliseconds: Int64, wantedBytes: UInt64 = .max
  ) throws(LMDBError) -> Bool {
    var steps = 0
    while let key = try firstExpiry(kind), key.timeMilliseconds <= nowMilliseconds {
      if steps >= Self.removalsMax || counts.freedBytes >= wantedBytes { return true }
      steps += 1
      try removeEntry(key.entryID, because: .expired)
      // Gone with the entry, unless there was none: then the row is all that is left.
      try transaction.delete(tables.expiry, key)
    }
    return false
  }

  /// Removes entries until about `wantedBytes` are free: those that end their trial unserved while
  /// more than `trialBytesMax` are on trial, otherwise by SIEVE. False: nothing is left to remove.
  func evict(
    wantedBytes: UInt64, trialBytesMax: Int64, entryCount: UInt64
  ) throws(LMDBError) -> Bool {
    let cursor = try transaction.cursor(tables.order)
    defer { mdb_cursor_close(cursor) }
    var isPastTrialEmpty = false
    for _ in 0..<Self.evictionStepsMax {
      if counts.freedBytes >= wantedBytes || counts.removed >= Self.removalsMax { return true }
      // Two rounds see every entry without its mark, unless hits set it again meanwhile.
      guard eviction.fruitlessSteps <= 2 * entryCount + 64 else { break }
      let removedBefore = counts.removed
      if eviction.trialBytes > trialBytesMax || isPastTrialEmpty {
        if try endTrial(cursor) {
          isPastTrialEmpty = false
        } else {
          eviction.trialBytes = 0
          if isPastTrialEmpty { break }
        }
      } else {
        isPastTrialEmpty = try !moveHand(cursor)
      }
      if counts.removed > removedBefore {
        eviction.fruitlessSteps = 0
      } else {
        eviction.fruitlessSteps += 1
      }
    }
    if eviction.fruitlessSteps > 0, eviction.fruitlessSteps <= 2 * entryCount + 64,
      !isPastTrialEmpty
    {
      return true
    }
    eviction.fruitlessSteps = 0
    return counts.removed > 0
  }

  /// Looks at the oldest entry on trial. False: there is none.
  private func endTrial(_ cursor: OpaquePointer) throws(LMDBError) -> Bool {
    guard let found = try transaction.row(atOrAfter: eviction.trialStart.bigEndian, cursor),
      let word = found.key.row(UInt64.self)
    else { return false }
    let entryID = UInt64(bigEndian: word)
    let row = OrderRow(found.value)
    if context.marks.clear(entryID) || pins.isPinned(entryID) {
      eviction.trialBytes -= Int64(clamping: row?.bytes ?? 0)
    } else {
      if let row { context.names.note(row.key) }
      try removeEntry(entryID, because: .evicted)
    }
    eviction.trialStart = entryID + 1
    return true
  }

  /// Looks at the next entry that has passed its trial. False: there is none.
  private func moveHand(_ cursor: OpaquePointer) throws(LMDBError) -> Bool {
    for start in [eviction.hand, 0] {
      guard let found = try transaction.row(atOrAfter: start.bigEndian, cursor),
        let word = found.key.row(UInt64.self), UInt64(bigEndian: word) < eviction.trialStart
      else { continue }
      let entryID = UInt64(bigEndian: word)
      eviction.hand = entryID + 1
      // Chunks that are being served would not go anyway.
      if !context.marks.clear(entryID), !pins.isPinned(entryID) {
        try removeEntry(entryID, because: .evicted)
      }
      return true
    }
    return false
  }

  /// Notes what an entry that comes new has behind it: a copy that it replaces, or a trial that it
  /// failed not long ago. Either way it was asked for before.
  func noteArrival(_ entryID: UInt64, _ key: EntriesKey, replaces: Bool) {
    if context.names.take(key) || replaces { context.marks.mark(entryID) }
  }

  /// Removes entries that a purge of everything covers. True: there may be more.
  func removePurged() throws(LMDBError) -> Bool {
    let cursor = try transaction.cursor(tables.order)
    defer { mdb_cursor_close(cursor) }
    while let found = try transaction.row(atOrAfter: UInt64(0), cursor),
      let word = found.key.row(UInt64.self), UInt64(bigEndian: word) < context.purgeFloor
    {
      if counts.removed >= Self.removalsMax { return true }
      try removeEntry(UInt64(bigEndian: word), because: .purged)
    }
    return false
  }
}
