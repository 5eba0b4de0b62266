/// Tells which routes can never match because earlier ones take all of their requests.
///
/// Asked once, when policies.json is read. It sees one earlier route that takes all, and several
/// that share the methods of a later one out among them; it does not see several that share out
/// paths or hosts (`/a` and `/b*` … before `/*`), so an answer of "none" is no promise. Earlier
/// routes are kept in tries and a pattern is walked down them as if it were a path, so that
/// thousands of routes do not cost the square of their number.
extension RouteTable {
  /// A route that never matches, and the earlier ones that take its requests.
  public struct UnreachableRoute: Sendable, Equatable {
    public var route: Int
    public var takenBy: [Int]
  }

  public static func unreachableRoutes(_ patterns: [RoutePattern]) -> [UnreachableRoute] {
    var found: [UnreachableRoute] = []
    var earlier = RouteTrieBuilder()
    for (route, pattern) in patterns.enumerated() {
      var candidates: [Int] = []
      for host in pattern.coveringHosts {
        guard let root = earlier.root(of: host) else { continue }
        pattern.collectCovering(root, from: 0, into: &candidates)
      }
      if let takenBy = takers(of: pattern, among: candidates.sorted(), patterns) {
        // It need not be kept: whatever it would take, those that take it take.
        found.append(UnreachableRoute(route: route, takenBy: takenBy))
      } else {
        earlier.insert(pattern, route: route)
      }
    }
    return found
  }

  /// The first of these routes, all of which cover the host and path of the pattern, that take its
  /// methods; nil: some are left.
  private static func takers(
    of pattern: RoutePattern, among candidates: [Int], _ patterns: [RoutePattern]
  ) -> [Int]? {
    if candidates.isEmpty { return nil }
    var takenBy: [Int] = []
    var methodsLeft = Set(pattern.methods)
    for candidate in candidates {
      let methods = patterns[candidate].methods
      if methods.isEmpty { return [candidate] }
      guard !methodsLeft.isDisjoint(with: methods) else { continue }
      methodsLeft.subtract(methods)
      takenBy.append(candidate)
      if methodsLeft.isEmpty { return takenBy }
    }
    return nil
  }
}

extension RoutePattern {
  /// The hosts of patterns that take every host that this one takes.
  fileprivate var coveringHosts: [HostPattern?] {
    guard let host else { return [nil] }
    var covering: [HostPattern?] = [nil]
    for port in host.port == nil ? [nil] : [nil, host.port] {
      covering.append(HostPattern(name: host.name, isWildcard: host.isWildcard, port: port))
      // `*.x` takes one or more labels before `x`: it takes `*.b.x` and `b.x`, and not `x`.
      var name = host.name[...]
      while let dot = name.firstIndex(of: ".") {
        name = name[name.index(after: dot)...]
        covering.append(HostPattern(name: String(name), isWildcard: true, port: port))
      }
    }
    return covering
  }

  /// Adds the routes below a node that take all of what this pattern's segments from an index on
  /// take.
  fileprivate func collectCovering(
    _ node: RouteTrieBuilder.Node, from index: Int, into routes: inout [Int]
  ) {
    routes += node.rest
    guard index < segments.count else {
      if !takesRest { routes += node.exact }
      return
    }
    switch segments[index] {
    case .literal(let bytes):
      if let child = node.literal(bytes) {
        collectCovering(child, from: index + 1, into: &routes)
      }
      // An empty segment is taken by nothing but itself.
      if bytes.isEmpty { return }
      for child in node.globs.taking(bytes) {
        collectCovering(child, from: index + 1, into: &routes)
      }
    case .glob(let bytes):
      for child in node.globs.taking(bytes) {
        collectCovering(child, from: index + 1, into: &routes)
      }
    case .any: break
    }
    if let any = node.any { collectCovering(any, from: index + 1, into: &routes) }
  }
}
