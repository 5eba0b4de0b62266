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
      fixture.close()
      let audit = try StoreAudit(path: folder.path) { view, body in
        body == StressBody.bytes(view.entryID, from: 0, count: body.count)
      }
      #expect(audit.problems == [])
      if reportCount >= 200 { #expect(audit.entryCount > 0) }
    }
  }

  private static func runAndKill(_ folder: TemporaryFolder, afterReports count: Int) throws {
    let process = Process()
    process.executableURL = try stressProgram()
    process.arguments = [folder.path]
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    var seen = 0
    while seen < count {
      let reports = pipe.fileHandleForReading.availableData
      guard !reports.isEmpty else { break }
      seen += reports.count
    }
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    #expect(seen >= count, "the child wrote until it was killed")
    #expect(process.terminationReason == .uncaughtSignal)
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
