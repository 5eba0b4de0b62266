/// Writes to a store without end, and reports each write: what the kill test kills.
///
/// Usage: StoreStress PATH, or one of the measurements of script/bench (`StoreChurn`,
/// `StoreFilling`, `StoreCost`). For each write one byte goes to standard output: `w` when it was
/// accepted, `c` when a chunk was committed. What a body holds follows from its entry ID
/// (`StressBody` in BackendsTests has the same rule), so that the test can tell a whole one.
import Backends
import CachePolicy

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

@main
struct StressWriter {
  static func main() {
    let arguments = Array(CommandLine.arguments.dropFirst())
    switch (arguments.first, arguments.count) {
    case (let path?, 1): run(path: path)
    case ("churn", 3): StoreChurn.main(path: arguments[1], seconds: number(arguments[2]))
    case ("fill", 3): StoreFilling.fill(path: arguments[1], count: number(arguments[2]))
    case ("first-hit", 3): StoreFilling.findFirst(path: arguments[1], count: number(arguments[2]))
    case ("cost", 5):
      StoreCost.main(
        path: arguments[1], before: number(arguments[2]), count: number(arguments[3]),
        group: number(arguments[4]))
    default: exit(2)
    }
  }

  private static func number(_ text: String) -> Int {
    guard let number = Int(text), number > 0 else { exit(2) }
    return number
  }
}

private let keyCount: UInt64 = 40
private let chunkBytes = 20_000
private let chunkCount: UInt32 = 3

private func report(_ letter: UInt8) {
  withUnsafeBytes(of: letter) { bytes in _ = write(1, bytes.baseAddress, 1) }
}

private func run(path: String) {
  let configuration = StoreConfiguration(
    path: path, maxSizeBytes: 4 * 1024 * 1024, chunkBytes: chunkBytes,
    commitIntervalMilliseconds: 1, gatheringMilliseconds: 1)
  let store: LMDBStore
  do {
    store = try LMDBStore.open(configuration, clock: Clock()) { _ in }
  } catch {
    exit(3)
  }
  let floorFile = open(path + "/purged-below", O_WRONLY | O_CREAT, 0o600)
  while true {
    let entryID = store.nextEntryID()
    let wholeKey = makeWholeKey(entryID % keyCount)
    let key = makeKey(store, wholeKey)
    switch entryID % 7 {
    case 0: store.remove(key: key)
    case 1, 2, 3: putChunked(store, entryID, wholeKey, key, isAbandoned: entryID % 4 == 0)
    default: putInline(store, entryID, wholeKey, key)
    }
    report(UInt8(ascii: "w"))
    if entryID % 50 == 0 { purge(store, entryID, floorFile) }
    if entryID % 500 == 0 { store.removeEverything() }
    if entryID % 16 == 0 { store.flush() }
  }
}

/// Purges in turn by pattern, path, URL and tag, and writes down below which ID no entry with the
/// tag `tag-3` is to be found any more, once that is committed.
private func purge(_ store: LMDBStore, _ entryID: UInt64, _ floorFile: Int32) {
  let number = entryID / 50 % keyCount
  if entryID % 200 == 50, let pattern = try? RoutePattern(parsing: "/key/*\(number % 10)") {
    store.purge(.pattern(pattern))
  }
  store.purge(.path(Array("/key/\(number)".utf8), authority: nil))
  store.purge(.url(wholeKeyPrefix: makeWholeKey(number + 1)))
  let receipt = store.purge(.tag(Array("tag-3".utf8)))
  store.flush()
  withUnsafeBytes(of: receipt.floor.littleEndian) { bytes in
    _ = pwrite(floorFile, bytes.baseAddress, 8, 0)
  }
}

private func bodyByte(_ entryID: UInt64, _ offset: Int) -> UInt8 {
  UInt8(truncatingIfNeeded: entryID &+ UInt64(offset) &* 7)
}

private func putInline(_ store: LMDBStore, _ entryID: UInt64, _ name: [UInt8], _ key: StoreKey) {
  let body = (0..<500).map { bodyByte(entryID, $0) }
  body.withUnsafeBytes { bytes in
    let record = makeRecord(entryID, name, bodyLength: 500, inlineBody: [bytes], chunkCount: 0)
    _ = store.put(record, key: key, mode: .insert)
  }
}

private func putChunked(
  _ store: LMDBStore, _ entryID: UInt64, _ name: [UInt8], _ key: StoreKey, isAbandoned: Bool
) {
  for index in 0..<chunkCount {
    let chunk = BodyChunk(capacity: chunkBytes)
    let start = Int(index) * chunkBytes
    let bytes = (start..<start + chunkBytes).map { bodyByte(entryID, $0) }
    _ = bytes.withUnsafeBytes { chunk.append($0) }
    let refusal = store.putChunk(entryID: entryID, index: index, chunk: chunk) { isCommitted in
      if isCommitted { report(UInt8(ascii: "c")) }
    }
    if refusal != nil || (isAbandoned && index == 1) { return store.abandon(entryID: entryID) }
  }
  let record = makeRecord(
    entryID, name, bodyLength: UInt64(chunkBytes) * UInt64(chunkCount), inlineBody: nil,
    chunkCount: chunkCount)
  _ = store.put(record, key: key, mode: .insert)
}
