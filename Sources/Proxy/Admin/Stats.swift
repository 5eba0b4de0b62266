internal import Backends
internal import CachePolicy
internal import Synchronization

/// The JSON document of `GET /stats`: its fields are documented in docs/operations.md.
struct Stats: Encodable {
  struct Bytes: Encodable {
    let toClients: UInt64
    let fromStore: UInt64
    let fromOrigin: UInt64
  }

  struct Origin: Encodable {
    let requests: UInt64
    let failures: UInt64
    let connectionsOpened: UInt64
    let reused: UInt64
    let resumed: UInt64
  }

  struct Upstream: Encodable {
    let active: Int
    let queued: Int
    let refused: UInt64
    let isDown: Bool

    init(_ counts: UpstreamGate.Counts) {
      isDown = counts.isDown
      active = counts.active
      queued = counts.queued
      refused = counts.refused
    }
  }

  struct Store: Encodable {
    let entries: UInt64
    let bytes: UInt64
    let maxBytes: UInt64
    let evicted: UInt64
    let expired: UInt64
    let damaged: UInt64
    let variantsDropped: UInt64
    let purged: UInt64
    let activePurges: UInt64
    let state: String
    let notStored: [String: UInt64]
  }

  /// The configuration in force, and what became of the last order to read it anew.
  struct Config: Encodable {
    struct Refusal: Encodable {
      let at: String
      let errors: [String]
    }
    let generation: Int
    let loadedAt: String
    /// null: the last order was carried out, or there was none.
    let lastError: Refusal?
    let needsRestart: [String]

    init(_ server: Server) {
      let status =
        server.reloader?.status ?? .init(loadedAtMilliseconds: server.startedAtMilliseconds)
      generation = status.generation
      loadedAt = Stats.timestamp(status.loadedAtMilliseconds)
      lastError = status.lastError.map {
        Refusal(at: Stats.timestamp($0.atMilliseconds), errors: $0.errors)
      }
      needsRestart = status.needsRestart
    }

    private enum Keys: String, CodingKey { case generation, loadedAt, lastError, needsRestart }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Keys.self)
      try container.encode(generation, forKey: .generation)
      try container.encode(loadedAt, forKey: .loadedAt)
      // Also where there is none: a reader finds the field either way.
      try container.encode(lastError, forKey: .lastError)
      try container.encode(needsRestart, forKey: .needsRestart)
    }
  }

  struct Connections: Encodable {
    let open: Int
    let accepted: UInt64
    let refused: UInt64
  }

  struct Route: Encodable {
    let strategy: String
    let requests: UInt64
    let hits: UInt64
    let stale: UInt64
    let misses: UInt64
    let passes: UInt64
    let errors: UInt64
    let collapsed: UInt64
    let hitRatio: Double
    let entries: UInt64
    let bytesFromStore: UInt64
    let bytesFromOrigin: UInt64
  }

  let version: String
  let startedAt: String
  let uptimeSeconds: Int64
  let requests: UInt64
  let hits: UInt64
  let stale: UInt64
  let misses: UInt64
  let passes: UInt64
  let errors: UInt64
  let hitRatio: Double
  let collapsed: UInt64
  let bytes: Bytes
  let origin: Origin
  let upstreams: [String: Upstream]
  let store: Store
  let connections: Connections
  let config: Config
  let routes: [String: Route]

  init(server: Server, counters: Counters, origin: OriginCounters) {
    let services = server.services
    let policies = server.policies
    let total = counters.total
    let stored = services.store.statistics()
    version = VersionCommand.version
    startedAt = Stats.timestamp(server.startedAtMilliseconds)
    uptimeSeconds = max(0, services.clock.nowMilliseconds - server.startedAtMilliseconds) / 1000
    requests = total.requests
    hits = total.hits
    stale = total.stale
    misses = total.misses
    passes = total.passes
    errors = total.errors
    hitRatio = total.hitRatio
    collapsed = total.collapsed
    bytes = Bytes(
      toClients: counters.bytesToClients, fromStore: total.bytesFromStore,
      fromOrigin: total.bytesFromOrigin)
    self.origin = Origin(
      requests: origin.requests, failures: origin.failures,
      connectionsOpened: origin.connectionsOpened, reused: origin.connectionsReused,
      resumed: counters.resumedBodies)
    upstreams = Dictionary(
      zip(policies.configuration.upstreams, policies.gates).map { ($0.name, Upstream($1.counts)) },
      uniquingKeysWith: { first, _ in first })
    store = Stats.store(stored, counters)
    connections = Connections(
      open: server.gate.open.load(ordering: .relaxed),
      accepted: server.gate.accepted.load(ordering: .relaxed),
      refused: server.gate.refused.load(ordering: .relaxed))
    routes = Stats.routes(policies, counters, stored)
    config = Config(server)
  }

  private static func store(_ stored: StoreStatistics, _ counters: Counters) -> Store {
    var reasons: [String: UInt64] = [:]
    for (reason, count) in stored.notStored.merging(counters.notStored, uniquingKeysWith: +)
    where count > 0 {
      reasons[reason.rawValue] = count
    }
    var state = "ok"
    if case .degraded(let reason) = stored.state { state = "degraded: \(reason)" }
    return Store(
      entries: stored.entries, bytes: stored.bytes, maxBytes: stored.maxBytes,
      evicted: stored.evicted, expired: stored.expired, damaged: stored.damaged,
      variantsDropped: stored.variantsDropped, purged: stored.purged,
      activePurges: stored.activePurges, state: state,
      notStored: reasons)
  }

  private static func routes(
    _ policies: PolicySet, _ counters: Counters, _ stored: StoreStatistics
  ) -> [String: Route] {
    var result: [String: Route] = [:]
    func add(_ name: String, _ counts: Counters.Route, _ context: RouteContext?) {
      result[name] = Route(
        strategy: context?.policy.strategy.name ?? "none", requests: counts.requests,
        hits: counts.hits, stale: counts.stale, misses: counts.misses, passes: counts.passes,
        errors: counts.errors, collapsed: counts.collapsed, hitRatio: counts.hitRatio,
        entries: context.flatMap { stored.entriesByRoute[$0.identifier] } ?? 0,
        bytesFromStore: counts.bytesFromStore, bytesFromOrigin: counts.bytesFromOrigin)
    }
    for route in policies.routes { add(route.name, counters[route.slot], route) }
    // The catch-alls show once they took something.
    for (name, slot, context) in [
      (PolicySet.defaultName, CounterSlots.defaults, policies.defaultRoute),
      (PolicySet.noneName, CounterSlots.none, nil),
    ] where counters[slot].requests > 0 {
      add(name, counters[slot], context)
    }
    return result
  }

  /// RFC 3339, in UTC, to the second.
  static func timestamp(_ milliseconds: Int64) -> String {
    var text: [UInt8] = []
    HTTPDate.format(milliseconds / 1000, into: &text)
    // "Sun, 06 Nov 1994 08:49:37 GMT"
    let parts = String(decoding: text, as: UTF8.self).split(separator: " ")
    let months = [
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    let month = (months.firstIndex(of: String(parts[2])) ?? 0) + 1
    return "\(parts[3])-\(month < 10 ? "0" : "")\(month)-\(parts[1])T\(parts[4])Z"
  }
}
