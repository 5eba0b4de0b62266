internal import CachePolicy

/// Makes a `Configuration` of the draft, and checks what takes more than one field to see: unknown
/// upstreams, repeated names, routes that never match, numbers that contradict each other. What
/// routes say beyond that is in `RouteChecks`.
///
/// Runs behind the decoding even when that found errors, so that one run shows all; its
/// configuration is then thrown away. Called by `ConfigurationLoader`.
struct ConfigurationChecks {
  let draft: ConfigurationDraft
  private let rootPlace: SourcePlace
  private(set) var decoder: FieldDecoder
  private let upstreamNames: [String]
  private let upstreamIndices: [String: Int]

  private init(_ draft: ConfigurationDraft, _ rootPlace: SourcePlace, _ decoder: FieldDecoder) {
    self.draft = draft
    self.rootPlace = rootPlace
    self.decoder = decoder
    upstreamNames = draft.upstreams.map(\.name)
    upstreamIndices = Dictionary(
      upstreamNames.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
  }

  static func run(
    _ draft: ConfigurationDraft, rootPlace: SourcePlace, _ decoder: inout FieldDecoder
  ) -> Configuration {
    var checks = ConfigurationChecks(draft, rootPlace, decoder)
    let configuration = checks.run()
    decoder = checks.decoder
    return configuration
  }

  private mutating func run() -> Configuration {
    checkListeners()
    checkStore()
    checkLimits()
    let upstreams = draft.upstreams.map { completed($0) }
    let ofDefaults = draft.defaults.inheriting(PolicyDraft())
    let defaults = Configuration.Defaults(
      upstreamIndex: upstreamIndex(draft.defaults.upstreamName, "defaults"),
      policy: ofDefaults.policy, options: ofDefaults.options)
    checkDefaults(ofDefaults)
    checkRouteNames()
    checkReachability()
    var routes = draft.routes.compactMap { route($0, defaults) }
    // Refused already, and no table can be made of them.
    if methods.count > RouteTable.methodsMax { routes = [] }
    checkTests()
    var configuration = Configuration(
      listen: draft.listen, loops: draft.loops, publicAuthority: draft.publicAuthority,
      admin: draft.admin, store: draft.store, upstreams: upstreams, limits: draft.limits,
      defaults: defaults, routes: routes, tests: draft.tests)
    configuration.provenance = ConfigurationProvenance(
      isFromFile: true, sources: decoder.expanded.mapValues(\.source), defaults: draft.defaults,
      routes: draft.routes.map(\.policy))
    // An index of the table means a route of the draft only where none was left out.
    if routes.count == draft.routes.count {
      checkWarming(configuration, ofDefaults)
      checkInvalidated(configuration)
    }
    return configuration
  }

  // MARK: Top level

  private mutating func checkListeners() {
    let paths = decoder.listPaths("admin.listen", count: draft.admin.listen.count)
    for (address, path) in zip(draft.admin.listen, paths)
    where address.port != 0 && draft.listen.contains(address) {
      report(path, "\"\(shown(path, address.description))\" is given in \"listen\" already")
    }
    let open = zip(draft.admin.listen, paths).first { !AddressParsing.isLoopback($0.0.host) }
    if let (address, path) = open, draft.admin.token == nil {
      warn(
        path,
        "\"\(shown(path, address.description))\" is open to other machines, and there is no "
          + "admin.token")
    }
  }

  private mutating func checkStore() {
    guard draft.store.maxEntrySizeBytes > draft.store.maxSizeBytes else { return }
    let path = given("store.maxEntrySize") ? "store.maxEntrySize" : "store.maxSize"
    report(
      path,
      "store.maxEntrySize (\(shownEntrySize)) must not be larger than store.maxSize "
        + "(\(shown("store.maxSize", Quantity.text(bytes: draft.store.maxSizeBytes))))")
  }

  var shownEntrySize: String {
    shown("store.maxEntrySize", Quantity.text(bytes: draft.store.maxEntrySizeBytes))
  }

  private mutating func checkLimits() {
    for violated in draft.limits.checkRelations() {
      let path = violated.fields.map { "limits.\($0)" }.first(where: given) ?? "limits"
      let isOpen = violated.fields.allSatisfy { decoder.expanded["limits.\($0)"] == nil }
      report(path, isOpen ? violated.message : Self.withoutNumbers(violated.message))
    }
  }

  /// Without what stands in brackets: a value of the environment among it.
  private static func withoutNumbers(_ message: String) -> String {
    var result = ""
    var depth = 0
    for character in message {
      if character == "(" {
        depth += 1
        if result.hasSuffix(" ") { result.removeLast() }
      }
      if depth == 0 { result.append(character) }
      if character == ")" { depth -= 1 }
    }
    return result
  }

  /// Defaults give way where only the longer of two time-outs was set; two that were both set and
  /// contradict each other are an error.
  private mutating func completed(_ upstream: Upstream) -> Upstream {
    var upstream = upstream
    let path = "upstreams.\(upstream.name)"
    if upstream.firstByteTimeoutMilliseconds > upstream.totalTimeoutMilliseconds {
      if !given("\(path).firstByteTimeout") {
        upstream.firstByteTimeoutMilliseconds = upstream.totalTimeoutMilliseconds
      } else if !given("\(path).totalTimeout") {
        upstream.totalTimeoutMilliseconds = upstream.firstByteTimeoutMilliseconds
      } else {
        report("\(path).firstByteTimeout", "must not be longer than totalTimeout")
      }
    }
    if upstream.connectTimeoutMilliseconds > upstream.firstByteTimeoutMilliseconds {
      if given("\(path).connectTimeout"), given("\(path).firstByteTimeout") {
        report("\(path).connectTimeout", "must not be longer than firstByteTimeout")
      } else {
        upstream.connectTimeoutMilliseconds = upstream.firstByteTimeoutMilliseconds
      }
    }
    for field in ["maxQueue", "queueTimeout"]
    where !given("\(path).maxConcurrent") && given("\(path).\(field)") {
      warn("\(path).\(field)", "has no effect: without maxConcurrent nobody waits")
    }
    return upstream
  }

  private mutating func upstreamIndex(_ name: String?, _ path: String) -> Int? {
    // Without any upstream there is an error already.
    guard let name, !draft.upstreams.isEmpty else { return nil }
    if let index = upstreamIndices[name] { return index }
    let suggestion = Suggestion.sentence(for: name, among: upstreamNames)
    report("\(path).upstream", "unknown upstream \"\(name)\"\(suggestion)")
    return nil
  }

  // MARK: Routes

  private mutating func checkRouteNames() {
    var first: [String: String] = [:]
    for route in draft.routes {
      guard let name = route.name else { continue }
      if let earlier = first[name] {
        let place = decoder.places["\(earlier).name"]?.value ?? rootPlace
        report(
          "\(route.path).name",
          "the name \"\(name)\" is taken by \(earlier), \(FieldDecoder.first(place))")
      } else {
        first[name] = route.path
      }
    }
  }

  /// All that the routes name.
  private var methods: Set<String> { Set(draft.routes.compactMap(\.pattern).flatMap(\.methods)) }

  private mutating func checkReachability() {
    let matched = draft.routes.filter { $0.pattern != nil }
    if methods.count > RouteTable.methodsMax {
      report("routes", "more than \(RouteTable.methodsMax) different methods")
    }
    for found in RouteTable.unreachableRoutes(matched.compactMap(\.pattern)) {
      let takers = found.takenBy.map { index in
        described(matched[index])
      }
      let verb = takers.count == 1 ? "takes" : "take"
      report(
        "\(matched[found.route].path).match",
        "never matches: \(takers.joined(separator: " and ")) \(verb) all of it")
    }
  }

  /// `routes[2] ("articles")`.
  func described(_ route: RouteDraft) -> String {
    let name = route.name.map { " (\"\(shown("\(route.path).name", $0))\")" } ?? ""
    return route.path + name
  }

  /// nil where name, match or upstream are missing, which is reported.
  private mutating func route(_ route: RouteDraft, _ defaults: Configuration.Defaults) -> Route? {
    let upstream: Int?
    if route.policy.upstreamName != nil {
      upstream = upstreamIndex(route.policy.upstreamName, route.path)
    } else {
      upstream = defaults.upstreamIndex
      if draft.defaults.upstreamName == nil, !given("\(route.path).upstream") {
        reportAtElement(route.path, "\"upstream\" is missing, and \"defaults\" names none")
      }
    }
    let effective = route.policy.inheriting(draft.defaults)
    check(route, effective)
    guard let name = route.name, let pattern = route.pattern, let upstream else { return nil }
    return Route(
      name: name, pattern: pattern, upstreamIndex: upstream, policy: effective.policy,
      options: effective.options)
  }

  private mutating func checkTests() {
    guard !draft.tests.isEmpty else { return }
    let others = ["(default)", "(none)"]
    let known = Set(draft.routes.compactMap(\.name)).union(others)
    // A name that came from the environment is nobody's to read.
    let candidates =
      draft.routes.filter { decoder.expanded["\($0.path).name"] == nil }.compactMap(\.name) + others
    for test in draft.tests {
      guard let name = test.expect.route, !known.contains(name) else { continue }
      report(
        "\(test.path).expect.route",
        "no route is named \"\(name)\"\(Suggestion.sentence(for: name, among: candidates))")
    }
  }

  // MARK: Reports

  func given(_ path: String) -> Bool { decoder.places[path] != nil }

  /// A value as a message may quote it: what came from the environment as the file has it.
  func shown(_ path: String, _ value: String) -> String { decoder.expanded[path]?.source ?? value }

  /// At the value of the field; at the file's start where the file does not have it.
  mutating func report(_ path: String, _ message: String) {
    report(.error, at: place(of: path), path, message)
  }

  mutating func warn(_ path: String, _ message: String) {
    report(.warning, at: place(of: path), path, message)
  }

  mutating func reportAtElement(
    _ path: String, severity: Diagnostic.Severity = .error, _ message: String
  ) {
    report(severity, at: place(of: path), path, message)
  }

  mutating func report(
    _ severity: Diagnostic.Severity, at place: SourcePlace, _ path: String, _ message: String
  ) {
    decoder.report(severity, at: place, path, message)
  }

  func place(of path: String) -> SourcePlace {
    decoder.places[path]?.value ?? decoder.elementPlaces[path] ?? rootPlace
  }
}
