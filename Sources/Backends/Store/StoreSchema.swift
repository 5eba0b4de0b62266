/// The tables of a store and the rows of each, as values whose memory is what lies in the file.
///
/// | table | key | value |
/// |---|---|---|
/// | meta | a number (`MetaKey`) | one or two words |
/// | entries | StoreKey, variant (`EntriesKey`) | a record (RecordCodec) |
/// | chunks | entry, index (`ChunkKey`) | checksum, bytes |
/// | order | entry | `OrderRow`, hashes of its tags: what must go with the entry, oldest first |
/// | expiry | kind, time, entry (`ExpiryKey`) | nothing |
/// | tags | a tag's hash, entry (`TagKey`) | nothing |
/// | pending | entry | `PendingRow`: chunks that no record owns (yet, or any more) |
/// | purges | a target's hash (`EntriesKey`) | floor, target (`PurgeTarget.row`) |
/// | routes | route | `RouteRow` |
///
/// Keys are big-endian, so that LMDB's byte order is theirs; values are the machine's own: the
/// format number differs on a big-endian one. Called at open, and by EntryTransaction.
internal import CLMDB
internal import CachePolicy

struct EntriesKey: BitwiseCopyable, Hashable, Sendable {
  // Big-endian words.
  private var highWord: UInt64
  private var lowWord: UInt64
  private var variantWord: UInt64

  init(_ key: StoreKey, variantHash: UInt64) {
    highWord = key.high.bigEndian
    lowWord = key.low.bigEndian
    variantWord = variantHash.bigEndian
  }

  /// Nil where the bytes are not such a key.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == MemoryLayout<EntriesKey>.size else { return nil }
    self = bytes.loadUnaligned(as: EntriesKey.self)
  }

  var storeKey: StoreKey {
    StoreKey(high: UInt64(bigEndian: highWord), low: UInt64(bigEndian: lowWord))
  }
  var variantHash: UInt64 { UInt64(bigEndian: variantWord) }

  /// At or before every key.
  static let first = EntriesKey(StoreKey(high: 0, low: 0), variantHash: 0)

  /// The key behind this one; nil: there is none.
  var successor: EntriesKey? {
    var key = storeKey
    let variant = variantHash &+ 1
    if variant == 0 {
      key.low &+= 1
      if key.low == 0 {
        key.high &+= 1
        if key.high == 0 { return nil }
      }
    }
    return EntriesKey(key, variantHash: variant)
  }
}

struct ChunkKey: BitwiseCopyable, Hashable, Sendable {
  private var entryWord: UInt64
  private var indexWord: UInt32

  init(_ entryID: UInt64, _ index: UInt32) {
    entryWord = entryID.bigEndian
    indexWord = index.bigEndian
  }

  init?(_ bytes: UnsafeRawBufferPointer) {
    // 12 bytes; the stride is longer, so the fields are read one by one.
    guard bytes.count == MemoryLayout<ChunkKey>.size else { return nil }
    entryWord = bytes.loadUnaligned(as: UInt64.self)
    indexWord = bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self)
  }

  var entryID: UInt64 { UInt64(bigEndian: entryWord) }
  var index: UInt32 { UInt32(bigEndian: indexWord) }
}

struct ExpiryKey: BitwiseCopyable, Sendable {
  enum Kind: UInt64 {
    /// Of no use after this time: the first to go when space is needed.
    case evictAfter = 1
    /// Removed at this time.
    case keepUntil = 2
  }
  private var kindWord: UInt64
  private var timeWord: UInt64
  private var entryWord: UInt64

  init(_ kind: Kind, timeMilliseconds: Int64, entryID: UInt64) {
    kindWord = kind.rawValue.bigEndian
    timeWord = UInt64(max(0, timeMilliseconds)).bigEndian
    entryWord = entryID.bigEndian
  }

  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == MemoryLayout<ExpiryKey>.size else { return nil }
    self = bytes.loadUnaligned(as: ExpiryKey.self)
  }

  var kind: Kind? { Kind(rawValue: UInt64(bigEndian: kindWord)) }
  var timeMilliseconds: Int64 { Int64(clamping: UInt64(bigEndian: timeWord)) }
  var entryID: UInt64 { UInt64(bigEndian: entryWord) }
}

struct TagKey: BitwiseCopyable, Hashable, Sendable {
  private var hashWord: UInt64
  private var entryWord: UInt64

  init(_ tagHash: UInt64, _ entryID: UInt64) {
    hashWord = tagHash.bigEndian
    entryWord = entryID.bigEndian
  }

  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == MemoryLayout<TagKey>.size else { return nil }
    self = bytes.loadUnaligned(as: TagKey.self)
  }

  var tagHash: UInt64 { UInt64(bigEndian: hashWord) }
  var entryID: UInt64 { UInt64(bigEndian: entryWord) }
}

/// The hashes of the entry's tags lie behind it in its row.
struct OrderRow: BitwiseCopyable {
  var key: EntriesKey
  var evictAfterMilliseconds: Int64
  /// -1: none.
  var keepUntilMilliseconds: Int64
  var routeID: UInt64
  var chunkBytes: UInt64
  var recordBytes: UInt32
  var chunkCount: UInt32
  var bytes: UInt64 { UInt64(recordBytes) + chunkBytes }

  /// The row's fixed part; nil where the value is too short.
  init?(_ value: UnsafeRawBufferPointer) {
    let count = MemoryLayout<OrderRow>.size
    guard value.count >= count, (value.count - count) % 8 == 0 else { return nil }
    self = value.loadUnaligned(as: OrderRow.self)
  }

  init(
    key: EntriesKey, evictAfterMilliseconds: Int64, keepUntilMilliseconds: Int64, routeID: UInt64,
    chunkBytes: UInt64, recordBytes: UInt32, chunkCount: UInt32
  ) {
    self.key = key
    self.evictAfterMilliseconds = evictAfterMilliseconds
    self.keepUntilMilliseconds = keepUntilMilliseconds
    self.routeID = routeID
    self.chunkBytes = chunkBytes
    self.recordBytes = recordBytes
    self.chunkCount = chunkCount
  }

  /// What lies behind the fixed part of a row that `init` accepts.
  static func tagHashes(_ value: UnsafeRawBufferPointer) -> [UInt64] {
    stride(from: MemoryLayout<OrderRow>.size, to: value.count, by: 8).map {
      // SAFETY: `init?` made sure that whole words follow.
      value.loadUnaligned(fromByteOffset: $0, as: UInt64.self)
    }
  }

  func value(tagHashes: [UInt64]) -> [UInt8] {
    var bytes = withUnsafeBytes(of: self) { Array($0) }
    for hash in tagHashes { withUnsafeBytes(of: hash) { bytes += $0 } }
    return bytes
  }
}

struct PendingRow: BitwiseCopyable {
  var chunkBytes: UInt64
  var chunkCount: UInt32
  /// 1: its entry is gone, and only a pin keeps the chunks.
  var isOrphan: UInt32
}

struct RouteRow: BitwiseCopyable {
  var entryCount: Int64
  var bytes: Int64
}

enum MetaKey: UInt32 {
  case format = 1
  case secret = 2
  case epoch = 3
  case purgeFloor = 4
  /// Written where a transaction is wanted that changes nothing.
  case pause = 5
  var bytes: UInt32 { rawValue.bigEndian }
}

extension UnsafeRawBufferPointer {
  /// The row that lies here; nil where it has another length.
  func row<Row: BitwiseCopyable>(_: Row.Type) -> Row? {
    guard count == MemoryLayout<Row>.size else { return nil }
    return loadUnaligned(as: Row.self)
  }
}

/// What an opened store knows of itself.
struct StoreIdentity {
  var secretFirst: UInt64
  var secretSecond: UInt64
  /// Counts the opens: the upper bits of every entry ID, so that none comes twice.
  var epoch: UInt64
  var purgeFloor: UInt64
  /// Purges whose entries are not all removed yet.
  var purges: [PurgeRules.Purge]
  var routes: [UInt64: RouteRow]

  func isSameStore(as other: StoreIdentity) -> Bool {
    secretFirst == other.secretFirst && secretSecond == other.secretSecond
  }

  /// The IDs that this opening gives are larger; those of earlier ones are smaller.
  var entryIDsStart: UInt64 { epoch << 40 }
}

enum StoreSchema {
  /// Raised with every change of a row's or record's meaning.
  static let format: UInt64 = 3

  enum Failure: Error {
    /// Set the file aside.
    case notOurs(String)
    case lmdb(LMDBError)
  }

  /// Opens the tables, makes them in an empty file, and starts a new epoch.
  ///
  /// `kept`: what the file is to be one of, where it takes the place of one that was in use. An
  /// empty one takes it over; another store's is not ours.
  static func open(
    _ environment: LMDBEnvironment, keeping kept: StoreIdentity? = nil
  ) throws(Failure) -> StoreIdentity {
    do {
      let transaction = try environment.beginWrite()
      let isNew = try transaction.countNamedTables() == 0
      let flags = isNew ? UInt32(MDB_CREATE) : 0
      var tables = StoreTables()
      tables.meta = try transaction.openTable("meta", flags: flags)
      if !isNew {
        let found = try transaction.value(tables.meta, MetaKey.format.bytes)?.row(UInt64.self)
        guard found == format else {
          throw Failure.notOurs("its format is \(found.map(String.init) ?? "unknown")")
        }
      }
      tables.entries = try transaction.openTable("entries", flags: flags)
      tables.chunks = try transaction.openTable("chunks", flags: flags)
      tables.order = try transaction.openTable("order", flags: flags)
      tables.expiry = try transaction.openTable("expiry", flags: flags)
      tables.tags = try transaction.openTable("tags", flags: flags)
      tables.pending = try transaction.openTable("pending", flags: flags)
      tables.purges = try transaction.openTable("purges", flags: flags)
      tables.routes = try transaction.openTable("routes", flags: flags)
      environment.use(tables)
      if isNew { try writeNewMeta(transaction, kept) }
      let identity = try startEpoch(transaction)
      if let kept, !identity.isSameStore(as: kept) {
        throw Failure.notOurs("it is another store's")
      }
      try transaction.commit()
      try environment.sync()
      return identity
    } catch let error as LMDBError {
      throw error.isDamage ? .notOurs("LMDB says: \(error.text)") : .lmdb(error)
    } catch let error as Failure {
      throw error
    } catch {
      fatalError("store: an error of a third kind: \(error)")
    }
  }

  private static func writeNewMeta(
    _ transaction: WriteTransaction, _ kept: StoreIdentity?
  ) throws(LMDBError) {
    var random = SystemRandomNumberGenerator()
    let meta = transaction.tables.meta
    let secret = kept.map { Secret($0.secretFirst, $0.secretSecond) }
    try transaction.put(meta, MetaKey.format.bytes, value: format)
    try transaction.put(
      meta, MetaKey.secret.bytes, value: secret ?? Secret(random.next(), random.next()))
    try transaction.put(meta, MetaKey.epoch.bytes, value: kept?.epoch ?? 0)
    try transaction.put(meta, MetaKey.purgeFloor.bytes, value: kept?.purgeFloor ?? 0)
  }

  private struct Secret: BitwiseCopyable {
    var first: UInt64
    var second: UInt64
    init(_ first: UInt64, _ second: UInt64) {
      self.first = first
      self.second = second
    }
  }

  private static func startEpoch(
    _ transaction: WriteTransaction
  ) throws(LMDBError) -> StoreIdentity {
    let meta = transaction.tables.meta
    guard let secret = try transaction.value(meta, MetaKey.secret.bytes)?.row(Secret.self),
      let epoch = try transaction.value(meta, MetaKey.epoch.bytes)?.row(UInt64.self),
      let floor = try transaction.value(meta, MetaKey.purgeFloor.bytes)?.row(UInt64.self)
    else { throw LMDBError(code: MDB_INVALID) }
    let purges = try readPurges(transaction)
    var routes: [UInt64: RouteRow] = [:]
    let cursor = try transaction.cursor(transaction.tables.routes)
    var next: UInt64? = 0
    while let from = next, let found = try transaction.row(atOrAfter: from.bigEndian, cursor) {
      guard let key = found.key.row(UInt64.self), let row = found.value.row(RouteRow.self) else {
        throw LMDBError(code: MDB_INVALID)
      }
      let routeID = UInt64(bigEndian: key)
      routes[routeID] = row
      next = routeID == .max ? nil : routeID + 1
    }
    try transaction.put(meta, MetaKey.epoch.bytes, value: epoch + 1)
    return StoreIdentity(
      secretFirst: secret.first, secretSecond: secret.second, epoch: epoch + 1,
      purgeFloor: floor, purges: purges, routes: routes)
  }

  /// A row that cannot be read means that nobody knows what was purged: the file is set aside.
  private static func readPurges(
    _ transaction: WriteTransaction
  ) throws(LMDBError) -> [PurgeRules.Purge] {
    var purges: [PurgeRules.Purge] = []
    let cursor = try transaction.cursor(transaction.tables.purges)
    var next: EntriesKey? = .first
    while let from = next, let found = try transaction.row(atOrAfter: from, cursor) {
      guard let key = EntriesKey(found.key), let row = PurgeTarget.read(found.value) else {
        throw LMDBError(code: MDB_INVALID)
      }
      purges.append(PurgeRules.Purge(target: row.target, floor: row.floor))
      next = key.successor
    }
    return purges
  }
}
