import Foundation
import Testing

@testable import Proxy

/// Tests/Diagnostics holds pairs: NAME.json, a file as somebody may write it, and NAME.txt, exactly
/// what `larder check` says of it. A new pair needs no line here.
@Suite struct ConfigurationCorpusTests {
  private static let corpus = Corpus("Diagnostics")

  /// Values that the files name, and that no diagnostic may show.
  private static let environment = [
    "SECRET": "hunter2-Value", "PORT": "8081", "SIZE": "2MiB", "NUMBER": "900",
    "WORD": "cache-first", "QUOTE": "hunter2\"x\"", "TRUTH": "true",
  ]

  private static let names = corpus.names

  @Test func corpusIsThere() throws {
    #expect(Self.names.count >= 100)
    #expect(Self.corpus.isComplete)
  }

  @Test(arguments: names)
  func fileIsDiagnosedExactly(name: String) throws {
    let expected = try Self.corpus.text("\(name).txt").split(separator: "\n").map(String.init)
    let result = ConfigurationLoader.load(
      text: try Self.corpus.text("\(name).json"), file: "\(name).json",
      environment: Self.environment)
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
    #expect(!(try Self.corpus.text("\(name).txt")).lowercased().contains("hunter2"))
  }
}
