/// Walks all rows of a closed store and tells what does not fit together.
///
/// Opens the file by itself: the store must be closed. What it finds is empty for a store in which
/// every entry is whole and no row is left over.
import CachePolicy
import Testing

@testable import Backends

struct StoreAudit {
  private(set) var problems: [String] = []
  private(set) var entryCount = 0
  private(set) var chunkRowCount = 0
  private(set) var tagRowCount = 0
  /// Purges that were not done with.
  private(set) var purgeCount = 0
  private(set) var routeCounts: [UInt64: Int64] = [:]

  /// `checkBody` gets each entry with its body.
  init(path: String, checkBody: (RecordView, [UInt8]) -> Bool = { _, _ in true }) throws {
    let folder = try StoreFolder(path: path)
    let environment = try LMDBEnvironment(
      folder: folder, mapSizeBytes: 1 << 30, readersMax: 1)
    let identity = try StoreSchema.open(environment)
    let transaction = try environment.beginWrite()
    var ownedChunks: Set<ChunkKey> = []
    var expectedExpiryCount = 0
    var expectedTags: Set<TagKey> = []
    purgeCount = identity.purges.count
    let secret = (identity.secretFirst, identity.secretSecond)
    try forEachRow(transaction, transaction.tables.entries) { key, value in
      guard let rowKey = EntriesKey(key), let view = RecordView(value), view.isUndamaged else {
        return problems.append("a damaged record")
      }
      entryCount += 1
      let entryID = view.entryID
      let tagHashes = Set(view.tags.map { StoreKeyHash.tagHash(secret, $0) })
      expectedTags.formUnion(tagHashes.map { TagKey($0, entryID) })
      guard
        let orderValue = try transaction.value(transaction.tables.order, entryID.bigEndian),
        let order = OrderRow(orderValue), order.key == rowKey,
        order.chunkCount == view.chunkCount, order.routeID == view.routeID,
        OrderRow.tagHashes(orderValue) == tagHashes.sorted()
      else { return problems.append("entry \(entryID): its order row does not fit") }
      routeCounts[view.routeID, default: 0] += 1
      if order.evictAfterMilliseconds != .max { expectedExpiryCount += 1 }
      if order.keepUntilMilliseconds >= 0 { expectedExpiryCount += 1 }
      var body = Array(view.inlineBody)
      for index in 0..<view.chunkCount {
        let chunkKey = ChunkKey(entryID, index)
        ownedChunks.insert(chunkKey)
        guard let row = try transaction.value(transaction.tables.chunks, chunkKey),
          let bytes = ChunkRow.body(row, chunkKey)
        else {
          problems.append("entry \(entryID): chunk \(index) is missing or damaged")
          continue
        }
        body += bytes
      }
      if UInt64(body.count) != view.bodyLength {
        problems.append("entry \(entryID): \(body.count) of \(view.bodyLength) bytes")
      } else if !checkBody(view, body) {
        problems.append("entry \(entryID): the body is another's")
      }
    }
    try forEachRow(transaction, transaction.tables.chunks) { key, _ in
      chunkRowCount += 1
      if ChunkKey(key).map({ !ownedChunks.contains($0) }) ?? true {
        problems.append("a chunk that no record owns")
      }
    }
    try forEachRow(transaction, transaction.tables.tags) { key, _ in
      tagRowCount += 1
      if TagKey(key).map({ expectedTags.remove($0) == nil }) ?? true {
        problems.append("a tag's row without its entry")
      }
    }
    if !expectedTags.isEmpty { problems.append("\(expectedTags.count) tag rows are missing") }
    try expectCount(transaction, transaction.tables.order, entryCount, "order")
    try expectCount(transaction, transaction.tables.expiry, expectedExpiryCount, "expiry")
    try expectCount(transaction, transaction.tables.pending, 0, "pending")
    if identity.routes.mapValues(\.entryCount) != routeCounts {
      problems.append("routes: \(identity.routes) instead of \(routeCounts)")
    }
  }

  private mutating func expectCount(
    _ transaction: WriteTransaction, _ table: UInt32, _ expected: Int, _ name: String
  ) throws {
    var count = 0
    try forEachRow(transaction, table) { _, _ in count += 1 }
    if count != expected { problems.append("\(name): \(count) rows instead of \(expected)") }
  }

  /// Keys in order. `body` does not write.
  private func forEachRow(
    _ transaction: WriteTransaction, _ table: UInt32,
    _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws -> Void
  ) throws {
    let cursor = try transaction.cursor(table)
    var row = try transaction.firstRow(cursor)
    while let found = row {
      try body(found.key, found.value)
      row = try transaction.nextRow(cursor)
    }
  }
}
