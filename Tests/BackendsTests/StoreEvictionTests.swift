/// The store keeps within its size, and gives up first what is of least use.
import CachePolicy
import Synchronization
import Testing

@testable import Backends

struct StoreEvictionTests {
  private static let mebibyte: UInt64 = 1024 * 1024
  private let text = String(repeating: "x", count: 10_000)

  @Test(arguments: [true, false]) func fiveTimesTheSizeFitsAndTheNewestIsThere(
    _ isChunked: Bool
  ) throws {
    let fixture = try StoreFixture(maxSizeBytes: 2 * Self.mebibyte)
    let entryCount = Int(10 * Self.mebibyte) / (isChunked ? 130_000 : 10_000)
    var largestBytes: UInt64 = 0
    var last: UInt64 = 0
    for number in 0..<entryCount {
      if isChunked {
        last = fixture.putChunked("a\(number)", chunkCount: 2, chunkBytes: 65_000)
      } else {
        last = fixture.putInline("a\(number)", text)
      }
      if number % 8 == 7 {
        fixture.store.flush()
        largestBytes = max(largestBytes, fixture.store.statistics().bytes)
      }
    }
    fixture.store.flush()
    let statistics = fixture.store.statistics()
    #expect(max(largestBytes, statistics.bytes) <= statistics.maxBytes + 64 * 1024)
    #expect(statistics.bytes > statistics.maxBytes / 2)
    #expect(statistics.evicted + statistics.entries == UInt64(entryCount))
    #expect(statistics.notStored == [:] && statistics.state == .ok)
    #expect(fixture.entryIDs("a\(entryCount - 1)") == [last])
    if isChunked {
      #expect(fixture.chunk(last, 1) == StressBody.bytes(last, from: 65_000, count: 65_000))
    }
    #expect(fixture.entryIDs("a0").isEmpty)
  }

  @Test func anEntryThatIsServedOutlivesOthersThatAreNot() throws {
    let fixture = try StoreFixture(maxSizeBytes: Self.mebibyte)
    let served = fixture.putInline("served", text)
    fixture.store.flush()
    fixture.store.markUsed(entryID: served)
    for number in 0..<300 {
      fixture.putInline("a\(number)", text)
      if number % 8 == 7 { fixture.store.flush() }
    }
    fixture.store.flush()
    #expect(fixture.store.statistics().evicted > 100)
    #expect(fixture.entryIDs("served") == [served])
    #expect(fixture.entryIDs("a0").isEmpty)
  }

  /// Puts `count` entries that nobody asks for again.
  private func scan(_ fixture: StoreFixture, _ name: String, _ count: Int) {
    for number in 0..<count {
      fixture.putInline("\(name)\(number)", text)
      // One at a time: what is evicted follows from the batches, and those from the machine's load.
      fixture.store.flush()
    }
  }

  @Test func aScanDoesNotDriveOutWhatWasServed() throws {
    let fixture = try StoreFixture(maxSizeBytes: Self.mebibyte)
    for number in 0..<30 {
      let entryID = fixture.putInline("kept\(number)", text)
      fixture.store.markUsed(entryID: entryID)
    }
    fixture.store.flush()
    // Several times what the store holds, while nobody asks for the others.
    scan(fixture, "scanned", 600)
    #expect(fixture.store.statistics().evicted > 500)
    #expect((0..<30).allSatisfy { !fixture.entryIDs("kept\($0)").isEmpty })
  }

  @Test func whatComesAgainSoonIsNotOnTrialAgain() throws {
    let fixture = try StoreFixture(maxSizeBytes: Self.mebibyte)
    func put(_ name: String) {
      for number in 0..<8 { fixture.putInline("\(name)\(number)", text) }
    }
    func keptCount(_ name: String) -> Int {
      (0..<8).count { !fixture.entryIDs("\(name)\($0)").isEmpty }
    }
    scan(fixture, "first", 150)
    put("again")
    scan(fixture, "second", 150)
    #expect(keptCount("again") == 0)
    put("again")
    put("once")
    scan(fixture, "third", 150)
    // A name that left may have lost its place to another's, by the store's secret.
    #expect(keptCount("again") >= 5 && keptCount("once") == 0)
  }

  @Test func whatReplacesACopyIsNotOnTrial() throws {
    let fixture = try StoreFixture(maxSizeBytes: Self.mebibyte)
    scan(fixture, "first", 150)
    fixture.putInline("again", text)
    fixture.store.flush()
    fixture.putInline("again", text)
    scan(fixture, "second", 150)
    #expect(!fixture.entryIDs("again").isEmpty)
  }

  @Test func whatIsPinnedIsNotEvictedAndTheRestIsFound() throws {
    let fixture = try StoreFixture(maxSizeBytes: Self.mebibyte)
    var pinned: [UInt64] = []
    for number in 0..<10 {
      pinned.append(fixture.putChunked("pinned\(number)", chunkCount: 1, chunkBytes: 60_000))
      fixture.store.flush()
      #expect(fixture.store.pin(entryID: pinned[number]))
    }
    scan(fixture, "scanned", 200)
    #expect((0..<10).allSatisfy { fixture.entryIDs("pinned\($0)") == [pinned[$0]] })
    #expect(fixture.bodies("scanned199") == [0: text])
    #expect(fixture.store.statistics().notStored == [:])
    for entryID in pinned { fixture.store.unpin(entryID: entryID) }
  }

  @Test func uselessEntriesGoBeforeUsefulOnes() throws {
    let fixture = try StoreFixture(maxSizeBytes: 2 * Self.mebibyte)
    let now = fixture.clock.nowMilliseconds
    for number in 0..<30 { fixture.putInline("useful\(number)", text, evictAfter: now + 60_000) }
    for number in 0..<30 { fixture.putInline("useless\(number)", text, evictAfter: now - 1000) }
    fixture.store.flush()
    // Until the first entries had to go.
    for number in 0..<1000 where fixture.store.statistics().expired == 0 {
      fixture.putInline("more\(number)", text, evictAfter: now + 60_000)
      fixture.store.flush()
    }
    #expect(fixture.store.statistics().expired > 0)
    #expect(fixture.store.statistics().evicted == 0)
    #expect((0..<30).allSatisfy { !fixture.entryIDs("useful\($0)").isEmpty })
    #expect(fixture.entryIDs("useless0").isEmpty)
  }

  @Test func whatIsToBeKeptUntilATimeGoesAtThatTime() throws {
    let fixture = try StoreFixture()
    let now = fixture.clock.nowMilliseconds
    fixture.putInline("short", "x", keepUntil: now + 60_000)
    fixture.putInline("long", "x", keepUntil: now + 180_000)
    fixture.putInline("always", "x")
    fixture.store.sweep()
    #expect(fixture.store.statistics().entries == 3)
    fixture.clock.advance(byMilliseconds: 120_000)
    fixture.store.sweep()
    #expect(fixture.bodies("short").isEmpty)
    #expect(fixture.bodies("long") == [0: "x"] && fixture.bodies("always") == [0: "x"])
    #expect(fixture.store.statistics().expired == 1)
    #expect(fixture.store.statistics().entries == 2)
  }

  @Test func aRefreshMovesTheTimeOfTheRemoval() throws {
    let fixture = try StoreFixture()
    let now = fixture.clock.nowMilliseconds
    let entryID = fixture.putInline("a", "x", keepUntil: now + 60_000)
    fixture.store.flush()
    fixture.putInline("a", "y", entryID: entryID, mode: .refresh, keepUntil: now + 180_000)
    fixture.store.flush()
    fixture.clock.advance(byMilliseconds: 120_000)
    fixture.store.sweep()
    #expect(fixture.bodies("a") == [0: "y"])
    fixture.clock.advance(byMilliseconds: 120_000)
    fixture.store.sweep()
    #expect(fixture.bodies("a").isEmpty)
  }

  @Test func aBodyOfHalfTheStoreIsRefusedAndLeavesNothing() throws {
    let fixture = try StoreFixture(maxSizeBytes: Self.mebibyte)
    let entryID = fixture.store.nextEntryID()
    var refusals = 0
    for index in 0..<20 as Range<UInt32> {
      let chunk = StressBody.chunk(entryID, index, 60_000)
      if fixture.store.putChunk(entryID: entryID, index: index, chunk: chunk) != nil {
        refusals += 1
      }
      fixture.store.flush()
    }
    #expect(refusals > 0)
    #expect(fixture.store.statistics().notStored[.tooLarge] == 1)
    #expect(fixture.chunk(entryID, 0) == nil)
    #expect(fixture.store.statistics().bytes < 200_000)
    fixture.putInline("a", "small")
    fixture.store.flush()
    #expect(fixture.bodies("a") == [0: "small"])
  }

  @Test func aFullMapEvictsAndGoesOn() throws {
    // The size allows more than the map has: LMDB says MDB_MAP_FULL.
    let fixture = try StoreFixture(maxSizeBytes: 8 * Self.mebibyte) {
      $0.mapSizeBytesForTests = 2 * Self.mebibyte
    }
    for number in 0..<400 {
      fixture.putInline("a\(number)", text)
      if number % 8 == 7 { fixture.store.flush() }
    }
    fixture.store.flush()
    #expect(fixture.store.statistics().evicted > 0)
    #expect(fixture.store.statistics().state == .ok)
    #expect(fixture.bodies("a399") == [0: text])
  }

  @Test func aWriteThatCannotFitFailsAndTheNextOneLands() throws {
    let fixture = try StoreFixture(maxSizeBytes: 64 * Self.mebibyte) {
      $0.mapSizeBytesForTests = Self.mebibyte
    }
    fixture.putInline("before", "x")
    fixture.store.flush()
    fixture.putInline("huge", String(repeating: "y", count: 2_000_000))
    fixture.store.flush()
    #expect(fixture.entryIDs("huge").isEmpty)
    #expect(fixture.store.statistics().notStored == [.storeFull: 1])
    #expect(fixture.store.statistics().state != .ok)
    fixture.putInline("after", "z")
    fixture.store.flush()
    #expect(fixture.bodies("after") == [0: "z"])
    #expect(fixture.store.statistics().state == .ok)
    #expect(fixture.messages.all.count == 2)
  }

  @Test func aRemovalBesideAWriteThatFailsStillHolds() throws {
    let fixture = try StoreFixture(maxSizeBytes: 64 * Self.mebibyte) {
      $0.mapSizeBytesForTests = Self.mebibyte
    }
    // Pinned: it is not evicted for room, so that only the removal can remove it.
    let entryID = fixture.putChunked("a", chunkCount: 1, chunkBytes: 100)
    fixture.store.flush()
    #expect(fixture.store.pin(entryID: entryID))
    let gate = fixture.closeGate()
    fixture.store.remove(key: fixture.key("a"))
    fixture.putInline("huge", String(repeating: "y", count: 2_000_000))
    gate.open()
    fixture.store.flush()
    #expect(fixture.store.statistics().notStored == [.storeFull: 1])
    #expect(fixture.entryIDs("a").isEmpty)
    #expect(fixture.store.statistics().entries == 0)
  }

  @Test func aWriteThatFailedIsGoneWithinTheSameTurn() throws {
    let fixture = try StoreFixture(maxSizeBytes: 64 * Self.mebibyte) {
      $0.mapSizeBytesForTests = Self.mebibyte
    }
    let gate = fixture.closeGate()
    fixture.reader.begin()
    fixture.putInline("huge", String(repeating: "y", count: 2_000_000))
    var foundCount = 0
    readRecords(fixture.reader, fixture.key("huge"), "huge") { _ in foundCount += 1 }
    #expect(foundCount == 1)
    gate.open()
    fixture.store.flush()
    readRecords(fixture.reader, fixture.key("huge"), "huge") { _ in foundCount += 1 }
    #expect(foundCount == 1)
    fixture.reader.end()
  }

  @Test func aChunkWhoseWriteFailedIsReadUntilItsBodyIsLeft() throws {
    let fixture = try StoreFixture(maxSizeBytes: 64 * Self.mebibyte) {
      $0.mapSizeBytesForTests = Self.mebibyte
    }
    let entryID = fixture.store.nextEntryID()
    #expect(fixture.store.pin(entryID: entryID))
    let chunk = StressBody.chunk(entryID, 0, 2_000_000)
    #expect(fixture.store.putChunk(entryID: entryID, index: 0, chunk: chunk) == nil)
    fixture.store.flush()
    #expect(fixture.store.statistics().notStored == [.storeFull: 1])
    fixture.store.abandon(entryID: entryID)
    fixture.store.flush()
    #expect(fixture.chunk(entryID, 0)?.count == 2_000_000)
    fixture.store.unpin(entryID: entryID)
    #expect(fixture.chunk(entryID, 0) == nil)
    #expect(fixture.store.queue.overlayCount.load(ordering: .relaxed) == 0)
  }
}
