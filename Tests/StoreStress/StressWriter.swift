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
  while true {
    let entryID = store.nextEntryID()
    let name = "key-\(entryID % keyCount)"
    let key = Array(name.utf8).withUnsafeBytes { StoreKeyHash.hash(store.keySecret, $0) }
    switch entryID % 7 {
    case 0: store.remove(key: key)
    case 1, 2, 3: putChunked(store, entryID, name, key, isAbandoned: entryID % 4 == 0)
    default: putInline(store, entryID, name, key)
    }
    report(UInt8(ascii: "w"))
    if entryID % 500 == 0 { store.removeEverything() }
    if entryID % 16 == 0 { store.flush() }
  }
}

private func bodyByte(_ entryID: UInt64, _ offset: Int) -> UInt8 {
  UInt8(truncatingIfNeeded: entryID &+ UInt64(offset) &* 7)
}

private func putInline(_ store: LMDBStore, _ entryID: UInt64, _ name: String, _ key: StoreKey) {
  let body = (0..<500).map { bodyByte(entryID, $0) }
  body.withUnsafeBytes { bytes in
    let record = makeRecord(entryID, name, bodyLength: 500, inlineBody: [bytes], chunkCount: 0)
    _ = store.put(record, key: key, mode: .insert)
  }
}

private func putChunked(
  _ store: LMDBStore, _ entryID: UInt64, _ name: String, _ key: StoreKey, isAbandoned: Bool
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
  _ entryID: UInt64, _ name: String, bodyLength: UInt64, inlineBody: [UnsafeRawBufferPointer]?,
  chunkCount: UInt32
) -> RecordBuffer {
  let metadata = StoredMetadata(
    entryID: entryID, status: 200, flags: [], requestTimeMilliseconds: 0,
    responseTimeMilliseconds: 0, initialAgeMilliseconds: 0, originLifetimeMilliseconds: -1,
    originStaleWhileRevalidateMilliseconds: -1, originStaleIfErrorMilliseconds: -1,
    bodyLength: bodyLength)
  let empty = UnsafeRawBufferPointer(start: nil, count: 0)
  return Array(name.utf8).withUnsafeBytes { wholeKey in
    RecordBuffer.make(
      metadata: metadata, routeID: entryID % 3, wholeKey: wholeKey, varyBlock: empty,
      variantHash: entryID % 2, head: wholeKey, entityTag: empty, lastModified: empty,
      tags: [Array("tag-\(entryID % 5)".utf8), Array("all".utf8)],
      evictAfterMilliseconds: .max, keepUntilMilliseconds: nil, inlineBody: inlineBody,
      chunkCount: chunkCount)
  }
}
