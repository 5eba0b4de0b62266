/// A store whose file is taken from under it: nothing is served from what is gone, and the store
/// goes on with another file.
import CachePolicy
import Foundation
import Synchronization
import Testing

@testable import Backends

struct StoreFileLossTests {
  enum Loss: CaseIterable {
    case fileDeleted, folderDeleted, replacedByAnotherStore, replacedByACopy, replacedByGarbage
    case cutShort, emptied
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
    case .replacedByACopy:
      try FileManager.default.copyItem(atPath: path, toPath: path + ".copy")
      #expect(rename(path + ".copy", path) == 0)
    case .replacedByGarbage:
      try Data(repeating: 7, count: 100_000).write(to: URL(fileURLWithPath: path), options: .atomic)
    case .cutShort: #expect(truncate(path, 8192) == 0)
    case .emptied: #expect(truncate(path, 0) == 0)
    }
  }

  /// Cut at a page and grown back before anybody looked: the length tells nothing, and the pages in
  /// between read as zeros.
  @Test(arguments: 2..<12)
  func aFileThatWasCutAndGrewBackIsGivenUpInTheEnd(_ page: Int) throws {
    let fixture = try StoreFixture()
    for number in 0..<40 { fixture.putInline("a\(number)", String(repeating: "x", count: 900)) }
    _ = fixture.putChunked("b", chunkCount: 2, chunkBytes: 30_000)
    fixture.store.flush()
    let path = fixture.folder.path + "/data.mdb"
    var status = stat()
    #expect(stat(path, &status) == 0)
    #expect(truncate(path, off_t(page) * 4096) == 0)
    #expect(truncate(path, status.st_size) == 0)
    // Each time something is to be stored it is found out a little more.
    let number = (0..<20).first { number in
      fixture.putInline("c\(number)", "new")
      fixture.store.flush()
      return fixture.bodies("c\(number)") == [0: "new"] && fixture.store.statistics().state == .ok
    }
    #expect(number != nil, "the store stays as it is")
    let bodies = (0..<40).flatMap { fixture.bodies("a\($0)").values }
    #expect(bodies.allSatisfy { $0 == String(repeating: "x", count: 900) })
    fixture.close()
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
    let base = TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: base.path + "/store", withIntermediateDirectories: true)
    try Data("in the way".utf8).write(to: URL(fileURLWithPath: base.path + "/file"))
    // By a link, which is swung in one step: the writer may look at any time.
    let path = base.path + "/link"
    try Self.lead(path, to: base.path + "/store")
    let fixture = try StoreFixture(folder: base) { $0.path = path }
    fixture.putInline("a", "old")
    fixture.store.flush()
    try Self.lead(path, to: base.path + "/file")
    // More removals than are kept: all of it is removed instead.
    for number in 0..<(StoreWriter.carriedOverMax + 100) {
      fixture.store.remove(key: fixture.key("b\(number)"))
    }
    fixture.putInline("c", "refused")
    fixture.store.flush()
    let statistics = fixture.store.statistics()
    #expect(statistics.notStored == [.storeFailed: 1])
    guard case .degraded(let reason) = statistics.state else {
      Issue.record("the store hides its loss")
      return
    }
    #expect(reason.contains("deleted") && reason.contains("is not a directory"))
    #expect(fixture.messages.all.contains { $0.contains("everything is removed") })
    let waitingCount = fixture.store.queue.overlayCount.load(ordering: .relaxed)
    #expect(waitingCount < 100, "what waits is bounded")
    try Self.lead(path, to: base.path + "/store")
    fixture.putInline("d", "new")
    fixture.store.flush()
    // The same file as before, less what was removed meanwhile.
    #expect(fixture.bodies("d") == [0: "new"] && fixture.bodies("a").isEmpty)
    #expect(fixture.store.statistics().state == .ok)
    fixture.store.sweep()
    fixture.close()
    let audit = try StoreAudit(path: path)
    #expect(audit.problems == [] && audit.entryCount == 1)
  }

  private static func lead(_ link: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(
      atPath: link + ".new", withDestinationPath: target)
    #expect(rename(link + ".new", link) == 0)
  }
}
