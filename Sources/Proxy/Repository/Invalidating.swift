internal import Backends
internal import CachePolicy
internal import Synchronization

/// Makes copies void after a change went through (RFC 9111 §4.4): those of its target, of what its
/// answer points to, and of what the route's `invalidates` names.
///
/// Running fills that a change makes void do not land, and nobody joins them any more.
extension Repository {
  /// `fill` is the change itself: what it brings may stay.
  func invalidate(_ source: FetchSource, status: UInt16, _ fields: Fields, by fill: Fill) {
    guard Invalidation.invalidates(method: source.head.method, status: status) else { return }
    let authority = source.head.authority
    drop(path: source.path, query: source.head.query, authority: authority, by: fill)
    let own = target(source)
    var others: [[UInt8]] = []
    // Each has one value (RFC 9110 §8.7, §10.2.2): an origin does not void a list of URLs by them.
    for line in fields.lines
    where (line.known == .location || line.known == .contentLocation) && others.count < 4 {
      let readings = targets(of: fields.bytes[line.value], source)
      for case let target? in [readings.asAClientReads, readings.asTheOriginMeans] {
        if target != own, !others.contains(target) { others.append(target) }
      }
    }
    for target in others { drop(target: target, authority: authority, by: fill) }
    let path = source.path
    let captures = source.route.pattern?.captures(path: path.span) ?? []
    for entry in source.route.options.invalidates {
      guard let filled = entry.filled(with: captures) else { continue }
      switch filled {
      case .tag(let tag): purge(.tag(tag), by: fill)
      case .path(let pattern): purge(.pattern(pattern), by: fill)
      }
    }
  }

  /// Purges the store, and keeps running fills that the scope covers from being joined.
  func purge(_ scope: PurgeScope, by change: Fill? = nil) {
    services.purgeCount.add(1, ordering: .sequentiallyConsistent)
    if let change { change.ownPurges += 1 }
    // The store first: a fill that begins in between carries a later ID, and loses only its joiners.
    services.store.purge(scope)
    // What the origin tags its answer with is not known before its head is here: the store judges
    // whether it lands, and whoever asks after the purge does not wait for it.
    if case .tag = scope { services.fillTable.close { $0.progress.head == nil } }
    services.fillTable.invalidate(by: change) { $0.isCovered(by: scope) }
  }

  // MARK: Targets

  /// Path and query, as the client named them.
  private func target(_ source: FetchSource) -> [UInt8] {
    guard let query = source.head.query else { return source.path }
    return source.path + [UInt8(ascii: "?")] + query
  }

  /// What a Location or Content-Location names, as clients ask for it: read as a client reads it, and
  /// as the origin means it, which sees other hosts and paths than the client does. None where that
  /// is not of the same origin (RFC 9111 §4.4).
  private func targets(
    of reference: ArraySlice<UInt8>, _ source: FetchSource
  ) -> (asAClientReads: [UInt8]?, asTheOriginMeans: [UInt8]?) {
    let route = source.route
    let asked = Invalidation.sameOriginTarget(
      reference.span, scheme: "http",
      authority: String(decoding: source.head.authority, as: UTF8.self),
      target: String(decoding: target(source), as: UTF8.self))
    let sent = Invalidation.sameOriginTarget(
      reference.span, scheme: route.upstreamScheme,
      authority: String(
        decoding: OriginRequestBuilder.host(of: source.head, route: route), as: UTF8.self),
      target: String(
        decoding: route.originTarget(path: source.path, query: source.head.query), as: UTF8.self))
    return (
      asked.map { Array($0.utf8) },
      sent.flatMap { route.clientTarget(ofOrigin: Array($0.utf8)) }
    )
  }

  /// Whether an answer's Content-Location is the target of its own request: then it is what a GET of
  /// it would bring (RFC 9110 §8.7, §9.3.3).
  ///
  /// Where origin and client see different paths, only what the origin means by it counts: the same
  /// text may name another resource of the origin's.
  func namesItsTarget(_ source: FetchSource, _ fields: Fields) -> Bool {
    let values = fields.values(of: .contentLocation)
    guard values.count == 1 else { return false }
    let readings = targets(of: values[0], source)
    let own = target(source)
    let seesOtherPaths =
      source.route.originTarget(path: source.path, query: source.head.query) != own
    return seesOtherPaths
      ? readings.asTheOriginMeans == own
      : readings.asAClientReads == own || readings.asTheOriginMeans == own
  }

  // MARK: Copies

  private func drop(target: [UInt8], authority: ArraySlice<UInt8>, by fill: Fill) {
    let parts = target.split(separator: 0x3F, maxSplits: 1, omittingEmptySubsequences: false)
    var path = Array(parts[0])
    var normalized: [UInt8] = []
    switch PathNormalization.normalize(path.span, into: &normalized) {
    case .refused: return
    case .rewritten: path = normalized
    case .unchanged: break
    }
    drop(path: path, query: parts.count > 1 ? parts[1] : nil, authority: authority, by: fill)
  }

  /// Drops all copies of a target, as the route keys them that reads it.
  private func drop(
    path: [UInt8], query: ArraySlice<UInt8>?, authority: ArraySlice<UInt8>, by fill: Fill
  ) {
    let method = Array("GET".utf8)
    let route = policies.route(method: method.span, host: authority.span, path: path.span)
    guard let route else { return }
    placement.makeTargetKey(route, authority: authority, path: path, query: query)
    guard !route.hasKeyExtras else {
      purge(.url(wholeKeyPrefix: placement.wholeKey), by: fill)
      return
    }
    let key = storeKey()
    services.fillTable.invalidate(key, by: fill)
    services.store.remove(key: key)
  }

  /// Where the answer to the POST that is at hand may land for later GETs: where a GET of the same
  /// target has its copy, on a route that takes both and stores. nil: nowhere.
  ///
  /// Not of a request with fields that a storing fetch would leave out: the answer may be theirs.
  func postKey(_ route: RouteContext) -> StoreKey? {
    guard worker.head.method == .post, route.policy.strategy.writesStore else { return nil }
    let (method, authority) = (Array("GET".utf8), worker.head.authority)
    let path = placement.path
    let getRoute = policies.route(method: method.span, host: authority.span, path: path.span)
    guard getRoute === route else { return nil }
    let forwarded = [true, false].map {
      OriginRequestBuilder.forwardedFields(worker.head.fields, route: route, forStore: $0)
    }
    guard forwarded[0] == forwarded[1], makeKey(worker.head, route) == nil else { return nil }
    return storeKey()
  }
}

extension Fill {
  /// Whether what the fill brings is, as far as is known by now, in the scope of a purge.
  func isCovered(by scope: PurgeScope) -> Bool {
    if case .everything = scope { return true }
    if case .tag(let tag) = scope {
      return (progress.head?.tags ?? plan.tags)?.contains(tag) ?? false
    }
    let wholeKey = plan.wholeKey
    let readable = CacheKey.Parts(wholeKey.span)
    guard let parts = readable else { return true }
    let (authority, path) = (wholeKey[parts.authority], wholeKey[parts.path])
    switch scope {
    case .everything, .tag: return true
    case .url(let prefix): return wholeKey[..<parts.further.lowerBound].elementsEqual(prefix)
    case .path(let wanted, let host):
      if let host, !host.matches(authority.span) { return false }
      return path.elementsEqual(wanted)
    case .pattern(let pattern): return pattern.matches(host: authority.span, path: path.span)
    }
  }
}
