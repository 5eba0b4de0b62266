/// Tells which routes can never match because earlier ones take all of their requests.
///
/// Asked once, when policies.json is read. It sees one earlier route that takes all, and several
/// that share the methods of a later one out among them; it does not see several that share out
/// paths or hosts (`/a` and `/b*` … before `/*`), so an answer of "none" is no promise.
extension RouteTable {
  /// A route that never matches, and the earlier ones that take its requests.
  public struct UnreachableRoute: Sendable, Equatable {
    public var route: Int
    public var takenBy: [Int]
  }

  public static func unreachableRoutes(_ patterns: [RoutePattern]) -> [UnreachableRoute] {
    var found: [UnreachableRoute] = []
    for (route, pattern) in patterns.enumerated() {
      var takenBy: [Int] = []
      var methodsLeft = Set(pattern.methods)
      for (earlier, candidate) in patterns[..<route].enumerated()
      where candidate.coversHostAndPath(of: pattern) {
        if candidate.methods.isEmpty {
          takenBy = [earlier]
          methodsLeft = []
        } else if !methodsLeft.isDisjoint(with: candidate.methods) {
          methodsLeft.subtract(candidate.methods)
          takenBy.append(earlier)
        } else {
          continue
        }
        if methodsLeft.isEmpty {
          found.append(UnreachableRoute(route: route, takenBy: takenBy))
          break
        }
      }
    }
    return found
  }
}

extension RoutePattern {
  /// Whether every host and path that the other pattern matches is matched by this one too.
  func coversHostAndPath(of other: RoutePattern) -> Bool {
    coversHost(of: other) && coversPath(of: other)
  }

  private func coversHost(of other: RoutePattern) -> Bool {
    guard let host else { return true }
    guard let otherHost = other.host else { return false }
    guard host.port == nil || host.port == otherHost.port else { return false }
    if host.isWildcard {
      return otherHost.name.hasSuffix("." + host.name)
        || (otherHost.isWildcard && otherHost.name == host.name)
    }
    return !otherHost.isWildcard && otherHost.name == host.name
  }

  private func coversPath(of other: RoutePattern) -> Bool {
    guard segments.count <= other.segments.count else { return false }
    if !takesRest {
      guard segments.count == other.segments.count, !other.takesRest else { return false }
    }
    return zip(segments, other.segments).allSatisfy { $0.covers($1) }
  }
}

extension RoutePattern.SegmentPattern {
  fileprivate func covers(_ other: RoutePattern.SegmentPattern) -> Bool {
    switch (self, other) {
    case (.literal(let bytes), .literal(let otherBytes)): bytes == otherBytes
    case (.any, .literal(let bytes)): !bytes.isEmpty
    case (.any, _): true
    case (.glob(let glob), .literal(let bytes)): Self.glob(glob[...], covers: bytes[...])
    case (.glob(let glob), .glob(let bytes)): Self.glob(glob[...], covers: bytes[...])
    default: false
    }
  }

  /// Matches a glob against bytes in which a `*` of their own is matched by a `*` only: whatever
  /// the other's star stands for, this one's star takes it.
  private static func glob(_ glob: ArraySlice<UInt8>, covers bytes: ArraySlice<UInt8>) -> Bool {
    guard let first = glob.first else { return bytes.isEmpty }
    if first == UInt8(ascii: "*") {
      return Self.glob(glob.dropFirst(), covers: bytes)
        || (!bytes.isEmpty && Self.glob(glob, covers: bytes.dropFirst()))
    }
    return bytes.first == first && Self.glob(glob.dropFirst(), covers: bytes.dropFirst())
  }
}
