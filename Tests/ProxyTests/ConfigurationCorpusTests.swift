import Foundation
import Testing

@testable import Proxy

/// Tests/Diagnostics holds pairs: NAME.json, a file as somebody may write it, and NAME.txt, exactly
/// what `larder check` says of it. A new pair needs no line here.
@Suite struct ConfigurationCorpusTests {
  private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Diagnostics")

  /// Values that the files name, and that no diagnostic may show.
  private static let environment = [
    "SECRET": "hunter2-Value", "PORT": "8081", "SIZE": "2MiB", "NUMBER": "900",
    "WORD": "cache-first", "QUOTE": "hunter2\"x\"", "TRUTH": "true",
  ]

  private static let names: [String] = {
    // An empty list fails the count below.
    let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    return files.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()
  }()

  private static func text(_ name: String) throws -> String {
    try String(contentsOf: folder.appending(path: name), encoding: .utf8)
  }

  @Test func corpusIsThere() throws {
    #expect(Self.names.count >= 100)
    let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
    #expect(Set(files) == Set(Self.names.flatMap { ["\($0).json", "\($0).txt"] }))
  }

  @Test(arguments: names)
  func fileIsDiagnosedExactly(name: String) throws {
    let expected = try Self.text("\(name).txt").split(separator: "\n").map(String.init)
    let result = ConfigurationLoader.load(
      text: try Self.text("\(name).json"), file: "\(name).json", environment: Self.environment)
    let found: [Diagnostic]
    switch result {
    case .loaded(let configuration, let warnings):
      found = warnings
      // Whatever loads, prints to what loads to the same.
      let printed = configuration.effectiveText
      let again = ConfigurationLoader.load(
        text: printed, file: "again.json", environment: Self.environment)
      if case .loaded(let second, _) = again {
        #expect(second.effectiveText == printed)
      } else {
        Issue.record("\(printed): \(again)")
      }
      #expect(found.allSatisfy { $0.severity == .warning })
    case .refused(let all):
      found = all
      #expect(found.contains { $0.severity == .error })
    }
    #expect(found.map(\.description) == expected)
  }

  /// Neither a value of the environment nor a password of a URL gets into a log.
  @Test(arguments: names)
  func secretsAreNotQuoted(name: String) throws {
    #expect(!(try Self.text("\(name).txt")).lowercased().contains("hunter2"))
  }
}
