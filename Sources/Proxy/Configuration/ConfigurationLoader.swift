#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Reads policies.json and answers with a whole `Configuration` or with everything that is wrong.
///
/// The same way at start, in `larder check` and at a reload: read, decode by the table, check what
/// fields say of each other, and only then hand the configuration out. It prints nothing and
/// changes nothing. The environment is a parameter, so that a test has its own.
public enum ConfigurationLoader {
  public enum LoadResult: Sendable {
    case loaded(Configuration, warnings: [Diagnostic])
    /// In the file's order, warnings among them; at least one is an error.
    case refused([Diagnostic])
  }

  /// Reads a file. One that cannot be read, or is larger than `Limits.configurationBytes`, is
  /// refused.
  public static func load(path: String, environment: [String: String]) -> LoadResult {
    do {
      let bytes = try read(path, bytesMax: Limits().configurationBytes)
      let result = load(bytes: bytes, file: path, environment: environment)
      guard case .loaded(var configuration, let warnings) = result else { return result }
      configuration.store.path = resolved(configuration.store.path, besides: path)
      return .loaded(configuration, warnings: warnings)
    } catch {
      return .refused([
        Diagnostic(
          severity: .error, file: path, place: SourcePlace(line: 1, column: 1), path: "",
          message: error.message)
      ])
    }
  }

  /// What the file holds; nil where it cannot be read, which `load` tells about, and where it is
  /// none that can be read again and again.
  static func bytes(path: String) -> [UInt8]? {
    isSpecial(path) ? nil : try? read(path, bytesMax: Limits().configurationBytes)
  }

  /// Whether there is something that is neither a file nor a folder: a pipe is gone once it is read,
  /// and whoever opens one may wait for ever.
  static func isSpecial(_ path: String) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0 else { return false }
    let kind = status.st_mode & S_IFMT
    return kind != S_IFREG && kind != S_IFDIR
  }

  /// A relative path is taken from the folder of the file that names it: it means the same
  /// wherever the process is started.
  static func resolved(_ path: String, besides file: String) -> String {
    guard !path.hasPrefix("/"), let slash = file.lastIndex(of: "/") else { return path }
    return String(file[...slash]) + path
  }

  /// Reads a text; `file` is the name that diagnostics carry.
  public static func load(
    text: String, file: String, environment: [String: String]
  ) -> LoadResult {
    load(bytes: Array(text.utf8), file: file, environment: environment)
  }

  private static func load(
    bytes: [UInt8], file: String, environment: [String: String]
  ) -> LoadResult {
    let document = JSONReader.read(bytes, depthMax: Limits().configurationDepth)
    var findings = document.findings
    var configuration: Configuration?
    if document.isWhole {
      var decoder = FieldDecoder(environment: environment)
      var draft = ConfigurationDraft()
      decoder.decode(document.root, "", FieldTable.root, into: &draft)
      if case .object = document.root.value {
        configuration = ConfigurationChecks.run(
          draft, rootPlace: document.root.place, &decoder)
      }
      findings += decoder.findings
    }
    let diagnostics = sorted(findings).map { finding in
      Diagnostic(
        severity: finding.severity, file: file, place: finding.place, path: finding.path,
        message: finding.message)
    }
    if let configuration, !diagnostics.contains(where: { $0.severity == .error }) {
      return .loaded(configuration, warnings: shortened(diagnostics))
    }
    return .refused(shortened(diagnostics))
  }

  /// A file that is wrong a million times over is not to fill the log of whoever reads it.
  private static func shortened(_ diagnostics: [Diagnostic]) -> [Diagnostic] {
    let countMax = Limits().diagnostics
    guard diagnostics.count > countMax else { return diagnostics }
    let first = diagnostics[countMax]
    let rest = diagnostics[countMax...]
    return diagnostics[..<countMax] + [
      Diagnostic(
        severity: rest.contains { $0.severity == .error } ? .error : .warning, file: first.file,
        place: first.place, path: "", message: "and \(rest.count) more from here on")
    ]
  }

  /// By place; findings of one place keep their order.
  private static func sorted(_ findings: [Finding]) -> [Finding] {
    findings.enumerated()
      .sorted { ($0.element.place, $0.offset) < ($1.element.place, $1.offset) }
      .map(\.element)
  }

  private static func read(_ path: String, bytesMax: Int) throws(ValueError) -> [UInt8] {
    guard let file = fopen(path, "rb") else { throw failure() }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
      let count = fread(&piece, 1, piece.count, file)
      bytes += piece[..<count]
      guard bytes.count <= bytesMax else {
        throw ValueError(message: "larger than \(Quantity.text(bytes: UInt64(bytesMax)))")
      }
      if count < piece.count {
        guard ferror(file) == 0 else { throw failure() }
        return bytes
      }
    }
  }

  /// The system's reason for what just failed.
  private static func failure() -> ValueError {
    ValueError(message: "cannot be read: \(String(cString: strerror(errno)).lowercased())")
  }
}
