/// A store's file that is cut short while it is read and written: nothing but what was stored is
/// found, another file is opened, and the process goes on. Each in a process of its own, since without
/// the guard a SIGBUS ends it.
import CachePolicy
import Foundation
import Synchronization
import Testing

@testable import Backends

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

@Suite(.serialized) struct MapGuardTests {
  /// LMDB's functions that read no page of the file.
  private static let withoutPages: Set<String> = [
    "mdb_cursor_txn", "mdb_env_create", "mdb_env_get_fd", "mdb_env_get_userctx",
    "mdb_env_set_maxdbs", "mdb_env_set_maxreaders", "mdb_env_set_userctx", "mdb_env_sync",
    "mdb_strerror", "mdb_txn_env", "mdb_txn_id",
  ]

  /// A function that LMDBCalls lacks would be LMDB's own, and no compiler says so.
  @Test func everyCallOfLMDBThatReadsPagesIsGuarded() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let folder = root.appendingPathComponent("Sources/Backends/Store")
    var called: Set<String> = []
    var guarded: Set<String> = []
    for file in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
      let text = try String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8)
      for match in text.matches(of: /(func )?(mdb_[a-z_]+)\(/) {
        if match.1 != nil {
          guarded.insert(String(match.2))
        } else {
          called.insert(String(match.2))
        }
      }
    }
    #expect(guarded.count > 10)
    #expect(called.subtracting(guarded).subtracting(Self.withoutPages).sorted() == [])
  }

  @Test func cutAtAnyPageTheFileIsLostAndNeverTheProcess() async {
    await #expect(processExitsWith: .success) {
      var pageCount = 3
      var page = 0
      while page < pageCount {
        let store = try CutStore()
        pageCount = max(pageCount, store.usedPageCount)
        store.cut(atPage: page)
        store.finish()
        page += 1
      }
      // More pages than the trees have roots.
      guard pageCount > 20 else { fatalError("\(pageCount) pages") }
    }
  }

  @Test func aPageThatIsLostUnderAReadersEyesReadsAsZerosAndIsNotSound() async {
    await #expect(processExitsWith: .success) {
      let fixture = try StoreFixture()
      let entryID = fixture.putChunked("a", chunkCount: 1, chunkBytes: 60_000)
      fixture.store.flush()
      fixture.reader.begin()
      guard let chunk = fixture.reader.chunk(entryID: entryID, index: 0), fixture.reader.isSound
      else { fatalError("the chunk is there") }
      guard truncate(fixture.folder.path + "/data.mdb", 0) == 0 else { fatalError("truncate") }
      guard chunk.allSatisfy({ $0 == 0 }) else { fatalError("other bytes than zeros") }
      guard !fixture.reader.isSound else { fatalError("what was lost counts as sound") }
      guard fixture.reader.chunk(entryID: entryID, index: 0) == nil else { fatalError("found") }
      fixture.reader.end()
      fixture.putInline("b", "new")
      fixture.store.flush()
      guard fixture.bodies("b") == [0: "new"] else { fatalError("no other file was opened") }
      fixture.close()
    }
  }

  @Test func aWriteThatMeetsALostPageIsRefusedAndTheNextOnesLand() async {
    await #expect(processExitsWith: .success) {
      let folder = TemporaryFolder()
      let environment = try StoreOpening.open(
        StoreConfiguration(path: folder.path, maxSizeBytes: 16 << 20),
        try StoreFolder(path: folder.path), log: { _ in }
      ).environment
      let writing = try environment.beginWrite()
      try writing.put(environment.tables.meta, UInt64(7), value: UInt64(7))
      guard truncate(folder.path + "/data.mdb", 0) == 0 else { fatalError("truncate") }
      var failure: LMDBError?
      do throws(LMDBError) {
        for number in 0..<1000 as Range<UInt64> {
          try writing.put(environment.tables.order, number, value: number)
        }
        try writing.commit()
      } catch {
        failure = error
      }
      guard failure?.isTreeDamage == true, environment.map.isDamaged,
        environment.findLoss() == .cutShort
      else { fatalError("\(String(describing: failure))") }
    }
  }

  /// Whoever handled SIGBUS before still has every other one of them.
  @Test func aFaultOfOthersIsHandedOn() async {
    await #expect(processExitsWith: .exitCode(77)) {
      var action = sigaction()
      #if canImport(Glibc)
        action.__sigaction_handler.sa_handler = { _ in _exit(77) }
      #else
        action.__sigaction_u.__sa_handler = { _ in _exit(77) }
      #endif
      sigaction(SIGBUS, &action, nil)
      let fixture = try StoreFixture()
      fixture.putInline("a", "body")
      fixture.store.flush()
      readBehindTheEndOfAFile()
    }
  }

  @Test func aFaultOfNobodysStillEndsTheProcess() async {
    await #expect(processExitsWith: .signal(SIGBUS)) {
      signal(SIGBUS, SIG_DFL)
      let fixture = try StoreFixture()
      fixture.putInline("a", "body")
      fixture.store.flush()
      readBehindTheEndOfAFile()
    }
  }
}

/// Of a map that is no store's.
private func readBehindTheEndOfAFile() {
  let path = NSTemporaryDirectory() + "larder-map-\(UUID().uuidString)"
  let descriptor = open(path, O_RDWR | O_CREAT, 0o600)
  unlink(path)
  let map = mmap(nil, 65_536, PROT_READ, MAP_SHARED, descriptor, 0)
  guard let map, map != MAP_FAILED else { fatalError("no map") }
  let byte = map.load(fromByteOffset: 40_000, as: UInt8.self)
  fatalError("a byte \(byte) where there is no file")
}

/// A small store that two readers and a writer work on, and whose file is cut under them.
private final class CutStore: @unchecked Sendable {
  // @unchecked Sendable: the fixture's store may be used on any thread; its reader is used when the
  // threads have ended.
  private let fixture: StoreFixture
  private let isOver = Atomic<Bool>(false)
  private let readCount = Atomic<Int>(0)
  private var threads: [LoopThread] = []
  private static let inlineCount = 24
  private static let longCount = 2
  private static let chunkBytes = 20_000
  /// What lies under each name; never zeros.
  private let bodies: [[UInt8]]

  init() throws {
    fixture = try StoreFixture()
    bodies = (0..<Self.inlineCount + Self.longCount).map {
      [UInt8](
        repeating: UInt8($0 + 1), count: $0 < Self.inlineCount ? 300 + $0 * 100 : Self.chunkBytes)
    }
    fill()
    let readers = [try fixture.store.makeReader(), try fixture.store.makeReader()]
    for reader in readers {
      nonisolated(unsafe) let reader = reader
      threads.append(LoopThread { [self] in read(reader) })
    }
    threads.append(
      LoopThread { [self] in
        while !isOver.load(ordering: .relaxed) { fill() }
      })
    waitForReads(4)
  }

  private func waitForReads(_ count: Int) {
    let end = readCount.load(ordering: .relaxed) + count
    while readCount.load(ordering: .relaxed) < end { usleep(100) }
  }

  private func fill() {
    for number in bodies.indices {
      let entryID = fixture.store.nextEntryID()
      let isLong = number >= Self.inlineCount
      if isLong {
        let chunk = BodyChunk(capacity: Self.chunkBytes)
        _ = bodies[number].withUnsafeBytes { chunk.append($0) }
        _ = fixture.store.putChunk(entryID: entryID, index: 0, chunk: chunk)
      }
      let record = RecordBuffer.sample(
        entryID: entryID, name: "key\(number)", body: isLong ? nil : bodies[number],
        bodyLength: UInt64(Self.chunkBytes), chunkCount: isLong ? 1 : 0)
      _ = fixture.store.put(record, key: fixture.key("key\(number)"), mode: .insert)
    }
    fixture.store.flush()
  }

  private func read(_ reader: StoreReader) {
    while !isOver.load(ordering: .relaxed) {
      reader.begin()
      for number in bodies.indices { check(reader, number) }
      reader.end()
      readCount.add(1, ordering: .relaxed)
    }
  }

  /// What is found is what was stored, unless the reader says that it is not sound.
  private func check(_ reader: StoreReader, _ number: Int) {
    readRecords(reader, fixture.key("key\(number)"), "key\(number)") { record in
      var body = record.inlineBody
      if record.chunkCount > 0 {
        guard let chunk = reader.chunk(entryID: record.entryID, index: 0) else { return }
        body = chunk
      }
      let isRight = body.count == bodies[number].count && body.elementsEqual(bodies[number])
      if reader.isSound, !isRight { fatalError("\(number): other bytes than were stored") }
    }
  }

  var usedPageCount: Int { Int(fixture.store.statistics().bytes) / Int(getpagesize()) }

  /// Cuts the file, and waits until another one is in use.
  func cut(atPage page: Int) {
    let path = fixture.folder.path + "/data.mdb"
    guard truncate(path, off_t(page) * off_t(getpagesize())) == 0 else { fatalError("truncate") }
    while !fixture.messages.all.contains(where: { $0.contains("set aside") }) { usleep(100) }
    waitForReads(4)
  }

  func finish() {
    isOver.store(true, ordering: .relaxed)
    for thread in threads { thread.join() }
    threads = []
    fixture.putInline("last", "body")
    fixture.store.flush()
    guard fixture.bodies("last") == [0: "body"] else { fatalError("nothing lands any more") }
    fixture.close()
  }
}
