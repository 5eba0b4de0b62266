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
      if !pattern.takes(host: host) { mismatches.append(.host) }
      if !pattern.takes(path: path) { mismatches.append(.path) }
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

  fileprivate func takes(host asked: Span<UInt8>) -> Bool {
    guard let host else { return true }
    let (nameEnd, port) = RouteHost.split(asked)
    guard host.port == nil || host.port == port ?? 80 else { return false }
    let name = Array(host.name.utf8)
    guard nameEnd >= name.count else { return false }
    let start = nameEnd - name.count
    guard ASCII.equalsIgnoringCase(asked.extracting(start..<nameEnd), name.span) else {
      return false
    }
    return host.isWildcard ? start > 0 && asked[start - 1] == UInt8(ascii: ".") : start == 0
  }

  fileprivate func takes(path: Span<UInt8>) -> Bool {
    guard path.count > 0, path[0] == UInt8(ascii: "/") else { return false }
    var cursor = PathSegments.start
    for segment in segments {
      guard let range = PathSegments.next(path, from: &cursor) else { return false }
      let bytes = path.extracting(range)
      switch segment {
      case .literal(let literal):
        if !ASCII.equals(literal.span, bytes) { return false }
      case .any:
        if bytes.isEmpty { return false }
      case .glob(let glob):
        if bytes.isEmpty || !Glob.matches(glob.span, bytes) { return false }
      }
    }
    return takesRest || PathSegments.next(path, from: &cursor) == nil
  }
}

/// A request's host as routes see it.
enum RouteHost {
  /// Where the host's name ends, and the port behind it. A port that is no number matches no
  /// pattern that has one.
  static func split(_ host: Span<UInt8>) -> (nameEnd: Int, port: UInt16?) {
    var nameEnd = host.count
    var port: UInt16?
    var index = host.count
    var value = 0
    var scale = 1
    while index > 0, index > host.count - 6 {
      index -= 1
      let byte = host[index]
      if byte == UInt8(ascii: ":") {
        nameEnd = index
        // An empty port is the default one (RFC 3986 §3.2.3).
        if index + 1 < host.count { port = UInt16(exactly: value) ?? 0 }
        break
      }
      guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { break }
      value += Int(byte - UInt8(ascii: "0")) * scale
      scale *= 10
    }
    if nameEnd > 1, host[nameEnd - 1] == UInt8(ascii: ".") { nameEnd -= 1 }
    return (nameEnd, port)
  }
}
