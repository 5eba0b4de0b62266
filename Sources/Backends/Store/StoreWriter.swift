/// The store's one writer: a thread that takes what is queued, commits it in groups, keeps the
/// store within its size, and removes what has had its time.
///
/// A commit that finds no room evicts and is tried once more; what fails then is refused (counted,
/// told to `onCommitted`, gone from the overlay), and the next write tries again. Removals are not
/// refused: they stay and hide what they remove until they are committed. Nothing here ever blocks
/// or ends the process. Started by LMDBStore.open, ends after `WriteQueue.stop`.
internal import CachePolicy
internal import Synchronization

final class StoreWriter {
  private let environment: LMDBEnvironment
  private let queue: WriteQueue
  private let shared: StoreShared
  private let pins: PinTable
  private let marks: VisitedMarks
  private let clock: Clock
  private let configuration: StoreConfiguration
  private let log: @Sendable (String) -> Void

  private var usedBytes: UInt64
  private var routes: [UInt64: RouteRow]
  /// Where the eviction goes on: the ID of the next entry to look at.
  private var hand: UInt64 = 0
  private var nextKeepUntilMilliseconds: Int64?
  /// Removals whose commit failed.
  private var carriedOver: [QueuedWrite] = []
  /// Entries below the purge floor may be left.
  private var mayHavePurged = true
  private var purgeSweep = PurgeSweep()
  /// The size asks for a longer map, and readers were in the way.
  private var awaitsMap = false
  /// Background work failed: it waits for the next write or a second.
  private var isBackgroundBlocked = false
  private static let idleMilliseconds: Int64 = 1000

  init(
    environment: LMDBEnvironment, queue: WriteQueue, shared: StoreShared, pins: PinTable,
    marks: VisitedMarks, clock: Clock, configuration: StoreConfiguration,
    log: @escaping @Sendable (String) -> Void
  ) {
    self.environment = environment
    self.queue = queue
    self.shared = shared
    self.pins = pins
    self.marks = marks
    self.clock = clock
    self.configuration = configuration
    self.log = log
    usedBytes = 0
    routes = shared.report.withLock { $0.routes }
    // The first commit or background step sets it right.
    nextKeepUntilMilliseconds = 0
    measure()
  }

  func run() {
    while let batch = queue.nextBatch(
      hasOtherWork: !isBackgroundBlocked && hasBackgroundWork,
      idleMilliseconds: needsIdleTurns ? Self.idleMilliseconds : nil)
    {
      isBackgroundBlocked = false
      if awaitsMap { growMap() }
      if !batch.isEmpty || !carriedOver.isEmpty { process(batch) }
      if hasBackgroundWork { isBackgroundBlocked = !stepBackground() }
      advancePurges()
    }
    if !carriedOver.isEmpty { process([]) }
    if !carriedOver.isEmpty {
      log("store \(configuration.path): \(carriedOver.count) removals were not committed")
    }
  }

  private var maxSizeBytes: UInt64 { shared.maxSizeBytes.load(ordering: .sequentiallyConsistent) }

  private var needsIdleTurns: Bool {
    nextKeepUntilMilliseconds != nil || !carriedOver.isEmpty || isBackgroundBlocked
      || shared.purges.awaitsOthers || awaitsMap
  }

  // MARK: Batches

  private func process(_ batch: [QueuedWrite]) {
    let writes = carriedOver + batch
    carriedOver = []
    if writes.contains(where: { if case .resize = $0.write { true } else { false } }) { growMap() }
    makeRoom(for: writes.reduce(0) { $0 + Self.sizeBytes($1.write) })
    var result = attempt(writes)
    if case .failure(let error) = result {
      if error.isFull { _ = evict(freeing: max(maxSizeBytes / 16, 1)) }
      // Pages that one transaction frees are not the next one's to use: let one pass.
      if error.isFull { commitNothing() }
      result = attempt(writes)
    }
    var outcomes: [NotStoredReason?]
    switch result {
    case .success(let reasons):
      outcomes = reasons
      noteState(reasons.contains(.storeFull) ? .degraded("no room within the size") : .ok)
    case .failure(let error):
      outcomes = refuse(writes, because: error)
    }
    if writes.contains(where: { if case .sweep = $0.write { true } else { false } }) {
      while hasBackgroundWork, stepBackground() {}
      advancePurges()
    }
    finish(batch, writes, outcomes)
  }

  private func attempt(_ writes: [QueuedWrite]) -> Result<[NotStoredReason?], LMDBError> {
    do throws(LMDBError) {
      let changes = try begin()
      var outcomes: [NotStoredReason?] = []
      outcomes.reserveCapacity(writes.count)
      var roomBytes = Int64(clamping: maxSizeBytes) - Int64(clamping: usedBytes)
      for queued in writes {
        outcomes.append(try apply(queued.write, to: changes, roomBytes: &roomBytes))
      }
      try commit(changes)
      if writes.contains(where: { if case .purge = $0.write { true } else { false } }) {
        mayHavePurged = true
      }
      return .success(outcomes)
    } catch {
      return .failure(error)
    }
  }

  private func apply(
    _ write: StoreWrite, to changes: EntryTransaction, roomBytes: inout Int64
  ) throws(LMDBError) -> NotStoredReason? {
    let size = Int64(clamping: Self.sizeBytes(write))
    if write.isRefusable {
      guard size <= roomBytes else {
        if case .chunk(_, let entryID, _, _) = write { try changes.reclaim(entryID) }
        if case .record(let record, _, .insert, _) = write {
          try changes.reclaim(record.view.entryID)
        }
        return .storeFull
      }
      roomBytes -= size
    }
    switch write {
    case .record(let record, let key, let mode, let variantsMax):
      return try changes.put(record, key: key, mode: mode, variantsMax: variantsMax)
    case .chunk(let chunk, let entryID, let index, _):
      return try changes.put(chunk, ChunkKey(entryID, index))
    case .reclaim(let entryID): try changes.reclaim(entryID)
    case .remove(let key): try changes.remove(key)
    case .purge(let floor):
      try changes.transaction.put(
        changes.tables.meta, MetaKey.purgeFloor.bytes, value: floor)
      try changes.deleteRules(floor: floor)
    case .purgeRule(let purge): try changes.putRule(purge)
    case .forgetRule(let purge): try changes.deleteRule(purge)
    case .damagedRecord(let key): try changes.removeDamaged(key)
    case .damagedChunk(let key): try changes.removeDamaged(key)
    case .sweep, .resize: break
    }
    return nil
  }

  /// Gives up what may be given up, and commits the removals alone, or keeps them.
  private func refuse(
    _ writes: [QueuedWrite], because error: LMDBError
  ) -> [NotStoredReason?] {
    let reason: NotStoredReason = error.isFull ? .storeFull : .storeFailed
    noteState(.degraded(error.text))
    if error.isTreeDamage { environment.markForSettingAside() }
    let removals = writes.filter { !$0.write.isRefusable }
    if !removals.isEmpty, case .failure = attempt(removals) { carriedOver = removals }
    return writes.map { $0.write.isRefusable ? reason : nil }
  }

  private func finish(
    _ batch: [QueuedWrite], _ writes: [QueuedWrite], _ outcomes: [NotStoredReason?]
  ) {
    var failed: Set<UInt64> = []
    var countedEntries: Set<UInt64> = []
    for (queued, outcome) in zip(writes, outcomes) {
      guard let outcome else { continue }
      failed.insert(queued.sequence)
      switch queued.write {
      case .record(_, _, .refresh, _): break
      case .record(let record, _, .insert, _):
        if countedEntries.insert(record.view.entryID).inserted { shared.countNotStored(outcome) }
      case .chunk(_, let entryID, _, _):
        if countedEntries.insert(entryID).inserted { shared.countNotStored(outcome) }
      default: break
      }
    }
    // Before `settle`, which lets `flush` return: whoever flushes has had all callbacks.
    for (queued, outcome) in zip(writes, outcomes) {
      if case .chunk(_, _, _, let onCommitted?) = queued.write { onCommitted(outcome == nil) }
    }
    let settled = carriedOver.first.map { $0.sequence - 1 } ?? batch.last?.sequence
    let oldestGeneration = queue.settle(
      batch, failed: failed, settledSequence: settled ?? writes.last?.sequence ?? 0,
      generation: shared.generation.load(ordering: .sequentiallyConsistent))
    pins.prune(oldestGeneration: oldestGeneration)
    guard carriedOver.isEmpty else { return }
    // Not before: what these purges cover may be in the overlay, and has to leave it before they
    // are done with.
    for queued in writes {
      if case .purgeRule(let purge) = queued.write { shared.purges.markStored(purge) }
    }
  }

  private static func sizeBytes(_ write: StoreWrite) -> UInt64 {
    switch write {
    case .record(let record, _, _, _):
      StoreSizes.recordBytes(record.bytes.count, tagCount: record.view.tags.count)
    case .chunk(let chunk, _, _, _): StoreSizes.chunkBytes(chunk.count)
    default: 0
    }
  }

  // MARK: Transactions

  private func begin() throws(LMDBError) -> EntryTransaction {
    try EntryTransaction(
      environment,
      EntryTransaction.Context(
        pins: pins, secret: shared.secret,
        purgeFloor: shared.purgeFloor.load(ordering: .sequentiallyConsistent),
        purges: shared.purges, variantsMax: configuration.variantsMax,
        chunkedBytesMax: maxSizeBytes / 2))
  }

  private func commit(_ changes: EntryTransaction) throws(LMDBError) {
    let generation = shared.generation.load(ordering: .relaxed) + 1
    nextKeepUntilMilliseconds = try changes.commit(routes: &routes, generation: generation)
    shared.generation.store(generation, ordering: .sequentiallyConsistent)
    environment.keepFileLongEnough()
    let counts = changes.counts
    shared.report.withLock { report in
      report.routes = routes
      report.counts.evicted += counts.evicted
      report.counts.expired += counts.expired
      report.counts.variantsDropped += counts.variantsDropped
      report.counts.damaged += counts.damaged
      report.counts.purged += counts.purged
    }
    measure()
  }

  private func commitNothing() {
    do throws(LMDBError) {
      let transaction = try environment.beginWrite()
      try transaction.put(environment.tables.meta, MetaKey.pause.bytes, value: UInt64(0))
      try transaction.commit()
    } catch {
      noteState(.degraded(error.text))
    }
  }

  private func measure() {
    // A failure leaves the last figures; the next commit measures again.
    guard let measured = try? environment.measure() else { return }
    usedBytes = measured.usedBytes
    shared.report.withLock { report in
      report.usedBytes = measured.usedBytes
      report.entryCount = measured.entryCount
    }
  }

  private func noteState(_ state: StoreState) {
    let previous = shared.report.withLock { report in
      let previous = report.state
      report.state = state
      return previous
    }
    guard previous != state else { return }
    switch state {
    case .ok: log("store \(configuration.path): writes land again")
    case .degraded(let reason): log("store \(configuration.path): not storing: \(reason)")
    }
  }

  // MARK: Room

  /// How long new turns may have to wait for those that run, where the map is to be moved.
  private static let readersOutMilliseconds: Int64 = 20

  private func growMap() {
    let wanted = StoreConfiguration.mapSizeBytes(maxSizeBytes: maxSizeBytes)
    guard wanted > environment.mapSizeBytes else {
      awaitsMap = false
      return
    }
    let wasMoved = shared.slots.withReadersOut(
      waitMilliseconds: Self.readersOutMilliseconds
    ) {
      switch environment.growMap(toBytes: wanted) {
      case .grown: return .open
      case .kept:
        log("store \(configuration.path): no address space for a larger size")
        return .open
      case .lost:
        log("store \(configuration.path): its map is lost: not storing, not serving from it")
        return .lost
      }
    }
    awaitsMap = !wasMoved
  }

  private func makeRoom(for bytes: UInt64) {
    let maxBytes = maxSizeBytes
    // Each round removes something, or there is nothing left to remove.
    while usedBytes + bytes > maxBytes {
      let target = min(maxBytes / 100 * 97, maxBytes - min(bytes, maxBytes))
      guard evict(freeing: max(1, usedBytes - min(target, usedBytes))) else { return }
    }
  }

  /// Removes entries worth about so many bytes. False: none was removed.
  private func evict(freeing wantedBytes: UInt64) -> Bool {
    do throws(LMDBError) {
      let changes = try begin()
      _ = try changes.removePassed(
        .evictAfter, nowMilliseconds: clock.nowMilliseconds, wantedBytes: wantedBytes)
      try changes.removeBySieve(hand: &hand, marks: marks, wantedBytes: wantedBytes)
      guard changes.counts.removed > 0 else { return false }
      try commit(changes)
      return true
    } catch {
      noteState(.degraded(error.text))
      return false
    }
  }

  // MARK: Background

  private var hasBackgroundWork: Bool {
    if mayHavePurged || usedBytes > maxSizeBytes { return true }
    if shared.purges.hasSweepWork { return true }
    return nextKeepUntilMilliseconds.map { $0 <= clock.nowMilliseconds } ?? false
  }

  /// One bounded transaction of what nobody waits for. False: it failed or there was nothing left
  /// to do about it.
  private func stepBackground() -> Bool {
    // What was purged goes before what is of use.
    if usedBytes > maxSizeBytes && !mayHavePurged && !shared.purges.hasSweepWork {
      return evict(freeing: usedBytes - maxSizeBytes / 100 * 97)
    }
    do throws(LMDBError) {
      let changes = try begin()
      let hasMore = try changes.removePurged()
      _ = try changes.removePassed(.keepUntil, nowMilliseconds: clock.nowMilliseconds)
      var sweep = purgeSweep
      let swept = try sweep.step(changes, shared.purges.waiting)
      try commit(changes)
      purgeSweep = sweep
      shared.purges.markSwept(
        swept, generation: shared.generation.load(ordering: .sequentiallyConsistent))
      mayHavePurged = hasMore
      return true
    } catch {
      noteState(.degraded(error.text))
      return false
    }
  }

  /// Lets go of purges that nobody can run into any more.
  private func advancePurges() {
    guard shared.purges.awaitsOthers else { return }
    shared.purges.advance(
      oldestGeneration: queue.pruneToOldestGeneration(), lowestFill: shared.fills.lowest)
  }
}
