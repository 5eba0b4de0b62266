/// What a reader finds, and when: before the commit, after it, after a restart, and in what order
/// writes hold.
import CachePolicy
import Synchronization
import Testing

@testable import Backends

struct LMDBStoreTests {
  @Test func aPutIsVisibleBeforeItsCommitAndAfterIt() throws {
    let fixture = try StoreFixture()
    let gate = fixture.closeGate()
    fixture.putInline("a", "body")
    #expect(fixture.bodies("a") == [0: "body"])
    #expect(fixture.store.statistics().entries == 0)
    gate.open()
    fixture.store.flush()
    #expect(fixture.bodies("a") == [0: "body"])
    #expect(fixture.store.statistics().entries == 1)
  }

  @Test func aTurnThatBeganBeforeTheCommitFindsWhatWasPutDuringIt() throws {
    let fixture = try StoreFixture()
    fixture.reader.begin()
    fixture.putInline("a", "inline")
    let entryID = fixture.putChunked("b", chunkCount: 2, chunkBytes: 1000)
    fixture.store.flush()
    var found: [UInt64] = []
    readRecords(fixture.reader, fixture.key("a"), "a") { _ in found.append(1) }
    readRecords(fixture.reader, fixture.key("b"), "b") { found.append($0.entryID) }
    #expect(found == [1, entryID])
    #expect(fixture.reader.chunk(entryID: entryID, index: 1)?.count == 1000)
    fixture.reader.end()
  }

  @Test func aMissIsAMiss() throws {
    let fixture = try StoreFixture()
    fixture.putInline("a", "body")
    fixture.store.flush()
    #expect(fixture.bodies("b").isEmpty)
  }

  @Test func anotherKeyWithTheSameHashIsNotAHit() throws {
    let fixture = try StoreFixture()
    let record = RecordBuffer.sample(
      entryID: fixture.store.nextEntryID(), name: "other", body: [1])
    #expect(fixture.store.put(record, key: fixture.key("a"), mode: .insert) == nil)
    #expect(fixture.bodies("a").isEmpty)
    fixture.store.flush()
    #expect(fixture.bodies("a").isEmpty)
  }

  enum Moment: CaseIterable { case pending, committed }

  @Test(arguments: Moment.allCases) func aNewerEntryReplacesAnOlderOneAndNotTheOtherWay(
    _ moment: Moment
  ) throws {
    let fixture = try StoreFixture()
    let older = fixture.store.nextEntryID()
    fixture.putInline("a", "newer")
    let gate = moment == .pending ? fixture.closeGate() : nil
    if moment == .committed { fixture.store.flush() }
    fixture.putInline("a", "older", entryID: older)
    #expect(fixture.bodies("a") == [0: "newer"])
    gate?.open()
    fixture.store.flush()
    #expect(fixture.bodies("a") == [0: "newer"])
    fixture.putInline("a", "newest")
    #expect(fixture.bodies("a") == [0: "newest"])
    fixture.store.flush()
    #expect(fixture.bodies("a") == [0: "newest"])
    #expect(fixture.store.statistics().entries == 1)
  }

  @Test(arguments: Moment.allCases) func aRefreshHoldsForTheSameEntryOnly(
    _ moment: Moment
  ) throws {
    let fixture = try StoreFixture()
    let first = fixture.putInline("a", "first")
    if moment == .committed { fixture.store.flush() }
    let gate = moment == .pending ? fixture.closeGate() : nil
    fixture.putInline("a", "confirmed", entryID: first, mode: .refresh)
    #expect(fixture.bodies("a") == [0: "confirmed"])
    fixture.putInline("a", "second")
    fixture.putInline("a", "too late", entryID: first, mode: .refresh)
    fixture.putInline("b", "nothing there", entryID: first, mode: .refresh)
    #expect(fixture.bodies("a") == [0: "second"])
    #expect(fixture.bodies("b").isEmpty)
    gate?.open()
    fixture.store.flush()
    #expect(fixture.bodies("a") == [0: "second"])
    #expect(fixture.bodies("b").isEmpty)
  }

  /// A confirmation by fetch 9 stands against what fetches 7 and 8 bring, however late they come.
  @Test(arguments: Moment.allCases, [WriteMode.insert, .refresh])
  func whatBeganBeforeAConfirmationDoesNotUndoIt(_ moment: Moment, _ mode: WriteMode) throws {
    let fixture = try StoreFixture()
    let first = fixture.putInline("a", "first")
    let ids = (0..<3).map { _ in fixture.store.nextEntryID() }
    let gate = moment == .pending ? fixture.closeGate() : nil
    func put(_ text: String, entryID: UInt64, begunID: UInt64, _ mode: WriteMode) {
      let record = RecordBuffer.sample(
        entryID: entryID, name: "a", body: Array(text.utf8), begunID: begunID)
      #expect(fixture.store.put(record, key: fixture.key("a"), mode: mode) == nil)
    }
    put("confirmed", entryID: first, begunID: ids[1], .refresh)
    if moment == .committed { fixture.store.flush() }
    let isRefresh = mode == .refresh
    put("earlier", entryID: isRefresh ? first : ids[0], begunID: ids[0], mode)
    #expect(fixture.bodies("a") == [0: "confirmed"])
    gate?.open()
    fixture.store.flush()
    #expect(fixture.bodies("a") == [0: "confirmed"])
    put("later", entryID: isRefresh ? first : ids[2], begunID: ids[2], mode)
    #expect(fixture.bodies("a") == [0: "later"])
    fixture.store.flush()
    #expect(fixture.bodies("a") == [0: "later"])
  }

  @Test func aRefreshKeepsTheChunks() throws {
    let fixture = try StoreFixture()
    let entryID = fixture.putChunked("a", chunkCount: 2, chunkBytes: 5000)
    fixture.store.flush()
    let record = RecordBuffer.sample(
      entryID: entryID, name: "a", head: "new head", body: nil, bodyLength: 10_000, chunkCount: 2)
    #expect(fixture.store.put(record, key: fixture.key("a"), mode: .refresh) == nil)
    fixture.store.flush()
    var heads: [String] = []
    fixture.forEachRecord("a") { heads.append(String(decoding: $0.head, as: UTF8.self)) }
    #expect(heads == ["new head"])
    #expect(fixture.chunk(entryID, 1) == StressBody.bytes(entryID, from: 5000, count: 5000))
  }

  @Test func variantsStandBesideEachOtherAndGoTogether() throws {
    let fixture = try StoreFixture()
    fixture.putInline("a", "one", variant: 1)
    fixture.putInline("a", "two", variant: 2)
    fixture.store.flush()
    let gate = fixture.closeGate()
    fixture.putInline("a", "new two", variant: 2)
    fixture.putInline("a", "three", variant: 3)
    #expect(fixture.bodies("a") == [1: "one", 2: "new two", 3: "three"])
    fixture.store.remove(key: fixture.key("a"))
    #expect(fixture.bodies("a").isEmpty)
    fixture.putInline("a", "after", variant: 2)
    #expect(fixture.bodies("a") == [2: "after"])
    gate.open()
    fixture.store.flush()
    #expect(fixture.bodies("a") == [2: "after"])
    #expect(fixture.store.statistics().entries == 1)
  }

  @Test func theOldestVariantGoesWhenThereAreTooMany() throws {
    let fixture = try StoreFixture { $0.variantsMax = 3 }
    for variant in [9, 2, 7, 5] as [UInt64] {
      fixture.putInline("a", "\(variant)", variant: variant)
    }
    fixture.store.flush()
    #expect(fixture.bodies("a") == [2: "2", 7: "7", 5: "5"])
    #expect(fixture.store.statistics().variantsDropped == 1)
  }

  @Test func aPutMayAllowFewerVariantsThanTheStore() throws {
    let fixture = try StoreFixture { $0.variantsMax = 10 }
    for variant in [9, 2, 7, 5] as [UInt64] {
      fixture.putInline("a", "\(variant)", variant: variant)
    }
    fixture.store.flush()
    let record = RecordBuffer.sample(
      entryID: fixture.store.nextEntryID(), name: "a", variant: 1, body: Array("1".utf8))
    #expect(
      fixture.store.put(record, key: fixture.key("a"), mode: .insert, variantsMax: 2) == nil)
    fixture.store.flush()
    #expect(fixture.bodies("a") == [5: "5", 1: "1"])
    #expect(fixture.store.statistics().variantsDropped == 3)
  }

  @Test func removingEverythingHidesWhatWasAndWhatIsStillBeingFilled() throws {
    let fixture = try StoreFixture()
    fixture.putInline("a", "old")
    fixture.putChunked("c", chunkCount: 2, chunkBytes: 1000)
    fixture.store.flush()
    let begun = fixture.store.nextEntryID()
    let gate = fixture.closeGate()
    fixture.putInline("b", "pending")
    fixture.store.removeEverything()
    #expect(["a", "b", "c"].allSatisfy { fixture.entryIDs($0).isEmpty })
    let record = RecordBuffer.sample(entryID: begun, name: "a", body: [])
    #expect(fixture.store.put(record, key: fixture.key("a"), mode: .insert) == .invalidated)
    fixture.putInline("a", "new")
    #expect(fixture.bodies("a") == [0: "new"])
    gate.open()
    fixture.store.sweep()
    #expect(fixture.bodies("a") == [0: "new"])
    #expect(["b", "c"].allSatisfy { fixture.entryIDs($0).isEmpty })
    #expect(fixture.store.statistics().entries == 1)
  }

  @Test func aBodyInChunksIsReadWholeBeforeAndAfterTheCommit() throws {
    let fixture = try StoreFixture()
    let gate = fixture.closeGate()
    let bytes = fixture.store.configuration.chunkBytes
    let entryID = fixture.putChunked("a", chunkCount: 3, chunkBytes: bytes)
    let whole = StressBody.bytes(entryID, from: 0, count: 3 * bytes)
    func read() -> [UInt8] { (0..<3).flatMap { fixture.chunk(entryID, $0) ?? [] } }
    #expect(fixture.entryIDs("a") == [entryID])
    #expect(read() == whole)
    gate.open()
    fixture.store.flush()
    #expect(fixture.entryIDs("a") == [entryID])
    #expect(read() == whole)
    #expect(fixture.chunk(entryID, 3) == nil)
  }

  @Test func theOwnerOfAChunkHearsOfItsCommit() throws {
    let fixture = try StoreFixture()
    let entryID = fixture.store.nextEntryID()
    let outcomes = OutcomeList()
    for index in [0, 2] as [UInt32] {
      let refusal = fixture.store.putChunk(
        entryID: entryID, index: index, chunk: StressBody.chunk(entryID, index, 10)
      ) { outcomes.add($0) }
      #expect(refusal == nil)
    }
    fixture.store.flush()
    // Chunk 1 never came: the entry is lost.
    #expect(outcomes.all == [true, false])
    let record = RecordBuffer.sample(
      entryID: entryID, name: "a", body: nil, bodyLength: 20, chunkCount: 2)
    #expect(fixture.store.put(record, key: fixture.key("a"), mode: .insert) == .storeFailed)
    #expect(fixture.entryIDs("a").isEmpty)
  }

  @Test func aRecordWithoutAllItsChunksDoesNotLand() throws {
    let fixture = try StoreFixture()
    let entryID = fixture.store.nextEntryID()
    let chunk = StressBody.chunk(entryID, 0, 10)
    #expect(fixture.store.putChunk(entryID: entryID, index: 0, chunk: chunk) == nil)
    let record = RecordBuffer.sample(
      entryID: entryID, name: "a", body: nil, bodyLength: 20, chunkCount: 2)
    #expect(fixture.store.put(record, key: fixture.key("a"), mode: .insert) == nil)
    fixture.store.flush()
    #expect(fixture.entryIDs("a").isEmpty)
    #expect(fixture.chunk(entryID, 0) == nil)
    #expect(fixture.store.statistics().notStored == [.storeFailed: 1])
  }

  @Test func anAbandonedFillLeavesNoChunks() throws {
    let fixture = try StoreFixture()
    let entryID = fixture.store.nextEntryID()
    let chunk = StressBody.chunk(entryID, 0, 10)
    #expect(fixture.store.putChunk(entryID: entryID, index: 0, chunk: chunk) == nil)
    fixture.store.flush()
    #expect(fixture.chunk(entryID, 0) != nil)
    fixture.store.abandon(entryID: entryID)
    fixture.store.flush()
    #expect(fixture.chunk(entryID, 0) == nil)
  }

  @Test func aFillThatLandsTooLateLeavesNoChunks() throws {
    let fixture = try StoreFixture()
    let late = fixture.store.nextEntryID()
    let newer = fixture.putInline("a", "newer")
    let chunk = StressBody.chunk(late, 0, 10)
    #expect(fixture.store.putChunk(entryID: late, index: 0, chunk: chunk) == nil)
    let record = RecordBuffer.sample(
      entryID: late, name: "a", body: nil, bodyLength: 10, chunkCount: 1)
    #expect(fixture.store.put(record, key: fixture.key("a"), mode: .insert) == nil)
    #expect(fixture.entryIDs("a") == [newer])
    fixture.store.flush()
    #expect(fixture.entryIDs("a") == [newer])
    #expect(fixture.chunk(late, 0) == nil)
  }

  @Test func pinnedChunksStayUntilTheyAreUnpinned() throws {
    let fixture = try StoreFixture()
    let entryID = fixture.putChunked("a", chunkCount: 2, chunkBytes: 1000)
    fixture.store.flush()
    #expect(fixture.store.pin(entryID: entryID))
    fixture.putInline("a", "replaced")
    fixture.store.flush()
    #expect(fixture.bodies("a") == [0: "replaced"])
    #expect(fixture.chunk(entryID, 1) == StressBody.bytes(entryID, from: 1000, count: 1000))
    fixture.store.unpin(entryID: entryID)
    fixture.store.flush()
    #expect(fixture.chunk(entryID, 1) == nil)
  }

  @Test func aPinThatComesAfterTheChunksAreGoneIsRefused() throws {
    let fixture = try StoreFixture()
    let entryID = fixture.putChunked("a", chunkCount: 2, chunkBytes: 1000)
    fixture.store.flush()
    fixture.reader.begin()
    fixture.store.remove(key: fixture.key("a"))
    fixture.store.flush()
    // This turn's snapshot still has the chunks; the next one's will not.
    #expect(fixture.reader.chunk(entryID: entryID, index: 0) != nil)
    #expect(!fixture.store.pin(entryID: entryID))
    fixture.reader.end()
  }

  @Test func aFullQueueRefusesPutsAndTakesRemovals() throws {
    let fixture = try StoreFixture { $0.queueBytesMax = 20_000 }
    fixture.putInline("a", "body")
    fixture.store.flush()
    let gate = fixture.closeGate()
    var refusal: NotStoredReason?
    for _ in 0..<30 where refusal == nil {
      let record = RecordBuffer.sample(
        entryID: fixture.store.nextEntryID(), name: "b", body: [UInt8](repeating: 1, count: 1000))
      refusal = fixture.store.put(record, key: fixture.key("b"), mode: .insert)
    }
    #expect(refusal == .queueFull)
    fixture.store.remove(key: fixture.key("a"))
    #expect(fixture.bodies("a").isEmpty)
    gate.open()
    fixture.store.flush()
    #expect(fixture.bodies("a").isEmpty)
    #expect(fixture.store.statistics().notStored == [.queueFull: 1])
    fixture.putInline("c", "room again")
    #expect(fixture.store.statistics().state == .ok)
  }

  @Test func theEntriesOfEachRouteAreCounted() throws {
    let fixture = try StoreFixture()
    for number in 0..<5 { fixture.putInline("a\(number)", "x", routeID: 1) }
    fixture.putChunked("b", chunkCount: 1, chunkBytes: 100, routeID: 2)
    fixture.store.flush()
    #expect(fixture.store.statistics().entriesByRoute == [1: 5, 2: 1])
    fixture.store.remove(key: fixture.key("b"))
    fixture.putInline("a1", "y", routeID: 3)
    fixture.store.flush()
    #expect(fixture.store.statistics().entriesByRoute == [1: 4, 3: 1])
  }

  @Test func manyThreadsReadWhileOneWrites() async throws {
    let fixture = try StoreFixture()
    let store = fixture.store
    let key = fixture.key("a")
    fixture.putInline("a", "0")
    await withTaskGroup(of: Int.self) { group in
      for _ in 0..<3 {
        group.addTask {
          guard let reader = try? store.makeReader() else { return 1 }
          var failures = 0
          var last: UInt64 = 0
          for _ in 0..<2000 {
            reader.begin()
            var entryID: UInt64 = 0
            readRecords(reader, key, "a") { entryID = $0.entryID }
            // Never a gap, and never back to an older entry.
            if entryID < last || entryID == 0 { failures += 1 }
            last = entryID
            reader.end()
          }
          return failures
        }
      }
      for number in 1...500 { fixture.putInline("a", "\(number)") }
      for await failures in group { #expect(failures == 0) }
    }
    #expect(fixture.bodies("a") == [0: "500"])
  }

  final class OutcomeList: Sendable {
    private let list = Mutex<[Bool]>([])
    func add(_ outcome: Bool) { list.withLock { $0.append(outcome) } }
    var all: [Bool] { list.withLock { $0 } }
  }
}
