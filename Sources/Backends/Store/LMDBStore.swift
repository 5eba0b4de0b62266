/// The store: stored responses in an LMDB file, written by one thread, read by every event loop.
///
/// A put is visible to every reader when it returns, durable a moment later (`CommitTiming`), and
/// refused with a reason where it cannot be had; nothing here fails a client. A copy that is damaged,
/// or whose chunks are, is a miss. Opened once by the proxy; shared by all loops, each with a reader
/// of its own (`makeReader`). All functions may be called on any thread.
internal import CLMDB
public import CachePolicy
internal import Synchronization

public final class LMDBStore: Sendable {
  public let configuration: StoreConfiguration
  /// For `StoreKeyHash`: random when the store was made, kept in it.
  public let keySecret: (UInt64, UInt64)
  private let identitySecret: IdentitySecret
  let queue: WriteQueue
  let shared: StoreShared
  private let pins: PinTable
  private let marks: VisitedMarks
  private let current: CurrentEnvironment

  private init(
    _ configuration: StoreConfiguration, _ opened: StoreOpening.Opened,
    _ identitySecret: IdentitySecret,
    clock: Clock,
    log: @escaping @Sendable (String) -> Void
  ) {
    self.configuration = configuration
    self.identitySecret = identitySecret
    keySecret = (opened.identity.secretFirst, opened.identity.secretSecond)
    shared = StoreShared(opened.identity, maxSizeBytes: configuration.maxSizeBytes)
    pins = PinTable()
    queue = WriteQueue(configuration, shared, pins)
    marks = VisitedMarks()
    current = CurrentEnvironment(opened.environment)
    let writer = StoreWriter(
      opened, current, queue: queue, shared: shared, pins: pins, marks: marks, clock: clock,
      configuration: configuration, log: log)
    WriterThread.start(writer, queue)
  }

  deinit { close() }

  /// Opens the store in `configuration.path`, or makes an empty one.
  ///
  /// A damaged or foreign file is set aside with a message to `log`, which the writer thread calls
  /// too. What this does takes the same time whatever is in the store: chunks that a killed process
  /// left without a record are deleted in the background. Throws where the folder cannot be made, read or locked.
  public static func open(
    _ configuration: StoreConfiguration, clock: Clock,
    log: @escaping @Sendable (String) -> Void
  ) throws(StoreError) -> LMDBStore {
    storeInvariant(
      configuration.maxSizeBytes >= StoreConfiguration.maxSizeBytesMin,
      "maxSizeBytes is at least 256 KiB")
    storeInvariant(configuration.chunkBytes > 0, "chunkBytes is positive")
    let folder = try StoreFolder(path: configuration.path)
    let identitySecret = try IdentitySecret.open(folder: configuration.path, log: log)
    let opened = try StoreOpening.open(configuration, folder, log: log)
    return LMDBStore(configuration, opened, identitySecret, clock: clock, log: log)
  }

  /// What stands for an identity (a field's or cookie's value) in keys: the same in every opening
  /// of this store's folder, another elsewhere.
  public func identityDigest(_ identity: UnsafeRawBufferPointer) -> IdentityDigest {
    identitySecret.digest(identity)
  }

  // MARK: Reading

  /// A reader for one event loop's thread. Throws when the store is closed or has too many.
  ///
  /// `loop`: look-ups of one turn of it share a snapshot, which costs as much as the look-up.
  public func makeReader(for loop: EventLoop? = nil) throws(StoreError) -> StoreReader {
    guard let environment = current.environment else {
      throw .closed(path: configuration.path)
    }
    do {
      let reader = try StoreReader(
        environment, current, queue, shared, loop: loop)
      loop?.atTurnEnd { [weak reader] in reader?.release() }
      return reader
    } catch {
      throw .cannotOpen(path: configuration.path, reason: "reader: \(error.text)")
    }
  }

  /// Notes that an entry was served: it stays longer than one that was not. Costs a load.
  public func markUsed(entryID: UInt64) { marks.mark(entryID) }

  /// Keeps an entry's chunks, those too whose write fails, while its body is served across loop
  /// turns. Called within the turn
  /// that found the record; false: the chunks are gone already, and the copy is a miss.
  public func pin(entryID: UInt64) -> Bool { pins.pin(entryID) }

  /// Ends a `pin` that returned true.
  public func unpin(entryID: UInt64) {
    if pins.unpin(entryID) { queue.append(.reclaim(entryID: entryID)) }
    queue.release(entryID: entryID)
  }

  // MARK: Writing

  /// An ID for a new entry: larger than all before, those of earlier processes included. A fill
  /// takes `beginFill()` instead, so that no purge misses it.
  public func nextEntryID() -> UInt64 {
    shared.nextEntryID.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// Puts a record where every reader finds it at once; durable after the next commit. The chunks
  /// of a body that is not inline were put before. Nil: accepted.
  ///
  /// `.insert` replaces the variant at (key, variant hash) unless a newer entry is there;
  /// `.refresh` only if the entry there has the same ID, and keeps its chunks. A new variant has the
  /// oldest ones go until there are at most `variantsMax` (at least 1; nil: the store's own limit).
  public func put(
    _ record: RecordBuffer, key: StoreKey, mode: WriteMode, variantsMax: Int? = nil
  ) -> NotStoredReason? {
    if record.view.entryID < shared.purgeFloor.load(ordering: .sequentiallyConsistent) {
      return counted(.invalidated)
    }
    return counted(queue.put(record, key: key, mode: mode, variantsMax: variantsMax))
  }

  /// Puts the next chunk of a body: they come in order from 0, before their record. The chunk's
  /// bytes do not change any more. `onCommitted` is called on the writer thread, once, if the chunk
  /// was accepted (nil): with false where the store failed it, and then the entry is lost.
  public func putChunk(
    entryID: UInt64, index: UInt32, chunk: BodyChunk,
    onCommitted: (@Sendable (Bool) -> Void)? = nil
  ) -> NotStoredReason? {
    counted(queue.put(chunk, entryID: entryID, index: index, onCommitted: onCommitted))
  }

  /// Ends a fill that went wrong: its chunks go.
  public func abandon(entryID: UInt64) { queue.abandon(entryID: entryID) }

  /// Removes all variants of a key, visible at once.
  public func remove(key: StoreKey) { queue.remove(key) }

  private func counted(_ reason: NotStoredReason?) -> NotStoredReason? {
    if let reason { shared.countNotStored(reason) }
    return reason
  }

  // MARK: Running

  public func statistics() -> StoreStatistics {
    let queuedBytes = UInt64(queue.bytes)
    let maxBytes = shared.maxSizeBytes.load(ordering: .sequentiallyConsistent)
    let activePurges = UInt64(shared.purges.count)
    return shared.report.withLock { report in
      var statistics = StoreStatistics()
      statistics.entries = report.entryCount
      statistics.bytes = report.usedBytes
      statistics.maxBytes = maxBytes
      statistics.queuedBytes = queuedBytes
      statistics.evicted = report.counts.evicted
      statistics.expired = report.counts.expired
      statistics.variantsDropped = report.counts.variantsDropped
      statistics.damaged = report.counts.damaged
      statistics.purged = report.counts.purged
      statistics.activePurges = activePurges
      statistics.notStored = report.notStored
      statistics.entriesByRoute = report.routes.mapValues { UInt64(clamping: $0.entryCount) }
      statistics.state = report.state
      return statistics
    }
  }

  /// Waits until every write so far is committed or has failed. Blocks: not for event loops.
  public func flush() { queue.flush() }

  /// Removes what has had its time and what was purged, now, and waits for it. Blocks; for tests
  /// and tools: the writer does the same at its leisure.
  public func sweep() {
    // Purges are swept once their own commit is past.
    queue.flush()
    queue.append(.sweep)
    queue.flush()
  }

  /// Commits what is queued, ends the writer and closes the file, the latter once the last reader
  /// is gone too. Later writes are refused as `storeFailed`. Idempotent. Blocks.
  public func close() {
    queue.stop()
    queue.waitUntilStopped()
    current.replace(by: nil)
  }
}
