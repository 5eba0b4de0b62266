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

  init() {
    path.reserveCapacity(1024)
    wholeKey.reserveCapacity(1024)
  }

  /// Brings the request's path into normal form.
  mutating func normalizePath(_ head: borrowing RequestHead) -> PathNormalization.Refusal? {
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

  /// The route that takes the request; nil: none does. Behind `normalizePath`.
  func route(_ head: borrowing RequestHead, in policies: PolicySet) -> RouteContext? {
    let method = head.methodToken
    let authority = head.authority
    let path = path
    let found = policies.routeTable.match(
      method: method.span, host: authority.span, path: path.span)
    if let found { return policies.routes[found] }
    return policies.defaultRoute
  }

  /// Writes the key of the request's target. Behind `normalizePath`.
  mutating func makeKey(_ head: borrowing RequestHead, _ route: RouteContext) {
    let (authority, query) = (head.authority, head.query)
    makeKey(route, authority: authority, query: query)
  }

  /// Writes the key of another target of the same route and authority.
  mutating func makeKey(
    _ route: RouteContext, authority: ArraySlice<UInt8>, path: [UInt8], query: ArraySlice<UInt8>?
  ) {
    self.path = path
    makeKey(route, authority: authority, query: query)
  }

  private mutating func makeKey(
    _ route: RouteContext, authority: ArraySlice<UInt8>, query: ArraySlice<UInt8>?
  ) {
    wholeKey.removeAll(keepingCapacity: true)
    let upstreamName = route.upstreamName
    CacheKey.append(part: upstreamName.span, to: &wholeKey)
    CacheKey.append(authority: authority.span, defaultPort: "80", to: &wholeKey)
    let path = path
    CacheKey.append(part: path.span, to: &wholeKey)
    if let query {
      wholeKey.append(UInt8(ascii: "?"))
      CacheKey.append(part: query.span, to: &wholeKey)
    }
  }
}
