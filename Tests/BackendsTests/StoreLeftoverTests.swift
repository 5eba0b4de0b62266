/// Chunks that a dead process left without a record: they go in the background, a bounded step at a
/// time, and never take a running fill's with them.
import CachePolicy
import Testing

@testable import Backends

struct StoreLeftoverTests {
  /// A store with the chunks of fills that never ended.
  private func folderWithLeftovers(fills: Int, chunksPerFill: UInt32) throws -> TemporaryFolder {
    let folder = TemporaryFolder()
    let fixture = try StoreFixture(folder: folder)
    for _ in 0..<fills {
      let entryID = fixture.store.nextEntryID()
      for index in 0..<chunksPerFill {
        let chunk = StressBody.chunk(entryID, index, 1000)
        #expect(fixture.store.putChunk(entryID: entryID, index: index, chunk: chunk) == nil)
      }
    }
    fixture.close()
    return folder
  }

  @Test func chunksOfAFillThatNeverEndedAreGoneAfterTheRestart() throws {
    let folder = TemporaryFolder()
    let first = try StoreFixture(folder: folder)
    let entryID = first.store.nextEntryID()
    for index in 0..<3 as Range<UInt32> {
      let chunk = StressBody.chunk(entryID, index, 1000)
      #expect(first.store.putChunk(entryID: entryID, index: index, chunk: chunk) == nil)
    }
    // A pin that nobody gives back, on an entry that is gone, leaves orphans too.
    let pinned = first.putChunked("a", chunkCount: 2, chunkBytes: 1000)
    first.store.flush()
    #expect(first.store.pin(entryID: pinned))
    first.store.remove(key: first.key("a"))
    first.close()
    let second = try StoreFixture(folder: folder)
    second.store.sweep()
    #expect(second.chunk(entryID, 0) == nil && second.chunk(pinned, 0) == nil)
    second.close()
    let audit = try StoreAudit(path: folder.path)
    #expect(audit.problems == [] && audit.chunkRowCount == 0)
  }

  @Test func oneStepDeletesNoMoreRowsThanItMay() throws {
    let folder = try folderWithLeftovers(fills: 3, chunksPerFill: 10)
    let environment = try LMDBEnvironment(
      folder: StoreFolder(path: folder.path), mapSizeBytes: 1 << 26, readersMax: 1)
    let identity = try StoreSchema.open(environment)
    var steps = 0
    var hasMore = true
    var routes: [UInt64: RouteRow] = [:]
    while hasMore {
      let changes = try EntryTransaction(
        environment,
        EntryTransaction.Context(
          pins: PinTable(), secret: (0, 0), purgeFloor: 0, purges: PurgeRules(secret: (0, 0)),
          variantsMax: 1, chunkedBytesMax: .max, marks: VisitedMarks(), names: DepartedNames()),
        EvictionState(trialStart: 0))
      let chunksBefore = try Self.countChunks(changes)
      hasMore = try changes.reclaimLeftovers(below: identity.entryIDsStart, rowsMax: 4)
      #expect(try chunksBefore - Self.countChunks(changes) <= 4)
      _ = try changes.commit(routes: &routes, generation: 1)
      steps += 1
      guard steps < 100 else { break }
    }
    // Of 30 chunks.
    #expect(steps >= 8)
    let last = try environment.beginWrite()
    let cursor = try last.cursor(last.tables.chunks)
    #expect(try last.firstRow(cursor) == nil)
  }

  private static func countChunks(_ changes: EntryTransaction) throws -> Int {
    let transaction = changes.transaction
    let cursor = try transaction.cursor(transaction.tables.chunks)
    var count = 0
    var row = try transaction.firstRow(cursor)
    while row != nil {
      count += 1
      row = try transaction.nextRow(cursor)
    }
    return count
  }

  @Test func aFillThatRunsKeepsItsChunks() throws {
    let folder = try folderWithLeftovers(fills: 2, chunksPerFill: 3)
    let fixture = try StoreFixture(folder: folder)
    let entryID = fixture.store.nextEntryID()
    let first = StressBody.chunk(entryID, 0, 1000)
    #expect(fixture.store.putChunk(entryID: entryID, index: 0, chunk: first) == nil)
    fixture.store.sweep()
    let second = StressBody.chunk(entryID, 1, 1000)
    #expect(fixture.store.putChunk(entryID: entryID, index: 1, chunk: second) == nil)
    let record = RecordBuffer.sample(
      entryID: entryID, name: "a", body: nil, bodyLength: 2000, chunkCount: 2)
    #expect(fixture.store.put(record, key: fixture.key("a"), mode: .insert) == nil)
    fixture.store.flush()
    #expect(fixture.entryIDs("a") == [entryID])
    #expect(fixture.chunk(entryID, 0) == StressBody.bytes(entryID, from: 0, count: 1000))
    fixture.close()
    let audit = try StoreAudit(path: folder.path)
    #expect(audit.problems == [] && audit.chunkRowCount == 2)
  }

  @Test func leftoversGoBeforeWhatIsOfUse() throws {
    let mebibyte = 1024 * 1024
    let folder = try folderWithLeftovers(fills: 1, chunksPerFill: 500)
    let fixture = try StoreFixture(folder: folder, maxSizeBytes: UInt64(mebibyte))
    let text = String(repeating: "x", count: 10_000)
    for number in 0..<20 { fixture.putInline("a\(number)", text) }
    fixture.store.sweep()
    #expect(fixture.store.statistics().evicted == 0)
    #expect((0..<20).allSatisfy { fixture.bodies("a\($0)") == [0: text] })
  }
}
