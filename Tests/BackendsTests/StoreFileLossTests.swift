/// A store whose file is taken from under it: nothing is served from what is gone, and the store
/// goes on with another file.
import CachePolicy
import Foundation
import Synchronization
import Testing

@testable import Backends

struct StoreFileLossTests {
  enum Loss: CaseIterable {
    case fileDeleted, folderDeleted, replacedByAnotherStore, replacedByGarbage, cutShort, emptied
  }

  @Test(arguments: Loss.allCases) func theStoreGoesOnWithAnEmptyFile(_ loss: Loss) throws {
    let folder = TemporaryFolder()
    let fixture = try StoreFixture(folder: folder)
    fixture.putInline("a", "old")
    let chunked = fixture.putChunked("b", chunkCount: 2, chunkBytes: 30_000)
    fixture.store.flush()
    #expect(fixture.bodies("a") == [0: "old"])
    try Self.inflict(loss, on: folder)
    // The writer looks before it writes.
    fixture.putInline("c", "new", tags: ["t"])
    fixture.store.flush()
    #expect(fixture.bodies("a").isEmpty && fixture.entryIDs("b").isEmpty)
    #expect(fixture.chunk(chunked, 1) == nil)
    #expect(fixture.bodies("c") == [0: "new"])
    let statistics = fixture.store.statistics()
    #expect(statistics.state == .ok && statistics.entries == 1)
    #expect(statistics.entriesByRoute == [1: 1])
    #expect(fixture.messages.all.first?.contains("nothing is served from it") == true)
    fixture.close()
    let again = try StoreFixture(folder: folder)
    #expect(again.bodies("c") == [0: "new"])
    #expect(again.store.nextEntryID() > chunked)
    again.store.sweep()
    again.close()
    #expect(try StoreAudit(path: folder.path).problems == [])
  }

  private static func inflict(_ loss: Loss, on folder: TemporaryFolder) throws {
    let path = folder.path + "/data.mdb"
    switch loss {
    case .fileDeleted: #expect(unlink(path) == 0)
    case .folderDeleted: try FileManager.default.removeItem(atPath: folder.path)
    case .replacedByAnotherStore:
      let other = try StoreFixture()
      other.putInline("c", "another's")
      other.close()
      #expect(rename(other.folder.path + "/data.mdb", path) == 0)
    case .replacedByGarbage:
      try Data(repeating: 7, count: 100_000).write(to: URL(fileURLWithPath: path), options: .atomic)
    case .cutShort: #expect(truncate(path, 8192) == 0)
    case .emptied: #expect(truncate(path, 0) == 0)
    }
  }

  @Test func aTurnThatReadsTheLostFileEndsAsItBegan() throws {
    let fixture = try StoreFixture()
    fixture.putInline("a", "old")
    fixture.store.flush()
    fixture.reader.begin()
    #expect(unlink(fixture.folder.path + "/data.mdb") == 0)
    fixture.putInline("b", "refused")
    fixture.store.flush()
    guard case .degraded(let reason) = fixture.store.statistics().state else {
      Issue.record("the store hides its loss")
      return
    }
    #expect(reason.contains("deleted"))
    var bodies: [String] = []
    readRecords(fixture.reader, fixture.key("a"), "a") {
      bodies.append(String(decoding: $0.inlineBody, as: UTF8.self))
    }
    #expect(bodies == ["old"])
    fixture.reader.end()
    #expect(fixture.bodies("a").isEmpty)
    fixture.putInline("c", "new")
    fixture.store.flush()
    #expect(fixture.bodies("c") == [0: "new"] && fixture.bodies("b").isEmpty)
    #expect(fixture.store.statistics().state == .ok)
    #expect(fixture.store.statistics().notStored == [.storeFailed: 1])
  }

  @Test func aBodyWhoseBeginningIsLostIsNotStored() throws {
    let fixture = try StoreFixture()
    let entryID = fixture.store.nextEntryID()
    for index in 0..<2 as Range<UInt32> {
      let chunk = StressBody.chunk(entryID, index, 1000)
      _ = fixture.store.putChunk(entryID: entryID, index: index, chunk: chunk)
      fixture.store.flush()
      if index == 0 { #expect(unlink(fixture.folder.path + "/data.mdb") == 0) }
    }
    let record = RecordBuffer.sample(
      entryID: entryID, name: "a", body: nil, bodyLength: 2000, chunkCount: 2)
    #expect(fixture.store.put(record, key: fixture.key("a"), mode: .insert) == .storeFailed)
    fixture.store.flush()
    #expect(fixture.entryIDs("a").isEmpty && fixture.chunk(entryID, 0) == nil)
  }

  @Test func whereNoFileCanBeOpenedTheStoreSaysSoAndTriesAgain() throws {
    let folder = TemporaryFolder()
    let fixture = try StoreFixture(folder: folder)
    try FileManager.default.removeItem(atPath: folder.path)
    try Data("in the way".utf8).write(to: URL(fileURLWithPath: folder.path))
    // More removals than are kept: all of it is removed instead.
    for number in 0..<(StoreWriter.carriedOverMax + 100) {
      fixture.store.remove(key: fixture.key("a\(number)"))
    }
    fixture.putInline("b", "refused")
    fixture.store.flush()
    fixture.store.flush()
    let statistics = fixture.store.statistics()
    #expect(statistics.notStored == [.storeFailed: 1])
    guard case .degraded(let reason) = statistics.state else {
      Issue.record("the store hides its loss")
      return
    }
    #expect(reason.contains("deleted") && reason.contains("is not a directory"))
    #expect(fixture.messages.all.contains { $0.contains("everything is removed") })
    #expect(
      fixture.store.queue.overlayCount.load(ordering: .relaxed) < 100, "what waits is bounded")
    #expect(unlink(folder.path) == 0)
    fixture.putInline("c", "new")
    fixture.store.flush()
    #expect(fixture.bodies("c") == [0: "new"])
    #expect(fixture.store.statistics().state == .ok)
    fixture.close()
    #expect(try StoreAudit(path: folder.path).entryCount == 1)
  }
}
