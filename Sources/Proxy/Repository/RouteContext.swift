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
  let upstreamName: [UInt8]
  let upstreamAuthority: [UInt8]
  /// The authority that the origin's Host carries; nil: the client's own.
  let hostToOrigin: [UInt8]?
  let basePath: [UInt8]
  /// Names of request fields, in lower case, that reach the origin although their kind is dropped.
  let forwardHeaders: Set<String>
  /// Response fields that take the place of Cache-Control.
  let targetedCacheControl: [String]
  /// The largest body that is stored, in bytes.
  let maxEntrySizeBytes: UInt64
  /// `; detail=cache-first` of Cache-Status.
  let detail: [UInt8]
  /// The same with the Via line behind it.
  let detailAndVia: [UInt8]

  init(
    slot: Int, name: String, pattern: RoutePattern?, policy: Policy, options: RouteOptions,
    upstream: Upstream, endpoint: OriginEndpoint, maxEntrySizeBytes: UInt64
  ) {
    self.slot = slot
    self.name = name
    self.pattern = pattern
    identifier = name.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    self.policy = policy
    self.options = options
    self.endpoint = endpoint
    upstreamName = Array(upstream.name.utf8)
    upstreamAuthority = Array(upstream.authority.utf8)
    hostToOrigin = upstream.hostHeader == .client ? nil : upstreamAuthority
    basePath = Array(upstream.basePath.utf8)
    // What is in the key may reach the origin.
    forwardHeaders = Set(options.forwardHeaders + options.key.headers)
    targetedCacheControl = upstream.targetedCacheControl
    self.maxEntrySizeBytes = min(policy.maxEntrySizeBytes ?? .max, maxEntrySizeBytes)
    detail = Array("; detail=\(policy.strategy.name)".utf8)
    detailAndVia = detail + Array("\r\nVia: 1.1 larder".utf8)
  }
}
