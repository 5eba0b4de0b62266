/// A day of mixed traffic in a minute: whether the store keeps to its size, and takes large bodies
/// to the end, while what is in it comes and goes. The row `store-churn` of script/bench.
///
/// `StoreStress churn PATH SECONDS`, on a store of 256 MiB. Keys are asked for by Zipf popularity;
/// bodies have 200 B to 10 MB, small ones more often; lifetimes are seconds to minutes; some fills
/// break off, some URLs are removed, now and then a tag is purged. Prints names and values, and ends
/// with status 1 where the file outgrew what docs/operations.md states.
import Backends
import CachePolicy

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

struct StoreChurn {
  private static let maxSizeBytes: UInt64 = 256 * 1024 * 1024
  private static let keyCount = 100_000
  /// Beyond it the origin would be made to wait, as a fill does it.
  private static let queuedBytesMax: UInt64 = 16 * 1024 * 1024

  private let store: LMDBStore
  private let reader: StoreReader
  private let clock = Clock()
  private let path: String
  private let popularity: [Double]
  private var random = SeededRandom(state: 1)
  private var counts = Counts()
  private var commitMilliseconds: [Double] = []
  private let bytes = [UInt8](repeating: 0x2e, count: StoreConfiguration.chunkBytesOf16Pages)

  private struct Counts {
    var requests = 0
    var hits = 0
    var puts = 0
    var largePuts = 0
    var largeRefused = 0
    var fileBytesMax = 0
    var diskBytesMax = 0
    var usedBytesMax: UInt64 = 0
  }

  static func main(path: String, seconds: Int) {
    var churn = StoreChurn(path: path)
    let end = nanoseconds() + UInt64(seconds) * 1_000_000_000
    while nanoseconds() < end { churn.request() }
    exit(churn.report() ? 0 : 1)
  }

  private init(path: String) {
    self.path = path
    do {
      store = try LMDBStore.open(
        StoreConfiguration(path: path, maxSizeBytes: StoreChurn.maxSizeBytes), clock: clock
      ) { text in print("log", text) }
      reader = try store.makeReader()
    } catch {
      exit(3)
    }
    var sum = 0.0
    popularity = (1...StoreChurn.keyCount).map { rank in
      sum += pow(Double(rank), -0.9)
      return sum
    }
  }

  /// A rank, found in the sums of all weights up to each.
  private mutating func drawKey() -> UInt64 {
    let wanted = random.unit() * popularity[popularity.count - 1]
    var (low, high) = (0, popularity.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if popularity[middle] < wanted { low = middle + 1 } else { high = middle }
    }
    return UInt64(low)
  }

  private mutating func request() {
    let number = drawKey()
    let wholeKey = makeWholeKey(number)
    let key = makeKey(store, wholeKey)
    counts.requests += 1
    if counts.requests % 100 == 0 { store.remove(key: key) }
    if counts.requests % 5000 == 0 {
      store.purge(.tag(Array("tag-\(random.next() % 5)".utf8)))
    }
    if isHit(key, wholeKey) { counts.hits += 1 } else { fill(number, key, wholeKey) }
    if counts.requests % 200 == 0 { measure() }
  }

  private func isHit(_ key: StoreKey, _ wholeKey: [UInt8]) -> Bool {
    reader.begin()
    defer { reader.end() }
    return wholeKey.withUnsafeBytes {
      guard let record = reader.firstRecord(key, wholeKey: $0),
        record.evictAfterMilliseconds > clock.nowMilliseconds
      else { return false }
      for index in 0..<record.chunkCount
      where reader.chunk(entryID: record.entryID, index: index) == nil {
        return false
      }
      store.markUsed(entryID: record.entryID)
      return true
    }
  }

  /// 200 bytes to 10 MB, always the same for a key; small ones more often.
  private static func bodyBytes(_ number: UInt64) -> Int {
    var own = SeededRandom(state: number &* 0x9e37_79b9_7f4a_7c15)
    return Int(200 * pow(50_000, own.unit() * own.unit()))
  }

  private mutating func fill(_ number: UInt64, _ key: StoreKey, _ wholeKey: [UInt8]) {
    let bodyBytes = StoreChurn.bodyBytes(number)
    let ticket = store.beginFill()
    let entryID = ticket.entryID
    let lifetime = Int64([2_000, 10_000, 60_000, 600_000][Int(number % 4)])
    let evictAfter = clock.nowMilliseconds + lifetime
    let keepUntil = number % 8 == 0 ? evictAfter + 5000 : nil
    counts.puts += 1
    var refused: NotStoredReason?
    if bodyBytes <= store.configuration.inlineBodyBytesMax {
      refused = bytes.withUnsafeBytes { body in
        let piece = UnsafeRawBufferPointer(rebasing: body[..<bodyBytes])
        let record = makeRecord(
          entryID, wholeKey, bodyLength: UInt64(bodyBytes), inlineBody: [piece], chunkCount: 0,
          evictAfter: evictAfter, keepUntil: keepUntil)
        return store.put(record, key: key, mode: .insert)
      }
    } else {
      let isBroken = counts.puts % 50 == 0
      refused = putChunks(entryID, isBroken ? bodyBytes / 2 : bodyBytes)
      if isBroken { return store.abandon(entryID: entryID) }
      if refused == nil {
        let chunkBytes = bytes.count
        let record = makeRecord(
          entryID, wholeKey, bodyLength: UInt64(bodyBytes), inlineBody: nil,
          chunkCount: UInt32((bodyBytes + chunkBytes - 1) / chunkBytes), evictAfter: evictAfter,
          keepUntil: keepUntil)
        refused = store.put(record, key: key, mode: .insert)
      }
      if refused != nil { store.abandon(entryID: entryID) }
    }
    if bodyBytes > 1_000_000 {
      counts.largePuts += 1
      if refused != nil { counts.largeRefused += 1 }
    }
  }

  private func putChunks(_ entryID: UInt64, _ bodyBytes: Int) -> NotStoredReason? {
    var left = bodyBytes
    var index: UInt32 = 0
    while left > 0 {
      let count = min(left, bytes.count)
      let chunk = BodyChunk(capacity: count)
      _ = bytes.withUnsafeBytes { chunk.append(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
      if let refused = store.putChunk(entryID: entryID, index: index, chunk: chunk) {
        return refused
      }
      if store.statistics().queuedBytes > StoreChurn.queuedBytesMax { store.flush() }
      left -= count
      index += 1
    }
    return nil
  }

  private mutating func measure() {
    let start = nanoseconds()
    store.flush()
    commitMilliseconds.append(Double(nanoseconds() - start) / 1_000_000)
    var status = stat()
    guard stat(path + "/data.mdb", &status) == 0 else { exit(7) }
    counts.fileBytesMax = max(counts.fileBytesMax, Int(status.st_size))
    counts.diskBytesMax = max(counts.diskBytesMax, Int(status.st_blocks) * 512)
    counts.usedBytesMax = max(counts.usedBytesMax, store.statistics().bytes)
  }

  /// False: the file is larger than it may be.
  private func report() -> Bool {
    store.flush()
    let statistics = store.statistics()
    let mebibyte = 1024 * 1024
    let sorted = commitMilliseconds.sorted()
    print("requests", counts.requests)
    print("hit-percent", 100 * counts.hits / max(1, counts.requests))
    print("puts", counts.puts)
    print("puts-over-1MB", counts.largePuts, "refused", counts.largeRefused)
    for (reason, count) in statistics.notStored.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      print("not-stored", reason.rawValue, count)
    }
    print("evicted", statistics.evicted, "expired", statistics.expired)
    print("purged", statistics.purged, "damaged", statistics.damaged)
    print("size-MiB", Int(StoreChurn.maxSizeBytes) / mebibyte)
    print("used-MiB-max", Int(counts.usedBytesMax) / mebibyte)
    print("disk-MiB-max", counts.diskBytesMax / mebibyte)
    print("file-MiB-max", counts.fileBytesMax / mebibyte, "(sparse)")
    if !sorted.isEmpty {
      print("commit-ms-median", sorted[sorted.count / 2])
      print("commit-ms-p99", sorted[sorted.count * 99 / 100])
    }
    let bound = Int(StoreChurn.maxSizeBytes) * 5 / 4 + 64 * mebibyte
    return max(counts.diskBytesMax, counts.fileBytesMax) <= bound
  }
}

/// SplitMix64.
struct SeededRandom {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var word = state
    word = (word ^ (word >> 30)) &* 0xbf58_476d_1ce4_e5b9
    word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
    return word ^ (word >> 31)
  }

  /// From 0 to 1, without 1.
  mutating func unit() -> Double { Double(next() >> 11) * 0x1p-53 }
}
