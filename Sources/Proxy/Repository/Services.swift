internal import Backends
internal import CachePolicy

/// What all loops of the process share. Immutable, or safe from any thread.
final class Services: Sendable {
  let configuration: Configuration
  let routeTable: RouteTable
  let store: LMDBStore
  let chunkBytes: Int
  let fillTable: FillTable
  let clock: Clock
  let log: Log
  /// The routes with what the data path needs of them, in the file's order; then the defaults.
  let routes: [RouteContext]
  /// What a request gets that no route takes; nil: 404.
  let defaultRoute: RouteContext?

  init(configuration: Configuration, store: LMDBStore, chunkBytes: Int, clock: Clock, log: Log) {
    self.configuration = configuration
    routeTable = configuration.routeTable
    self.store = store
    self.chunkBytes = chunkBytes
    self.clock = clock
    self.log = log
    fillTable = FillTable(limits: configuration.limits)
    // A single body may take at most half of the store.
    let maxEntrySizeBytes = min(
      configuration.store.maxEntrySizeBytes, configuration.store.maxSizeBytes / 2)
    routes = configuration.routes.enumerated().map { index, route in
      RouteContext(
        index: index, name: route.name, policy: route.policy, upstreamIndex: route.upstreamIndex,
        upstream: configuration.upstreams[route.upstreamIndex],
        forwardHeaders: route.options.forwardHeaders,
        maxEntrySizeBytes: maxEntrySizeBytes)
    }
    let defaults = configuration.defaults
    defaultRoute = defaults.upstreamIndex.map { upstreamIndex in
      RouteContext(
        index: configuration.routes.count, name: "(default)", policy: defaults.policy,
        upstreamIndex: upstreamIndex, upstream: configuration.upstreams[upstreamIndex],
        forwardHeaders: defaults.options.forwardHeaders,
        maxEntrySizeBytes: maxEntrySizeBytes)
    }
  }

  /// The names under which requests are counted: the routes, then `(default)`, then `(none)`.
  var countedNames: [String] { routes.map(\.name) + ["(default)", "(none)"] }
  var noRouteIndex: Int { routes.count + 1 }
}

/// A route as the data path needs it: everything that can be worked out beforehand.
final class RouteContext: Sendable {
  /// Its place among the counters.
  let index: Int
  let name: String
  /// What the store knows it by: stable over restarts and changes of the file's order.
  let identifier: UInt64
  let policy: Policy
  let upstreamIndex: Int
  let upstreamName: [UInt8]
  let upstreamAuthority: [UInt8]
  /// The authority that the origin's Host carries; nil: the client's own.
  let hostToOrigin: [UInt8]?
  let basePath: [UInt8]
  /// In lower case.
  let forwardHeaders: Set<String>
  /// The largest body that is stored, in bytes.
  let maxEntrySizeBytes: UInt64
  /// `; detail=cache-first` of Cache-Status.
  let detail: [UInt8]
  /// The same with the Via line behind it.
  let detailAndVia: [UInt8]

  init(
    index: Int, name: String, policy: Policy, upstreamIndex: Int, upstream: Upstream,
    forwardHeaders: [String], maxEntrySizeBytes: UInt64
  ) {
    self.index = index
    self.name = name
    identifier = name.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    self.policy = policy
    self.upstreamIndex = upstreamIndex
    upstreamName = Array(upstream.name.utf8)
    upstreamAuthority = Array(upstream.authority.utf8)
    hostToOrigin = upstream.hostHeader == .client ? nil : upstreamAuthority
    basePath = Array(upstream.basePath.utf8)
    self.forwardHeaders = Set(forwardHeaders)
    self.maxEntrySizeBytes = min(policy.maxEntrySizeBytes ?? .max, maxEntrySizeBytes)
    detail = Array("; detail=\(policy.strategy.name)".utf8)
    detailAndVia = detail + Array("\r\nVia: 1.1 larder".utf8)
  }
}
