/// The pure parts of the store's concurrency: what is pending, and what is pinned.
import CachePolicy
import Testing

@testable import Backends

struct WriteOverlayTests {
  private let key = StoreKey(high: 1, low: 2)

  private func write(_ sequence: UInt64, _ mode: WriteMode, _ entryID: UInt64) -> PendingRecord {
    PendingRecord(
      sequence: sequence, mode: mode, entryID: entryID, variantHash: 0,
      record: .sample(entryID: entryID, body: []))
  }

  @Test func anInsertGivesWayToANewerEntryOnly() {
    let insert = write(1, .insert, 5)
    #expect(insert.applies(over: nil) && insert.applies(over: entry(4)))
    #expect(insert.applies(over: entry(5)) && !insert.applies(over: entry(6)))
  }

  @Test func aRefreshNeedsTheSameEntry() {
    let refresh = write(1, .refresh, 5)
    #expect(refresh.applies(over: entry(5)) && !refresh.applies(over: nil))
    #expect(!refresh.applies(over: entry(4)) && !refresh.applies(over: entry(6)))
  }

  @Test(arguments: [
    (WriteMode.insert, 8, 8, 7, true), (.insert, 8, 8, 8, true), (.insert, 8, 8, 9, false),
    (.refresh, 5, 8, 7, true), (.refresh, 5, 8, 8, true), (.refresh, 5, 8, 9, false),
  ])
  func nothingThatBeganEarlierReplacesWhatALaterFetchConfirmed(
    _ mode: WriteMode, _ entryID: UInt64, _ begunID: UInt64, _ standing: UInt64, _ does: Bool
  ) {
    let record = RecordBuffer.sample(entryID: entryID, body: [], begunID: begunID)
    let write = PendingRecord(
      sequence: 1, mode: mode, entryID: entryID, variantHash: 0, record: record)
    #expect(write.applies(over: StandingEntry(entryID: 5, begunID: standing)) == does)
  }

  private func entry(_ entryID: UInt64) -> StandingEntry {
    StandingEntry(entryID: entryID, begunID: entryID)
  }

  @Test func aRemovalHidesTheSnapshotAndForgetsWhatCameBefore() {
    var overlay = WriteOverlay()
    overlay.put(write(1, .insert, 5), key: key)
    overlay.remove(key, sequence: 2)
    #expect(overlay.pending(key)?.hidesSnapshot == true)
    #expect(overlay.pending(key)?.records.isEmpty == true)
    overlay.put(write(3, .insert, 6), key: key)
    #expect(overlay.pending(key)?.hidesSnapshot == true)
    #expect(overlay.pending(key)?.records.map(\.entryID) == [6])
  }

  @Test func aCommittedWriteStaysUntilEverySnapshotHoldsIt() {
    var overlay = WriteOverlay()
    overlay.put(write(1, .insert, 5), key: key)
    overlay.settle(through: 1, generation: 8)
    overlay.prune(oldestGeneration: 7)
    #expect(overlay.pending(key) != nil && overlay.awaitsReaders)
    overlay.prune(oldestGeneration: 8)
    #expect(overlay.pending(key) == nil && overlay.count == 0 && !overlay.awaitsReaders)
  }

  @Test func pruningKeepsWhatCameAfterTheCommit() {
    var overlay = WriteOverlay()
    overlay.remove(key, sequence: 1)
    overlay.put(write(2, .insert, 6), key: key)
    overlay.settle(through: 1, generation: 2)
    overlay.prune(oldestGeneration: SnapshotSlot.idle)
    #expect(overlay.pending(key)?.hidesSnapshot == false)
    #expect(overlay.pending(key)?.records.map(\.entryID) == [6])
  }

  @Test func aFailedWriteIsGoneAtOnceAndTheOthersStay() {
    var overlay = WriteOverlay()
    let chunkKey = ChunkKey(5, 0)
    overlay.put(BodyChunk(capacity: 1), key: chunkKey, sequence: 1)
    overlay.put(write(2, .insert, 5), key: key)
    overlay.put(write(3, .insert, 6), key: key)
    overlay.drop([1, 2])
    #expect(overlay.chunk(chunkKey) == nil)
    #expect(overlay.pending(key)?.records.map(\.entryID) == [6])
  }

  @Test func manyWritesLeaveNothingBehind() {
    var overlay = WriteOverlay()
    for sequence in 1...5000 as ClosedRange<UInt64> {
      overlay.put(
        write(sequence, .insert, sequence), key: StoreKey(high: sequence % 7, low: 0))
      overlay.settle(through: sequence, generation: sequence)
      if sequence > 10 { overlay.prune(oldestGeneration: sequence - 10) }
    }
    #expect(overlay.count == 7)
    overlay.prune(oldestGeneration: 5000)
    #expect(overlay.count == 0)
  }
}

struct PinTableTests {
  @Test func deletionOfAPinnedEntryWaitsForTheLastUnpin() {
    let pins = PinTable()
    #expect(pins.pin(1) && pins.pin(1))
    #expect(!pins.claimForDeletion(1))
    #expect(!pins.unpin(1))
    #expect(pins.unpin(1))
    #expect(pins.claimForDeletion(1))
  }

  @Test func unpinWithoutDeletionAsksForNothing() {
    let pins = PinTable()
    #expect(pins.pin(1))
    #expect(!pins.unpin(1))
  }

  @Test func aPinThatComesAfterTheDeletionIsRefusedUntilEverySnapshotHoldsIt() {
    let pins = PinTable()
    #expect(pins.claimForDeletion(1))
    #expect(!pins.pin(1))
    pins.prune(oldestGeneration: SnapshotSlot.idle)
    #expect(!pins.pin(1), "the transaction is open")
    pins.commit([1], generation: 4)
    pins.prune(oldestGeneration: 3)
    #expect(!pins.pin(1))
    pins.prune(oldestGeneration: 4)
    #expect(pins.pin(1))
  }

  @Test func aTransactionThatChangedNothingTakesItsClaimsBack() {
    let pins = PinTable()
    #expect(pins.claimForDeletion(1))
    pins.rollBack([1])
    #expect(pins.pin(1))
  }
}
