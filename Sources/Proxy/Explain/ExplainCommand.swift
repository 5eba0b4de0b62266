internal import Backends
internal import CachePolicy

/// `larder explain`: says what would become of a request, by the configuration alone.
///
/// No network, no store: of the store's folder the secret of identities is read, where it is there,
/// so that digests are those of the running proxy. What is stored, `GET /explain` says.
public enum ExplainCommand {
  /// Returns the exit status: 0 explained (also what would be refused), 2 a configuration that
  /// cannot be read. Both functions add the line end.
  public static func run(
    file: String, request: ExplainedRequest, isJSON: Bool, environment: [String: String],
    print: (String) -> Void, printError: (String) -> Void
  ) -> Int32 {
    switch ConfigurationLoader.load(path: file, environment: environment) {
    case .refused(let diagnostics):
      for diagnostic in diagnostics { printError(diagnostic.description) }
      return 2
    case .loaded(let configuration, let warnings):
      for warning in warnings { printError(warning.description) }
      let explanation = explain(request, configuration)
      print(isJSON ? explanation.json.formatted : String(explanation.text.dropLast()))
      return 0
    }
  }

  static func explain(
    _ request: ExplainedRequest, _ configuration: Configuration
  ) -> Explanation {
    let policies = PolicySet(configuration, generation: 0, slots: CounterSlots(), previous: nil)
    let authority = configuration.ownAuthority
    guard let digester = IdentityDigester(folder: configuration.store.path) else {
      return Explanation.make(request, in: policies, authority: authority, digest: nil)
    }
    return Explanation.make(request, in: policies, authority: authority) { bytes in
      // SAFETY: the span outlives the call.
      bytes.withUnsafeBytes { digester.digest($0).bytes }
    }
  }
}
