/// What the store's threads tell one another beside the queue: counters, the purge floor and the
/// number of commits.
///
/// Atomics where a loop reads them at each request, a lock for the rest. Owned by LMDBStore;
/// written by StoreWriter, but for the floor and the refusals, which the loops write.
internal import CachePolicy
internal import Synchronization

final class StoreShared: Sendable {
  /// Rises with each commit, after it: a snapshot that begins when it has been read holds it.
  let generation = Atomic<UInt64>(1)
  /// Entries with a lower ID were purged, all at once.
  let purgeFloor: Atomic<UInt64>
  let nextEntryID: Atomic<UInt64>
  /// The bytes in use above which entries are evicted.
  let maxSizeBytes: Atomic<UInt64>
  let slots = SnapshotSlots()
  let purges: PurgeRules
  let fills = RunningFills()
  /// For `StoreKeyHash`.
  let secret: (UInt64, UInt64)

  struct Report {
    var usedBytes: UInt64 = 0
    var entryCount: UInt64 = 0
    var counts = EntryTransaction.Counts()
    var notStored: [NotStoredReason: UInt64] = [:]
    var routes: [UInt64: RouteRow] = [:]
    var state: StoreState = .ok
  }
  let report = Mutex(Report())

  /// Entry IDs of one opening start above all that an earlier one gave: it has 2^40 of them.
  init(_ identity: StoreIdentity, maxSizeBytes: UInt64) {
    self.maxSizeBytes = Atomic(maxSizeBytes)
    purgeFloor = Atomic(identity.purgeFloor)
    nextEntryID = Atomic(identity.entryIDsStart)
    secret = (identity.secretFirst, identity.secretSecond)
    purges = PurgeRules(secret: secret, stored: identity.purges)
    report.withLock { $0.routes = identity.routes }
  }

  /// Makes everything void that has a lower ID; returns the floor that holds, which is to be
  /// written.
  func raisePurgeFloor(to floor: UInt64) -> UInt64 {
    // Two purges at once: the later floor holds.
    let held = purgeFloor.max(floor, ordering: .sequentiallyConsistent).newValue
    purges.supersede(floor: floor)
    return held
  }

  /// Above every ID given before now.
  var floorOfNow: UInt64 { nextEntryID.load(ordering: .sequentiallyConsistent) + 1 }

  func countNotStored(_ reason: NotStoredReason) {
    report.withLock { $0.notStored[reason, default: 0] += 1 }
  }
}
