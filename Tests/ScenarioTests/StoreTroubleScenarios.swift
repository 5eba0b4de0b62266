import Backends
import Foundation
import Support
import Testing

/// A disk that is full, fails or turns read-only, and a store that is deleted or cut short while it
/// is served from: clients get their answers from the network, `/stats` and `/healthz` tell of it,
/// and storing goes on by itself once it can.
@Suite(.serialized, .enabled(if: LarderProcess.executablePath != nil, "larder is not built"))
struct StoreTroubleScenarios {
  /// A larder whose writes to its store fail as the test says.
  private struct FaultyLarder {
    let folder: TemporaryFolder
    let origin: ScriptedOrigin
    let larder: LarderProcess
    let client: ClientConnection

    init(maxSize: String = "16MiB") throws {
      folder = try TemporaryFolder()
      origin = try ScriptedOrigin()
      let library = try #require(LarderProcess.preloadedLibraryPath("WriteFaults"))
      let policies = ProcessScenarios.policies("cache-first").replacingOccurrences(
        of: "/store\"", with: "/store\", \"maxSize\": \"\(maxSize)\", \"maxEntrySize\": \"4MiB\"")
      larder = try LarderProcess(
        policies: policies, origin: origin, folder: folder,
        environment: ["LD_PRELOAD": library, "WRITE_FAULTS": folder.path + "/fault"])
      client = try larder.connect()
    }

    /// Empty: writes succeed.
    func setFault(_ word: String) throws {
      try Data(word.utf8).write(to: URL(filePath: folder.path + "/fault"), options: .atomic)
    }

  }

  #if os(Linux)
    @Test(arguments: [
      ("enospc", "store-full", "No space left"), ("eio", "store-failed", "Input/output error"),
      ("erofs", "store-failed", "Read-only file system"),
    ])
    func aDiskThatRefusesWritesCostsNoAnswer(
      _ fault: String, _ reason: String, _ text: String
    ) throws {
      let faulty = try FaultyLarder()
      let larder = faulty.larder
      faulty.origin.on("/before") { .text("v\($0.number)") }
      faulty.origin.on("/large", .bytes(testBytes(3_000_000, seed: 1)))
      expect(try faulty.client.get("/before"), "v1", .stored("uri-miss"))
      _ = try #require(try larder.waitForStatistics { $0.store.entries == 1 })
      try faulty.setFault(fault)
      for number in 0..<20 {
        faulty.origin.on("/\(number)", .bytes(ProcessScenarios.body(number)))
        let answer = try faulty.client.get("/\(number)")
        #expect(answer.status == 200 && answer.body == ProcessScenarios.body(number))
      }
      let large = try faulty.client.get("/large")
      #expect(large.body == testBytes(3_000_000, seed: 1) && !large.isCut)
      let failing = try #require(
        try larder.waitForStatistics { $0.store.state.contains(text) }, "\(text)")
      #expect(failing.store.notStored[reason, default: 0] > 0)
      #expect(failing.errors == 0)
      #expect(try larder.healthText().contains(text))
      if fault != "enospc" {
        // Nothing had to be removed for room.
        expect(try faulty.client.get("/before"), "v1", .hit)
      }
      try faulty.setFault("")
      faulty.origin.on("/after") { .text("v\($0.number)") }
      _ = try faulty.client.get("/after")
      _ = try #require(try larder.waitForStatistics { $0.store.state == "ok" })
      expect(try faulty.client.get("/after"), "v1", .hit)
      #expect(try larder.errorText().contains("writes land again"))
      larder.terminate()
      #expect(larder.waitForExit() == 0)
    }

    @Test func aCommitThatFailsAtItsLastStepHasTheFileOpenedAnew() throws {
      let faulty = try FaultyLarder()
      let larder = faulty.larder
      faulty.origin.on("/before") { .text("v\($0.number)") }
      expect(try faulty.client.get("/before"), "v1", .stored("uri-miss"))
      _ = try #require(try larder.waitForStatistics { $0.store.entries == 1 })
      try faulty.setFault("meta")
      faulty.origin.on("/during") { .text("v\($0.number)") }
      _ = try faulty.client.get("/during")
      _ = try #require(try larder.waitForStatistics { $0.store.state != "ok" })
      try faulty.setFault("")
      _ = try #require(try larder.waitForStatistics { $0.store.state == "ok" })
      // The same file: what it held is there.
      expect(try faulty.client.get("/before"), "v1", .hit)
      faulty.origin.on("/after") { .text("v\($0.number)") }
      expect(try faulty.client.get("/after"), "v1", .stored("uri-miss"))
      expect(try faulty.client.get("/after"), "v1", .hit)
      larder.terminate()
      #expect(larder.waitForExit() == 0)
    }
  #endif

  #if os(Linux)
    /// A file system of 12 MiB of the test's own; nil where nobody may mount one.
    private final class SmallDisk {
      let folder: TemporaryFolder

      init?() throws {
        folder = try TemporaryFolder()
        guard SmallDisk.run(["mount", "-t", "tmpfs", "-o", "size=12m", "none", folder.path]) else {
          return nil
        }
      }

      deinit { _ = SmallDisk.run(["umount", folder.path]) }

      func enlarge() -> Bool { SmallDisk.run(["mount", "-o", "remount,size=64m", folder.path]) }

      static let isPossible: Bool = (try? SmallDisk()) ?? nil != nil

      private static func run(_ arguments: [String]) -> Bool {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = arguments
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
      }
    }

    @Test(.enabled(if: SmallDisk.isPossible, "needs to mount a file system"))
    func aStoreOnADiskThatIsTooSmallLivesWithinIt() throws {
      let disk = try #require(try SmallDisk())
      let origin = try ScriptedOrigin()
      let folder = try TemporaryFolder()
      let policies = ProcessScenarios.policies("cache-first").replacingOccurrences(
        of: "{FOLDER}", with: disk.folder.path)
      let larder = try LarderProcess(policies: policies, origin: origin, folder: folder)
      let client = try larder.connect()
      for number in 0..<40 {
        let body = testBytes(900_000 + number, seed: UInt64(number))
        origin.on("/\(number)", .bytes(body))
        let answer = try client.get("/\(number)")
        #expect(answer.body == body && !answer.isCut)
      }
      let full = try #require(try larder.waitForStatistics { $0.store.evicted > 0 })
      #expect(full.errors == 0 && full.store.entries > 2)
      #expect(disk.enlarge())
      origin.on("/after") { .text("v\($0.number)") }
      _ = try client.get("/after")
      _ = try #require(try larder.waitForStatistics { $0.store.state == "ok" })
      expect(try client.get("/after"), "v1", .hit)
      larder.terminate()
      #expect(larder.waitForExit() == 0)
    }
  #endif

  enum Loss: CaseIterable {
    case file, folder, end
  }

  @Test(arguments: Loss.allCases)
  func aStoreThatIsTakenAwayIsReplacedWithoutARestart(_ loss: Loss) throws {
    let origin = try ScriptedOrigin()
    let folder = try TemporaryFolder()
    for path in ["/a", "/b"] { origin.on(path) { .text("\(path) v\($0.number)") } }
    let long = testBytes(3_000_000, seed: 1)
    origin.on("/long", .bytes(long))
    let policies = ProcessScenarios.policies("cache-first")
    let larder = try LarderProcess(policies: policies, origin: origin, folder: folder)
    let client = try larder.connect()
    expect(try client.get("/a"), "/a v1", .stored("uri-miss"))
    _ = try #require(try larder.waitForStatistics { $0.store.entries == 1 })
    let path = folder.path + "/store"
    switch loss {
    case .file: #expect(unlink(path + "/data.mdb") == 0)
    case .folder: try FileManager.default.removeItem(atPath: path)
    case .end: #expect(truncate(path + "/data.mdb", 4096) == 0)
    }
    // A body whose fetch begins before anybody has seen it.
    let answer = try larder.connect().get("/long")
    #expect(answer.status == 200 && answer.body == long && !answer.isCut)
    // Nobody has to write for it to be seen.
    _ = try #require(
      try larder.waitForStatistics { statistics in
        let isTold = (try? larder.errorText())?.contains("nothing is served from it any more")
        return isTold == true && statistics.store.state == "ok"
      })
    expect(try client.get("/a"), "/a v2", .stored("uri-miss"))
    expect(try client.get("/a"), "/a v2", .hit)
    expect(try client.get("/b"), "/b v1", .stored("uri-miss"))
    larder.terminate()
    #expect(larder.waitForExit() == 0)
    let again = try LarderProcess(policies: policies, origin: origin, folder: folder)
    expect(try again.connect().get("/a"), "/a v2", .hit)
    expect(try again.connect().get("/b"), "/b v1", .hit)
  }

  /// Bodies go to the kernel straight from the file's map: what is no longer there must not go as
  /// zeros, and no answer end early without the client seeing it.
  @Test func aFileThatIsCutWhileItIsServedFromGivesWholeAnswersOrBrokenOnes() throws {
    let origin = try ScriptedOrigin()
    let folder = try TemporaryFolder()
    let larder = try LarderProcess(
      policies: ProcessScenarios.policies("cache-first"), origin: origin, folder: folder)
    let bodies = ["/tiny": 300, "/page": 4096, "/chunk": 70_000, "/chunks": 1_500_000].mapValues {
      testBytes($0, seed: UInt64($0))
    }
    for (path, body) in bodies { origin.on(path, .bytes(body)) }
    let file = folder.path + "/store/data.mdb"
    var lossCount = 0
    for page in [400, 200, 60, 20, 8, 3, 1, 0] as [off_t] {
      for (path, body) in bodies {
        let answer = try larder.connect().get(path)
        #expect(answer.body == body && !answer.isCut, "\(path) before the cut at page \(page)")
      }
      _ = try #require(
        try larder.waitForStatistics { $0.store.entries == bodies.count && $0.store.state == "ok" })
      let clients = try bodies.keys.map { path in
        try CutClient(larder: larder, path: path, body: bodies[path]!)
      }
      #expect(truncate(file, page * 4096) == 0)
      for client in clients { client.finish() }
      lossCount += 1
      _ = try #require(
        try larder.waitForStatistics { _ in
          Self.count("set aside", in: (try? larder.errorText()) ?? "") == lossCount
        })
      for client in clients {
        #expect(client.wrongCount == 0 && client.rightCount > 0, "cut at page \(page)")
      }
    }
    larder.terminate()
    #expect(larder.waitForExit() == 0)
  }

  private static func count(_ part: String, in text: String) -> Int {
    text.components(separatedBy: part).count - 1
  }

  @Test func aFloodOfNewUrlsKeepsToTheSizeAndIsAnswered() throws {
    let origin = try ScriptedOrigin()
    let folder = try TemporaryFolder()
    let maxBytes = 8 * 1024 * 1024
    let policies = ProcessScenarios.policies("cache-first").replacingOccurrences(
      of: "/store\"", with: "/store\", \"maxSize\": \"8MiB\", \"maxEntrySize\": \"4MiB\"")
    let larder = try LarderProcess(policies: policies, origin: origin, folder: folder)
    let client = try larder.connect()
    var sentBytes = 0
    var number = 0
    while sentBytes < 10 * maxBytes {
      let body = ProcessScenarios.body(number)
      origin.on("/\(number)", .bytes(body))
      let answer = try client.get("/\(number)")
      #expect(answer.status == 200 && answer.body == body && !answer.isCut)
      sentBytes += body.count
      number += 1
    }
    let statistics = try larder.statistics()
    #expect(statistics.errors == 0 && statistics.misses == number)
    #expect(statistics.store.bytes <= maxBytes + 64 * 1024)
    #expect(statistics.store.evicted > number / 2)
    #expect(statistics.store.entries > 0 && statistics.store.state == "ok")
    #expect(statistics.store.notStored == [:])
    // What docs/operations.md states.
    var status = stat()
    #expect(stat(folder.path + "/store/data.mdb", &status) == 0)
    #expect(Int(status.st_blocks) * 512 <= maxBytes + maxBytes / 4 + 64 * 1024 * 1024)
    larder.terminate()
    #expect(larder.waitForExit() == 0)
  }
}

/// A client that asks for one body again and again, on a new connection where one breaks.
private final class CutClient: @unchecked Sendable {
  // @unchecked Sendable: the counts are the thread's until it has been joined.
  private(set) var rightCount = 0
  private(set) var wrongCount = 0
  private var thread: LoopThread?
  private let hasBegun = DispatchSemaphore(value: 0)
  private static let requestCount = 60

  init(larder: LarderProcess, path: String, body: [UInt8]) throws {
    let port = larder.port
    thread = LoopThread { [self] in
      var client = try? ClientConnection(port: port)
      for number in 0..<Self.requestCount {
        if number == 5 { hasBegun.signal() }
        // No answer at all is a broken one too.
        let answer = try? client?.get(path)
        if let answer, !answer.isCut, answer.status == 200 {
          if answer.body == body { rightCount += 1 } else { wrongCount += 1 }
        } else {
          client = try? ClientConnection(port: port)
        }
      }
    }
    hasBegun.wait()
  }

  func finish() {
    thread?.join()
    thread = nil
  }
}
