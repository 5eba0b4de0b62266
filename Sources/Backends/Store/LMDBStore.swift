/// The store: stored responses in an LMDB file, written by one thread, read by every event loop.
///
/// A put is visible to every reader when it returns, durable a few milliseconds later, and refused
/// with a reason where it cannot be had; nothing here fails a client. A copy that is damaged, or
/// whose chunks are, is a miss. Opened once by the proxy; shared by all loops, each with a reader
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
  /// Nil once closed.
  private let environment: Mutex<LMDBEnvironment?>

  private init(
    _ configuration: StoreConfiguration, _ opened: Opened, _ identitySecret: IdentitySecret,
    clock: Clock,
    log: @escaping @Sendable (String) -> Void
  ) {
    self.configuration = configuration
    self.identitySecret = identitySecret
    keySecret = (opened.identity.secretFirst, opened.identity.secretSecond)
    shared = StoreShared(opened.identity, maxSizeBytes: configuration.maxSizeBytes)
    queue = WriteQueue(configuration, shared)
    pins = PinTable()
    marks = VisitedMarks()
    environment = Mutex(opened.environment)
    let writer = StoreWriter(
      environment: opened.environment, queue: queue, shared: shared, pins: pins, marks: marks,
      clock: clock, configuration: configuration, log: log)
    WriterThread.start(writer, queue)
  }

  deinit { close() }

  /// Opens the store in `configuration.path`, or makes an empty one.
  ///
  /// A damaged or foreign file is set aside with a message to `log`, which the writer thread calls
  /// too. Chunks that a killed process left without a record are deleted before this returns.
  /// Throws where the folder cannot be made, read or locked.
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
    // The second round opens an empty file: what fails then is no damage.
    for _ in 0..<2 {
      if let opened = try openFile(configuration, folder, log) {
        return LMDBStore(configuration, opened, identitySecret, clock: clock, log: log)
      }
    }
    throw .cannotOpen(path: configuration.path, reason: "an empty store is refused as damaged")
  }

  private struct Opened {
    var environment: LMDBEnvironment
    var identity: StoreIdentity
  }

  /// Nil: the file was set aside.
  private static func openFile(
    _ configuration: StoreConfiguration, _ folder: StoreFolder, _ log: (String) -> Void
  ) throws(StoreError) -> Opened? {
    var mapSizeBytes =
      configuration.mapSizeBytesForTests
      ?? StoreConfiguration.mapSizeBytes(maxSizeBytes: configuration.maxSizeBytes)
    switch try folder.inspect() {
    case .absent: break
    case .usable(let endBytes):
      if configuration.mapSizeBytesForTests == nil {
        mapSizeBytes = max(mapSizeBytes, endBytes + StoreConfiguration.mapHeadroomBytes)
      }
    case .damaged(let reason):
      try folder.setAside(because: reason, log: log)
    }
    let damage: String
    do {
      let environment = try LMDBEnvironment(
        folder: folder, mapSizeBytes: mapSizeBytes / 65_536 * 65_536,
        readersMax: configuration.readersMax)
      let identity = try StoreSchema.open(environment)
      environment.keepFileLongEnough()
      try reclaimLeftovers(environment, floor: identity.purgeFloor)
      return Opened(environment: environment, identity: identity)
    } catch StoreSchema.Failure.notOurs(let reason) {
      damage = reason
    } catch StoreSchema.Failure.lmdb(let error) {
      throw .cannotOpen(path: configuration.path, reason: error.text)
    } catch let error as LMDBError {
      guard error.isDamage else {
        throw .cannotOpen(path: configuration.path, reason: error.text)
      }
      damage = "LMDB says: \(error.text)"
    } catch {
      fatalError("store: an error of a third kind: \(error)")
    }
    try folder.setAside(because: damage, log: log)
    return nil
  }

  private static func reclaimLeftovers(
    _ environment: LMDBEnvironment, floor: UInt64
  ) throws(LMDBError) {
    let noPins = PinTable()
    var noRoutes: [UInt64: RouteRow] = [:]
    var hasMore = true
    while hasMore {
      let changes = try EntryTransaction(
        environment,
        EntryTransaction.Context(
          pins: noPins, secret: (0, 0), purgeFloor: floor, purges: PurgeRules(secret: (0, 0)),
          variantsMax: .max, chunkedBytesMax: .max))
      hasMore = try changes.reclaimLeftovers(rowsMax: 4096)
      _ = try changes.commit(routes: &noRoutes, generation: 1)
    }
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
    guard let environment = environment.withLock({ $0 }) else {
      throw .closed(path: configuration.path)
    }
    do {
      let reader = try StoreReader(environment, queue, shared, sharesSnapshots: loop != nil)
      loop?.atTurnEnd { [weak reader] in reader?.release() }
      return reader
    } catch {
      throw .cannotOpen(path: configuration.path, reason: "reader: \(error.text)")
    }
  }

  /// Notes that an entry was served: it stays longer than one that was not. Costs a load.
  public func markUsed(entryID: UInt64) { marks.mark(entryID) }

  /// Keeps an entry's chunks while its body is served across loop turns. Called within the turn
  /// that found the record; false: the chunks are gone already, and the copy is a miss.
  public func pin(entryID: UInt64) -> Bool { pins.pin(entryID) }

  /// Ends a `pin` that returned true.
  public func unpin(entryID: UInt64) {
    if pins.unpin(entryID) { queue.append(.reclaim(entryID: entryID)) }
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
    environment.withLock { $0 = nil }
  }
}
