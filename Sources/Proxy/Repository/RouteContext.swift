internal import Backends
internal import CachePolicy

/// A route as the data path needs it: everything that can be worked out beforehand.
final class RouteContext: Sendable {
  /// Where it is counted.
  let slot: Int
  let name: String
  /// nil: the defaults.
  let pattern: RoutePattern?
  /// What the store knows it by: stable over restarts and changes of the file's order.
  let identifier: UInt64
  let policy: Policy
  let options: RouteOptions
  let endpoint: OriginEndpoint
  /// Of the upstream, shared with all of its routes.
  let gate: UpstreamGate
  let upstreamName: [UInt8]
  let upstreamAuthority: [UInt8]
  /// The authority that the origin's Host carries; nil: the client's own.
  let hostToOrigin: [UInt8]?
  let basePath: [UInt8]
  /// `http` or `https`, of the origin.
  let upstreamScheme: String
  /// What of a query counts.
  let queryFilter: QueryFilter
  /// What stands in keys for the rules by which queries are filtered.
  let queryRules: [UInt8]
  /// The query counts byte for byte.
  let wholeQueryCounts: Bool
  /// Whether more than the target makes the key.
  let hasKeyExtras: Bool
  /// Whether nothing of a request but its method, target and authority bears on its key, and on
  /// which route takes it in which strategy.
  let isPlacedByTarget: Bool
  /// Whose copies the key makes.
  let keyedIdentity: Storability.KeyedIdentity
  private let stripPrefix: PathPrefix?
  private let addPrefix: PathPrefix?
  /// The same route in the strategies that a client may choose instead.
  let alternatives: [Strategy: RouteContext]
  /// Names of request fields, in lower case, that reach the origin although their kind is dropped.
  let forwardHeaders: Set<String>
  /// Response fields that take the place of Cache-Control.
  let targetedCacheControl: [String]
  /// The largest body that is stored, in bytes.
  let maxEntrySizeBytes: UInt64
  /// `; detail=cache-first` of Cache-Status.
  let detail: [UInt8]
  /// The same with the Via line behind it, of a copy that came by HTTP/1.1, 1.0 and 2.
  private let detailAndVia: [UInt8]
  private let detailAndViaOfHTTP10: [UInt8]
  private let detailAndViaOfHTTP2: [UInt8]

  init(
    slot: Int, name: String, pattern: RoutePattern?, policy: Policy, options: RouteOptions,
    upstream: Upstream, endpoint: OriginEndpoint, gate: UpstreamGate, maxEntrySizeBytes: UInt64,
    alternatives: [Strategy: RouteContext]
  ) {
    self.slot = slot
    self.name = name
    self.pattern = pattern
    identifier = name.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    self.policy = policy
    self.options = options
    self.endpoint = endpoint
    self.gate = gate
    upstreamName = Array(upstream.name.utf8)
    upstreamAuthority = Array(upstream.authority.utf8)
    hostToOrigin = upstream.hostHeader == .client ? nil : upstreamAuthority
    basePath = Array(upstream.basePath.utf8)
    upstreamScheme = upstream.scheme.rawValue
    queryFilter = QueryFilter(options.key)
    queryRules = options.key.queryRules
    wholeQueryCounts = queryFilter.isPlain
    hasKeyExtras =
      !queryFilter.isPlain || options.perUser != nil || !options.key.headers.isEmpty
      || !options.key.cookies.isEmpty
    isPlacedByTarget =
      options.clientStrategies.isEmpty && options.perUser == nil && options.key.headers.isEmpty
      && options.key.cookies.isEmpty
    keyedIdentity =
      switch options.perUser {
      case nil: .none
      case .header("authorization"): .authorization
      case .header, .cookie: .other
      }
    stripPrefix = options.stripPrefix.map(RouteContext.prefix)
    addPrefix = options.addPrefix.map(RouteContext.prefix)
    self.alternatives = alternatives
    // What is in the key may reach the origin.
    forwardHeaders = Set(options.forwardHeaders + options.key.headers)
    targetedCacheControl = upstream.targetedCacheControl
    self.maxEntrySizeBytes = min(policy.maxEntrySizeBytes ?? .max, maxEntrySizeBytes)
    detail = Array("; detail=\(policy.strategy.name)".utf8)
    detailAndVia = detail + RouteContext.via(.http11)
    detailAndViaOfHTTP10 = detail + RouteContext.via(.http10)
    detailAndViaOfHTTP2 = detail + RouteContext.via(.http2)
  }

  private static func via(_ version: ReceivedVersion) -> [UInt8] {
    Array("\r\nVia: \(version.text) larder".utf8)
  }

  /// What stands at the end of a copy's `Cache-Status`, with the Via line behind it.
  func detailAndVia(_ version: ReceivedVersion) -> [UInt8] {
    switch version {
    case .http10: detailAndViaOfHTTP10
    case .http11: detailAndVia
    case .http2: detailAndViaOfHTTP2
    }
  }

  /// The reading of policies.json has refused what is none.
  private static func prefix(_ text: String) -> PathPrefix {
    do throws(PathPrefixError) {
      return try PathPrefix(parsing: text)
    } catch {
      fatalError("\"\(text)\" is no prefix: \(error.message)")
    }
  }

  /// Path (in normal form) and query as they go to the origin.
  func originTarget(path: [UInt8], query: ArraySlice<UInt8>?) -> [UInt8] {
    var target: [UInt8] = []
    target.reserveCapacity(basePath.count + path.count + (query?.count ?? 0) + 1)
    target.append(contentsOf: basePath)
    if stripPrefix == nil, addPrefix == nil {
      target.append(contentsOf: path)
    } else {
      PathPrefix.appendOriginPath(
        path.span, stripping: stripPrefix, adding: addPrefix, to: &target)
    }
    if let query {
      target.append(UInt8(ascii: "?"))
      target.append(contentsOf: query)
    }
    return target
  }

  /// Path and query by which a client asks for what the origin knows by this target: `originTarget`
  /// backwards. nil: nothing that a client asks of this route gets there.
  func clientTarget(ofOrigin target: [UInt8]) -> [UInt8]? {
    if basePath.isEmpty, stripPrefix == nil, addPrefix == nil { return target }
    let pathEnd = target.firstIndex(of: UInt8(ascii: "?")) ?? target.count
    guard target[..<pathEnd].starts(with: basePath) else { return nil }
    let path = Array(target[basePath.count..<pathEnd])
    var client: [UInt8] = []
    PathPrefix.appendOriginPath(
      path.span, stripping: addPrefix, adding: stripPrefix, to: &client)
    let query = target[pathEnd...]
    // What does not begin with the prefix goes on as it is, and so does not come back.
    guard originTarget(path: client, query: nil).elementsEqual(target[..<pathEnd]) else {
      return nil
    }
    return client + query
  }
}
