/// Lays the tries of a `RouteTrieBuilder` out in the arrays of a `RouteTrie`. Called once for each
/// route table.
extension RouteTrie {
  init(patterns: [RoutePattern]) {
    for method in Set(patterns.flatMap(\.methods)).sorted() {
      methodNames.append(Array(method.utf8))
    }
    guard methodNames.count <= RouteTable.methodsMax else {
      fatalError("a route table names at most \(RouteTable.methodsMax) methods")
    }
    let masks = methodMasks(patterns)
    var builder = RouteTrieBuilder()
    for (route, pattern) in patterns.enumerated() { builder.insert(pattern, route: route) }
    for host in builder.hosts {
      guard let root = builder.root(of: host) else { continue }
      let index = append(root, masks)
      guard let host else {
        anyHostRoot = index
        continue
      }
      let name = Array(host.name.utf8.reversed())
      let previous = hosts.value(parent: 0, name.span, 0..<name.count)
      let entry = HostRoot(
        isWildcard: host.isWildcard, port: host.port, node: index, next: previous ?? Self.none)
      hostRoots.append(entry)
      hosts.set(Int32(hostRoots.count - 1), parent: 0, name)
    }
  }

  private func methodMasks(_ patterns: [RoutePattern]) -> [UInt64] {
    var bits: [String: UInt64] = [:]
    for (index, name) in methodNames.enumerated() {
      bits[String(decoding: name, as: UTF8.self)] = 1 << UInt64(index)
    }
    return patterns.map { pattern in
      pattern.methods.isEmpty ? .max : pattern.methods.reduce(0) { $0 | (bits[$1] ?? 0) }
    }
  }

  /// Appends a node and all below it; a child lies behind its parent.
  private mutating func append(_ source: RouteTrieBuilder.Node, _ masks: [UInt64]) -> Int32 {
    let index = Int32(nodes.count)
    nodes.append(Node())
    var node = Node()
    node.terminalsStart = Int32(terminals.count)
    node.exactCount = append(routes: source.exact, masks)
    node.restCount = append(routes: source.rest, masks)
    for route in [source.exact.first, source.rest.first] {
      if let route { node.routeMin = min(node.routeMin, Int32(route)) }
    }
    appendLiterals(of: source, to: &node, index, masks)
    if let child = source.any {
      node.anyChild = append(child, masks)
      node.routeMin = min(node.routeMin, nodes[Int(node.anyChild)].routeMin)
    }
    appendGlobs(of: source, to: &node, index, masks)
    nodes[Int(index)] = node
    return index
  }

  /// A route none of whose methods is left by the earlier ones of its node never matches: it is not
  /// kept, so that a list is never longer than there are methods.
  private mutating func append(routes: [Int], _ masks: [UInt64]) -> UInt8 {
    var taken: UInt64 = 0
    var count: UInt8 = 0
    for route in routes where masks[route] & ~taken != 0 {
      terminals.append(Terminal(methods: masks[route], route: Int32(route)))
      taken |= masks[route]
      count += 1
    }
    return count
  }

  private mutating func appendLiterals(
    of source: RouteTrieBuilder.Node, to node: inout Node, _ index: Int32, _ masks: [UInt64]
  ) {
    let isOne = source.literals.count == 1
    node.literal = source.literals.isEmpty ? .none : isOne ? .one : .several
    for (bytes, child) in source.literals {
      if isOne {
        node.literalStart = Int32(literalBytes.count)
        node.literalCount = Int32(bytes.count)
        literalBytes += bytes
      }
      let childIndex = append(child, masks)
      if isOne {
        node.literalChild = childIndex
      } else {
        edges.set(childIndex, parent: UInt32(index), bytes)
      }
      node.routeMin = min(node.routeMin, nodes[Int(childIndex)].routeMin)
    }
  }

  /// Globs with the same literal ends lie beside each other, each node's in one range.
  private mutating func appendGlobs(
    of source: RouteTrieBuilder.Node, to node: inout Node, _ index: Int32, _ masks: [UInt64]
  ) {
    let children = source.globs
    node.hasGlobIndex = children.all.count > GlobChildren.unindexedMax
    // The children's own globs come into the same array first.
    let childIndices = children.all.map { append($0.node, masks) }
    node.globsStart = Int32(globs.count)
    node.globsCount = Int32(children.all.count)
    for (prefix, bySuffix) in children.groups {
      // A group's number is that of its first bucket.
      let group = Int32(globIndex.buckets.count)
      if node.hasGlobIndex { globIndex.prefixes.set(group, parent: UInt32(index), prefix) }
      for (suffix, members) in bySuffix {
        let start = globs.count
        for member in members {
          let bytes = children.all[member].bytes
          globs.append(
            GlobEdge(
              bytesStart: Int32(globBytes.count), bytesCount: Int32(bytes.count),
              child: childIndices[member]))
          globBytes += bytes
        }
        guard node.hasGlobIndex else { continue }
        globIndex.suffixes.set(
          Int32(globIndex.buckets.count), parent: UInt32(group), suffix.reversed())
        globIndex.buckets.append(start..<globs.count)
      }
    }
    for child in childIndices { node.routeMin = min(node.routeMin, nodes[Int(child)].routeMin) }
  }
}
