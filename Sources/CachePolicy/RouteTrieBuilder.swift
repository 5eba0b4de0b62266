/// Tries of path segments, one for each host pattern, while they grow: a class a node.
///
/// `RouteTrie` flattens them and throws them away; `RouteCoverage` asks them, as they grow, which
/// earlier routes take all of a pattern. They refuse nothing, and keep routes in the order in which
/// they come, which is the file's.
struct RouteTrieBuilder {
  /// Hosts in the order in which they first came.
  private(set) var hosts: [RoutePattern.HostPattern?] = []
  private var roots: [RoutePattern.HostPattern?: Node] = [:]

  final class Node {
    fileprivate(set) var literals: [(bytes: [UInt8], child: Node)] = []
    fileprivate(set) var any: Node?
    fileprivate(set) var globs = GlobChildren()
    /// Routes that end here, and routes whose `**` begins here, rising.
    fileprivate(set) var exact: [Int] = []
    fileprivate(set) var rest: [Int] = []
    private var literalIndices: [[UInt8]: Int] = [:]

    func literal(_ bytes: [UInt8]) -> Node? { literalIndices[bytes].map { literals[$0].child } }

    fileprivate func child(for segment: RoutePattern.SegmentPattern) -> Node {
      switch segment {
      case .literal(let bytes):
        if let found = literal(bytes) { return found }
        let child = Node()
        literalIndices[bytes] = literals.count
        literals.append((bytes, child))
        return child
      case .any:
        let child = any ?? Node()
        any = child
        return child
      case .glob(let bytes): return globs.child(for: bytes)
      }
    }
  }

  func root(of host: RoutePattern.HostPattern?) -> Node? { roots[host] }

  /// Routes come in rising order.
  mutating func insert(_ pattern: RoutePattern, route: Int) {
    var node = root(of: pattern.host) ?? Node()
    if roots[pattern.host] == nil {
      roots[pattern.host] = node
      hosts.append(pattern.host)
    }
    for segment in pattern.segments { node = node.child(for: segment) }
    if pattern.takesRest { node.rest.append(route) } else { node.exact.append(route) }
  }
}

/// A node's children under globs, found by what stands before their first star and behind their
/// last one, so that thousands of `/files/a*.png` cost no more than a few.
struct GlobChildren {
  typealias Child = (bytes: [UInt8], node: RouteTrieBuilder.Node)

  /// Up to so many globs are tried one after the other.
  static let unindexedMax = 8

  private(set) var all: [Child] = []
  /// By prefix, then by suffix: indices into `all`.
  private(set) var groups: [[UInt8]: [[UInt8]: [Int]]] = [:]

  mutating func child(for bytes: [UInt8]) -> RouteTrieBuilder.Node {
    let (prefixCount, suffixCount) = Glob.literalEnds(bytes)
    let (prefix, suffix) = (Array(bytes.prefix(prefixCount)), Array(bytes.suffix(suffixCount)))
    if let found = groups[prefix]?[suffix]?.first(where: { all[$0].bytes == bytes }) {
      return all[found].node
    }
    let node = RouteTrieBuilder.Node()
    groups[prefix, default: [:]][suffix, default: []].append(all.count)
    all.append((bytes, node))
    return node
  }

  /// The children whose globs take this text: a segment's bytes, or another glob's.
  func taking(_ text: [UInt8]) -> [RouteTrieBuilder.Node] {
    var candidates: [Int] = []
    if all.count <= Self.unindexedMax {
      candidates = Array(all.indices)
    } else {
      let (prefixCount, suffixCount) = Glob.literalEnds(text)
      for prefix in 0...prefixCount {
        guard let bySuffix = groups[Array(text.prefix(prefix))] else { continue }
        for suffix in 0...suffixCount {
          candidates += bySuffix[Array(text.suffix(suffix))] ?? []
        }
      }
    }
    var taking: [RouteTrieBuilder.Node] = []
    for candidate in candidates {
      let (glob, node) = all[candidate]
      if Glob.matches(glob.span, text.span) { taking.append(node) }
    }
    return taking
  }
}
