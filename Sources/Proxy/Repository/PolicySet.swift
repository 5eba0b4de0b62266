internal import Backends
internal import CachePolicy

/// A configuration in the form that the data path uses: every route with all that can be worked out
/// beforehand. Immutable; a reload makes a new one, and each loop swaps it between two requests.
///
/// Running exchanges keep the route, and by it the policy, that they began under.
final class PolicySet: Sendable {
  let configuration: Configuration
  /// Counts the configurations that this process has used, from 1.
  let generation: Int
  /// In the file's order.
  let routes: [RouteContext]
  /// What a request gets that no route takes; nil: 404.
  let defaultRoute: RouteContext?
  let endpoints: [OriginEndpoint]
  /// Of the upstreams, in their order.
  let gates: [UpstreamGate]
  let routeTable: RouteTable

  /// Endpoints that are the same in `previous` are taken over, and with them what loops keep for
  /// them.
  init(
    _ configuration: Configuration, generation: Int, slots: CounterSlots,
    gates: UpstreamGates = UpstreamGates(), previous: PolicySet?
  ) {
    self.configuration = configuration
    self.generation = generation
    routeTable = configuration.routeTable
    let endpoints = configuration.upstreams.map { upstream in
      let made = OriginEndpoint(upstream)
      return previous?.endpoints.first { $0.isSame(as: made) } ?? made
    }
    self.endpoints = endpoints
    let gates = configuration.upstreams.map { gates.gate(of: $0) }
    self.gates = gates
    // A single body may take at most half of the store.
    let maxEntrySizeBytes = min(
      configuration.store.maxEntrySizeBytes, configuration.store.maxSizeBytes / 2)
    func context(
      _ slot: Int, _ name: String, _ pattern: RoutePattern?, _ upstreamIndex: Int,
      _ policy: Policy, _ options: RouteOptions
    ) -> RouteContext {
      func make(_ strategy: Strategy, _ alternatives: [Strategy: RouteContext]) -> RouteContext {
        var policy = policy
        policy.strategy = strategy
        return RouteContext(
          slot: slot, name: name, pattern: pattern, policy: policy, options: options,
          upstream: configuration.upstreams[upstreamIndex], endpoint: endpoints[upstreamIndex],
          gate: gates[upstreamIndex],
          maxEntrySizeBytes: maxEntrySizeBytes, alternatives: alternatives)
      }
      let others = options.clientStrategies.filter { $0 != policy.strategy }
      return make(
        policy.strategy,
        Dictionary(others.map { ($0, make($0, [:])) }, uniquingKeysWith: { first, _ in first }))
    }
    routes = configuration.routes.map { route in
      context(
        slots.slot(of: route.name), route.name, route.pattern, route.upstreamIndex, route.policy,
        route.options)
    }
    let defaults = configuration.defaults
    defaultRoute = defaults.upstreamIndex.map { upstreamIndex in
      context(
        CounterSlots.defaults, PolicySet.defaultName, nil, upstreamIndex, defaults.policy,
        defaults.options)
    }
  }

  /// The route of the file that takes a request, or the defaults; nil: nothing does. The path is in
  /// normal form.
  func route(method: Span<UInt8>, host: Span<UInt8>, path: Span<UInt8>) -> RouteContext? {
    let found = routeTable.match(method: method, host: host, path: path)
    return found.map { routes[$0] } ?? defaultRoute
  }

  /// The names under which requests count that no route of the file takes.
  static let defaultName = "(default)"
  static let noneName = "(none)"
}

extension OriginEndpoint {
  fileprivate convenience init(_ upstream: Upstream) {
    self.init(
      url: "\(upstream.scheme.rawValue)://\(upstream.authority)",
      connectTimeoutMilliseconds: upstream.connectTimeoutMilliseconds,
      firstByteTimeoutMilliseconds: upstream.firstByteTimeoutMilliseconds,
      stallTimeoutMilliseconds: upstream.totalTimeoutMilliseconds,
      retriesMax: upstream.retries, proxy: upstream.proxy)
  }

  fileprivate func isSame(as other: OriginEndpoint) -> Bool {
    url == other.url && connectTimeoutMilliseconds == other.connectTimeoutMilliseconds
      && firstByteTimeoutMilliseconds == other.firstByteTimeoutMilliseconds
      && stallTimeoutMilliseconds == other.stallTimeoutMilliseconds
      && retriesMax == other.retriesMax && proxy == other.proxy
  }
}
