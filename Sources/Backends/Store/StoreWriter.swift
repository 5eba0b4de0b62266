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
  private let file: StoreFile
  private let queue: WriteQueue
  private let shared: StoreShared
  private let pins: PinTable
  private let marks: VisitedMarks
  private let clock: Clock
  private let configuration: StoreConfiguration
  private let log: @Sendable (String) -> Void

  private var usedBytes: UInt64
  private var routes: [UInt64: RouteRow]
  private var eviction: EvictionState
  private let names = DepartedNames()
  private var nextKeepUntilMilliseconds: Int64?
  /// Removals whose commit failed.
  private var carriedOver: [QueuedWrite] = []
  /// Entries below the purge floor may be left.
  private var mayHavePurged = true
  private var purgeSweep = PurgeSweep()
  /// Chunks without a record may be left, of entries below this ID.
  private var leftoversEnd: UInt64?
  /// Background work failed: it waits for the next write or a second.
  private var isBackgroundBlocked = false
  private static let idleMilliseconds: Int64 = 1000
  /// How many rows of leftovers one step deletes: a chunk's is a page to read.
  private static let leftoverRowsMax = 512
  /// How many removals are kept while they cannot be committed.
  static let carriedOverMax = 16_384

  init(
    _ opened: StoreOpening.Opened, _ current: CurrentEnvironment, queue: WriteQueue,
    shared: StoreShared, pins: PinTable, marks: VisitedMarks, clock: Clock,
    configuration: StoreConfiguration, log: @escaping @Sendable (String) -> Void
  ) {
    file = StoreFile(opened, current, shared, configuration, log: log)
    self.queue = queue
    self.shared = shared
    self.pins = pins
    self.marks = marks
    self.clock = clock
    self.configuration = configuration
    self.log = log
    usedBytes = 0
    eviction = EvictionState(trialStart: opened.identity.entryIDsStart)
    routes = shared.report.withLock { $0.routes }
    // The first commit or background step sets it right.
    nextKeepUntilMilliseconds = 0
    leftoversEnd = opened.identity.entryIDsStart
    // Until the thread has measured: nobody is told of an empty store that is not.
    if let estimated = try? opened.environment.estimate() {
      shared.report.withLock { report in
        report.usedBytes = estimated.usedBytesMax
        report.entryCount = estimated.entryCount
      }
    }
  }

  private var environment: LMDBEnvironment { file.environment }

  func run() {
    // Not before the first hit: it looks at every part of the list of free pages.
    measure()
    while let batch = queue.nextBatch(
      hasOtherWork: !isBackgroundBlocked && hasBackgroundWork,
      idleMilliseconds: Self.idleMilliseconds)
    {
      isBackgroundBlocked = false
      lookAtFile()
      if file.awaitsMap { file.growMap() }
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

  /// Goes on with another file where this one is lost.
  private func lookAtFile() {
    file.look()
    guard let lossReason = file.lossReason else { return }
    noteState(.degraded(lossReason))
    guard let identity = file.reopen() else { return }
    routes = identity.routes
    purgeSweep = PurgeSweep()
    eviction = EvictionState(trialStart: shared.floorOfNow)
    nextKeepUntilMilliseconds = 0
    mayHavePurged = true
    shared.report.withLock { $0.routes = routes }
    measure()
    noteState(.ok)
  }

  // MARK: Batches

  private func process(_ batch: [QueuedWrite]) {
    let writes = carriedOver.isEmpty ? batch : carriedOver + batch
    carriedOver = []
    if writes.contains(where: { if case .resize = $0.write { true } else { false } }) {
      file.growMap()
    }
    let neededBytes = writes.reduce(0) { $0 + $1.write.storedBytes }
    makeRoom(for: neededBytes)
    var result = attempt(writes)
    if case .failure(let error) = result {
      // Of what there is, which may be far below the size where the disk is small.
      if error.isFull { _ = evict(freeing: max(usedBytes / 16, neededBytes, 1)) }
      // Pages that one transaction frees are not the next one's to use: let one pass.
      if error.isFull { commitNothing() }
      result = attempt(writes)
    }
    var outcomes: [NotStoredReason?]
    switch result {
    case .success(let reasons):
      outcomes = reasons
      // A commit without a put may have had nothing to write, and says nothing of the disk.
      let hasLanded = zip(writes, reasons).contains { $0.write.isRefusable && $1 == nil }
      if reasons.contains(.storeFull) {
        noteState(.degraded("no room within the size"))
      } else if hasLanded {
        noteState(.ok)
      }
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
        outcomes.append(try changes.apply(queued.write, roomBytes: &roomBytes))
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

  /// Gives up what may be given up, and commits the removals alone, or keeps them.
  private func refuse(
    _ writes: [QueuedWrite], because error: LMDBError
  ) -> [NotStoredReason?] {
    let reason: NotStoredReason = error.isFull ? .storeFull : .storeFailed
    noteFailure(error)
    let removals = writes.filter { !$0.write.isRefusable }
    if !removals.isEmpty, case .failure = attempt(removals) { carryOver(removals) }
    return writes.map { $0.write.isRefusable ? reason : nil }
  }

  /// Keeps removals for the next attempt. More than can be kept become one: everything goes, which
  /// is more than was asked for, and never less.
  private func carryOver(_ removals: [QueuedWrite]) {
    carriedOver = removals
    guard removals.count > Self.carriedOverMax, let last = removals.last else { return }
    let floor = shared.raisePurgeFloor(to: shared.floorOfNow)
    carriedOver = [QueuedWrite(sequence: last.sequence, write: .purge(floor: floor))]
    // Among them were the chunks of fills that went wrong.
    leftoversEnd = floor
    log("store \(configuration.path): too many removals wait for a commit: everything is removed")
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

  // MARK: Transactions

  private func begin() throws(LMDBError) -> EntryTransaction {
    try EntryTransaction(
      environment,
      EntryTransaction.Context(
        pins: pins, secret: shared.secret,
        purgeFloor: shared.purgeFloor.load(ordering: .sequentiallyConsistent),
        purges: shared.purges, variantsMax: configuration.variantsMax,
        chunkedBytesMax: maxSizeBytes / 2, marks: marks, names: names), eviction)
  }

  private func commit(_ changes: EntryTransaction) throws(LMDBError) {
    let generation = shared.generation.load(ordering: .relaxed) + 1
    nextKeepUntilMilliseconds = try changes.commit(routes: &routes, generation: generation)
    shared.generation.store(generation, ordering: .sequentiallyConsistent)
    file.noteSuccess()
    eviction = changes.eviction
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
      noteFailure(error)
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

  private func noteFailure(_ error: LMDBError) {
    file.note(error)
    noteState(.degraded(file.lossReason ?? error.text))
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

  private func makeRoom(for bytes: UInt64) {
    let maxBytes = maxSizeBytes
    // Each round removes something, or there is nothing left to remove.
    while usedBytes + bytes > maxBytes {
      let target = min(maxBytes / 100 * 97, maxBytes - min(bytes, maxBytes))
      guard evict(freeing: max(1, usedBytes - min(target, usedBytes))) else { return }
    }
  }

  /// Removes entries worth about so many bytes. False: there is none to remove.
  private func evict(freeing wantedBytes: UInt64) -> Bool {
    do throws(LMDBError) {
      let changes = try begin()
      if let leftoversEnd {
        _ = try changes.reclaimLeftovers(below: leftoversEnd, rowsMax: Self.leftoverRowsMax)
      }
      _ = try changes.removePassed(
        .evictAfter, nowMilliseconds: clock.nowMilliseconds, wantedBytes: wantedBytes)
      let entryCount = shared.report.withLock { $0.entryCount }
      names.grow(toCount: entryCount)
      let storedBytes = routes.values.reduce(Int64(0)) { $0 + $1.bytes }
      let goesOn = try changes.evict(
        wantedBytes: wantedBytes, trialBytesMax: storedBytes / 10, entryCount: entryCount)
      let freedBytes = changes.counts.freedBytes
      try commit(changes)
      return goesOn || freedBytes > 0
    } catch {
      noteFailure(error)
      return false
    }
  }

  // MARK: Background

  private var hasBackgroundWork: Bool {
    if mayHavePurged || leftoversEnd != nil || usedBytes > maxSizeBytes { return true }
    if shared.purges.hasSweepWork { return true }
    return nextKeepUntilMilliseconds.map { $0 <= clock.nowMilliseconds } ?? false
  }

  /// One bounded transaction of what nobody waits for. False: it failed or there was nothing left
  /// to do about it.
  private func stepBackground() -> Bool {
    // What was purged goes before what is of use.
    let isTidy = !mayHavePurged && leftoversEnd == nil && !shared.purges.hasSweepWork
    if usedBytes > maxSizeBytes && isTidy {
      return evict(freeing: usedBytes - maxSizeBytes / 100 * 97)
    }
    do throws(LMDBError) {
      let changes = try begin()
      let hasMore = try changes.removePurged()
      _ = try changes.removePassed(.keepUntil, nowMilliseconds: clock.nowMilliseconds)
      var hasLeftovers = false
      if let leftoversEnd {
        hasLeftovers = try changes.reclaimLeftovers(
          below: leftoversEnd, rowsMax: Self.leftoverRowsMax)
      }
      var sweep = purgeSweep
      let swept = try sweep.step(changes, shared.purges.waiting)
      try commit(changes)
      purgeSweep = sweep
      shared.purges.markSwept(
        swept, generation: shared.generation.load(ordering: .sequentiallyConsistent))
      mayHavePurged = hasMore
      if !hasLeftovers { leftoversEnd = nil }
      return true
    } catch {
      noteFailure(error)
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
