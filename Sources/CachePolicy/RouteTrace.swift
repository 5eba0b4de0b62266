/// Says why a request went past the routes before its own: what `explain` prints.
///
/// Slow and plain where `RouteTable.match` is fast: each pattern is held against the request in its
/// turn, and the two always agree. Called for a person who asks, never for a request that is served.
extension RouteTable {
  /// What of a request a pattern does not take.
  public enum Mismatch: String, Sendable, CaseIterable {
    case method
    case host
    case path
  }

  /// A route that did not match, and everything that kept it from it: one reason or more, in the
  /// order of `Mismatch`.
  public struct PassedRoute: Sendable, Equatable {
    public var route: Int
    public var mismatches: [Mismatch]

    public init(route: Int, mismatches: [Mismatch]) {
      self.route = route
      self.mismatches = mismatches
    }
  }

  /// The routes, in the file's order, that come before the one that matches; all of them, where
  /// none does. Takes what `match` takes. The matching route's index is the list's count.
  public func trace(
    method: Span<UInt8>, host: Span<UInt8>, path: Span<UInt8>
  ) -> [PassedRoute] {
    var passed: [PassedRoute] = []
    for (route, pattern) in patterns.enumerated() {
      var mismatches: [Mismatch] = []
      if !pattern.takes(method: method) { mismatches.append(.method) }
      if let own = pattern.host, !own.matches(host) { mismatches.append(.host) }
      if !pattern.matches(path: path) { mismatches.append(.path) }
      if mismatches.isEmpty { break }
      passed.append(PassedRoute(route: route, mismatches: mismatches))
    }
    return passed
  }
}

extension RoutePattern {
  fileprivate func takes(method: Span<UInt8>) -> Bool {
    if methods.isEmpty { return true }
    for name in methods {
      let bytes = Array(name.utf8)
      if ASCII.equals(bytes.span, method) { return true }
    }
    return false
  }
}
