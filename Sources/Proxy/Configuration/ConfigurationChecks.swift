internal import CachePolicy

/// Makes a `Configuration` of the draft, and checks what takes more than one field to see: unknown
/// upstreams, repeated names, routes that never match, fields that their strategy gives no meaning,
/// numbers that contradict each other.
///
/// Runs behind the decoding even when that found errors, so that one run shows all; its
/// configuration is then thrown away. Called by `ConfigurationLoader`.
struct ConfigurationChecks {
  private let draft: ConfigurationDraft
  private let rootPlace: SourcePlace
  private var decoder: FieldDecoder

  private init(_ draft: ConfigurationDraft, _ rootPlace: SourcePlace, _ decoder: FieldDecoder) {
    self.draft = draft
    self.rootPlace = rootPlace
    self.decoder = decoder
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
    let defaults = Configuration.Defaults(
      upstreamIndex: upstreamIndex(draft.defaults.upstreamName, "defaults"),
      policy: policy(draft.defaults),
      options: RouteOptions(forwardHeaders: draft.defaults.forwardHeaders ?? []))
    checkEntrySize("defaults")
    checkRouteNames()
    checkReachability()
    let routes = draft.routes.compactMap { route($0, defaults) }
    return Configuration(
      listen: draft.listen, loops: draft.loops, admin: draft.admin, store: draft.store,
      upstreams: upstreams, limits: draft.limits, defaults: defaults, routes: routes)
  }

  // MARK: Top level

  private mutating func checkListeners() {
    for address in draft.admin.listen where address.port != 0 && draft.listen.contains(address) {
      report("admin.listen", "\"\(address)\" is given in \"listen\" already")
    }
    let open = draft.admin.listen.first { !AddressParsing.isLoopback($0.host) }
    if let open, draft.admin.token == nil {
      warn(
        "admin.listen",
        "\"\(open)\" is open to other machines, and there is no admin.token")
    }
  }

  private mutating func checkStore() {
    guard draft.store.maxEntrySizeBytes > draft.store.maxSizeBytes else { return }
    let path = given("store.maxEntrySize") ? "store.maxEntrySize" : "store.maxSize"
    report(
      path,
      "store.maxEntrySize (\(Quantity.text(bytes: draft.store.maxEntrySizeBytes))) must not be "
        + "larger than store.maxSize (\(Quantity.text(bytes: draft.store.maxSizeBytes)))")
  }

  private mutating func checkLimits() {
    for violated in draft.limits.checkRelations() {
      let path = violated.fields.map { "limits.\($0)" }.first(where: given) ?? "limits"
      report(path, violated.message)
    }
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
    return upstream
  }

  private mutating func upstreamIndex(_ name: String?, _ path: String) -> Int? {
    // Without any upstream there is an error already.
    guard let name, !draft.upstreams.isEmpty else { return nil }
    let known = draft.upstreams.map(\.name)
    if let index = known.firstIndex(of: name) { return index }
    report(
      "\(path).upstream",
      "unknown upstream \"\(name)\"\(Suggestion.sentence(for: name, among: known))")
    return nil
  }

  // MARK: Routes

  private mutating func checkRouteNames() {
    var first: [String: String] = [:]
    for route in draft.routes {
      guard let name = route.name else { continue }
      if let earlier = first[name] {
        report("\(route.path).name", "the name \"\(name)\" is taken by \(earlier)")
      } else {
        first[name] = route.path
      }
    }
  }

  private mutating func checkReachability() {
    let matched = draft.routes.filter { $0.pattern != nil }
    let methods = Set(matched.compactMap(\.pattern).flatMap(\.methods))
    if methods.count > RouteTable.methodsMax {
      report("routes", "more than \(RouteTable.methodsMax) different methods")
    }
    for found in RouteTable.unreachableRoutes(matched.compactMap(\.pattern)) {
      let takers = found.takenBy.map { index in
        let name = matched[index].name.map { " (\"\($0)\")" } ?? ""
        return matched[index].path + name
      }
      let verb = takers.count == 1 ? "takes" : "take"
      report(
        "\(matched[found.route].path).match",
        "never matches: \(takers.joined(separator: " and ")) \(verb) all of it")
    }
  }

  /// nil where name, match or upstream are missing, which is reported.
  private mutating func route(_ route: RouteDraft, _ defaults: Configuration.Defaults) -> Route? {
    let upstream: Int?
    if route.policy.upstreamName != nil {
      upstream = upstreamIndex(route.policy.upstreamName, route.path)
    } else {
      upstream = defaults.upstreamIndex
      if draft.defaults.upstreamName == nil, !given("\(route.path).upstream") {
        reportAtRoute(route, "\"upstream\" is missing, and \"defaults\" names none")
      }
    }
    checkMeaning(route)
    checkEntrySize(route.path)
    guard let name = route.name, let pattern = route.pattern, let upstream else { return nil }
    return Route(
      name: name, pattern: pattern, upstreamIndex: upstream,
      policy: policy(route.policy, inheriting: draft.defaults),
      options: RouteOptions(
        forwardHeaders: route.policy.forwardHeaders ?? defaults.options.forwardHeaders))
  }

  /// Fields that are given and that the route's strategy does not look at.
  private mutating func checkMeaning(_ route: RouteDraft) {
    if route.policy.strategy == nil, !given("\(route.path).strategy"),
      let strategy = draft.defaults.strategy, strategy != .networkOnly
    {
      reportAtRoute(
        route, severity: .warning,
        "has no strategy and is network-only: defaults.strategy is not taken over")
    }
    guard !given("\(route.path).strategy") || route.policy.strategy != nil else { return }
    let strategy = route.policy.strategy ?? .networkOnly
    if strategy == .networkOnly {
      for field in ["ttl", "staleWhileRevalidate", "staleIfError", "negative", "keep"]
      where given("\(route.path).\(field)") {
        report("\(route.path).\(field)", "means nothing: a network-only route stores nothing")
      }
      for field in ["ignoreOrigin", "maxEntrySize"] where given("\(route.path).\(field)") {
        warn(
          "\(route.path).\(field)", "has no effect: a network-only route stores nothing")
      }
    }
    if strategy != .networkFirst, given("\(route.path).deadline") {
      warn(
        "\(route.path).deadline",
        "has no effect: only network-first has a deadline, this route is \(strategy.name)")
    }
    if strategy.writesStore, route.policy.forwardHeaders?.isEmpty == false {
      warn(
        "\(route.path).forwardHeaders",
        "these fields reach the origin and are not in the key: "
          + "an answer that depends on them is shared all the same")
    }
  }

  private mutating func checkEntrySize(_ path: String) {
    let size =
      path == "defaults"
      ? draft.defaults.maxEntrySizeBytes
      : draft.routes.first { $0.path == path }?.policy.maxEntrySizeBytes
    guard let size, size > draft.store.maxEntrySizeBytes else { return }
    report(
      "\(path).maxEntrySize",
      "must not be larger than store.maxEntrySize "
        + "(\(Quantity.text(bytes: draft.store.maxEntrySizeBytes)))")
  }

  /// A route takes from `defaults` what it does not say itself. The strategy is not taken over: a
  /// balance must never be stored because somebody forgot a line.
  private func policy(
    _ own: PolicyDraft, inheriting outer: PolicyDraft = PolicyDraft()
  ) -> Policy {
    let strategy = own.strategy ?? .networkOnly
    guard strategy != .networkOnly else { return Policy(strategy: .networkOnly) }
    return Policy(
      strategy: strategy,
      timeToLive: own.timeToLive ?? outer.timeToLive ?? .origin,
      staleWhileRevalidateMilliseconds: own.staleWhileRevalidateMilliseconds
        ?? outer.staleWhileRevalidateMilliseconds,
      staleIfErrorMilliseconds: own.staleIfErrorMilliseconds ?? outer.staleIfErrorMilliseconds,
      ignoreOrigin: own.ignoreOrigin ?? outer.ignoreOrigin ?? [],
      negative: own.negative ?? outer.negative ?? [],
      deadlineMilliseconds: strategy == .networkFirst
        ? own.deadlineMilliseconds ?? outer.deadlineMilliseconds : nil,
      keepMilliseconds: own.keepMilliseconds ?? outer.keepMilliseconds,
      maxEntrySizeBytes: own.maxEntrySizeBytes ?? outer.maxEntrySizeBytes)
  }

  // MARK: Reports

  private func given(_ path: String) -> Bool { decoder.places[path] != nil }

  /// At the value of the field; at the file's start where the file does not have it.
  private mutating func report(_ path: String, _ message: String) {
    decoder.report(at: decoder.places[path]?.value ?? rootPlace, path, message)
  }

  private mutating func warn(_ path: String, _ message: String) {
    decoder.report(.warning, at: decoder.places[path]?.value ?? rootPlace, path, message)
  }

  private mutating func reportAtRoute(
    _ route: RouteDraft, severity: Diagnostic.Severity = .error, _ message: String
  ) {
    decoder.report(
      severity, at: decoder.elementPlaces[route.path] ?? rootPlace, route.path, message)
  }
}
