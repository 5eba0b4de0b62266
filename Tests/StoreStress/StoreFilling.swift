/// A store of very many small entries: what an entry costs in memory, and how long the first hit
/// takes after a start. The row `store-entries` of script/bench.
///
/// `StoreStress fill PATH COUNT` makes it and prints the seconds and the bytes of the process's own
/// memory (RssAnon) an entry; `StoreStress first-hit PATH COUNT` opens it and prints the
/// milliseconds until an entry was found, and the KiB of own memory that it took.
import Backends
import CachePolicy

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

enum StoreFilling {
  private static let bodyBytes = 200

  static func fill(path: String, count: Int) {
    let store = open(path)
    let body = [UInt8](repeating: 0x2e, count: bodyBytes)
    // Of the second half alone: queue and allocator have grown to what they need by then.
    var memoryBefore = 0
    let start = nanoseconds()
    body.withUnsafeBytes { bytes in
      for number in 0..<UInt64(count) {
        let entryID = store.nextEntryID()
        let wholeKey = makeWholeKey(number)
        let record = makeRecord(
          entryID, wholeKey, bodyLength: UInt64(bodyBytes), inlineBody: [bytes], chunkCount: 0)
        if store.put(record, key: makeKey(store, wholeKey), mode: .insert) != nil { exit(5) }
        if number % 8192 == 8191 { store.flush() }
        if number == UInt64(count / 2) { memoryBefore = ownMemoryKibibytes() }
      }
    }
    store.flush()
    let seconds = (nanoseconds() - start) / 1_000_000_000
    guard store.statistics().entries == UInt64(count) else { exit(6) }
    print(seconds, max(0, ownMemoryKibibytes() - memoryBefore) * 1024 / max(1, count / 2))
    store.close()
  }

  static func findFirst(path: String, count: Int) {
    let memoryBefore = ownMemoryKibibytes()
    let start = nanoseconds()
    let store = open(path)
    guard let reader = try? store.makeReader() else { exit(3) }
    reader.begin()
    let wholeKey = makeWholeKey(UInt64(count) / 2)
    let isFound = wholeKey.withUnsafeBytes {
      reader.firstRecord(makeKey(store, wholeKey), wholeKey: $0) != nil
    }
    let milliseconds = Double(nanoseconds() - start) / 1_000_000
    reader.end()
    guard isFound else { exit(6) }
    print(milliseconds, max(0, ownMemoryKibibytes() - memoryBefore))
    exit(0)
  }

  private static func open(_ path: String) -> LMDBStore {
    do {
      let configuration = StoreConfiguration(path: path, maxSizeBytes: 64 << 30)
      return try LMDBStore.open(configuration, clock: Clock()) { _ in }
    } catch {
      exit(3)
    }
  }
}

func nanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// RssAnon, which leaves out the mapped pages of the store; 0 where the system does not tell.
func ownMemoryKibibytes() -> Int {
  var buffer = [UInt8](repeating: 0, count: 8192)
  let descriptor = open("/proc/self/status", O_RDONLY)
  guard descriptor >= 0 else { return 0 }
  defer { close(descriptor) }
  let count = read(descriptor, &buffer, buffer.count)
  for line in String(decoding: buffer[..<max(0, count)], as: UTF8.self).split(separator: "\n")
  where line.hasPrefix("RssAnon:") {
    return Int(line.split(whereSeparator: { $0 == " " || $0 == "\t" })[1]) ?? 0
  }
  return 0
}
