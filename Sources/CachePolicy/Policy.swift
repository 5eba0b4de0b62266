/// What a route asks for: the strategy and its numbers, after defaults are filled in.
///
/// A value with no references to the route's name or match: `RouteTable` finds a route, and this
/// says what is done with it. Made by Configuration, read by Freshness, Storability and
/// StrategyMachine. All durations are in milliseconds.
public struct Policy: Sendable, Equatable {
  public var strategy: Strategy
  public var timeToLive: TimeToLive
  /// How long after freshness ends a copy may serve while one refresh runs; nil: the origin's own
  /// `stale-while-revalidate`.
  public var staleWhileRevalidateMilliseconds: Int64?
  /// How long after freshness ends a copy may serve when the network fails; nil: the origin's own
  /// `stale-if-error` (network-first: any age).
  public var staleIfErrorMilliseconds: Int64?
  public var ignoreOrigin: OriginWords
  /// Lifetimes of error statuses, in place of the origin's own.
  public var negative: [NegativeLifetime]
  /// network-first: how long the network has before the copy serves; nil: no deadline.
  public var deadlineMilliseconds: Int64?
  /// How long a copy is kept after its receipt; nil: until space is needed.
  public var keepMilliseconds: Int64?
  /// The largest body that is stored, in bytes; nil: the store's own limit.
  public var maxEntrySizeBytes: UInt64?
  /// How many variants of one key are kept; nil: the store's own limit.
  public var maxVariants: Int?
  /// Which request directives count.
  public var clientMay: ClientWords
  public var range: RangeMiss
  /// What becomes of a fetch whose clients have all left.
  public var whenAbandoned: AbandonedFill

  public init(
    strategy: Strategy = .networkOnly,
    timeToLive: TimeToLive = .origin,
    staleWhileRevalidateMilliseconds: Int64? = nil,
    staleIfErrorMilliseconds: Int64? = nil,
    ignoreOrigin: OriginWords = [],
    negative: [NegativeLifetime] = [],
    deadlineMilliseconds: Int64? = nil,
    keepMilliseconds: Int64? = nil,
    maxEntrySizeBytes: UInt64? = nil,
    maxVariants: Int? = nil,
    clientMay: ClientWords = .all,
    range: RangeMiss = .pass,
    whenAbandoned: AbandonedFill = .standard
  ) {
    self.strategy = strategy
    self.timeToLive = timeToLive
    self.staleWhileRevalidateMilliseconds = staleWhileRevalidateMilliseconds
    self.staleIfErrorMilliseconds = staleIfErrorMilliseconds
    self.ignoreOrigin = ignoreOrigin
    self.negative = negative
    self.deadlineMilliseconds = deadlineMilliseconds
    self.keepMilliseconds = keepMilliseconds
    self.maxEntrySizeBytes = maxEntrySizeBytes
    self.maxVariants = maxVariants
    self.clientMay = clientMay
    self.range = range
    self.whenAbandoned = whenAbandoned
  }

  /// The lifetime that `negative` gives this status: an exact status goes before its class.
  public func negativeLifetimeMilliseconds(status: UInt16) -> Int64? {
    var ofClass: Int64?
    for entry in negative {
      switch entry.match {
      case .status(status): return entry.lifetimeMilliseconds
      case .statusClass(let digit) where UInt16(digit) == status / 100:
        ofClass = ofClass ?? entry.lifetimeMilliseconds
      default: continue
      }
    }
    return ofClass
  }
}

/// The six named ways in which a repository answers.
public enum Strategy: UInt8, Sendable, CaseIterable {
  case cacheFirst
  case staleWhileRevalidate
  case networkFirst
  case networkOnly
  case networkAndStore
  case cacheOnly

  /// The word in policies.json, Cache-Status and the stats.
  public var name: String {
    switch self {
    case .cacheFirst: "cache-first"
    case .staleWhileRevalidate: "stale-while-revalidate"
    case .networkFirst: "network-first"
    case .networkOnly: "network-only"
    case .networkAndStore: "network-and-store"
    case .cacheOnly: "cache-only"
    }
  }

  public init?(name: String) {
    guard let found = Strategy.allCases.first(where: { $0.name == name }) else { return nil }
    self = found
  }

  /// Whether an answer of the network may go into the store.
  public var writesStore: Bool { self != .networkOnly && self != .cacheOnly }
}

/// What a request for a part does where there is no copy (`range`).
public enum RangeMiss: String, Sendable, CaseIterable {
  /// It goes to the origin as it is, and its answer is not stored.
  case pass
  /// The whole is fetched and stored, and the part served from it.
  case fetchWhole = "fetch-whole"
}

/// The three forms of `ttl`.
public enum TimeToLive: Sendable, Equatable {
  /// Absent: RFC 9111 alone.
  case origin
  /// `"15m"`: the policy decides, counted from the receipt.
  case fixed(milliseconds: Int64)
  /// `{ "default", "min", "max" }`: the origin decides, the policy fills in and clamps.
  case clamped(
    defaultMilliseconds: Int64?, minMilliseconds: Int64?, maxMilliseconds: Int64?)
}

/// One entry of `negative`: an error status, or a class of them, and its lifetime.
public struct NegativeLifetime: Sendable, Equatable {
  public enum Match: Sendable, Equatable {
    case status(UInt16)
    /// 4 for `4xx`, 5 for `5xx`.
    case statusClass(UInt8)
  }
  public var match: Match
  public var lifetimeMilliseconds: Int64

  public init(match: Match, lifetimeMilliseconds: Int64) {
    self.match = match
    self.lifetimeMilliseconds = lifetimeMilliseconds
  }
}

/// The origin's words that a route may overrule, each by name (`ignoreOrigin`).
public struct OriginWords: OptionSet, Sendable, Hashable {
  public let rawValue: UInt16
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  public static let noStore = OriginWords(rawValue: 1 << 0)
  public static let `private` = OriginWords(rawValue: 1 << 1)
  public static let noCache = OriginWords(rawValue: 1 << 2)
  public static let mustRevalidate = OriginWords(rawValue: 1 << 3)
  public static let proxyRevalidate = OriginWords(rawValue: 1 << 4)
  public static let sharedMaxAge = OriginWords(rawValue: 1 << 5)
  public static let setCookie = OriginWords(rawValue: 1 << 6)
  public static let authorization = OriginWords(rawValue: 1 << 7)
  public static let vary = OriginWords(rawValue: 1 << 8)

  /// The words as policies.json spells them, in the order of its reference.
  public static let named: [(name: String, word: OriginWords)] = [
    ("no-store", .noStore), ("private", .private), ("no-cache", .noCache),
    ("must-revalidate", .mustRevalidate), ("proxy-revalidate", .proxyRevalidate),
    ("s-maxage", .sharedMaxAge), ("set-cookie", .setCookie), ("authorization", .authorization),
    ("vary", .vary),
  ]
}
