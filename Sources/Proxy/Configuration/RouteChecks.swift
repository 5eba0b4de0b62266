internal import CachePolicy

/// Checks what one route says against itself: fields that its strategies give no meaning, words
/// that would show one user's answer to another, names that its path does not bring, prefixes that
/// it does not have. The same, as far as it applies, for `defaults`.
extension ConfigurationChecks {
  /// `effective`: the route with what it takes from `defaults`.
  mutating func check(_ route: RouteDraft, _ effective: PolicyDraft) {
    let path = route.path
    let own = route.policy
    if own.strategy == nil, !given("\(path).strategy"), let strategy = draft.defaults.strategy,
      strategy != .networkOnly
    {
      reportAtElement(
        path, severity: .warning,
        "has no strategy and is network-only: defaults.strategy is not taken over")
    }
    // A strategy that could not be read says nothing of what the other fields mean.
    if isSoundlyRead(path, "strategy", own.strategy != nil),
      isSoundlyRead(path, "clientStrategies", own.clientStrategies != nil)
    {
      checkMeaning(path, effective)
      checkLifetimes(path, effective)
      checkSharing(path, own, effective)
    }
    checkKey(path, own, effective)
    checkEntrySize(path, own)
    if let pattern = route.pattern {
      checkMatch(route, effective, pattern)
      checkNames(route, effective, pattern)
      checkInvalidation(path, own, pattern)
      checkPrefix(path, effective, pattern)
    }
  }

  mutating func checkDefaults(_ effective: PolicyDraft) {
    checkEntrySize("defaults", draft.defaults)
    checkKey("defaults", draft.defaults, effective)
    checkSharing("defaults", draft.defaults, effective)
    guard effective.strategies.contains(where: \.writesStore) else { return }
    for tag in effective.tags ?? [] {
      guard let name = tag.value.names.first else { continue }
      report(
        .error, at: tag.place, tag.path,
        "\"{\(name)}\": a request that no route takes brings no names")
    }
  }

  private func isSoundlyRead(_ path: String, _ field: String, _ isRead: Bool) -> Bool {
    isRead || !given("\(path).\(field)")
  }

  // MARK: Meaning

  /// Fields that are given and that none of the route's strategies looks at.
  private mutating func checkMeaning(_ path: String, _ effective: PolicyDraft) {
    let strategies = effective.strategies
    for field in PolicyDraft.fields where !field.description.need.isMet(by: strategies) {
      let fieldPath = "\(path).\(field.description.name)"
      guard given(fieldPath) else { continue }
      switch field.description.need {
      case .any: continue
      case .copies(elseError: true):
        report(fieldPath, "means nothing: a network-only route stores nothing")
      case .copies(elseError: false):
        warn(fieldPath, "has no effect: a network-only route stores nothing")
      case .deadline:
        warn(
          fieldPath,
          "has no effect: only network-first has a deadline, this route is "
            + shown("\(path).strategy", strategies[0].name))
      }
    }
  }

  /// A `keep` that ends a copy while it is fresh.
  private mutating func checkLifetimes(_ path: String, _ effective: PolicyDraft) {
    guard given("\(path).keep"), let keep = effective.keepMilliseconds,
      case .fixed(let fresh)? = effective.timeToLive, keep < fresh
    else { return }
    warn(
      "\(path).keep",
      "shorter than ttl: copies go before their freshness ends, and no window begins")
  }

  /// What is written in another tool's way, and routes that have nothing to store.
  private mutating func checkMatch(
    _ route: RouteDraft, _ effective: PolicyDraft, _ pattern: RoutePattern
  ) {
    let path = "\(route.path).match"
    for segment in pattern.target.split(separator: "/") {
      let isColon = segment.hasPrefix(":") && segment.count > 1
      guard isColon || segment.hasPrefix("<") && segment.hasSuffix(">") else { continue }
      let name = segment.filter { !":<>".contains($0) }
      warn(path, "\"\(segment)\" is taken as it is written; did you mean \"{\(name)}\"?")
    }
    if !pattern.methods.isEmpty, !pattern.methods.contains("GET"),
      effective.strategies.allSatisfy(\.writesStore)
    {
      warn(
        path,
        "nothing is stored: only answers to GET are, and the match takes "
          + pattern.methods.joined(separator: ", "))
    }
  }

  /// What the origin keeps to one user, and the route would give to all.
  private mutating func checkSharing(
    _ path: String, _ own: PolicyDraft, _ effective: PolicyDraft
  ) {
    guard effective.strategies.contains(where: \.writesStore),
      let ignored = effective.ignoreOrigin
    else { return }
    let isOwn = own.ignoreOrigin != nil || own.perUser != nil || path == "defaults"
    let place = given("\(path).ignoreOrigin") ? "\(path).ignoreOrigin" : path
    // What `defaults` says and the route leaves as it is was reported there, where it applies.
    let subject = place == path ? "ignoreOrigin of defaults: " : ""
    guard isOwn || draft.defaults.strategies.allSatisfy({ !$0.writesStore }) else { return }
    if effective.perUser == nil {
      if ignored.contains(.private) {
        reportAtElement(
          place, severity: .warning,
          "\(subject)what the origin marks \"private\" is given to every user: there is no perUser")
      }
      if ignored.contains(.authorization) {
        reportAtElement(
          place, severity: .warning,
          "\(subject)what one user's credentials open is given to every user: there is no perUser")
      }
      if ignored.contains(.setCookie) {
        reportAtElement(
          place, severity: .warning,
          "\(subject)a stored Set-Cookie is given to every user: there is no perUser")
      }
    } else if ignored.contains(.setCookie) {
      reportAtElement(
        place, severity: .warning,
        "\(subject)a stored Set-Cookie is given to its user again with every copy, also when the "
          + "session has ended")
    }
  }

  // MARK: Key and size

  private mutating func checkKey(
    _ path: String, _ own: PolicyDraft, _ effective: PolicyDraft
  ) {
    if let key = own.key, key.query == .none {
      if !key.ignoreQuery.isEmpty {
        warn("\(path).key.ignoreQuery", "has no effect: no parameter counts")
      }
      if key.sortQuery { warn("\(path).key.sortQuery", "has no effect: no parameter counts") }
    }
    guard let forwarded = own.forwardHeaders, effective.strategies.contains(where: \.writesStore),
      !Set(forwarded).isSubset(of: effective.key?.headers ?? [])
    else { return }
    warn(
      "\(path).forwardHeaders",
      "these fields reach the origin and are not in the key: "
        + "an answer that depends on them is shared all the same")
  }

  private mutating func checkEntrySize(_ path: String, _ own: PolicyDraft) {
    guard let size = own.maxEntrySizeBytes, size > draft.store.maxEntrySizeBytes else { return }
    report(
      "\(path).maxEntrySize", "must not be larger than store.maxEntrySize (\(shownEntrySize))")
  }

  // MARK: Names and paths

  /// Every `{name}` of a tag or target must stand in the route's match.
  private mutating func checkNames(
    _ route: RouteDraft, _ effective: PolicyDraft, _ pattern: RoutePattern
  ) {
    let known = pattern.names
    let tags = (effective.tags ?? []).map { ($0.path, $0.place, $0.value.names) }
    let targets = (effective.invalidates ?? []).map { ($0.path, $0.place, $0.value.names) }
    for (path, place, names) in tags + targets {
      for name in names where !known.contains(name) {
        let suggestion = Suggestion.nearest(to: name, among: known)
        let hint =
          suggestion.map { ", did you mean \"{\($0)}\"?" }
          ?? (known.isEmpty
            ? ", which has no names"
            : FieldDecoder.oneOf(known.map { "{\($0)}" }))
        if path.hasPrefix(route.path + ".") {
          report(.error, at: place, path, "no \"{\(name)}\" in the match\(hint)")
        } else {
          reportAtElement(route.path, "\(path): no \"{\(name)}\" in the match\(hint)")
        }
      }
    }
  }

  private mutating func checkInvalidation(
    _ path: String, _ own: PolicyDraft, _ pattern: RoutePattern
  ) {
    let safe = ["GET", "HEAD", "OPTIONS", "TRACE"]
    guard own.invalidates?.isEmpty == false, !pattern.methods.isEmpty,
      pattern.methods.allSatisfy(safe.contains)
    else { return }
    warn(
      "\(path).invalidates",
      "never happens: the match takes safe methods alone (\(pattern.methods.joined(separator: ", ")))"
    )
  }

  private mutating func checkPrefix(
    _ path: String, _ effective: PolicyDraft, _ pattern: RoutePattern
  ) {
    guard let prefix = effective.stripPrefix,
      !"\(pattern.literalPrefix)/".hasPrefix("\(prefix)/")
    else { return }
    let isOwn = given("\(path).stripPrefix")
    let fieldPath = isOwn ? "\(path).stripPrefix" : path
    reportAtElement(
      fieldPath, severity: .warning,
      "\(isOwn ? "" : "stripPrefix of defaults: ")\"\(shown(fieldPath, prefix))\" is taken off where "
        + "a path begins with it, and the match does not begin with it")
  }

  // MARK: Warming

  /// Every entry of `warm` must be a request of the route that names it.
  mutating func checkWarming(_ configuration: Configuration, _ ofDefaults: PolicyDraft) {
    for (index, route) in draft.routes.enumerated() {
      for entry in route.policy.warm ?? [] {
        check(entry, of: index, configuration)
        let made = configuration.routes.first { $0.name == route.name }
        if made?.options.perUser != nil {
          report(
            .error, at: entry.place, entry.path,
            "means nothing: this route's copies are each user's own, and nobody asks here")
        }
      }
    }
    for entry in ofDefaults.warm ?? [] { check(entry, of: nil, configuration) }
  }

  private mutating func check(
    _ entry: Located<String>, of route: Int?, _ configuration: Configuration
  ) {
    // It was read once already.
    guard let target = try? RequestTarget(parsing: entry.value) else { return }
    let authority =
      target.authority ?? configuration.publicAuthority
      ?? configuration.listen.first?.description ?? ""
    let taker = configuration.routeTable.match(
      method: Array("GET".utf8).span, host: Array(authority.utf8).span, path: target.path.span)
    guard taker != route else { return }
    let who = taker.map { "\(described(draft.routes[$0])) takes it" } ?? "no route takes it"
    report(.error, at: entry.place, entry.path, "\"\(entry.value)\": \(who)")
  }
}

extension RoutePattern {
  /// What every path that it matches begins with, in whole segments; empty: nothing.
  var literalPrefix: String {
    var path = Substring(source.drop { $0 != "/" })
    if path.hasPrefix("//") { path = path.dropFirst(2).drop { $0 != "/" } }
    var result: [UInt8] = []
    for segment in path.split(separator: "/") {
      guard !segment.contains("*"), !segment.contains("{") else { break }
      result += Array("/\(segment)".utf8)
    }
    var normal: [UInt8] = []
    let outcome = PathNormalization.normalize(result.span, into: &normal)
    return String(decoding: outcome == .rewritten ? normal : result, as: UTF8.self)
  }
}
