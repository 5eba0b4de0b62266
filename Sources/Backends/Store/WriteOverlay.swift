/// The writes that are accepted and not yet in every reader's snapshot: what makes a put visible
/// before its commit.
///
/// A plain value that WriteQueue guards. For each key it keeps the writes in their order, so that
/// a reader replays them on what its snapshot holds by the very rules the writer follows
/// (`PendingRecord.applies`); a write that the snapshot has already is replayed to no effect.
/// A write leaves once its commit is in the snapshot of every reader that is within a turn: then
/// nothing can be missed, in whatever order a reader looks.
internal import CachePolicy

/// How a record replaces what is there.
public enum WriteMode: Sendable {
  /// A new entry: in place of one of its variant that was brought or confirmed by an earlier fetch,
  /// not by a later one.
  case insert
  /// New metadata for the entry that is there (a 304, a HEAD): only if it is the same entry, and no
  /// later fetch has spoken of it.
  case refresh
}

/// The entry at a place, as far as it decides what may take the place.
struct StandingEntry: Equatable {
  var entryID: UInt64
  var begunID: UInt64

  init(entryID: UInt64, begunID: UInt64) {
    self.entryID = entryID
    self.begunID = begunID
  }

  init(_ view: RecordView) {
    entryID = view.entryID
    begunID = view.begunID
  }
}

struct PendingRecord {
  var sequence: UInt64
  var mode: WriteMode
  var entryID: UInt64
  var variantHash: UInt64
  var record: RecordBuffer

  /// Whether this write takes the place of the entry `current` (nil: none is there). A slow answer
  /// never replaces what a later request brought (RFC 9111 §4).
  func applies(over current: StandingEntry?) -> Bool {
    guard let current else { return mode == .insert }
    guard current.begunID <= record.view.begunID else { return false }
    return mode == .insert ? current.entryID <= entryID : current.entryID == entryID
  }
}

/// What is pending for one key.
struct PendingKey {
  /// The last removal of the whole key: what the snapshot holds does not count.
  var removalSequence: UInt64?
  /// The writes since, in order.
  var records: [PendingRecord] = []

  var hidesSnapshot: Bool { removalSequence != nil }

  func isGone(where isGone: (UInt64) -> Bool) -> Bool {
    records.allSatisfy { isGone($0.sequence) } && removalSequence.map(isGone) ?? true
  }
}

struct WriteOverlay {
  private var keys: [StoreKey: PendingKey] = [:]
  private var chunks: [ChunkKey: (sequence: UInt64, chunk: BodyChunk)] = [:]
  /// Chunks that failed, of bodies that are being read while they come: they stay until nobody does.
  private var held: [ChunkKey: BodyChunk] = [:]
  /// All that came, in order; `logStart` of them are pruned.
  private var log: [LogEntry] = []
  private var logStart = 0
  /// Commits that some reader's snapshot may lack: writes up to `sequence` are in snapshots that
  /// began at `generation` or later.
  private var settled: [(generation: UInt64, sequence: UInt64)] = []

  private struct LogEntry {
    enum Place {
      case key(StoreKey)
      case chunk(ChunkKey)
    }
    var sequence: UInt64
    var place: Place
  }

  /// 0: a reader need not look.
  var count: Int { keys.count + chunks.count + held.count }
  var heldCount: Int { held.count }
  /// Whether `prune` has something to do once the readers have moved on.
  var awaitsReaders: Bool { !settled.isEmpty }

  func pending(_ key: StoreKey) -> PendingKey? { keys[key] }
  func chunk(_ key: ChunkKey) -> BodyChunk? { chunks[key]?.chunk ?? held[key] }

  mutating func put(_ record: PendingRecord, key: StoreKey) {
    keys[key, default: PendingKey()].records.append(record)
    log.append(LogEntry(sequence: record.sequence, place: .key(key)))
  }

  mutating func put(_ chunk: BodyChunk, key: ChunkKey, sequence: UInt64) {
    chunks[key] = (sequence, chunk)
    log.append(LogEntry(sequence: sequence, place: .chunk(key)))
  }

  mutating func remove(_ key: StoreKey, sequence: UInt64) {
    keys[key] = PendingKey(removalSequence: sequence)
    log.append(LogEntry(sequence: sequence, place: .key(key)))
  }

  /// Takes back writes that failed: nobody sees them any more.
  mutating func drop(_ failed: Set<UInt64>) {
    guard !failed.isEmpty else { return }
    for entry in log[logStart...] where failed.contains(entry.sequence) {
      forget(entry.place) { $0 == entry.sequence }
    }
  }

  /// Keeps a chunk whose write failed for those who read its body, until `release`.
  mutating func hold(_ chunk: BodyChunk, key: ChunkKey) { held[key] = chunk }

  mutating func release(entryID: UInt64) {
    held = held.filter { $0.key.entryID != entryID }
  }

  /// Notes that all writes up to `sequence` are in snapshots from `generation` on.
  mutating func settle(through sequence: UInt64, generation: UInt64) {
    if let last = settled.last, last.sequence >= sequence { return }
    settled.append((generation, sequence))
  }

  /// Forgets what every snapshot from `oldestGeneration` on holds.
  mutating func prune(oldestGeneration: UInt64) {
    let done = settled.prefix { $0.generation <= oldestGeneration }
    guard let through = done.last?.sequence else { return }
    settled.removeFirst(done.count)
    while logStart < log.count, log[logStart].sequence <= through {
      forget(log[logStart].place) { $0 <= through }
      logStart += 1
    }
    if logStart == log.count {
      log.removeAll(keepingCapacity: log.capacity <= 4096)
      logStart = 0
    } else if logStart > 1024, logStart * 2 > log.count {
      log.removeFirst(logStart)
      logStart = 0
    }
  }

  private mutating func forget(_ place: LogEntry.Place, where isGone: (UInt64) -> Bool) {
    switch place {
    case .chunk(let key):
      if let found = chunks[key], isGone(found.sequence) { chunks[key] = nil }
    case .key(let key):
      guard let index = keys.index(forKey: key) else { return }
      if keys.values[index].isGone(where: isGone) {
        keys.remove(at: index)
        return
      }
      var found = keys.values[index]
      // Out of the dictionary while it changes: its array is not shared then.
      keys[key] = nil
      found.records.removeAll { isGone($0.sequence) }
      if let removal = found.removalSequence, isGone(removal) { found.removalSequence = nil }
      if found.hidesSnapshot || !found.records.isEmpty { keys[key] = found }
    }
  }
}
