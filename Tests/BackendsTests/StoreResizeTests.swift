/// The store's size changes while it is read and written.
import CachePolicy
import Synchronization
import Testing

@testable import Backends

struct StoreResizeTests {
  private static let mebibyte: UInt64 = 1024 * 1024
  private let text = String(repeating: "x", count: 10_000)

  /// A store in a map of 1 MiB: more than that needs another map.
  private func smallFixture(_ folder: TemporaryFolder = TemporaryFolder()) throws -> StoreFixture {
    try StoreFixture(folder: folder, maxSizeBytes: Self.mebibyte) {
      $0.mapSizeBytesForTests = Self.mebibyte
    }
  }

  private func fill(_ fixture: StoreFixture, _ count: Int) {
    for number in 0..<count {
      fixture.putInline("a\(number)", text)
      if number % 8 == 7 { fixture.store.flush() }
    }
    fixture.store.flush()
  }

  @Test func aSmallerSizeIsReachedByEvicting() throws {
    let fixture = try StoreFixture(maxSizeBytes: 4 * Self.mebibyte)
    fill(fixture, 200)
    #expect(fixture.store.statistics().bytes > 2 * Self.mebibyte)
    fixture.store.resize(maxSizeBytes: Self.mebibyte)
    fixture.store.sweep()
    let statistics = fixture.store.statistics()
    #expect(statistics.maxBytes == Self.mebibyte && statistics.bytes <= Self.mebibyte)
    #expect(statistics.entries > 20 && statistics.evicted > 50)
    fixture.putInline("new", "x")
    fixture.store.flush()
    #expect(fixture.bodies("new") == [0: "x"])
  }

  @Test func aLargerSizeHoldsMoreThanTheMapDid() throws {
    let folder = TemporaryFolder()
    let fixture = try smallFixture(folder)
    fixture.putInline("first", "x")
    fixture.store.flush()
    #expect(fixture.bodies("first") == [0: "x"])
    fixture.store.resize(maxSizeBytes: 8 * Self.mebibyte)
    fixture.store.flush()
    fill(fixture, 300)
    #expect(fixture.store.statistics().evicted == 0)
    #expect(fixture.store.statistics().bytes > 2 * Self.mebibyte)
    #expect(fixture.store.statistics().maxBytes == 8 * Self.mebibyte)
    #expect(fixture.bodies("first") == [0: "x"] && fixture.bodies("a299") == [0: text])
    fixture.close()
    #expect(try StoreAudit(path: folder.path).problems == [])
  }

  @Test func theMapIsNotMovedUnderATurn() throws {
    let fixture = try smallFixture()
    fixture.putInline("first", "x")
    fixture.store.flush()
    fixture.reader.begin()
    fixture.store.resize(maxSizeBytes: 8 * Self.mebibyte)
    fixture.store.flush()
    var bodies: [String] = []
    readRecords(fixture.reader, fixture.key("first"), "first") {
      bodies.append(String(decoding: $0.inlineBody, as: UTF8.self))
    }
    #expect(bodies == ["x"])
    fixture.reader.end()
    // The next write finds nobody in the way.
    fixture.putInline("next", "y")
    fixture.store.flush()
    fill(fixture, 300)
    #expect(fixture.store.statistics().evicted == 0)
    #expect(fixture.bodies("first") == [0: "x"] && fixture.bodies("next") == [0: "y"])
  }

  @Test func aSizeThatNoMapHasLeavesTheStoreAsItWas() throws {
    let fixture = try smallFixture()
    fixture.putInline("first", "x")
    fixture.store.resize(maxSizeBytes: .max)
    fixture.store.flush()
    #expect(fixture.messages.all.count == 1)
    fill(fixture, 200)
    #expect(fixture.store.statistics().evicted > 0 && fixture.store.statistics().state == .ok)
    #expect(fixture.bodies("a199") == [0: text])
  }

  @Test func theLongestBodyFollowsTheSize() throws {
    let fixture = try StoreFixture(maxSizeBytes: Self.mebibyte)
    fixture.store.resize(maxSizeBytes: 4 * Self.mebibyte)
    let large = fixture.putChunked("a", chunkCount: 20, chunkBytes: 60_000)
    fixture.store.flush()
    #expect(fixture.entryIDs("a") == [large])
    fixture.store.remove(key: fixture.key("a"))
    fixture.store.resize(maxSizeBytes: Self.mebibyte)
    fixture.store.flush()
    let tooLarge = fixture.store.nextEntryID()
    for index in 0..<20 as Range<UInt32> {
      // Refused once the writer has met the limit.
      _ = fixture.store.putChunk(
        entryID: tooLarge, index: index, chunk: StressBody.chunk(tooLarge, index, 60_000))
    }
    fixture.store.flush()
    #expect(fixture.store.statistics().notStored[.tooLarge] == 1)
    #expect(fixture.chunk(tooLarge, 0) == nil)
  }

  private final class Flag: Sendable {
    let isUp = Atomic<Bool>(false)
  }

  @Test func readersReadOnWhileTheSizeChanges() async throws {
    let fixture = try smallFixture()
    let store = fixture.store
    let key = fixture.key("kept")
    fixture.putInline("kept", text)
    fixture.store.flush()
    let done = Flag()
    let text = text
    await withTaskGroup(of: Int.self) { group in
      for _ in 0..<2 {
        group.addTask {
          var failures = 0
          while !done.isUp.load(ordering: .relaxed) {
            // Opened anew each time: that reads the map too.
            guard let reader = try? store.makeReader() else { return 1 }
            for _ in 0..<50 {
              reader.begin()
              var bodies = 0
              readRecords(reader, key, "kept") {
                if $0.inlineBody.elementsEqual(text.utf8) { bodies += 1 }
              }
              reader.end()
              if bodies != 1 { failures += 1 }
            }
          }
          return failures
        }
      }
      for step in 1...30 as ClosedRange<UInt64> {
        store.resize(maxSizeBytes: (1 + step) * Self.mebibyte)
        fixture.putInline("other\(step)", "x")
        store.flush()
      }
      done.isUp.store(true, ordering: .relaxed)
      for await failures in group { #expect(failures == 0) }
    }
    #expect(fixture.store.statistics().maxBytes == 31 * Self.mebibyte)
  }
}
