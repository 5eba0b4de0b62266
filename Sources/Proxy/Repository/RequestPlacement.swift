internal import Backends
internal import CachePolicy

/// Where a request belongs: its path in normal form, its route, and its whole key.
///
/// One way for the data path, for `explain` and for the tests in policies.json, so that they cannot
/// say different things. The memory is reused from request to request; a loop has one of these.
struct RequestPlacement {
  /// The path as it is matched, keyed and sent.
  private(set) var path: [UInt8] = []
  /// Upstream, authority, path, what counts of the query, and what the route adds.
  private(set) var wholeKey: [UInt8] = []

  /// The path in memory of its own, for who keeps it: the loop's stays with the loop.
  var keptPath: [UInt8] { path.withUnsafeBufferPointer { Array($0) } }
  /// The same of the whole key.
  var keptWholeKey: [UInt8] { wholeKey.withUnsafeBufferPointer { Array($0) } }

  init() {
    path.reserveCapacity(1024)
    wholeKey.reserveCapacity(1024)
  }

  /// Brings the request's path into normal form.
  mutating func normalizePath(_ head: RequestHead) -> PathNormalization.Refusal? {
    let source = head.path
    switch PathNormalization.normalize(source.span, into: &path) {
    case .refused(let refusal): return refusal
    case .rewritten: return nil
    case .unchanged:
      path.removeAll(keepingCapacity: true)
      path.append(contentsOf: source)
      return nil
    }
  }

  /// The answer to a request that no route is looked for; nil: its path is in normal form now, if
  /// it has one (`OPTIONS *` has none).
  mutating func refusal(_ head: RequestHead) -> Problem? {
    switch head.method {
    case .connect, .trace, .purge, .ban:
      return Problem(
        status: 405, detail: "this method is not served here", fields: [Problem.allowedMethods])
    default: break
    }
    guard !head.isAsterisk, let refusal = normalizePath(head) else { return nil }
    return Problem(status: 400, detail: "malformed path: \(refusal.rawValue)")
  }

  /// The answer where `route` finds none.
  static let noRoute = Problem(status: 404, detail: "no route takes this request")

  /// The route that takes the request, in the client's choice of strategy where it has one; nil:
  /// none does. Behind `normalizePath`.
  func route(_ head: RequestHead, in policies: PolicySet) -> RouteContext? {
    let found = routeAsWritten(head, in: policies)
    guard let found, !found.alternatives.isEmpty else { return found }
    let choice = ClientStrategy.read(head.fields, allowed: found.options.clientStrategies)
    return choice.strategy.flatMap { found.alternatives[$0] } ?? found
  }

  /// The route that takes the request, in its own strategy whatever the client asks.
  func routeAsWritten(
    _ head: RequestHead, in policies: PolicySet
  ) -> RouteContext? {
    let method = head.methodToken
    let authority = head.authority
    let path = path
    return policies.route(method: method.span, host: authority.span, path: path.span)
  }

  /// Where in the file's order the route stands that takes the request; nil: none of the file does.
  func routeIndex(_ head: RequestHead, in policies: PolicySet) -> Int? {
    let method = head.methodToken
    let authority = head.authority
    let path = path
    return policies.routeTable.match(
      method: method.span, host: authority.span, path: path.span)
  }

  /// The routes of the file that were tried before the one that takes the request, and why each
  /// did not; all of them, where none does. Slow: for a person who asks.
  func trace(
    _ head: RequestHead, in policies: PolicySet
  ) -> [RouteTable.PassedRoute] {
    let method = head.methodToken
    let authority = head.authority
    let path = path
    return policies.routeTable.trace(
      method: method.span, host: authority.span, path: path.span)
  }

  /// Writes the key of the request. Behind `normalizePath`. `digest` is the keyed hash that takes
  /// the place of credentials. A reason: the request has no key.
  mutating func makeKey(
    _ head: RequestHead, _ route: RouteContext, bytesMax: Int,
    digest: (Span<UInt8>) -> [UInt8]
  ) -> NotStoredReason? {
    guard makeKey(head, route, digest: digest) else { return .noIdentity }
    return wholeKey.count > bytesMax ? .keyTooLong : nil
  }

  /// False: the request lacks the identity that the route keeps copies apart by.
  private mutating func makeKey(
    _ head: RequestHead, _ route: RouteContext, digest: (Span<UInt8>) -> [UInt8]
  ) -> Bool {
    let (authority, query) = (head.authority, head.query)
    makeTargetKey(route, authority: authority, query: query)
    guard route.hasKeyExtras else { return true }
    let recipe = route.options.key
    if !route.wholeQueryCounts {
      // A reload that changes what counts must not read what was keyed by other rules.
      wholeKey.append(CacheKey.filterMark)
      wholeKey.append(contentsOf: route.queryRules)
    }
    if !recipe.headers.isEmpty || !recipe.cookies.isEmpty {
      wholeKey.append(UInt8(ascii: "h"))
      wholeKey.append(UInt8(truncatingIfNeeded: recipe.headers.count + recipe.cookies.count))
      recipe.append(headersOf: head.fields, to: &wholeKey, digest: digest)
    }
    guard let identity = route.options.perUser else { return true }
    wholeKey.append(UInt8(ascii: "u"))
    return identity.append(identityOf: head.fields, to: &wholeKey, digest: digest)
  }

  /// Writes the key of a target without what the route adds to it: where that adds nothing, the
  /// whole key; else what all keys of the target begin with.
  mutating func makeTargetKey(
    _ route: RouteContext, authority: ArraySlice<UInt8>, path: [UInt8], query: ArraySlice<UInt8>?
  ) {
    self.path = path
    makeTargetKey(route, authority: authority, query: query)
  }

  private mutating func makeTargetKey(
    _ route: RouteContext, authority: ArraySlice<UInt8>, query: ArraySlice<UInt8>?
  ) {
    wholeKey.removeAll(keepingCapacity: true)
    let upstreamName = route.upstreamName
    CacheKey.append(part: upstreamName.span, to: &wholeKey)
    CacheKey.append(authority: authority.span, defaultPort: "80", to: &wholeKey)
    let path = path
    CacheKey.append(part: path.span, to: &wholeKey)
    guard let query else { return }
    if route.wholeQueryCounts {
      wholeKey.append(UInt8(ascii: "?"))
      CacheKey.append(part: query.span, to: &wholeKey)
    } else {
      var counting: [UInt8] = []
      guard route.queryFilter.appendKeyedQuery(query.span, to: &counting) else { return }
      wholeKey.append(UInt8(ascii: "?"))
      CacheKey.append(part: counting.span, to: &wholeKey)
    }
  }
}
