public import CachePolicy

/// What policies.json says, checked and complete: every default filled in, every name resolved.
///
/// Made by `ConfigurationLoader` (or by a test, field by field); read by the server, which never
/// sees the file's text. A value: a reload makes a new one and swaps it whole.
public struct Configuration: Sendable {
  public var listen: [ListenAddress]
  /// How many event loops serve; 0: one per core.
  public var loops: Int
  /// The authority by which apps reach the proxy, for `warm` paths; nil: the first listen address.
  public var publicAuthority: String?
  public var admin: Admin
  public var store: Store
  /// In the file's order; routes name them by their index here.
  public var upstreams: [Upstream]
  public var limits: Limits
  /// What requests get that no route takes.
  public var defaults: Defaults
  /// In the file's order: the first that matches wins.
  public let routes: [Route]
  /// What must come of which requests; see `PolicyTest`.
  public var tests: [PolicyTest]
  /// Finds a route by method, host and path; its answers are indices into `routes`.
  public let routeTable: RouteTable
  /// What the file said of where the values come from; for printing.
  var provenance = ConfigurationProvenance()

  public init(
    listen: [ListenAddress] = [ListenAddress(host: "127.0.0.1", port: 8080)],
    loops: Int = 0,
    publicAuthority: String? = nil,
    admin: Admin = Admin(),
    store: Store = Store(),
    upstreams: [Upstream],
    limits: Limits = Limits(),
    defaults: Defaults = Defaults(),
    routes: [Route] = [],
    tests: [PolicyTest] = []
  ) {
    self.listen = listen
    self.loops = loops
    self.publicAuthority = publicAuthority
    self.admin = admin
    self.store = store
    self.upstreams = upstreams
    self.limits = limits
    self.defaults = defaults
    self.routes = routes
    self.tests = tests
    routeTable = RouteTable(patterns: routes.map(\.pattern))
  }

  /// A host name or address literal (IPv6 without brackets) and a TCP port; port 0 lets the system
  /// choose one.
  public struct ListenAddress: Sendable, Equatable, Hashable, CustomStringConvertible {
    public var host: String
    public var port: UInt16

    public init(host: String, port: UInt16) {
      self.host = host
      self.port = port
    }

    /// `127.0.0.1:8080`, `[::1]:8080`.
    public var description: String {
      host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
  }

  public struct Admin: Sendable, Equatable {
    /// Empty: there is no admin listener.
    public var listen: [ListenAddress]
    /// What callers send as a bearer token; nil: none is asked for.
    public var token: String?

    public init(listen: [ListenAddress] = [], token: String? = nil) {
      self.listen = listen
      self.token = token
    }
  }

  public struct Store: Sendable, Equatable {
    /// A directory; a relative one is taken from the folder of policies.json.
    public var path: String
    public var maxSizeBytes: UInt64
    /// The largest body that any route may store.
    public var maxEntrySizeBytes: UInt64

    public init(
      path: String = "larder-data", maxSizeBytes: UInt64 = 1 << 30,
      maxEntrySizeBytes: UInt64 = 64 << 20
    ) {
      self.path = path
      self.maxSizeBytes = maxSizeBytes
      self.maxEntrySizeBytes = maxEntrySizeBytes
    }
  }

  public struct Defaults: Sendable, Equatable {
    /// nil: a request that no route takes is answered 404.
    public var upstreamIndex: Int?
    public var policy: Policy
    public var options: RouteOptions

    public init(
      upstreamIndex: Int? = nil, policy: Policy = Policy(), options: RouteOptions = RouteOptions()
    ) {
      self.upstreamIndex = upstreamIndex
      self.policy = policy
      self.options = options
    }
  }
}

/// One origin and how it is asked.
public struct Upstream: Sendable, Equatable {
  public enum Scheme: String, Sendable, CaseIterable {
    case http, https

    public var defaultPort: UInt16 { self == .http ? 80 : 443 }
  }

  /// Whose name the origin's `Host` carries.
  public enum HostHeader: String, Sendable, CaseIterable {
    /// The upstream's own authority, as its URL has it.
    case upstream
    /// The authority that the client asked for.
    case client
  }

  public var name: String
  public var scheme: Scheme
  /// A host name in lower case, or an address literal (IPv6 without brackets).
  public var host: String
  public var port: UInt16
  /// What goes before every request's path: empty, or `/…` without a slash at its end.
  public var basePath: String
  public var connectTimeoutMilliseconds: Int64
  public var firstByteTimeoutMilliseconds: Int64
  public var totalTimeoutMilliseconds: Int64
  /// How often a request that may be repeated safely is tried again.
  public var retries: Int
  public var hostHeader: HostHeader
  /// The URL of a proxy between here and the origin; nil: none, whatever the environment says.
  public var proxy: String?
  /// Response fields that take the place of Cache-Control (RFC 9213), the first that is there.
  public var targetedCacheControl: [String]
  /// How many requests it is sent at once, by the whole process; nil: any number.
  public var maxConcurrent: Int?
  /// How many wait for one of those to end; one more is refused.
  public var maxQueue: Int
  public var queueTimeoutMilliseconds: Int64

  public static let targetedCacheControlDefault = ["Larder-Cache-Control", "CDN-Cache-Control"]

  public init(
    name: String, scheme: Scheme = .http, host: String, port: UInt16, basePath: String = "",
    connectTimeoutMilliseconds: Int64 = 2_000, firstByteTimeoutMilliseconds: Int64 = 10_000,
    totalTimeoutMilliseconds: Int64 = 60_000, retries: Int = 1,
    hostHeader: HostHeader = .upstream, proxy: String? = nil,
    targetedCacheControl: [String] = Upstream.targetedCacheControlDefault,
    maxConcurrent: Int? = nil, maxQueue: Int = 1_000, queueTimeoutMilliseconds: Int64 = 1_000
  ) {
    self.name = name
    self.scheme = scheme
    self.host = host
    self.port = port
    self.basePath = basePath
    self.connectTimeoutMilliseconds = connectTimeoutMilliseconds
    self.firstByteTimeoutMilliseconds = firstByteTimeoutMilliseconds
    self.totalTimeoutMilliseconds = totalTimeoutMilliseconds
    self.retries = retries
    self.hostHeader = hostHeader
    self.proxy = proxy
    self.targetedCacheControl = targetedCacheControl
    self.maxConcurrent = maxConcurrent
    self.maxQueue = maxQueue
    self.queueTimeoutMilliseconds = queueTimeoutMilliseconds
  }

  /// `api.example.com`, `127.0.0.1:8090`, `[::1]:8090`: the scheme's own port is left out.
  public var authority: String {
    let bracketed = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
    return port == scheme.defaultPort ? bracketed : "\(bracketed):\(port)"
  }

  /// Scheme, authority and base path: a request's path is appended to it as it is.
  public var baseURL: String { "\(scheme.rawValue)://\(authority)\(basePath)" }
}

/// A match and its policy.
public struct Route: Sendable, Equatable {
  /// Unique among the routes; it labels the stats.
  public var name: String
  public var pattern: RoutePattern
  public var upstreamIndex: Int
  public var policy: Policy
  public var options: RouteOptions

  public init(
    name: String, pattern: RoutePattern, upstreamIndex: Int, policy: Policy = Policy(),
    options: RouteOptions = RouteOptions()
  ) {
    self.name = name
    self.pattern = pattern
    self.upstreamIndex = upstreamIndex
    self.policy = policy
    self.options = options
  }
}

/// What a route (or `defaults`) says beyond the policy of its copies: how copies are told apart,
/// what marks them, and how the origin is asked.
public struct RouteOptions: Sendable, Equatable {
  /// Names of request fields, in lower case, that reach the origin although Larder drops their kind
  /// (`X-Forwarded-*`, `X-Original-*`, `X-Rewrite-*`, `X-HTTP-Method*`, `X-Method-Override`).
  public var forwardHeaders: [String]
  public var key: KeyRecipe
  /// nil: copies are everybody's.
  public var perUser: UserIdentity?
  public var tags: [TagTemplate]
  public var invalidates: [InvalidationTarget]
  /// Whether changes of this route's bodies appear on the event feed.
  public var notify: Bool
  /// The strategies that a client may ask for.
  public var clientStrategies: [Strategy]
  /// Taken off the path that goes to the origin: `/api`; nil: nothing.
  public var stripPrefix: String?
  /// Put before the path that goes to the origin: `/v2`; nil: nothing.
  public var addPrefix: String?
  /// What is fetched at start and kept warm: paths, or absolute URLs as apps ask for them.
  public var warm: [String]

  public init(
    forwardHeaders: [String] = [], key: KeyRecipe = KeyRecipe(), perUser: UserIdentity? = nil,
    tags: [TagTemplate] = [], invalidates: [InvalidationTarget] = [], notify: Bool = false,
    clientStrategies: [Strategy] = [], stripPrefix: String? = nil, addPrefix: String? = nil,
    warm: [String] = []
  ) {
    self.forwardHeaders = forwardHeaders
    self.key = key
    self.perUser = perUser
    self.tags = tags
    self.invalidates = invalidates
    self.notify = notify
    self.clientStrategies = clientStrategies
    self.stripPrefix = stripPrefix
    self.addPrefix = addPrefix
    self.warm = warm
  }
}
