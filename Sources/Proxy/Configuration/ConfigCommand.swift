#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// `larder config`: prints the configuration as it works, for people to read and compare.
///
/// Standard output is valid JSON or nothing; what is wrong or doubtful goes to standard error.
public enum ConfigCommand {
  /// Returns the exit status: 0 printed, 2 refused. Both functions add the line end.
  public static func run(
    file: String, environment: [String: String], print: (String) -> Void,
    printError: (String) -> Void
  ) -> Int32 {
    switch ConfigurationLoader.load(path: file, environment: environment) {
    case .loaded(var configuration, let warnings):
      for warning in warnings { printError(warning.description) }
      // What is printed may be put anywhere, and a relative path would then mean another folder.
      configuration.store.path = absolute(configuration.store.path)
      print(String(configuration.effectiveText.dropLast()))
      return 0
    case .refused(let diagnostics):
      for diagnostic in diagnostics { printError(diagnostic.description) }
      return 2
    }
  }

  private static func absolute(_ path: String) -> String {
    guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
    defer { free(folder) }
    let base = String(cString: folder)
    return base.hasSuffix("/") ? base + path : "\(base)/\(path)"
  }
}
