internal import CachePolicy

/// `larder check`: says whether a configuration would be served, and what was understood of it.
///
/// Loads exactly as `larder serve` does. Prints line by line through a function, so that a test
/// reads along; diagnostics and summary go the same way.
public enum CheckCommand {
  /// Returns the exit status: 0 sound, 2 refused.
  public static func run(
    file: String, verbose: Bool, environment: [String: String], print: (String) -> Void
  ) -> Int32 {
    switch ConfigurationLoader.load(path: file, environment: environment) {
    case .loaded(let configuration, let warnings):
      for warning in warnings { print(warning.description) }
      if verbose { describe(configuration, print: print) }
      print(
        "\(file): sound, \(count(configuration.routes.count, "route")), "
          + "\(count(configuration.upstreams.count, "upstream")), "
          + count(warnings.count, "warning"))
      return 0
    case .refused(let diagnostics):
      for diagnostic in diagnostics { print(diagnostic.description) }
      let errors = diagnostics.count { $0.severity == .error }
      print("\(file): refused, \(count(errors, "error"))")
      return 2
    }
  }

  private static func count(_ number: Int, _ noun: String) -> String {
    number == 1 ? "1 \(noun)" : "\(number) \(noun)s"
  }

  private static func describe(_ configuration: Configuration, print: (String) -> Void) {
    let addresses = { (list: [Configuration.ListenAddress]) in
      list.map(\.description).joined(separator: ", ")
    }
    print("listen    \(addresses(configuration.listen))")
    print("loops     \(configuration.loops == 0 ? "one per core" : "\(configuration.loops)")")
    if configuration.admin.listen.isEmpty {
      print("admin     none")
    } else {
      let token = configuration.admin.token == nil ? "no token" : "with a token"
      print("admin     \(addresses(configuration.admin.listen)), \(token)")
    }
    print(
      "store     \(configuration.store.path), "
        + "up to \(Quantity.text(bytes: configuration.store.maxSizeBytes)), "
        + "bodies up to \(Quantity.text(bytes: configuration.store.maxEntrySizeBytes))")
    for upstream in configuration.upstreams {
      print(
        "upstream  \(upstream.name): \(upstream.baseURL), "
          + "connect \(Quantity.text(milliseconds: upstream.connectTimeoutMilliseconds)), "
          + "first byte \(Quantity.text(milliseconds: upstream.firstByteTimeoutMilliseconds)), "
          + "total \(Quantity.text(milliseconds: upstream.totalTimeoutMilliseconds)), "
          + "retries \(upstream.retries)")
    }
    for (index, route) in configuration.routes.enumerated() {
      print(
        "route     \(route.name): \(route.pattern.source) -> "
          + "\(configuration.upstreams[route.upstreamIndex].name), "
          + describe(route.policy.strategy, configuration.values(ofRoute: index)))
    }
    let defaults = configuration.defaults
    if let index = defaults.upstreamIndex {
      print(
        "defaults  -> \(configuration.upstreams[index].name), "
          + describe(defaults.policy.strategy, configuration.valuesOfDefaults))
    } else {
      print("defaults  404")
    }
  }

  /// The strategy and everything that is said, in the file's words.
  private static func describe(_ strategy: Strategy, _ values: [PolicyValue]) -> String {
    let said = values.filter {
      $0.source != .builtIn && $0.name != "strategy" && $0.name != "upstream"
    }
    return ([strategy.name] + said.map { "\($0.name) \($0.value)" }).joined(separator: ", ")
  }
}
