/// Which entries go when there is no room, and which when their time has come.
///
/// For room: first those that are of no use any more (`evictAfter`), then by the SIEVE idea (Zhang
/// et al., NSDI 2024) over `order`: a hand walks from old to new and round again; an entry that was
/// served since the hand last came by loses its mark and stays, another goes. No hit writes to the
/// store, and one pass of a crawler does not flush what is in use. Called by StoreWriter.
internal import CLMDB

extension EntryTransaction {
  /// How many entries one transaction removes at most.
  static let removalsMax = 1024

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

  /// Removes entries by SIEVE until about `wantedBytes` are free.
  func removeBySieve(
    hand: inout UInt64, marks: VisitedMarks, wantedBytes: UInt64
  ) throws(LMDBError) {
    let cursor = try transaction.cursor(tables.order)
    defer { mdb_cursor_close(cursor) }
    // Two rounds see every entry without its mark, unless hits set it again meanwhile.
    var roundsLeft = 2
    while counts.freedBytes < wantedBytes, counts.removed < Self.removalsMax {
      guard let found = try transaction.row(atOrAfter: hand.bigEndian, cursor),
        let word = found.key.row(UInt64.self)
      else {
        roundsLeft -= 1
        hand = 0
        if roundsLeft == 0 { return }
        continue
      }
      let entryID = UInt64(bigEndian: word)
      hand = entryID + 1
      // Chunks that are being served would not go anyway.
      if marks.clear(entryID) || pins.isPinned(entryID) { continue }
      try removeEntry(entryID, because: .evicted)
    }
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
