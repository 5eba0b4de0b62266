internal import CachePolicy

/// What one loop has counted. Each client answer counts exactly once, as hit, stale, miss, pass or
/// error; sums over loops are made when somebody asks.
struct Counters: Sendable, Equatable {
  /// What became of one request.
  enum Kind: Sendable {
    /// A fresh copy, or one that the origin just confirmed.
    case hit
    /// A copy past its freshness.
    case stale
    /// The store might have answered, and the network did.
    case miss
    /// Neither read nor stored.
    case pass
    /// Made by Larder.
    case error
  }

  struct Route: Sendable, Equatable {
    var requests: UInt64 = 0
    var hits: UInt64 = 0
    var stale: UInt64 = 0
    var misses: UInt64 = 0
    var passes: UInt64 = 0
    var errors: UInt64 = 0
    var collapsed: UInt64 = 0
    var bytesFromStore: UInt64 = 0
    var bytesFromOrigin: UInt64 = 0

    mutating func count(_ kind: Kind) {
      requests += 1
      switch kind {
      case .hit: hits += 1
      case .stale: stale += 1
      case .miss: misses += 1
      case .pass: passes += 1
      case .error: errors += 1
      }
    }

    mutating func add(_ other: Route) {
      requests += other.requests
      hits += other.hits
      stale += other.stale
      misses += other.misses
      passes += other.passes
      errors += other.errors
      collapsed += other.collapsed
      bytesFromStore += other.bytesFromStore
      bytesFromOrigin += other.bytesFromOrigin
    }

    /// (hits + stale) / (hits + stale + misses), 0 when empty.
    var hitRatio: Double {
      let answered = hits + stale
      let looked = answered + misses
      return looked == 0 ? 0 : Double(answered) / Double(looked)
    }
  }

  /// By the route's index; then the defaults, then requests that nothing takes.
  var routes: [Route]
  var bytesToClients: UInt64 = 0
  var notStored: [NotStoredReason: UInt64] = [:]

  init(routeCount: Int) { routes = Array(repeating: Route(), count: routeCount) }

  mutating func add(_ other: Counters) {
    for index in routes.indices { routes[index].add(other.routes[index]) }
    bytesToClients += other.bytesToClients
    notStored.merge(other.notStored, uniquingKeysWith: +)
  }

  var total: Route { routes.reduce(into: Route()) { $0.add($1) } }
}
