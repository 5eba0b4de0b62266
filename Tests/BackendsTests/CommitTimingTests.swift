/// When the writer commits: the rule by itself, and the writer that goes by it.
import CachePolicy
import Dispatch
import Testing

@testable import Backends

struct CommitTimingTests {
  private static let worth = CommitTiming.gatheredBytesMax

  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var sinceMilliseconds: Int64 = 1000
    var bytes = 1
    var hasRemoval = false
    var earliestMilliseconds: Int64 = 900
    var hasOtherWork = false
    var commitMilliseconds: Int64
    var testDescription: String { name }
  }

  @Test(arguments: [
    Case(name: "a write waits for others", commitMilliseconds: 1050),
    Case(name: "but not twice", earliestMilliseconds: 1060, commitMilliseconds: 1060),
    Case(name: "a removal waits for the interval alone", hasRemoval: true, commitMilliseconds: 900),
    Case(name: "so does much", bytes: worth, commitMilliseconds: 900),
    Case(name: "and a little less does not", bytes: worth - 1, commitMilliseconds: 1050),
    Case(name: "a busy writer does not wait", hasOtherWork: true, commitMilliseconds: 900),
  ])
  func aCommitIsDue(_ row: Case) {
    let timing = CommitTiming(intervalMilliseconds: 10, gatheringMilliseconds: 50)
    let waiting = CommitTiming.Waiting(
      sinceMilliseconds: row.sinceMilliseconds, bytes: row.bytes, hasRemoval: row.hasRemoval)
    #expect(
      timing.commitMilliseconds(
        of: waiting, earliestMilliseconds: row.earliestMilliseconds,
        hasOtherWork: row.hasOtherWork) == row.commitMilliseconds)
  }

  /// A store whose writes would wait for others till the test is long over.
  private func patientStore() throws -> StoreFixture {
    let fixture = try StoreFixture { $0.gatheringMilliseconds = 600_000 }
    // A writer that has other work does not wait.
    fixture.store.sweep()
    return fixture
  }

  /// Puts chunks until so many bytes wait; the semaphore tells of the first one's commit.
  private func putChunks(_ fixture: StoreFixture, bytes: Int) -> DispatchSemaphore {
    let isCommitted = DispatchSemaphore(value: 0)
    let entryID = fixture.store.nextEntryID()
    let chunkBytes = min(bytes, 64 * 1024)
    for index in 0..<UInt32(bytes / chunkBytes) {
      let refusal = fixture.store.putChunk(
        entryID: entryID, index: index, chunk: StressBody.chunk(entryID, index, chunkBytes)
      ) { _ in if index == 0 { isCommitted.signal() } }
      #expect(refusal == nil)
    }
    return isCommitted
  }

  @Test func aRemovalTakesWhatWaitsWithIt() throws {
    let fixture = try patientStore()
    let isCommitted = putChunks(fixture, bytes: 100)
    fixture.store.remove(key: fixture.key("other"))
    #expect(isCommitted.wait(timeout: .now() + 60) == .success)
  }

  @Test func aCopyThatIsContradictedWaitsForNoOthers() throws {
    let fixture = try patientStore()
    let entryID = fixture.putInline("a", "body")
    fixture.store.flush()
    let isCommitted = putChunks(fixture, bytes: 100)
    let record = RecordBuffer.sample(
      entryID: entryID, name: "a", flags: .contradicted, body: Array("body".utf8))
    #expect(fixture.store.put(record, key: fixture.key("a"), mode: .refresh) == nil)
    #expect(isCommitted.wait(timeout: .now() + 60) == .success)
  }

  @Test func muchIsCommittedWithoutWaiting() throws {
    let fixture = try patientStore()
    let isCommitted = putChunks(fixture, bytes: Self.worth)
    #expect(isCommitted.wait(timeout: .now() + 60) == .success)
  }

  @Test func aFlushWaitsForNoOthers() throws {
    let fixture = try patientStore()
    fixture.putInline("a", "body")
    fixture.store.flush()
    #expect(fixture.store.statistics().entries == 1)
  }
}
