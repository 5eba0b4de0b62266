/// A configuration file read, checked and tested: the one way into service, for `larder serve`, for
/// each reload and for `larder check`.
///
/// A file whose own tests fail is as wrong as one that cannot be read: it does not get as far as an
/// app.
public enum TestedConfiguration: Sendable {
  case sound(Configuration, warnings: [Diagnostic], tests: [PolicyTestResult])
  /// Some of the tests fail, and nothing else is wrong.
  case failing(Configuration, warnings: [Diagnostic], tests: [PolicyTestResult], file: String)
  case refused([Diagnostic])

  /// Reads a file, and runs its tests where it can be read.
  public static func load(path: String, environment: [String: String]) -> TestedConfiguration {
    testing(ConfigurationLoader.load(path: path, environment: environment), file: path)
  }

  /// Runs the tests of what was read; `file` is the name that diagnostics carry.
  public static func testing(
    _ result: ConfigurationLoader.LoadResult, file: String
  ) -> TestedConfiguration {
    switch result {
    case .refused(let diagnostics): return .refused(diagnostics)
    case .loaded(let configuration, let warnings):
      let tests = PolicyTestRunner.run(configuration)
      return tests.allSatisfy(\.hasPassed)
        ? .sound(configuration, warnings: warnings, tests: tests)
        : .failing(configuration, warnings: warnings, tests: tests, file: file)
    }
  }

  /// For whoever serves: failing tests refuse the configuration, as errors among its warnings.
  public var loadResult: ConfigurationLoader.LoadResult {
    switch self {
    case .sound(let configuration, let warnings, _): .loaded(configuration, warnings: warnings)
    case .failing(_, let warnings, let tests, let file):
      .refused(warnings + tests.flatMap { $0.diagnostics(file: file) })
    case .refused(let diagnostics): .refused(diagnostics)
    }
  }
}
