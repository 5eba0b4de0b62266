/// The tries of a route table, in arrays: what `RouteTable.match` walks.
///
/// Laid out for the processor's cache: what a node says fits one line, a node's only literal child
/// is compared where it stands (in most nodes below the first fork), and the nodes of one branch,
/// their literals and their routes lie beside each other. So a look-up among ten thousand routes
/// costs little more than among ten. Made from `RouteTrieBuilder` by `RouteTrieLayout`; nothing here
/// allocates.
struct RouteTrie: Sendable {
  static let none: Int32 = -1

  var nodes: [Node] = []
  /// For nodes with several literal children.
  var edges = ByteTable()
  var literalBytes: [UInt8] = []
  var globs: [GlobEdge] = []
  var globBytes: [UInt8] = []
  var globIndex = GlobIndex()
  var terminals: [Terminal] = []
  var hosts = ByteTable()
  /// For each value of `hosts`: the tries of its host, by port.
  var hostRoots: [HostRoot] = []
  var anyHostRoot = RouteTrie.none
  var methodNames: [[UInt8]] = []

  struct Node {
    /// The smallest route in this subtree: what cannot beat the best so far is not walked.
    var routeMin = Int32.max
    var anyChild = RouteTrie.none
    var literal = LiteralChildren.none
    /// A literal's first byte in `literalBytes`, and how many there are.
    var literalStart: Int32 = 0
    var literalCount: Int32 = 0
    var literalChild = RouteTrie.none
    var globsStart: Int32 = 0
    var globsCount: Int32 = 0
    /// Routes that end here, and behind them routes whose `**` begins here.
    var terminalsStart: Int32 = 0
    var exactCount: UInt8 = 0
    var restCount: UInt8 = 0
    /// The globs are looked up in `globIndex`, where the node's own number stands for it.
    var hasGlobIndex = false
  }
  enum LiteralChildren: UInt8 {
    case none
    case one
    case several
  }
  struct GlobEdge {
    var bytesStart: Int32
    var bytesCount: Int32
    var child: Int32
  }
  struct Terminal {
    var methods: UInt64
    var route: Int32
  }
  struct HostRoot {
    var isWildcard: Bool
    var port: UInt16?
    var node: Int32
    /// The next one with the same name.
    var next: Int32
  }

  func match(method: Span<UInt8>, host: Span<UInt8>, path: Span<UInt8>) -> Int? {
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

  /// Tries the host's own name and every name it ends in, from the last label to the first, so that
  /// each byte is hashed once.
  private func matchHosts(
    _ host: Span<UInt8>, _ path: Span<UInt8>, _ bit: UInt64, _ best: inout Int32
  ) {
    let (nameEnd, port) = RoutePattern.HostPattern.splitPort(host)
    var probe = ByteTable.Probe(parent: 0)
    var index = nameEnd
    while index > 0 {
      index -= 1
      probe.add(ASCII.lowercased(host[index]))
      let isWhole = index == 0
      guard isWhole || host[index - 1] == UInt8(ascii: ".") else { continue }
      guard let first = hosts.value(probe, host, index..<nameEnd, .reversedLowercase) else {
        continue
      }
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
    let restStart = Int(node.terminalsStart) + Int(node.exactCount)
    take(restStart..<restStart + Int(node.restCount), bit, &best)
    var cursor = offset
    guard let segment = PathSegments.next(path, from: &cursor) else {
      take(Int(node.terminalsStart)..<restStart, bit, &best)
      return
    }
    let child = literalChild(of: node, index, path, segment)
    if child != Self.none { walk(child, path, cursor, bit, &best) }
    guard !segment.isEmpty else { return }
    if node.anyChild != Self.none { walk(node.anyChild, path, cursor, bit, &best) }
    guard node.globsCount > 0 else { return }
    if node.hasGlobIndex {
      var search = GlobIndex.Search(node: UInt32(index), segment)
      while let found = globIndex.next(&search, path) {
        walkGlobs(found, path, segment, cursor, bit, &best)
      }
    } else {
      let start = Int(node.globsStart)
      walkGlobs(start..<start + Int(node.globsCount), path, segment, cursor, bit, &best)
    }
  }

  private func walkGlobs(
    _ range: Range<Int>, _ path: Span<UInt8>, _ segment: Range<Int>, _ cursor: Int, _ bit: UInt64,
    _ best: inout Int32
  ) {
    for index in range {
      let edge = globs[index]
      guard nodes[Int(edge.child)].routeMin < best else { continue }
      let start = Int(edge.bytesStart)
      let glob = globBytes.span.extracting(start..<start + Int(edge.bytesCount))
      guard Glob.matches(glob, path.extracting(segment)) else { continue }
      walk(edge.child, path, cursor, bit, &best)
    }
  }

  @inline(__always)
  private func literalChild(
    of node: Node, _ index: Int32, _ path: Span<UInt8>, _ segment: Range<Int>
  ) -> Int32 {
    switch node.literal {
    case .none: return Self.none
    case .several: return edges.value(parent: UInt32(index), path, segment) ?? Self.none
    case .one:
      guard segment.count == Int(node.literalCount) else { return Self.none }
      let start = Int(node.literalStart)
      for offset in 0..<segment.count
      where literalBytes[start + offset] != path[segment.lowerBound + offset] {
        return Self.none
      }
      return node.literalChild
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
      if ASCII.equals(name.span, method) { return 1 << UInt64(index) }
    }
    return 1 << UInt64(RouteTable.methodsMax)
  }
}

/// Finds a node's globs by their literal ends: a hash for each prefix of a segment that some glob of
/// the node begins with, and then for each suffix.
struct GlobIndex: Sendable {
  /// By node and prefix: a group.
  var prefixes = ByteTable()
  /// By group and suffix, from its end: a bucket.
  var suffixes = ByteTable()
  /// Ranges of globs with the same prefix and suffix.
  var buckets: [Range<Int>] = []

  struct Search {
    private let segment: Range<Int>
    fileprivate var prefix: ByteTable.Probe
    fileprivate var suffix: ByteTable.Probe
    fileprivate var prefixCount = -1
    fileprivate var suffixCount = -1
    fileprivate var group = RouteTrie.none

    init(node: UInt32, _ segment: Range<Int>) {
      self.segment = segment
      prefix = ByteTable.Probe(parent: node)
      suffix = prefix
    }

    fileprivate var prefixRange: Range<Int> {
      segment.lowerBound..<segment.lowerBound + prefixCount
    }
    fileprivate var suffixRange: Range<Int> {
      segment.upperBound - suffixCount..<segment.upperBound
    }
    fileprivate var isAtPrefixEnd: Bool { prefixCount == segment.count }
    /// A glob's ends do not overlap in what it takes.
    fileprivate var isAtSuffixEnd: Bool { prefixCount + suffixCount == segment.count }
  }

  /// The next globs that may take the segment.
  func next(_ search: inout Search, _ path: Span<UInt8>) -> Range<Int>? {
    while true {
      while search.group != RouteTrie.none, search.suffixCount < 0 || !search.isAtSuffixEnd {
        search.suffixCount += 1
        let range = search.suffixRange
        if !range.isEmpty { search.suffix.add(path[range.lowerBound]) }
        if let bucket = suffixes.value(search.suffix, path, range, .reversed) {
          return buckets[Int(bucket)]
        }
      }
      if search.prefixCount >= 0, search.isAtPrefixEnd { return nil }
      search.prefixCount += 1
      let range = search.prefixRange
      if !range.isEmpty { search.prefix.add(path[range.upperBound - 1]) }
      search.group = prefixes.value(search.prefix, path, range, .forward) ?? RouteTrie.none
      guard search.group != RouteTrie.none else { continue }
      search.suffixCount = -1
      search.suffix = ByteTable.Probe(parent: UInt32(search.group))
    }
  }
}
