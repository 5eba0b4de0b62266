internal import CachePolicy
internal import Synchronization

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

  /// By the slot that `CounterSlots` gave the route's name.
  private(set) var routes: [Route] = []
  var bytesToClients: UInt64 = 0
  /// Origins' bodies that broke off and were continued.
  var resumedBodies: UInt64 = 0
  var notStored: [NotStoredReason: UInt64] = [:]

  subscript(slot: Int) -> Route {
    get { slot < routes.count ? routes[slot] : Route() }
    _modify { yield &routes[slot] }
  }

  /// Makes room for the slots below a number; what has been counted stays.
  mutating func reserve(slots count: Int) {
    while routes.count < count { routes.append(Route()) }
  }

  mutating func add(_ other: Counters) {
    reserve(slots: other.routes.count)
    for (slot, counts) in other.routes.enumerated() { routes[slot].add(counts) }
    bytesToClients += other.bytesToClients
    resumedBodies += other.resumedBodies
    notStored.merge(other.notStored, uniquingKeysWith: +)
  }

  var total: Route { routes.reduce(into: Route()) { $0.add($1) } }
}

/// Where each route's counts lie: a number that a name keeps as long as the process runs, so that
/// counts go on over reloads, and exchanges of an earlier configuration count in the right place.
final class CounterSlots: Sendable {
  /// Requests that nothing takes, `(none)`.
  static let none = 0
  /// Those that `defaults` take, `(default)`.
  static let defaults = 1

  private let names = Mutex<[String: Int]>([:])

  /// The slot of a route's name; a new one where the name is new.
  func slot(of name: String) -> Int {
    names.withLock { names in
      if let known = names[name] { return known }
      let slot = names.count + 2
      names[name] = slot
      return slot
    }
  }

  /// One more than the largest slot.
  var count: Int { names.withLock { $0.count + 2 } }
}
