/// Removes what the rules of purges cover, a bounded step at a time.
///
/// A tag's entries are found by the index of tags, a path's by walking the rows that begin with its
/// hash, and all waiting patterns' by one walk over all entries. Where a step stopped is remembered
/// here alone: after a restart the rules are in the file and their sweep begins anew. A value, so
/// that a step whose transaction fails has not happened. Owned by StoreWriter.
internal import CLMDB
internal import CachePolicy

struct PurgeSweep {
  /// How many rows one step looks at.
  static let rowsMax = 4096

  /// A walk along the rows of `entries`.
  private struct Walk {
    var purges: [PurgeRules.Purge]
    var next: EntriesKey
  }
  private var pathWalk: Walk?
  private var patternWalk: Walk?

  /// Goes on with the rules that wait; returns those that are done with, whose rows are deleted.
  mutating func step(
    _ changes: EntryTransaction, _ waiting: [PurgeRules.Purge]
  ) throws(LMDBError) -> [PurgeRules.Purge] {
    var done: [PurgeRules.Purge] = []
    var rowsLeft = Self.rowsMax
    var direct = waiting.filter { !$0.target.isPattern }
    // The walk that was begun goes on first: another one would take its place.
    if let index = direct.firstIndex(where: { pathWalk?.purges == [$0] }) {
      direct.swapAt(0, index)
    }
    for purge in direct {
      guard try sweep(purge, changes, &rowsLeft) else { return done }
      try changes.deleteRule(purge)
      done.append(purge)
    }
    let patterns = waiting.filter { $0.target.isPattern }
    if patterns.isEmpty {
      patternWalk = nil
    } else if patternWalk == nil {
      patternWalk = Walk(purges: patterns, next: .first)
    }
    guard var walk = patternWalk else { return done }
    guard try advance(&walk, while: { _ in true }, changes, &rowsLeft) else {
      patternWalk = walk
      return done
    }
    patternWalk = nil
    for purge in walk.purges { try changes.deleteRule(purge) }
    return done + walk.purges
  }

  /// True: nothing that the rule covers is left.
  private mutating func sweep(
    _ purge: PurgeRules.Purge, _ changes: EntryTransaction, _ rowsLeft: inout Int
  ) throws(LMDBError) -> Bool {
    switch purge.target {
    case .tag(let hash):
      return try changes.removeTagged(hash, floor: purge.floor, &rowsLeft)
    case .url(let pathHash, _), .path(let pathHash, _):
      var walk: Walk
      if let begun = pathWalk, begun.purges == [purge] {
        walk = begun
      } else {
        let start = EntriesKey(StoreKey(high: pathHash, low: 0), variantHash: 0)
        walk = Walk(purges: [purge], next: start)
      }
      let isDone = try advance(
        &walk, while: { $0.storeKey.high == pathHash }, changes, &rowsLeft)
      pathWalk = isDone ? nil : walk
      return isDone
    case .pattern: return true
    }
  }

  /// True: the walk is at its end.
  private func advance(
    _ walk: inout Walk, while isWithin: (EntriesKey) -> Bool, _ changes: EntryTransaction,
    _ rowsLeft: inout Int
  ) throws(LMDBError) -> Bool {
    let cursor = try changes.transaction.cursor(changes.tables.entries)
    defer { mdb_cursor_close(cursor) }
    while true {
      if rowsLeft <= 0 || changes.hasRemovedEnough { return false }
      guard let found = try changes.transaction.row(atOrAfter: walk.next, cursor) else {
        return true
      }
      rowsLeft -= 1
      guard let key = EntriesKey(found.key), isWithin(key) else { return true }
      if let record = RecordView(found.value) {
        let subject = PurgeSubject(
          record: record, pathHash: key.storeKey.high, secret: changes.context.secret)
        let entryID = record.entryID
        if walk.purges.contains(where: { entryID < $0.floor && $0.target.covers(subject) }) {
          try changes.removeRow(key, entryID: entryID, because: .purged)
        }
      } else {
        // What cannot be read is taken for covered.
        try changes.removeRow(key, entryID: nil, because: .purged)
      }
      guard let next = key.successor else { return true }
      walk.next = next
    }
  }
}

extension EntryTransaction {
  var hasRemovedEnough: Bool { counts.removed >= Self.removalsMax }

  /// Notes a rule in the file.
  func putRule(_ purge: PurgeRules.Purge) throws(LMDBError) {
    try transaction.put(
      tables.purges, purge.target.rowKey(context.secret), purge.target.row(floor: purge.floor))
  }

  /// Deletes a rule's row, unless it has been given a higher floor.
  func deleteRule(_ purge: PurgeRules.Purge) throws(LMDBError) {
    let key = purge.target.rowKey(context.secret)
    guard let row = try transaction.value(tables.purges, key),
      (PurgeTarget.read(row)?.floor).map({ $0 <= purge.floor }) ?? true
    else { return }
    try transaction.delete(tables.purges, key)
  }

  /// Deletes the rows of rules that a purge of everything makes superfluous.
  func deleteRules(floor: UInt64) throws(LMDBError) {
    let cursor = try transaction.cursor(tables.purges)
    defer { mdb_cursor_close(cursor) }
    var next: EntriesKey? = .first
    while let from = next, let found = try transaction.row(atOrAfter: from, cursor) {
      guard let key = EntriesKey(found.key) else { return }
      next = key.successor
      if PurgeTarget.read(found.value).map({ $0.floor <= floor }) ?? true {
        try transaction.delete(tables.purges, key)
      }
    }
  }

  /// Removes entries with a tag, oldest first. True: none below the floor is left.
  func removeTagged(
    _ hash: UInt64, floor: UInt64, _ rowsLeft: inout Int
  ) throws(LMDBError) -> Bool {
    let cursor = try transaction.cursor(tables.tags)
    defer { mdb_cursor_close(cursor) }
    while let found = try transaction.row(atOrAfter: TagKey(hash, 0), cursor),
      let key = TagKey(found.key), key.tagHash == hash, key.entryID < floor
    {
      if rowsLeft <= 0 || hasRemovedEnough { return false }
      rowsLeft -= 1
      try removeEntry(key.entryID, because: .purged)
      // Gone with the entry, unless there was none: then the row is all that is left.
      try transaction.delete(tables.tags, key)
    }
    return true
  }
}
