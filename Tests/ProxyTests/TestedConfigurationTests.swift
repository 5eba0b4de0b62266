import Foundation
import Testing

@testable import Proxy

/// A file whose tests fail is not served, and `larder check` says why.
@Suite struct TestedConfigurationTests {
  private static let example = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "policies.json").path

  /// A file of its own, with `{FILE}` in what is printed for its name.
  private func check(
    _ text: String, verbose: Bool = false
  ) throws -> (status: Int32, lines: [String]) {
    let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
    defer { try? FileManager.default.removeItem(atPath: path) }  // A left-over file is harmless.
    try Data(text.utf8).write(to: URL(filePath: path))
    var lines: [String] = []
    let status = CheckCommand.run(file: path, verbose: verbose, environment: [:]) {
      lines.append($0.replacingOccurrences(of: path, with: "p.json"))
    }
    return (status, lines)
  }

  private static func policies(_ expectation: String, more: String = "") -> String {
    """
    {version: 1, upstreams: {a: {url: 'http://a'}}, store: {path: '/store'}, \(more)
     routes: [{name: 'r', match: '/r', strategy: 'cache-first', upstream: 'a', ttl: '30d'}],
     tests: [{request: 'GET /r', expect: {route: 'r'}},
       {request: 'GET /r?x', expect: {\(expectation)}}]}
    """
  }

  @Test func passingTestsAreCounted() throws {
    let (status, lines) = try check(Self.policies("ttl: '30d'"))
    #expect(status == 0)
    #expect(lines == ["p.json: sound, 1 route, 1 upstream, 2 tests passed, 0 warnings"])
  }

  @Test func failingTestEndsTheCheckWithOne() throws {
    let (status, lines) = try check(Self.policies("ttl: '15m', stores: false"))
    #expect(status == 1)
    #expect(
      lines == [
        "p.json:4:4: tests[1]: GET /r?x: ttl: expected 15m, got 30d",
        "p.json:4:4: tests[1]: GET /r?x: stores: expected false, got true",
        "p.json: 1 of 2 tests failed",
      ])
  }

  /// A file that cannot be served has no tests to run.
  @Test func wrongFileEndsTheCheckWithTwo() throws {
    let (status, lines) = try check(Self.policies("ttl: '15m'", more: "loops: 'x',"))
    #expect(status == 2)
    #expect(lines.last == "p.json: refused, 1 error")
    #expect(!lines.contains { $0.contains("tests[1]") })
  }

  @Test func verboseCheckShowsRoutesAndPassedTests() throws {
    let (status, lines) = try check(Self.policies("key: 'y'"), verbose: true)
    #expect(status == 1)
    #expect(
      lines.dropFirst(5) == [
        "route     r       /r   cache-first  ttl \"30d\"    -> a",
        "defaults  (none)  404",
        "passed    tests[0]: GET /r",
        "p.json:4:4: tests[1]: GET /r?x: key: expected \"y\", got \"x\"",
        "p.json: 1 of 2 tests failed",
      ])
  }

  @Test func whoeverServesIsRefusedAFailingFile() {
    let text = Self.policies("ttl: '15m'", more: "admin: {listen: '0.0.0.0:1'},")
    let read = ConfigurationLoader.load(text: text, file: "p.json", environment: [:])
    guard
      case .refused(let diagnostics) = TestedConfiguration.testing(read, file: "p.json").loadResult
    else {
      Issue.record("not refused")
      return
    }
    #expect(diagnostics.map(\.severity) == [.warning, .error])
    #expect(
      diagnostics.last?.description == "p.json:4:4: tests[1]: GET /r?x: ttl: expected 15m, got 30d")
  }

  /// Before anything is bound or opened; what is said goes to standard error.
  @Test func failingFileIsNotServed() throws {
    let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
    defer { try? FileManager.default.removeItem(atPath: path) }  // A left-over file is harmless.
    try Data(Self.policies("ttl: '15m'").utf8).write(to: URL(filePath: path))
    #expect(
      ServeCommand.run(
        configurationPath: path, sampleOrigin: false, environment: [:], log: .silent) == 2)
  }

  @Test func exampleHasTestsAndPassesThem() {
    guard
      case .sound(_, _, let tests) = TestedConfiguration.load(
        path: Self.example, environment: [:])
    else {
      Issue.record("the example is not sound")
      return
    }
    #expect(tests.count >= 5)
  }
}

/// Tests/FailingPolicyTests holds pairs: NAME.json, a file whose own tests fail, and NAME.txt,
/// exactly what is said of them. A new pair needs no line here.
@Suite struct FailingPolicyTestsCorpus {
  private static let corpus = Corpus("FailingPolicyTests")

  private static let names = corpus.names

  @Test func corpusIsThere() throws {
    #expect(Self.names.count >= 2)
    #expect(Self.corpus.isComplete)
  }

  @Test(arguments: names)
  func failuresAreSaidExactly(name: String) throws {
    let expected = try Self.corpus.text("\(name).txt").split(separator: "\n").map(String.init)
    let read = ConfigurationLoader.load(
      text: try Self.corpus.text("\(name).json"), file: "\(name).json",
      environment: ["SECRET": "hunter2"])
    guard
      case .failing(_, _, let tests, let file) = TestedConfiguration.testing(
        read, file: "\(name).json")
    else {
      Issue.record("\(name): \(read)")
      return
    }
    #expect(tests.flatMap { $0.diagnostics(file: file) }.map(\.description) == expected)
    #expect(!expected.joined().contains("hunter2"))
  }
}
