/// The way from the event loops to the writer thread: a bounded queue, and the overlay that shows
/// what is in it to readers.
///
/// One lock guards both, so that the overlay's order is the queue's. Loops hold it for a few
/// dictionary operations; the writer never holds it across LMDB. A full queue refuses puts and
/// chunks; removals are always taken, since a purge must not fail. Created by LMDBStore.open.
internal import CachePolicy
internal import Synchronization

/// One write, as the writer applies it.
enum StoreWrite {
  /// `variantsMax`: how many variants the key may have then; nil: the store's own limit.
  case record(RecordBuffer, key: StoreKey, mode: WriteMode, variantsMax: Int?)
  case chunk(
    BodyChunk, entryID: UInt64, index: UInt32, onCommitted: (@Sendable (Bool) -> Void)?)
  /// The chunks of a fill that ended badly, or that only a pin kept, go.
  case reclaim(entryID: UInt64)
  case remove(StoreKey)
  /// Entries below the floor are gone.
  case purge(floor: UInt64)
  case purgeRule(PurgeRules.Purge)
  /// Wider rules stand in the rule's place.
  case forgetRule(PurgeRules.Purge)
  case damagedRecord(EntriesKey)
  case damagedChunk(ChunkKey)
  case sweep
  /// The store has another size.
  case resize

  /// Whether the write may be given up when there is no room: the others are tried until they
  /// succeed.
  var isRefusable: Bool {
    switch self {
    case .record, .chunk: true
    default: false
    }
  }

  /// Whether a crash before its commit would bring back what must not serve.
  var takesAway: Bool {
    switch self {
    case .record(let record, _, .refresh, _):
      record.view.metadata.flags.contains(.contradicted)
    case .record, .chunk: false
    default: true
    }
  }

  /// What it weighs in the queue.
  var bytes: Int {
    switch self {
    case .record(let record, _, _, _): record.bytes.count + 256
    case .chunk(let chunk, _, _, _): chunk.count + 256
    default: 64
    }
  }
}

struct QueuedWrite {
  var sequence: UInt64
  var write: StoreWrite
}

final class WriteQueue: @unchecked Sendable {
  // @unchecked Sendable: `state` is touched only between `monitor.lock()` and `unlock()`.
  private let monitor = MonitorLock()
  private var state: State
  private let purges: PurgeRules
  private let slots: SnapshotSlots
  private let pins: PinTable
  private let bytesMax: Int
  private let timing: CommitTiming
  /// How many keys and chunks the overlay holds: readers look in it only if there are any.
  let overlayCount = Atomic<Int>(0)
  /// Those among them that failed and are kept for readers; more while `settle` decides.
  private let heldCount = Atomic<Int>(0)

  private struct State {
    var writes: [QueuedWrite] = []
    /// Of the waiting writes alone.
    var waitingBytes = 0
    /// Of the waiting writes and those in the writer's hands.
    var bytes = 0
    var lastSequence: UInt64 = 0
    var processedSequence: UInt64 = 0
    var urgentSequence: UInt64 = 0
    var nextCommitMilliseconds: Int64 = 0
    /// What waits, as far as it decides when it is committed.
    var waiting: CommitTiming.Waiting {
      CommitTiming.Waiting(
        sinceMilliseconds: waitingSinceMilliseconds, bytes: waitingBytes,
        hasRemoval: hasWaitingRemoval)
    }
    /// When the oldest of the waiting writes came.
    var waitingSinceMilliseconds: Int64 = 0
    var hasWaitingRemoval = false
    var isStopping = false
    var isStopped = false
    /// The writer waits for any write; otherwise for its time, or for many.
    var isWriterIdle = false
    var overlay = WriteOverlay()
    /// Entries with a chunk that failed: their record must not become visible.
    var failedEntries: Set<UInt64> = []
    var batchBytesMax: Int
  }

  init(_ configuration: StoreConfiguration, _ shared: StoreShared, _ pins: PinTable) {
    self.pins = pins
    purges = shared.purges
    slots = shared.slots
    bytesMax = configuration.queueBytesMax
    state = State(
      batchBytesMax: StoreConfiguration.transactionBytesMax(
        maxSizeBytes: configuration.maxSizeBytes))
    timing = CommitTiming(
      intervalMilliseconds: configuration.commitIntervalMilliseconds,
      gatheringMilliseconds: configuration.gatheringMilliseconds)
  }

  @inline(__always)
  private func locked<Result>(_ body: (inout State) -> Result) -> Result {
    monitor.lock()
    defer { monitor.unlock() }
    return body(&state)
  }

  var bytes: Int { locked { $0.bytes } }

  // MARK: For the event loops

  func put(
    _ record: RecordBuffer, key: StoreKey, mode: WriteMode, variantsMax: Int?
  ) -> NotStoredReason? {
    let view = record.view
    let entryID = view.entryID
    let variantHash = view.variantHash
    return locked { state in
      if state.failedEntries.contains(entryID) { return .storeFailed }
      // Under the lock: a record that gets past this comes before the purge's own write, and the
      // writer removes it with what the purge found.
      if purges.refuses(view, pathHash: key.high, mode: mode) { return .invalidated }
      let write = StoreWrite.record(
        record, key: key, mode: mode, variantsMax: variantsMax)
      if let refusal = append(write, to: &state) { return refusal }
      state.overlay.put(
        PendingRecord(
          sequence: state.lastSequence, mode: mode, entryID: entryID, variantHash: variantHash,
          record: record), key: key)
      publishOverlayCount(state)
      return nil
    }
  }

  func put(
    _ chunk: BodyChunk, entryID: UInt64, index: UInt32,
    onCommitted: (@Sendable (Bool) -> Void)?
  ) -> NotStoredReason? {
    locked { state in
      if state.failedEntries.contains(entryID) { return .storeFailed }
      let write = StoreWrite.chunk(
        chunk, entryID: entryID, index: index, onCommitted: onCommitted)
      if let refusal = append(write, to: &state) { return refusal }
      state.overlay.put(chunk, key: ChunkKey(entryID, index), sequence: state.lastSequence)
      publishOverlayCount(state)
      return nil
    }
  }

  func remove(_ key: StoreKey) {
    locked { state in
      if append(.remove(key), to: &state) != nil { return }
      state.overlay.remove(key, sequence: state.lastSequence)
      publishOverlayCount(state)
    }
  }

  func abandon(entryID: UInt64) {
    locked { state in
      state.failedEntries.remove(entryID)
      _ = append(.reclaim(entryID: entryID), to: &state)
    }
  }

  /// The last pin of an entry is gone: what was kept of it for its readers goes too.
  func release(entryID: UInt64) {
    guard heldCount.load(ordering: .sequentiallyConsistent) != 0 else { return }
    locked { state in
      // Pinned again meanwhile: the next unpin comes here too.
      guard !pins.isPinned(entryID) else { return }
      state.overlay.release(entryID: entryID)
      publishOverlayCount(state)
    }
  }

  /// Puts a write without an overlay into the queue; nothing happens once it is stopped.
  func append(_ write: StoreWrite) {
    locked { state in _ = append(write, to: &state) }
  }

  /// Tells the writer that the store has another size.
  func resize(batchBytesMax: Int) {
    locked { state in
      state.batchBytesMax = batchBytesMax
      _ = append(.resize, to: &state)
    }
  }

  private func append(_ write: StoreWrite, to state: inout State) -> NotStoredReason? {
    if state.isStopping { return .storeFailed }
    let bytes = write.bytes
    if write.isRefusable && state.bytes + bytes > bytesMax { return .queueFull }
    state.lastSequence += 1
    if state.writes.isEmpty { state.waitingSinceMilliseconds = MonitorLock.monotonicMilliseconds }
    let wasHurried = state.waiting.isHurried
    state.writes.append(QueuedWrite(sequence: state.lastSequence, write: write))
    state.bytes += bytes
    state.waitingBytes += bytes
    if write.takesAway { state.hasWaitingRemoval = true }
    if state.isWriterIdle || wasHurried != state.waiting.isHurried
      || state.waitingBytes >= state.batchBytesMax
    {
      monitor.wakeAll()
    }
    return nil
  }

  private func publishOverlayCount(_ state: State) {
    overlayCount.store(state.overlay.count, ordering: .sequentiallyConsistent)
    heldCount.store(state.overlay.heldCount, ordering: .sequentiallyConsistent)
  }

  /// Waits until all that came before is committed or has failed.
  func flush() {
    monitor.lock()
    let target = state.lastSequence
    state.urgentSequence = max(state.urgentSequence, target)
    monitor.wakeAll()
    while state.processedSequence < target && !state.isStopped { monitor.wait() }
    monitor.unlock()
  }

  /// Lets the writer finish what is in the queue and end; refuses all that comes later.
  func stop() {
    locked { state in
      state.isStopping = true
      monitor.wakeAll()
    }
  }

  func waitUntilStopped() {
    monitor.lock()
    while !state.isStopped { monitor.wait() }
    monitor.unlock()
  }

  // MARK: For the readers

  func pending(_ key: StoreKey) -> PendingKey? { locked { $0.overlay.pending(key) } }
  func chunk(_ key: ChunkKey) -> BodyChunk? { locked { $0.overlay.chunk(key) } }

  // MARK: For the writer

  /// Waits for writes, and for the time of the next commit, and takes as many as fit into one.
  ///
  /// Empty: there is other work (`hasOtherWork`) or `idleMilliseconds` have passed without a
  /// write. Nil: the queue is stopped and empty.
  func nextBatch(hasOtherWork: Bool, idleMilliseconds: Int64?) -> [QueuedWrite]? {
    monitor.lock()
    defer { monitor.unlock() }
    let idleEnd = idleMilliseconds.map { MonitorLock.monotonicMilliseconds + $0 }
    while true {
      let now = MonitorLock.monotonicMilliseconds
      if !state.writes.isEmpty {
        let isUrgent = state.isStopping || state.processedSequence < state.urgentSequence
        let dueIn =
          timing.commitMilliseconds(
            of: state.waiting, earliestMilliseconds: state.nextCommitMilliseconds,
            hasOtherWork: hasOtherWork) - now
        if isUrgent || dueIn <= 0 || state.waitingBytes >= state.batchBytesMax {
          state.nextCommitMilliseconds = now + timing.intervalMilliseconds
          return takeBatch()
        }
        monitor.wait(milliseconds: dueIn)
        continue
      }
      if state.isStopping { return nil }
      if hasOtherWork { return [] }
      prune()
      if let idleEnd, now >= idleEnd { return [] }
      state.isWriterIdle = true
      // A reader within its turn keeps overlay entries: they go a little later.
      let pruneIn: Int64? = state.overlay.awaitsReaders ? 10 : nil
      if let limit = [idleEnd.map { $0 - now }, pruneIn].compactMap({ $0 }).min() {
        monitor.wait(milliseconds: limit)
      } else {
        monitor.wait()
      }
      state.isWriterIdle = false
    }
  }

  private func takeBatch() -> [QueuedWrite] {
    if state.waitingBytes <= state.batchBytesMax {
      let all = state.writes
      state.writes = []
      state.waitingBytes = 0
      state.hasWaitingRemoval = false
      return all
    }
    var bytes = 0
    var count = 0
    for queued in state.writes {
      bytes += queued.write.bytes
      if count > 0 && bytes > state.batchBytesMax { break }
      count += 1
    }
    let taken = Array(state.writes[..<count])
    state.writes.removeFirst(count)
    state.hasWaitingRemoval = state.writes.contains { $0.write.takesAway }
    state.waitingBytes -= taken.reduce(0) { $0 + $1.write.bytes }
    return taken
  }

  /// Ends a batch: writes in `failed` are taken back, the others up to `settledSequence` are in
  /// snapshots from `generation` on. Returns the oldest generation a reader may be in.
  func settle(
    _ batch: [QueuedWrite], failed: Set<UInt64>, settledSequence: UInt64, generation: UInt64
  ) -> UInt64 {
    locked { state in
      state.overlay.drop(failed)
      // Raised before the pins are looked at: an unpin that this misses comes to `release`.
      if !failed.isEmpty { heldCount.add(failed.count, ordering: .sequentiallyConsistent) }
      for queued in batch where failed.contains(queued.sequence) {
        guard case .chunk(let chunk, let entryID, let index, _) = queued.write else { continue }
        noteFailed(entryID, &state)
        // Whoever began the body reads on: a store that fails costs no client its answer.
        if pins.isPinned(entryID) { state.overlay.hold(chunk, key: ChunkKey(entryID, index)) }
      }
      state.overlay.settle(through: settledSequence, generation: generation)
      state.bytes -= batch.reduce(0) { $0 + $1.write.bytes }
      if let last = batch.last { state.processedSequence = last.sequence }
      prune(&state)
      monitor.wakeAll()
      return slots.oldestGeneration
    }
  }

  /// Bounded: an owner that neither abandons nor finishes a failed entry costs 8 bytes of these.
  private func noteFailed(_ entryID: UInt64, _ state: inout State) {
    if state.failedEntries.count >= 65_536 { state.failedEntries.removeAll() }
    state.failedEntries.insert(entryID)
  }

  private func prune() { prune(&state) }

  @discardableResult
  private func prune(_ state: inout State) -> UInt64 {
    let oldestGeneration = slots.oldestGeneration
    state.overlay.prune(oldestGeneration: oldestGeneration)
    publishOverlayCount(state)
    return oldestGeneration
  }

  /// The oldest generation a reader may be in; the overlay holds nothing any more that all from
  /// then on have in their snapshots.
  func pruneToOldestGeneration() -> UInt64 { locked { prune(&$0) } }

  /// The writer has ended.
  func markStopped() {
    locked { state in
      state.isStopped = true
      monitor.wakeAll()
    }
  }
}
