/// The document of `GET /stats`, as far as tests read it.
public struct ProxyStatistics: Decodable, Sendable {
  /// What became of answers; each is one of these.
  public struct Counts: Equatable, Sendable, CustomStringConvertible {
    public var hits = 0
    public var stale = 0
    public var misses = 0
    public var passes = 0
    public var errors = 0

    public init(hits: Int = 0, stale: Int = 0, misses: Int = 0, passes: Int = 0, errors: Int = 0) {
      self.hits = hits
      self.stale = stale
      self.misses = misses
      self.passes = passes
      self.errors = errors
    }

    public var total: Int { hits + stale + misses + passes + errors }

    public var description: String {
      "hits \(hits) stale \(stale) misses \(misses) passes \(passes) errors \(errors)"
    }
  }

  public struct Route: Decodable, Sendable {
    public let strategy: String
    public let requests: Int
    public let hits: Int
    public let stale: Int
    public let misses: Int
    public let passes: Int
    public let errors: Int
    public let collapsed: Int
    public let hitRatio: Double
    public let entries: Int
    public let bytesFromStore: Int
    public let bytesFromOrigin: Int

    public var counts: Counts {
      Counts(hits: hits, stale: stale, misses: misses, passes: passes, errors: errors)
    }
  }

  public struct Bytes: Decodable, Sendable {
    public let toClients: Int
    public let fromStore: Int
    public let fromOrigin: Int
  }

  public struct Origin: Decodable, Sendable {
    public let requests: Int
    public let failures: Int
    public let connectionsOpened: Int
    public let reused: Int
    public let resumed: Int
  }

  public struct Upstream: Decodable, Sendable, Equatable {
    public let active: Int
    public let queued: Int
    public let refused: Int
    public let isDown: Bool

    public init(active: Int = 0, queued: Int = 0, refused: Int = 0, isDown: Bool = false) {
      self.isDown = isDown
      self.active = active
      self.queued = queued
      self.refused = refused
    }
  }

  public struct Store: Decodable, Sendable {
    public let entries: Int
    public let bytes: Int
    public let maxBytes: Int
    public let evicted: Int
    public let expired: Int
    public let damaged: Int
    public let variantsDropped: Int
    public let purged: Int
    public let state: String
    public let notStored: [String: Int]
  }

  public struct Connections: Decodable, Sendable {
    public let open: Int
    public let accepted: Int
    public let refused: Int
  }

  public struct Config: Decodable, Sendable {
    public struct Refusal: Decodable, Sendable {
      public let at: String
      public let errors: [String]
    }
    public let generation: Int
    public let loadedAt: String
    public let lastError: Refusal?
    public let needsRestart: [String]
  }

  public let version: String
  public let requests: Int
  public let hits: Int
  public let stale: Int
  public let misses: Int
  public let passes: Int
  public let errors: Int
  public let hitRatio: Double
  public let collapsed: Int
  public let bytes: Bytes
  public let origin: Origin
  public let upstreams: [String: Upstream]
  public let store: Store
  public let connections: Connections
  public let config: Config
  public let routes: [String: Route]

  public var counts: Counts {
    Counts(hits: hits, stale: stale, misses: misses, passes: passes, errors: errors)
  }
}
