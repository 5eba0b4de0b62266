/// Finds the route of a request: the first pattern in the file's order that matches.
///
/// A trie of path segments for each host, flattened into arrays when it is built. A look-up walks
/// the path once, and a literal child is found by hash, so that its cost follows the path and not
/// the number of routes; where a node has wildcards beside literals both ways are walked, the ones
/// that cannot give an earlier route are left out, and no node is visited twice. It allocates
/// nothing. Takes paths in the normal form of `PathNormalization`; what it matches is never
/// decoded. Made once for each reading of policies.json; the exchange asks it for each request.
///
/// A host is compared in lower case, without a dot at its end, and without its port unless the
/// pattern has one; a pattern's port 80 also takes a host without a port.
///
/// A class around the arrays: as a struct they would be copied, reference by reference, at each
/// look-up.
public final class RouteTable: Sendable {
  /// How many different methods the patterns of one table may name, HEAD beside GET included.
  public static let methodsMax = 63

  private let trie: RouteTrie
  /// For `trace` alone.
  let patterns: [RoutePattern]

  /// Patterns in the file's order; their indices are what `match` answers. More different methods
  /// than `methodsMax` are a programmer's error: the reading of policies.json refuses them.
  public init(patterns: [RoutePattern]) {
    self.patterns = patterns
    trie = RouteTrie(patterns: patterns)
  }

  /// The index of the first pattern that takes the request; nil: none does. The host may be empty
  /// and in any case of letters, the path is normalised and has no query.
  public func match(method: Span<UInt8>, host: Span<UInt8>, path: Span<UInt8>) -> Int? {
    trie.match(method: method, host: host, path: path)
  }
}

/// The table's tries, in arrays.
private struct RouteTrie: Sendable {
  private static let none: Int32 = -1
  private var nodes: [Node] = []
  private var edges: ByteTable
  private var globs: [Glob] = []
  private var globBytes: [UInt8] = []
  private var terminals: [Terminal] = []
  private var hosts: ByteTable
  /// For each value of `hosts`: the tries of its host, by port.
  private var hostRoots: [HostRoot] = []
  private var anyHostRoot = RouteTrie.none
  private var methodNames: [[UInt8]] = []

  private struct Node {
    /// The smallest route in this subtree: what cannot beat the best so far is not walked.
    var routeMin = Int32.max
    var anyChild = RouteTrie.none
    var globs = 0..<0
    /// Routes that end here, and routes whose `**` begins here.
    var exact = 0..<0
    var rest = 0..<0
  }
  private struct Glob {
    var bytes: Range<Int>
    var child: Int32
  }
  private struct Terminal {
    var route: Int32
    var methods: UInt64
  }
  private struct HostRoot {
    var isWildcard: Bool
    var port: UInt16?
    var node: Int32
    /// The next one with the same name.
    var next: Int32
  }

  init(patterns: [RoutePattern]) {
    edges = ByteTable()
    hosts = ByteTable()
    for method in Set(patterns.flatMap(\.methods)).sorted() {
      methodNames.append(Array(method.utf8))
    }
    guard methodNames.count <= RouteTable.methodsMax else {
      fatalError("a route table names at most \(RouteTable.methodsMax) methods")
    }
    let byHost = Dictionary(grouping: patterns.indices, by: { patterns[$0].host })
    for (host, indices) in byHost {
      let builder = TrieBuilder()
      for index in indices {
        builder.insert(patterns[index], route: Int32(index), methods: methodMask(patterns[index]))
      }
      let root = flatten(builder.root)
      guard let host else {
        anyHostRoot = root
        continue
      }
      let name = Array(host.name.utf8)
      let previous = hosts.value(parent: 0, reversed: name)
      let entry = HostRoot(
        isWildcard: host.isWildcard, port: host.port, node: root, next: previous ?? Self.none)
      hostRoots.append(entry)
      hosts.set(Int32(hostRoots.count - 1), parent: 0, reversed: name)
    }
  }

  /// The index of the first pattern that takes the request; nil: none does. The host may be empty
  /// and in any case of letters; the path is normalised and has no query. What is no path (`*` of
  /// OPTIONS) matches nothing.
  public func match(method: Span<UInt8>, host: Span<UInt8>, path: Span<UInt8>) -> Int? {
    guard path.count > 0, path[0] == UInt8(ascii: "/") else { return nil }
    let bit = methodBit(method)
    var best = Int32.max
    if anyHostRoot != Self.none {
      walk(anyHostRoot, path, PathSegments.start, bit, &best)
    }
    if !hostRoots.isEmpty, host.count > 0 {
      matchHosts(host, path, bit, &best)
    }
    return best == Int32.max ? nil : Int(best)
  }

  // MARK: Looking up

  /// Tries the host's own name and every name it ends in, from the last label to the first, so that
  /// each byte is hashed once.
  private func matchHosts(
    _ host: Span<UInt8>, _ path: Span<UInt8>, _ bit: UInt64, _ best: inout Int32
  ) {
    let (nameEnd, port) = RoutePattern.HostPattern.splitPort(host)
    var hash = ByteTable.seed(parent: 0)
    var index = nameEnd
    while index > 0 {
      index -= 1
      hash = ByteTable.mix(hash, RoutePattern.asciiLowercased(host[index]))
      let isWhole = index == 0
      guard isWhole || host[index - 1] == UInt8(ascii: ".") else { continue }
      guard let first = hosts.value(parent: 0, hash: hash, host, index..<nameEnd, lowercase: true)
      else { continue }
      var entry = first
      while entry != Self.none {
        let root = hostRoots[Int(entry)]
        if root.isWildcard != isWhole, root.port == nil || root.port == port ?? 80 {
          walk(root.node, path, PathSegments.start, bit, &best)
        }
        entry = root.next
      }
    }
  }

  private func walk(
    _ index: Int32, _ path: Span<UInt8>, _ offset: Int, _ bit: UInt64, _ best: inout Int32
  ) {
    let node = nodes[Int(index)]
    guard node.routeMin < best else { return }
    take(node.rest, bit, &best)
    var cursor = offset
    guard let segment = PathSegments.next(path, from: &cursor) else {
      take(node.exact, bit, &best)
      return
    }
    if let child = edges.value(parent: UInt32(index), path, segment) {
      walk(child, path, cursor, bit, &best)
    }
    guard !segment.isEmpty else { return }
    if node.anyChild != Self.none { walk(node.anyChild, path, cursor, bit, &best) }
    for index in node.globs {
      let glob = globBytes.span.extracting(globs[index].bytes)
      guard RoutePattern.globMatches(glob, path.extracting(segment)) else { continue }
      walk(globs[index].child, path, cursor, bit, &best)
    }
  }

  @inline(__always)
  private func take(_ range: Range<Int>, _ bit: UInt64, _ best: inout Int32) {
    for index in range where terminals[index].methods & bit != 0 {
      best = min(best, terminals[index].route)
      return
    }
  }

  /// One bit for each method that a pattern names, and the last one for all others.
  private func methodBit(_ method: Span<UInt8>) -> UInt64 {
    for index in methodNames.indices {
      let name = methodNames[index]
      guard name.count == method.count else { continue }
      var position = 0
      while position < name.count, name[position] == method[position] { position += 1 }
      if position == name.count { return 1 << UInt64(index) }
    }
    return 1 << UInt64(RouteTable.methodsMax)
  }

  // MARK: Building

  private func methodMask(_ pattern: RoutePattern) -> UInt64 {
    guard !pattern.methods.isEmpty else { return .max }
    var mask: UInt64 = 0
    for method in pattern.methods {
      guard let index = methodNames.firstIndex(of: Array(method.utf8)) else { continue }
      mask |= 1 << UInt64(index)
    }
    return mask
  }

  private mutating func flatten(_ source: TrieBuilder.Node) -> Int32 {
    let index = Int32(nodes.count)
    nodes.append(Node())
    var node = Node()
    node.exact = append(source.exact)
    node.rest = append(source.rest)
    node.routeMin = min(source.exact.first?.route ?? .max, source.rest.first?.route ?? .max)
    for (bytes, child) in source.literals {
      let childIndex = flatten(child)
      edges.set(childIndex, parent: UInt32(index), bytes)
      node.routeMin = min(node.routeMin, nodes[Int(childIndex)].routeMin)
    }
    if let child = source.any {
      node.anyChild = flatten(child)
      node.routeMin = min(node.routeMin, nodes[Int(node.anyChild)].routeMin)
    }
    var children: [Glob] = []
    for (bytes, child) in source.globs {
      let childIndex = flatten(child)
      let start = globBytes.count
      globBytes += bytes
      children.append(Glob(bytes: start..<globBytes.count, child: childIndex))
      node.routeMin = min(node.routeMin, nodes[Int(childIndex)].routeMin)
    }
    node.globs = globs.count..<(globs.count + children.count)
    globs += children
    nodes[Int(index)] = node
    return index
  }

  private mutating func append(_ routes: [TrieBuilder.Terminal]) -> Range<Int> {
    let start = terminals.count
    terminals += routes.map { Terminal(route: $0.route, methods: $0.methods) }
    return start..<terminals.count
  }
}

/// The trie while it grows: a class a node, thrown away once it is flattened.
private final class TrieBuilder {
  struct Terminal {
    var route: Int32
    var methods: UInt64
  }
  final class Node {
    var literals: [[UInt8]: Node] = [:]
    var any: Node?
    var globs: [(bytes: [UInt8], child: Node)] = []
    var exact: [Terminal] = []
    var rest: [Terminal] = []
  }
  let root = Node()

  /// Routes come in rising order.
  func insert(_ pattern: RoutePattern, route: Int32, methods: UInt64) {
    var node = root
    for segment in pattern.segments { node = child(of: node, for: segment) }
    if pattern.takesRest {
      Self.add(Terminal(route: route, methods: methods), to: &node.rest)
    } else {
      Self.add(Terminal(route: route, methods: methods), to: &node.exact)
    }
  }

  /// A route none of whose methods is left by the earlier ones never matches: it is not kept, so
  /// that a list is never longer than there are methods.
  private static func add(_ terminal: Terminal, to list: inout [Terminal]) {
    let taken = list.reduce(0) { $0 | $1.methods }
    if terminal.methods & ~taken != 0 { list.append(terminal) }
  }

  private func child(of node: Node, for segment: RoutePattern.SegmentPattern) -> Node {
    switch segment {
    case .literal(let bytes):
      if let found = node.literals[bytes] { return found }
      let child = Node()
      node.literals[bytes] = child
      return child
    case .any:
      if let found = node.any { return found }
      let child = Node()
      node.any = child
      return child
    case .glob(let bytes):
      if let found = node.globs.first(where: { $0.bytes == bytes }) { return found.child }
      let child = Node()
      node.globs.append((bytes, child))
      return child
    }
  }
}
