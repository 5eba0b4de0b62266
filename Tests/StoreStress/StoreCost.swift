/// What an entry costs the writer: bytes written to the file, and, under valgrind, instructions.
///
/// `StoreStress cost PATH BEFORE COUNT GROUP`: puts BEFORE entries of 1 KiB with a head of 240 bytes into a store of 8 GiB,
/// then COUNT more in transactions of GROUP, and prints what those wrote. Under
/// `valgrind --tool=callgrind --separate-threads=yes --toggle-collect='*StoreWriter*process*'` the
/// writer's part has a file of its own.
import Backends
import CachePolicy

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

enum StoreCost {
  static func main(path: String, before: Int, count: Int, group: Int) {
    let store: LMDBStore
    do {
      store = try LMDBStore.open(
        StoreConfiguration(path: path, maxSizeBytes: 8 << 30, commitIntervalMilliseconds: 60_000),
        clock: Clock()
      ) { text in print("log", text) }
    } catch {
      exit(3)
    }
    put(store, from: 0, count: before, group: 2000)
    let writtenBefore = bytesWritten()
    put(store, from: before, count: count, group: group)
    store.flush()
    print("entries", store.statistics().entries)
    print("used-bytes-an-entry", store.statistics().bytes / max(1, store.statistics().entries))
    print("written-bytes-an-entry", (bytesWritten() - writtenBefore) / max(1, count))
  }

  private static func put(_ store: LMDBStore, from first: Int, count: Int, group: Int) {
    let clock = Clock()
    let body = [UInt8](repeating: 0x2e, count: 1024 + 240)
    for number in first..<first + count {
      let ticket = store.beginFill()
      let wholeKey = makeWholeKey(UInt64(number))
      let record = body.withUnsafeBytes { body in
        makeRecord(
          ticket.entryID, wholeKey, bodyLength: UInt64(body.count), inlineBody: [body],
          chunkCount: 0,
          evictAfter: clock.nowMilliseconds + 86_400_000, keepUntil: nil, isTagged: false)
      }
      guard store.put(record, key: makeKey(store, wholeKey), mode: .insert) == nil else { exit(8) }
      ticket.end()
      if (number - first) % group == group - 1 { store.flush() }
    }
  }

  /// Of this process, by its write calls.
  private static func bytesWritten() -> Int {
    guard let file = fopen("/proc/self/io", "r") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    while fgets(&line, Int32(line.count), file) != nil {
      let text = String(
        decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      if text.hasPrefix("wchar: ") { return Int(text.dropFirst(7).dropLast()) ?? 0 }
    }
    return 0
  }
}
