/// Every limit of the server, with its default: connections, header blocks, bodies, waits, tables.
///
/// One file, so that a reader sees what bounds what. The fields that policies.json may set carry
/// the same name there (without the unit); `checkRelations()` runs at start and at every reload,
/// because two limits that are fine alone can contradict each other. Durations are milliseconds,
/// sizes bytes.
public struct Limits: Sendable, Equatable {
  // MARK: Clients

  /// Open client connections of the whole process; one more is answered 503 and closed.
  public var connections = 10_000
  /// Open connections to the admin listener, beside those.
  public var adminConnections = 64
  /// Method, target and version of one request; longer: 414.
  public var requestLineBytes = 8 * 1024
  /// A request's or a response's header block, field lines and their line ends; longer: 431, or
  /// 502 from an origin. Trailers have the same limit.
  public var headerBytes = 64 * 1024
  /// Field lines of one header block; more: 431, or 502 from an origin.
  public var headerFields = 100
  /// Ranges in one request; with more the Range is ignored, and the whole is sent.
  public var rangesPerRequest = 16
  /// From a request's first byte to the end of its header block; longer: 408.
  public var headerTimeoutMilliseconds: Int64 = 10_000
  /// How long a body may make no progress, in either direction, before its connection is closed.
  public var bodyStallMilliseconds: Int64 = 30_000
  /// How long a kept-alive connection may wait for its next request.
  public var idleMilliseconds: Int64 = 75_000
  /// At the end of the process: how long running exchanges have to finish.
  public var drainMilliseconds: Int64 = 10_000

  // MARK: Bodies in memory

  /// How much of a request's body waits in memory for the origin to take it.
  public var requestBodyBufferBytes = 256 * 1024
  /// How much of a response waits in memory for a slow client before its source is paused.
  public var responseBufferBytes = 256 * 1024
  /// How much of the answers to pipelined requests is put together for one write.
  public var heldOutputBytes = 64 * 1024
  /// How much of the network's answer is held back while a copy could still take its place.
  public var rescueHoldBytes = 256 * 1024
  /// Bodies up to this size lie in the store beside their head; larger ones in chunks.
  public var inlineBodyBytes = 16 * 1024
  /// One chunk of a larger body, in memory and in the store.
  public var bodyChunkBytes = 64 * 1024

  // MARK: Fills and the store

  /// Fills that run at once; a request that would start one more goes to the origin unshared.
  public var fills = 4_096
  /// Requests that wait for one fill; one more goes to the origin by itself.
  public var fillWaiters = 10_000
  /// Keys remembered as "this answer is not shareable": their requests do not wait for each other.
  public var hitForPassEntries = 8_192
  /// How long such a key is remembered.
  public var hitForPassMilliseconds: Int64 = 120_000
  /// Keys remembered because their refreshes in the background failed: each is tried later and later.
  public var refreshFailureEntries = 8_192
  /// Bodies on their way to the store; above it an answer is not stored.
  public var writeQueueBytes = 64 * 1024 * 1024
  /// A whole cache key: upstream, authority, path and query; longer: passed, not stored.
  public var cacheKeyBytes = 16 * 1024

  /// Entity tags of stored variants in one If-None-Match, the selected copy's among them.
  public var validationTags = 8
  /// Their bytes together; the selected copy's goes along whatever its length.
  public var validationTagBytes = 2 * 1024
  /// A variant with a longer body is not copied where an origin says that it answers another
  /// request too: the origin is asked again then.
  public var copiedVariantBytes = 1024 * 1024
  /// Copies beside the one that answers that one 304 brings up to date.
  public var confirmedVariants = 16

  // MARK: Origins

  /// Connections to one upstream from one loop; requests beyond them wait within their time-outs.
  public var upstreamConnections = 10_000
  /// Idle connections to all upstreams that one loop keeps for reuse.
  public var upstreamIdleConnections = 512
  /// How often a request is tried again at most, whatever `retries` says.
  public var upstreamRetries = 5

  /// How often the rest of one body is asked for at most where it breaks off, within `retries`.
  public var bodyResumptions = 2

  // MARK: The configuration

  /// The size of policies.json.
  public var configurationBytes = 16 * 1024 * 1024
  /// How deep its objects and lists may lie in each other.
  public var configurationDepth = 64

  /// What is said of one file at most; the rest is counted.
  public var diagnostics = 1_000

  public init() {}

  /// What contradicts itself, one sentence each; empty: the limits fit together.
  public func checkRelations() -> [ViolatedRelation] {
    var violated: [ViolatedRelation] = []
    func require(_ holds: Bool, _ fields: [String], _ message: String) {
      if !holds { violated.append(ViolatedRelation(fields: fields, message: message)) }
    }
    require(
      requestLineBytes <= headerBytes, ["requestLineBytes", "headerBytes"],
      "limits.requestLineBytes must not be larger than limits.headerBytes")
    require(
      headerFields * 4 <= headerBytes, ["headerFields", "headerBytes"],
      "limits.headerFields (\(headerFields)) do not fit into limits.headerBytes (\(headerBytes))")
    require(
      requestLineBytes <= cacheKeyBytes, ["requestLineBytes"],
      "limits.requestLineBytes must not be larger than a cache key (\(cacheKeyBytes) bytes)")
    require(
      rescueHoldBytes <= responseBufferBytes, ["rescueHoldBytes", "responseBufferBytes"],
      "limits.rescueHoldBytes must not be larger than limits.responseBufferBytes, where it lies")
    require(
      inlineBodyBytes <= bodyChunkBytes, [],
      "a body beside its head must not be larger than a chunk")
    require(
      bodyChunkBytes <= responseBufferBytes, ["responseBufferBytes"],
      "limits.responseBufferBytes must hold a chunk of a body (\(bodyChunkBytes) bytes)")
    require(
      headerTimeoutMilliseconds <= idleMilliseconds, ["headerTimeout", "idle"],
      "limits.headerTimeout must not be longer than limits.idle")
    return violated
  }

  /// One relation between limits that does not hold.
  public struct ViolatedRelation: Sendable, Equatable {
    /// The fields under `limits` that it is about; empty: it is about fixed limits.
    public var fields: [String]
    /// A whole sentence.
    public var message: String
  }
}
