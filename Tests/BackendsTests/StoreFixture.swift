/// A store in a temporary folder, and short ways to put into it and read from it.
///
/// Used by every suite of the store. `WriterGate` holds the writer thread between a commit and the
/// next, so that a test sees what is accepted and not committed.
import CachePolicy
import Dispatch
import Foundation
import Synchronization
import Testing

@testable import Backends

/// A folder of the test's own, removed with it.
final class TemporaryFolder: Sendable {
  let path: String
  init() {
    path = NSTemporaryDirectory() + "larder-store-\(UUID().uuidString)"
  }
  deinit {
    // A test that fails halfway may leave nothing to remove.
    try? FileManager.default.removeItem(atPath: path)
  }
}

final class StoreFixture {
  let folder: TemporaryFolder
  let clock = Clock()
  let store: LMDBStore
  private(set) var reader: StoreReader!
  let messages = MessageList()

  final class MessageList: Sendable {
    private let list = Mutex<[String]>([])
    func add(_ message: String) { list.withLock { $0.append(message) } }
    var all: [String] { list.withLock { $0 } }
  }

  init(
    folder: TemporaryFolder = TemporaryFolder(), maxSizeBytes: UInt64 = 16 * 1024 * 1024,
    change: (inout StoreConfiguration) -> Void = { _ in }
  ) throws {
    self.folder = folder
    var configuration = StoreConfiguration(path: folder.path, maxSizeBytes: maxSizeBytes)
    configuration.commitIntervalMilliseconds = 1
    configuration.gatheringMilliseconds = 1
    change(&configuration)
    let messages = self.messages
    store = try LMDBStore.open(configuration, clock: clock) { messages.add($0) }
    reader = try store.makeReader()
  }

  /// Closes the file too: the reader goes first.
  func close() {
    reader = nil
    store.close()
  }

  deinit { close() }

  /// Where a whole key's records lie; a name that is none stands for its own path.
  func key(_ name: String) -> StoreKey {
    let wholeKey = Array(name.utf8)
    let parts = CacheKey.Parts(wholeKey.span)
    let path = parts.map { wholeKey[$0.path] } ?? wholeKey[...]
    return wholeKey.withUnsafeBytes { wholeKey in
      path.withUnsafeBytes {
        StoreKeyHash.key(store.keySecret, wholeKey: wholeKey, path: $0)
      }
    }
  }

  /// Puts an entry whose body lies in its record; returns its ID.
  @discardableResult
  func putInline(
    _ name: String, _ body: String, entryID: UInt64? = nil, variant: UInt64 = 0,
    mode: WriteMode = .insert, routeID: UInt64 = 1, tags: [String] = [],
    evictAfter: Int64 = .max, keepUntil: Int64? = nil
  ) -> UInt64 {
    let entryID = entryID ?? store.nextEntryID()
    let record = RecordBuffer.sample(
      entryID: entryID, name: name, variant: variant, routeID: routeID, body: Array(body.utf8),
      tags: tags, evictAfter: evictAfter, keepUntil: keepUntil)
    #expect(store.put(record, key: key(name), mode: mode) == nil)
    return entryID
  }

  /// Puts an entry with this many chunks of `chunkBytes`; returns its ID. `isTaken` false: the store
  /// may refuse it, while it comes or behind.
  @discardableResult
  func putChunked(
    _ name: String, chunkCount: UInt32, chunkBytes: Int, routeID: UInt64 = 1,
    tags: [String] = [], isTaken: Bool = true
  ) -> UInt64 {
    let entryID = store.nextEntryID()
    for index in 0..<chunkCount {
      let chunk = StressBody.chunk(entryID, index, chunkBytes)
      let refusal = store.putChunk(entryID: entryID, index: index, chunk: chunk)
      if isTaken { #expect(refusal == nil) }
    }
    let record = RecordBuffer.sample(
      entryID: entryID, name: name, routeID: routeID, body: nil,
      bodyLength: UInt64(chunkCount) * UInt64(chunkBytes), chunkCount: chunkCount, tags: tags)
    let refusal = store.put(record, key: key(name), mode: .insert)
    if isTaken { #expect(refusal == nil) }
    return entryID
  }

  /// What a reader finds: the bodies of all variants that are inline, by variant.
  func bodies(_ name: String) -> [UInt64: String] {
    var found: [UInt64: String] = [:]
    forEachRecord(name) { found[$0.variantHash] = String(decoding: $0.inlineBody, as: UTF8.self) }
    return found
  }

  func entryIDs(_ name: String) -> Set<UInt64> {
    var found: Set<UInt64> = []
    forEachRecord(name) { found.insert($0.entryID) }
    return found
  }

  func forEachRecord(_ name: String, _ body: (RecordView) -> Void) {
    reader.begin()
    readRecords(reader, key(name), name, body)
    reader.end()
  }

  func chunk(_ entryID: UInt64, _ index: UInt32) -> [UInt8]? {
    reader.begin()
    defer { reader.end() }
    return reader.chunk(entryID: entryID, index: index).map { Array($0) }
  }

  /// Holds the writer behind its next commit until `open`. All that is put meanwhile waits.
  func closeGate() -> WriterGate {
    let gate = WriterGate()
    let entryID = store.nextEntryID()
    let refusal = store.putChunk(
      entryID: entryID, index: 0, chunk: StressBody.chunk(entryID, 0, 10)
    ) { _ in gate.hold() }
    #expect(refusal == nil)
    gate.waitUntilHeld()
    return gate
  }
}

/// A whole key as the repository writes it; as text, since all its lengths are below 128.
func wholeKey(
  _ path: String, query: String? = nil, upstream: String = "api",
  authority: String = "example.com", further: String = ""
) -> String {
  var key: [UInt8] = []
  for part in [upstream, authority, path] {
    let bytes = Array(part.utf8)
    CacheKey.append(part: bytes.span, to: &key)
  }
  if let query {
    let bytes = Array(query.utf8)
    key.append(UInt8(ascii: "?"))
    CacheKey.append(part: bytes.span, to: &key)
  }
  return String(decoding: key, as: UTF8.self) + further
}

/// Reads all variants within a turn that has begun.
func readRecords(
  _ reader: StoreReader, _ key: StoreKey, _ name: String, _ body: (RecordView) -> Void
) {
  Array(name.utf8).withUnsafeBytes { wholeKey in
    var view = reader.firstRecord(key, wholeKey: wholeKey)
    while let record = view {
      body(record)
      view = reader.nextRecord()
    }
  }
}

final class WriterGate: Sendable {
  private let held = DispatchSemaphore(value: 0)
  private let opened = DispatchSemaphore(value: 0)
  func hold() {
    held.signal()
    opened.wait()
  }
  func waitUntilHeld() { held.wait() }
  func open() { opened.signal() }
}

/// Bodies that follow from their entry's ID, as StoreStress writes them.
enum StressBody {
  static func bytes(_ entryID: UInt64, from start: Int, count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      var byte = UInt8(truncatingIfNeeded: entryID &+ UInt64(start) &* 7)
      for offset in 0..<count {
        buffer[offset] = byte
        byte &+= 7
      }
      initialized = count
    }
  }
  static func chunk(_ entryID: UInt64, _ index: UInt32, _ chunkBytes: Int) -> BodyChunk {
    let chunk = BodyChunk(capacity: chunkBytes)
    bytes(entryID, from: Int(index) * chunkBytes, count: chunkBytes).withUnsafeBytes {
      _ = chunk.append($0)
    }
    return chunk
  }
}

extension RecordBuffer {
  static func sample(
    entryID: UInt64, name: String = "name", variant: UInt64 = 0, routeID: UInt64 = 1,
    status: UInt16 = 200, flags: StoredFlags = [], vary: String = "", head: String = "head",
    entityTag: String = "", lastModified: String = "", body: [UInt8]?, bodyLength: UInt64 = 0,
    chunkCount: UInt32 = 0, tags: [String] = [], evictAfter: Int64 = .max,
    keepUntil: Int64? = nil, begunID: UInt64? = nil, date: Int64 = 0
  ) -> RecordBuffer {
    let metadata = StoredMetadata(
      entryID: entryID, status: status, flags: flags, requestTimeMilliseconds: 1001,
      responseTimeMilliseconds: 1002, initialAgeMilliseconds: 1003,
      originLifetimeMilliseconds: 1004, originStaleWhileRevalidateMilliseconds: 1005,
      originStaleIfErrorMilliseconds: -1,
      bodyLength: body.map { UInt64($0.count) } ?? bodyLength, dateMilliseconds: date)
    let texts = [name, vary, head, entityTag, lastModified].map { Array($0.utf8) }
    let pieces = body.map { [Array($0[..<($0.count / 2)]), Array($0[($0.count / 2)...])] }
    return withPointers(texts) { sections in
      withPointers(pieces ?? []) { inlineBody in
        RecordBuffer.make(
          metadata: metadata, routeID: routeID, wholeKey: sections[0], varyBlock: sections[1],
          variantHash: variant, head: sections[2], entityTag: sections[3],
          lastModified: sections[4], tags: tags.map { Array($0.utf8) },
          evictAfterMilliseconds: evictAfter,
          keepUntilMilliseconds: keepUntil, inlineBody: body == nil ? nil : inlineBody,
          chunkCount: chunkCount, begunID: begunID)
      }
    }
  }

  private static func withPointers<Result>(
    _ arrays: [[UInt8]], _ found: [UnsafeRawBufferPointer] = [],
    _ body: ([UnsafeRawBufferPointer]) -> Result
  ) -> Result {
    guard found.count < arrays.count else { return body(found) }
    return arrays[found.count].withUnsafeBytes { withPointers(arrays, found + [$0], body) }
  }
}
