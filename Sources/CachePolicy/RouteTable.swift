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
