public import CachePolicy

/// What a store is told when it opens, what it says when it cannot, and what it tells about itself.
///
/// Values only: `LMDBStore.open` reads the configuration once, Configuration fills it in from
/// policies.json, and Admin prints the statistics. All sizes are bytes, all times milliseconds.
public struct StoreConfiguration: Sendable {
  /// The folder that holds the store; it is made (mode 0700) where it is missing, its parents not.
  public var path: String
  /// The bytes in use (whole pages, indexes included) above which entries are evicted.
  public var maxSizeBytes: UInt64
  /// The largest body that should lie in its record; longer ones go into chunks.
  public var inlineBodyBytesMax: Int
  /// The bytes of a full body chunk. With LMDB's 16-byte page header and our 8-byte row header the
  /// default fills exactly 16 pages of 4 KiB (4 of 16 KiB): free runs of pages are all alike, and
  /// the file does not fragment.
  public var chunkBytes: Int
  /// Writes that wait or are being committed; beyond it a write is refused with `queueFull`.
  public var queueBytesMax: Int
  /// The least time between two commits while writes keep coming.
  public var commitIntervalMilliseconds: Int64
  /// How long a write waits for others to share its commit with (`CommitTiming`).
  public var gatheringMilliseconds: Int64
  /// How many variants one key may have; the oldest goes when there is one more.
  public var variantsMax: Int
  /// How many readers may be open at once.
  public var readersMax: UInt32
  /// For tests: a smaller address range than the size asks for, so that LMDB runs full.
  var mapSizeBytesForTests: UInt64?

  public init(
    path: String, maxSizeBytes: UInt64, inlineBodyBytesMax: Int = 16 * 1024,
    chunkBytes: Int = StoreConfiguration.chunkBytesOf16Pages,
    queueBytesMax: Int = 64 * 1024 * 1024,
    commitIntervalMilliseconds: Int64 = 10, gatheringMilliseconds: Int64 = 50,
    variantsMax: Int = 64, readersMax: UInt32 = 256
  ) {
    self.path = path
    self.maxSizeBytes = maxSizeBytes
    self.inlineBodyBytesMax = inlineBodyBytesMax
    self.chunkBytes = chunkBytes
    self.queueBytesMax = queueBytesMax
    self.commitIntervalMilliseconds = commitIntervalMilliseconds
    self.gatheringMilliseconds = gatheringMilliseconds
    self.variantsMax = variantsMax
    self.readersMax = readersMax
  }

  /// 16 pages of 4 KiB less the page header and the chunk row's checksum.
  public static let chunkBytesOf16Pages = 16 * 4096 - 16 - 8

  /// How many tags a record may have, and how many bytes they have together.
  public static let tagsMax = 256
  public static let tagBytesMax = 8 * 1024

  /// The smallest store.
  public static let maxSizeBytesMin: UInt64 = 256 * 1024

  /// The most that one transaction writes: enough to make a commit worth its fsync, little enough
  /// that a small store can always make room for it.
  static func transactionBytesMax(maxSizeBytes: UInt64) -> Int {
    Int(clamping: max(64 * 1024, min(16 * 1024 * 1024, maxSizeBytes / 8)))
  }

  /// Beside the size, in the map: pages that are freed can be used two transactions later, so that
  /// deleting in a full store needs room, and so does a store whose size was larger once.
  static let mapHeadroomBytes: UInt64 = 64 * 1024 * 1024

  /// The length of the map that a size asks for.
  static func mapSizeBytes(maxSizeBytes: UInt64) -> UInt64 {
    // No machine maps more than 2^47 bytes; a size near 2^64 must not overflow.
    let size = min(maxSizeBytes, 1 << 50)
    return (size + size / 4 + mapHeadroomBytes) / 65_536 * 65_536
  }
}

/// Why a store cannot be opened or used. Each names the path and what the system said.
public enum StoreError: Error, Sendable, Equatable, CustomStringConvertible {
  /// Another process (its id, where the lock file tells), or another store of this one, has it.
  case inUse(path: String, processID: Int32?)
  case notADirectory(path: String)
  case cannotCreate(path: String, reason: String)
  case cannotOpen(path: String, reason: String)
  /// `close()` was called.
  case closed(path: String)

  public var description: String {
    switch self {
    case .inUse(let path, let processID?):
      "store \(path) is in use by process \(processID)"
    case .inUse(let path, nil): "store \(path) is in use"
    case .notADirectory(let path): "store \(path) is not a directory"
    case .cannotCreate(let path, let reason): "store \(path) cannot be created: \(reason)"
    case .cannotOpen(let path, let reason): "store \(path) cannot be opened: \(reason)"
    case .closed(let path): "store \(path) is closed"
    }
  }
}

/// Whether writes land.
public enum StoreState: Sendable, Equatable {
  case ok
  /// The last write failed for this reason, and the next one tries again; or the file is lost, and
  /// everything is a miss until another is open.
  case degraded(String)
}

/// A snapshot of the store's counters.
public struct StoreStatistics: Sendable, Equatable {
  public var entries: UInt64 = 0
  /// Pages in use times their size: what `maxBytes` bounds.
  public var bytes: UInt64 = 0
  public var maxBytes: UInt64 = 0
  /// Writes that wait for their commit.
  public var queuedBytes: UInt64 = 0
  /// Entries removed for space while they were still useful.
  public var evicted: UInt64 = 0
  /// Entries removed because their time had passed.
  public var expired: UInt64 = 0
  /// Variants removed because their key had too many.
  public var variantsDropped: UInt64 = 0
  /// Entries removed by purges: `LMDBStore.purge`, not the removal of a key.
  public var purged: UInt64 = 0
  /// Purges, but those of everything, whose entries are not all removed yet, or which still hold
  /// for fills that began before them.
  public var activePurges: UInt64 = 0
  /// Records and chunks that failed their check and were removed.
  public var damaged: UInt64 = 0
  /// Writes the store itself did not keep, by reason.
  public var notStored: [NotStoredReason: UInt64] = [:]
  public var entriesByRoute: [UInt64: UInt64] = [:]
  public var state: StoreState = .ok

  public init() {}
}

/// Ends the process over a mistake of the caller's: `precondition` loses its text in -O.
@inline(__always)
func storeInvariant(_ condition: @autoclosure () -> Bool, _ message: StaticString) {
  if !condition() { fatalError("store: \(message)") }
}
