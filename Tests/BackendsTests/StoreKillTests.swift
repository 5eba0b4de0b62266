/// A process that writes to a store is killed, again and again: what it leaves is whole.
///
/// The child is StoreStress. It reports every write on a pipe; the test counts the reports and
/// kills it in the midst of them.
import CachePolicy
import Foundation
import Testing

@testable import Backends

@Suite(.serialized) struct StoreKillTests {
  @Test(arguments: [[1, 30, 200], [77, 1, 500, 13], [900, 333]]) func everyEntryIsWholeAfterKills(
    _ reportCounts: [Int]
  ) throws {
    let folder = TemporaryFolder()
    for reportCount in reportCounts {
      try Self.runAndKill(folder, afterReports: reportCount)
      let fixture = try StoreFixture(folder: folder, maxSizeBytes: 4 * 1024 * 1024)
      #expect(fixture.messages.all.isEmpty, "nothing is set aside")
      #expect(try Self.findPurged(fixture) == [])
      // What the dead process left goes in the background.
      fixture.store.sweep()
      fixture.close()
      let audit = try StoreAudit(path: folder.path) { view, body in
        body == StressBody.bytes(view.entryID, from: 0, count: body.count)
      }
      #expect(audit.problems == [])
      if reportCount >= 200 { #expect(audit.entryCount > 0) }
    }
  }

  /// Entries that a purge took before the kill, and that a reader finds all the same.
  private static func findPurged(_ fixture: StoreFixture) throws -> [UInt64] {
    let file = URL(fileURLWithPath: fixture.folder.path + "/purged-below")
    let bytes = Array(try Data(contentsOf: file))
    guard bytes.count == 8 else { return [] }
    let floor = bytes.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    var found: [UInt64] = []
    for number in 0..<40 {
      fixture.forEachRecord(wholeKey("/key/\(number)")) { record in
        let isTagged = record.tags.contains { $0.elementsEqual("tag-3".utf8) }
        if isTagged, record.entryID < floor { found.append(record.entryID) }
      }
    }
    return found
  }

  private static func runAndKill(_ folder: TemporaryFolder, afterReports count: Int) throws {
    let pipe = Pipe()
    let output = pipe.fileHandleForWriting.fileDescriptor
    let child = try spawn(try stressProgram().path, folder.path, output: output)
    try pipe.fileHandleForWriting.close()
    var seen = 0
    while seen < count {
      let reports = pipe.fileHandleForReading.availableData
      guard !reports.isEmpty else { break }
      seen += reports.count
    }
    #expect(seen >= count, "the child wrote until it was killed")
    kill(child, SIGKILL)
    var status: Int32 = 0
    #expect(waitpid(child, &status, 0) == child)
    #expect(status & 0x7f == SIGKILL)
  }

  private static func spawn(
    _ program: String, _ argument: String, output: Int32
  ) throws -> pid_t {
    #if canImport(Glibc)
      var actions = posix_spawn_file_actions_t()
    #else
      var actions: posix_spawn_file_actions_t?
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    var arguments = [strdup(program), strdup(argument), nil]
    defer { for argument in arguments { free(argument) } }
    var child: pid_t = 0
    let code = posix_spawn(&child, program, &actions, nil, &arguments, environ)
    guard code == 0 else { throw POSIXError(POSIXErrorCode(rawValue: code) ?? .EINVAL) }
    return child
  }

  /// Beside the test's own program, wherever the package was built.
  private static func stressProgram() throws -> URL {
    var folders = CommandLine.arguments.filter { $0.contains("/") }.map {
      URL(fileURLWithPath: $0).deletingLastPathComponent()
    }
    if let own = Bundle.main.executableURL { folders.append(own.deletingLastPathComponent()) }
    for var folder in folders {
      // On macOS the test's program lies three folders down in a bundle.
      for _ in 0..<4 {
        let program = folder.appendingPathComponent("StoreStress")
        if FileManager.default.isExecutableFile(atPath: program.path) { return program }
        folder.deleteLastPathComponent()
      }
    }
    throw CocoaError(.fileNoSuchFile)
  }
}
