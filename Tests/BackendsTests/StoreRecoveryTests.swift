/// What a store is after it was closed, killed, damaged, or taken by another.
import CachePolicy
import Foundation
import Testing

@testable import Backends

struct StoreRecoveryTests {
  @Test func aStoreIsWarmAfterItWasClosed() throws {
    let folder = TemporaryFolder()
    let first = try StoreFixture(folder: folder)
    let secret = first.store.keySecret
    first.putInline("a", "inline", routeID: 4)
    let entryID = first.putChunked("b", chunkCount: 2, chunkBytes: 30_000, routeID: 5)
    first.close()
    let second = try StoreFixture(folder: folder)
    #expect(second.store.keySecret == secret)
    #expect(second.bodies("a") == [0: "inline"])
    #expect(second.entryIDs("b") == [entryID])
    #expect(second.chunk(entryID, 1) == StressBody.bytes(entryID, from: 30_000, count: 30_000))
    #expect(second.store.statistics().entries == 2)
    #expect(second.store.statistics().entriesByRoute == [4: 1, 5: 1])
    #expect(second.store.nextEntryID() > entryID)
    #expect(second.messages.all.isEmpty)
  }

  @Test func whatWasPurgedStaysPurgedAfterTheRestart() throws {
    let folder = TemporaryFolder()
    let first = try StoreFixture(folder: folder)
    first.putInline("a", "one")
    first.putInline("b", "two")
    first.store.flush()
    first.store.remove(key: first.key("b"))
    first.store.removeEverything()
    first.close()
    let second = try StoreFixture(folder: folder)
    #expect(second.bodies("a").isEmpty && second.bodies("b").isEmpty)
    second.putInline("a", "new")
    second.store.sweep()
    #expect(second.bodies("a") == [0: "new"])
    #expect(second.store.statistics().entries == 1)
  }

  @Test func everythingFitsTogetherAfterAMixOfWrites() throws {
    let folder = TemporaryFolder()
    let fixture = try StoreFixture(folder: folder, maxSizeBytes: 1024 * 1024)
    let now = fixture.clock.nowMilliseconds
    for number in 0..<400 as Range<UInt64> {
      let name = "a\(number % 23)"
      switch number % 5 {
      case 0:
        fixture.putChunked(
          name, chunkCount: 2, chunkBytes: 20_000, routeID: number % 3, tags: ["big"])
      case 1: fixture.store.remove(key: fixture.key(name))
      case 2:
        let entryID = fixture.putInline(
          name, "x", variant: number % 4, tags: ["a", "b"], keepUntil: now + 1000)
        fixture.putInline(
          name, "y", entryID: entryID, variant: number % 4, mode: .refresh, routeID: 9,
          tags: number % 2 == 0 ? ["a", "d"] : ["b"], evictAfter: now + 5)
      default:
        fixture.putInline(
          name, String(repeating: "z", count: 5000), routeID: number % 3, tags: ["c", "d", "c"])
      }
      if number % 50 == 49 { fixture.store.sweep() }
    }
    fixture.close()
    let audit = try StoreAudit(path: folder.path)
    #expect(audit.problems == [])
    #expect(audit.entryCount > 5 && audit.tagRowCount > audit.entryCount)
  }

  @Test func aLoweredSizeTrimsTheStore() throws {
    let folder = TemporaryFolder()
    let first = try StoreFixture(folder: folder, maxSizeBytes: 4 * 1024 * 1024)
    for number in 0..<300 { first.putInline("a\(number)", String(repeating: "x", count: 10_000)) }
    first.close()
    let second = try StoreFixture(folder: folder, maxSizeBytes: 1024 * 1024)
    second.store.sweep()
    #expect(second.store.statistics().bytes <= 1024 * 1024)
    #expect(second.store.statistics().entries > 20)
  }

  // MARK: Other owners and other folders

  @Test func aSecondOpenIsRefusedAndNamesTheOwner() throws {
    let fixture = try StoreFixture()
    #expect(
      throws: StoreError.inUse(path: fixture.folder.path, processID: getpid())
    ) { try StoreFixture(folder: fixture.folder) }
    fixture.close()
    _ = try StoreFixture(folder: fixture.folder)
  }

  @Test func aFileInPlaceOfTheFolderIsRefused() throws {
    let folder = TemporaryFolder()
    try Data("x".utf8).write(to: URL(fileURLWithPath: folder.path))
    #expect(throws: StoreError.notADirectory(path: folder.path)) {
      try StoreFixture(folder: folder)
    }
  }

  @Test func aFolderThatCannotBeMadeIsRefusedWithTheReason() throws {
    var configuration = StoreConfiguration(path: "", maxSizeBytes: 1 << 20)
    configuration.path = TemporaryFolder().path + "/missing/store"
    let path = configuration.path
    #expect(
      throws: StoreError.cannotCreate(path: path, reason: "No such file or directory")
    ) { _ = try LMDBStore.open(configuration, clock: Clock()) { _ in } }
  }

  @Test func aClosedStoreRefusesQuietly() throws {
    let fixture = try StoreFixture()
    let store = fixture.store
    let key = fixture.key("a")
    fixture.close()
    fixture.close()
    let record = RecordBuffer.sample(entryID: store.nextEntryID(), name: "a", body: [])
    #expect(store.put(record, key: key, mode: .insert) == .storeFailed)
    store.remove(key: key)
    store.flush()
    #expect(throws: StoreError.closed(path: fixture.folder.path)) { try store.makeReader() }
  }

  // MARK: Damage

  enum Damage: CaseIterable {
    case garbage, empty, truncatedToHalf, truncatedToThePages, foreignTables, olderFormat,
      otherFormat, marked
  }

  @Test(arguments: Damage.allCases) func aDamagedOrForeignFileIsSetAside(
    _ damage: Damage
  ) throws {
    let folder = TemporaryFolder()
    let dataPath = folder.path + "/data.mdb"
    if damage == .foreignTables {
      try Self.makeForeignFile(folder)
    } else {
      let first = try StoreFixture(folder: folder)
      for number in 0..<50 { first.putInline("a\(number)", String(repeating: "x", count: 9000)) }
      first.close()
    }
    switch damage {
    case .garbage: try Data(repeating: 7, count: 100_000).write(to: URL(fileURLWithPath: dataPath))
    case .empty: truncate(dataPath, 100)
    case .truncatedToHalf: truncate(dataPath, 300_000)
    case .truncatedToThePages: truncate(dataPath, 8192)
    case .foreignTables: break
    case .olderFormat: try Self.setFormat(folder, StoreSchema.format - 1)
    case .otherFormat: try Self.setFormat(folder, 99)
    case .marked: try StoreFolder(path: folder.path).markForSettingAside()
    }
    let second = try StoreFixture(folder: folder)
    #expect(second.bodies("a1").isEmpty)
    #expect(second.messages.all.count == 1)
    #expect(second.messages.all.first?.contains("data.mdb.damaged-1") == true)
    #expect(FileManager.default.fileExists(atPath: dataPath + ".damaged-1"))
    second.putInline("a1", "again")
    second.close()
    let third = try StoreFixture(folder: folder)
    #expect(third.bodies("a1") == [0: "again"])
    #expect(third.messages.all.isEmpty)
  }

  @Test func notMoreThanThreeFilesAreKeptAside() throws {
    let folder = TemporaryFolder()
    for _ in 0..<5 {
      try StoreFixture(folder: folder).close()
      try Data(repeating: 7, count: 10_000).write(
        to: URL(fileURLWithPath: folder.path + "/data.mdb"))
    }
    try StoreFixture(folder: folder).close()
    let aside = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      .filter { $0.contains("damaged") }
    #expect(aside.sorted() == (1...3).map { "data.mdb.damaged-\($0)" })
  }

  @Test(arguments: ["head of a", "body of a"]) func aFlippedByteInARecordIsAMissAndIsRemoved(
    _ place: String
  ) throws {
    let folder = TemporaryFolder()
    let first = try StoreFixture(folder: folder)
    let record = RecordBuffer.sample(
      entryID: first.store.nextEntryID(), name: "a", head: "head of a",
      body: Array("body of a".utf8), tags: ["one", "two"])
    #expect(first.store.put(record, key: first.key("a"), mode: .insert) == nil)
    first.putInline("b", "body of b")
    first.close()
    #expect(try Self.flipByte(folder, place) > 0)
    let second = try StoreFixture(folder: folder)
    #expect(second.bodies("a").isEmpty)
    #expect(second.bodies("b") == [0: "body of b"])
    second.store.flush()
    #expect(second.store.statistics().damaged == 1)
    #expect(second.store.statistics().entries == 1)
    second.putInline("a", "again")
    second.close()
    #expect(try StoreAudit(path: folder.path).problems == [])
  }

  @Test func aFlippedByteInAChunkIsAMissAndTakesTheEntryWithIt() throws {
    let folder = TemporaryFolder()
    let first = try StoreFixture(folder: folder)
    let entryID = first.store.nextEntryID()
    let chunk = BodyChunk(capacity: 5000)
    _ = [UInt8](repeating: 0x2e, count: 4990).withUnsafeBytes { chunk.append($0) }
    _ = Array("find me ok".utf8).withUnsafeBytes { chunk.append($0) }
    #expect(first.store.putChunk(entryID: entryID, index: 0, chunk: chunk) == nil)
    let record = RecordBuffer.sample(
      entryID: entryID, name: "a", body: nil, bodyLength: 5000, chunkCount: 1)
    #expect(first.store.put(record, key: first.key("a"), mode: .insert) == nil)
    first.close()
    #expect(try Self.flipByte(folder, "find me ok") > 0)
    let second = try StoreFixture(folder: folder)
    #expect(second.entryIDs("a") == [entryID])
    #expect(second.chunk(entryID, 0) == nil)
    second.store.flush()
    #expect(second.entryIDs("a").isEmpty)
    #expect(second.store.statistics().damaged == 1)
    second.close()
    #expect(try StoreAudit(path: folder.path).problems == [])
  }

  /// Flips a bit in every copy of `text` in the data file; returns how many there were.
  private static func flipByte(_ folder: TemporaryFolder, _ text: String) throws -> Int {
    let url = URL(fileURLWithPath: folder.path + "/data.mdb")
    var data = try Data(contentsOf: url)
    let pattern = Data(text.utf8)
    var count = 0
    var from = data.startIndex
    while let range = data.range(of: pattern, in: from..<data.endIndex) {
      data[range.lowerBound] ^= 1
      count += 1
      from = range.upperBound
    }
    // In place: a new file would be one without the holes.
    let file = try FileHandle(forWritingTo: url)
    try file.write(contentsOf: data)
    try file.close()
    return count
  }

  private static func makeForeignFile(_ folder: TemporaryFolder) throws {
    let environment = try LMDBEnvironment(
      folder: StoreFolder(path: folder.path), mapSizeBytes: 1 << 20, readersMax: 1)
    let transaction = try environment.beginWrite()
    let create: UInt32 = 0x40000
    let table = try transaction.openTable("somebody else's", flags: create)
    try transaction.put(table, UInt64(1), value: UInt64(2))
    try transaction.commit()
  }

  private static func setFormat(_ folder: TemporaryFolder, _ format: UInt64) throws {
    let environment = try LMDBEnvironment(
      folder: StoreFolder(path: folder.path), mapSizeBytes: 1 << 24, readersMax: 1)
    _ = try StoreSchema.open(environment)
    let transaction = try environment.beginWrite()
    try transaction.put(environment.tables.meta, MetaKey.format.bytes, value: format)
    try transaction.commit()
  }
}
