internal import CachePolicy

/// `larder check`: says whether a configuration would be served, and what was understood of it.
///
/// Loads exactly as `larder serve` does. Prints line by line through a function, so that a test
/// reads along; diagnostics and summary go the same way.
public enum CheckCommand {
  /// Returns the exit status: 0 sound, 1 where tests fail and nothing else is wrong, 2 refused.
  public static func run(
    file: String, verbose: Bool, environment: [String: String], print: (String) -> Void
  ) -> Int32 {
    switch TestedConfiguration.load(path: file, environment: environment) {
    case .sound(let configuration, let warnings, let tests):
      for warning in warnings { print(warning.description) }
      if verbose { describe(configuration, tests, print: print) }
      let tested = tests.isEmpty ? "" : "\(count(tests.count, "test")) passed, "
      print(
        "\(file): sound, \(count(configuration.routes.count, "route")), "
          + "\(count(configuration.upstreams.count, "upstream")), \(tested)"
          + count(warnings.count, "warning"))
      return 0
    case .failing(let configuration, let warnings, let tests, _):
      for warning in warnings { print(warning.description) }
      if verbose { describe(configuration, tests, print: print) }
      for test in tests { for line in test.diagnostics(file: file) { print(line.description) } }
      let failed = tests.count { !$0.hasPassed }
      print("\(file): \(failed) of \(count(tests.count, "test")) failed")
      return 1
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

  private static func describe(
    _ configuration: Configuration, _ tests: [PolicyTestResult], print: (String) -> Void
  ) {
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
    for upstream in configuration.upstreams { print(upstreamLine(upstream)) }
    for line in routeTable(configuration) { print(line) }
    for test in tests where test.hasPassed { print("passed    \(test.test.path): \(test.request)") }
  }

  private static func upstreamLine(_ upstream: Upstream) -> String {
    var text =
      "upstream  \(upstream.name): \(upstream.baseURL), "
      + "connect \(Quantity.text(milliseconds: upstream.connectTimeoutMilliseconds)), "
      + "first byte \(Quantity.text(milliseconds: upstream.firstByteTimeoutMilliseconds)), "
      + "total \(Quantity.text(milliseconds: upstream.totalTimeoutMilliseconds)), "
      + "retries \(upstream.retries)"
    if let maxConcurrent = upstream.maxConcurrent {
      let wait = Quantity.text(milliseconds: upstream.queueTimeoutMilliseconds)
      text += ", \(maxConcurrent) at once, \(upstream.maxQueue) waiting for up to \(wait)"
    }
    // Its URL may have a password.
    return upstream.proxy == nil ? text : text + ", through a proxy"
  }

  /// A line for each route and for the defaults, its columns aligned: name, match, strategy, ttl,
  /// windows, upstream, and whatever else was said.
  private static func routeTable(_ configuration: Configuration) -> [String] {
    var rows = configuration.routes.enumerated().map { index, route in
      cells(
        "route", route.name, route.pattern.source, route.policy.strategy,
        configuration.upstreams[route.upstreamIndex].name, configuration.values(ofRoute: index))
    }
    let defaults = configuration.defaults
    if let index = defaults.upstreamIndex {
      rows.append(
        cells(
          "defaults", PolicySet.defaultName, "", defaults.policy.strategy,
          configuration.upstreams[index].name, configuration.valuesOfDefaults))
    } else {
      rows.append(["defaults", PolicySet.noneName, "404"])
    }
    return TextTable.lines(rows)
  }

  private static func cells(
    _ kind: String, _ name: String, _ match: String, _ strategy: Strategy, _ upstream: String,
    _ values: [PolicyValue]
  ) -> [String] {
    let windows = ["staleWhileRevalidate", "staleIfError"]
    let value = { (name: String) in values.first { $0.name == name }?.value }
    let columns = ["strategy", "upstream", "ttl"] + windows
    let said = values.filter { $0.source != .builtIn && !columns.contains($0.name) }
    return [
      kind, name, match, strategy.name, value("ttl").map { "ttl \($0)" } ?? "",
      windows.compactMap { name in value(name).map { "\(name) \($0)" } }.joined(separator: ", "),
      "-> \(upstream)", said.map { "\($0.name) \($0.value)" }.joined(separator: ", "),
    ]
  }
}
