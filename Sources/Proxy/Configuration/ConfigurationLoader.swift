internal import Foundation

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
    func refused(_ message: String) -> LoadResult {
      .refused([
        Diagnostic(
          severity: .error, file: path, place: SourcePlace(line: 1, column: 1), path: "",
          message: message)
      ])
    }
    let data: Data
    do {
      data = try Data(contentsOf: URL(fileURLWithPath: path))
    } catch {
      return refused("cannot be read: \(reason(error))")
    }
    guard data.count <= Limits().configurationBytes else {
      let limit = Quantity.text(bytes: UInt64(Limits().configurationBytes))
      return refused("larger than \(limit)")
    }
    return load(bytes: [UInt8](data), file: path, environment: environment)
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
      return .loaded(configuration, warnings: diagnostics)
    }
    return .refused(diagnostics)
  }

  /// By place; findings of one place keep their order.
  private static func sorted(_ findings: [Finding]) -> [Finding] {
    findings.enumerated()
      .sorted { ($0.element.place, $0.offset) < ($1.element.place, $1.offset) }
      .map(\.element)
  }

  private static func reason(_ error: any Error) -> String {
    let underlying = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
    guard let code = underlying?.code, underlying?.domain == NSPOSIXErrorDomain else {
      return "\(error.localizedDescription)"
    }
    return String(cString: strerror(Int32(code))).lowercased()
  }
}
