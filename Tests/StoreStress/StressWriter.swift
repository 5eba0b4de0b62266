/// Writes to a store without end, and reports each write: what the kill test kills.
///
/// Usage: StoreStress PATH. For each write one byte goes to standard output: `w` when it was
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
    guard CommandLine.arguments.count == 2 else { exit(2) }
    run(path: CommandLine.arguments[1])
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
    commitIntervalMilliseconds: 1)
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

/// `/key/N`, as the repository would write it.
private func makeWholeKey(_ number: UInt64) -> [UInt8] {
  var key: [UInt8] = []
  for part in ["api", "example.com", "/key/\(number)"] {
    let bytes = Array(part.utf8)
    CacheKey.append(part: bytes.span, to: &key)
  }
  return key
}

private func makeKey(_ store: LMDBStore, _ wholeKey: [UInt8]) -> StoreKey {
  let parts = CacheKey.Parts(wholeKey.span)
  guard let parts else { exit(4) }
  return wholeKey.withUnsafeBytes { bytes in
    wholeKey[parts.path].withUnsafeBytes {
      StoreKeyHash.key(store.keySecret, wholeKey: bytes, path: $0)
    }
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

private func makeRecord(
  _ entryID: UInt64, _ name: [UInt8], bodyLength: UInt64, inlineBody: [UnsafeRawBufferPointer]?,
  chunkCount: UInt32
) -> RecordBuffer {
  let metadata = StoredMetadata(
    entryID: entryID, status: 200, flags: [], requestTimeMilliseconds: 0,
    responseTimeMilliseconds: 0, initialAgeMilliseconds: 0, originLifetimeMilliseconds: -1,
    originStaleWhileRevalidateMilliseconds: -1, originStaleIfErrorMilliseconds: -1,
    bodyLength: bodyLength)
  let empty = UnsafeRawBufferPointer(start: nil, count: 0)
  return name.withUnsafeBytes { wholeKey in
    RecordBuffer.make(
      metadata: metadata, routeID: entryID % 3, wholeKey: wholeKey, varyBlock: empty,
      variantHash: entryID % 2, head: wholeKey, entityTag: empty, lastModified: empty,
      tags: [Array("tag-\(entryID % 5)".utf8), Array("all".utf8)],
      evictAfterMilliseconds: .max, keepUntilMilliseconds: nil, inlineBody: inlineBody,
      chunkCount: chunkCount)
  }
}
