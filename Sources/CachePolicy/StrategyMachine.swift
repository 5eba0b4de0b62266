/// Decides, event by event, what becomes of one request: the six strategies as a value.
///
/// An event goes in, an action comes out; no sockets, no clock, no memory of bytes. Made by the
/// repository for each request that a route takes, and carried out by it and by the exchange.
/// The table in docs/policies.md ("Strategies") is this file in prose; each of its cells has a test.
public struct StrategyMachine: Sendable {
  /// What of the request bears on the decision.
  public struct Request: Sendable, Equatable {
    public var method: Method
    public var directives: RequestDirectives
    /// It asks for a part (Range): the network's answer is not the whole representation.
    public var hasRange: Bool
    /// If-Match, If-Unmodified-Since: for the origin alone to judge (RFC 9110 §13.1).
    public var hasOriginPrecondition: Bool
    /// It has a place in the store: false where it lacks the identity that the route keeps copies
    /// apart by, and where its key would be too long.
    public var hasKey: Bool

    public init(
      method: Method, directives: RequestDirectives = RequestDirectives(), hasRange: Bool = false,
      hasOriginPrecondition: Bool = false, hasKey: Bool = true
    ) {
      self.method = method
      self.directives = directives
      self.hasRange = hasRange
      self.hasOriginPrecondition = hasOriginPrecondition
      self.hasKey = hasKey
    }
  }

  public enum Action: Sendable, Equatable {
    /// Answer from the copy.
    case serve(CopyUse)
    /// Answer from the copy, and have the network replace it in the background.
    case serveThenRefresh(CopyUse)
    /// Ask the network; its answer may be stored.
    case fetch(Fetch)
    /// Ask the network; its answer is this client's alone and is not stored.
    case pass(ForwardReason)
    /// Send the network's answer on.
    case relay
    /// Go on waiting for the network.
    case wait
    case fail(Failure)
  }

  /// Why a copy serves.
  public enum CopyUse: String, Sendable, Equatable {
    case fresh
    /// Past its freshness, within stale-while-revalidate (or a client's max-stale).
    case stale
    /// The origin confirmed it by 304.
    case confirmed
    /// The network failed, and the copy may stand in.
    case networkFailed
    /// The network's deadline passed.
    case deadline
  }

  public struct Fetch: Sendable, Equatable {
    /// Whether other requests for the key may share this fetch.
    public var isShared: Bool
    /// Whether the copy's validators go along.
    public var isConditional: Bool
    /// Whether the answer is held back while the copy could still take its place.
    public var holdsBack: Bool
    public var deadlineMilliseconds: Int64?
    public var reason: ForwardReason
  }

  /// Why a request goes to the network: the `fwd` words of RFC 9211 §2.2.
  public enum ForwardReason: String, Sendable, Equatable {
    case bypass
    case method
    case uriMiss = "uri-miss"
    /// There are copies of this key, and none is for this request's fields.
    case varyMiss = "vary-miss"
    case request
    case stale
  }

  public enum Failure: String, Sendable, Equatable {
    /// No copy, and the network may not be asked.
    case notStored = "not-stored"
    /// The network failed, and a copy is there that must not serve (must-revalidate and its like).
    case staleForbidden = "stale-forbidden"
    /// The network failed, and no copy may stand in.
    case network
  }

  // Of the policy: its whole would be copied with each request.
  private let strategy: Strategy
  private let policyDeadlineMilliseconds: Int64?
  private let rangeMiss: RangeMiss
  public private(set) var request: Request
  private var copy: CopyState?
  private var missReason = ForwardReason.uriMiss
  private var hasDecided = false

  public init(policy: borrowing Policy, request: Request) {
    strategy = policy.strategy
    policyDeadlineMilliseconds = policy.deadlineMilliseconds
    rangeMiss = policy.range
    self.request = request
  }

  // MARK: Events

  /// The request turned out to have no place in the store; before `requestArrived`.
  public mutating func requestLacksKey() { request.hasKey = false }

  /// Copies are there, and their Vary keeps them all from this request; before `requestArrived`.
  public mutating func onlyOtherVariantsAreStored() { missReason = .varyMiss }

  /// The request is here, and this is the copy that it selects, if there is one.
  public mutating func requestArrived(copy found: CopyState?) -> Action {
    // A copy past the route's `keep` is as good as gone.
    let copy = found?.isPastKeep == true ? nil : found
    // network-and-store never answers from a copy: how the network fails is all that counts.
    self.copy = strategy == .networkAndStore ? nil : copy
    let reason = passReason
    if request.directives.onlyIfCached, reason != .method {
      // RFC 9111 §5.2.1.7: a stored answer or 504, also where no stored answer could serve.
      return reason == nil ? serveWithoutNetwork(copy) : .fail(.notStored)
    }
    if let reason {
      // cache-only asks the network for nothing that it would answer itself.
      guard strategy == .cacheOnly, reason != .method else { return .pass(reason) }
      guard request.hasKey, !request.hasOriginPrecondition else { return .fail(.notStored) }
    }
    switch strategy {
    case .networkOnly: return .pass(.bypass)
    case .cacheOnly: return cacheOnly(copy)
    case .cacheFirst: return cacheFirst(copy)
    case .staleWhileRevalidate: return staleWhileRevalidate(copy)
    case .networkFirst: return networkFirst(copy)
    case .networkAndStore:
      return .fetch(
        Fetch(
          isShared: false, isConditional: false, holdsBack: false, deadlineMilliseconds: nil,
          reason: .bypass))
    }
  }

  /// The origin's head is here. `confirmsCopy`: a 304 to our own validators.
  public mutating func originAnswered(status: UInt16, confirmsCopy: Bool) -> Action {
    guard !hasDecided else { return .wait }
    if confirmsCopy {
      hasDecided = true
      return .serve(.confirmed)
    }
    // The origin says that there is nothing any more: the copy does not stand in for that, nor for
    // the rest of this answer if it breaks off.
    if Invalidation.meansGone(status: status) { copy = nil }
    if status >= 500, mayStandIn {
      hasDecided = true
      return .serve(.networkFailed)
    }
    return .relay
  }

  /// The network gave no answer, or broke its answer off before any of it went out: one of this
  /// status, where its head had come.
  public mutating func originFailed(afterStatus status: UInt16? = nil) -> Action {
    guard !hasDecided else { return .wait }
    if let status, Invalidation.meansGone(status: status) { copy = nil }
    hasDecided = true
    if mayStandIn { return .serve(.networkFailed) }
    return .fail(copy?.isStaleForbidden == true ? .staleForbidden : .network)
  }

  /// The network's time is over and nothing of its answer went out.
  public mutating func deadlinePassed() -> Action {
    guard !hasDecided, mayStandIn else { return .wait }
    hasDecided = true
    return .serve(.deadline)
  }

  /// The copy that was to serve is gone, and nothing is out: the network is asked once more.
  public mutating func copyVanished() {
    copy = nil
    hasDecided = false
  }

  /// The first byte of the network's answer went out: the copy is out of the game.
  public mutating func answerBegan() { hasDecided = true }

  /// Whether the copy may stand in for a network that fails.
  public var mayStandIn: Bool {
    copy?.mayServeOnFailure ?? false
  }

  // MARK: The strategies

  /// What never involves the store: unsafe methods, and requests that forbid or do not fit it.
  private var passReason: ForwardReason? {
    guard request.method == .get || request.method == .head else { return .method }
    if strategy == .networkOnly || !request.hasKey { return .bypass }
    if request.directives.noStore || request.hasOriginPrecondition { return .request }
    return nil
  }

  /// Whether the client asks for more than the policy's freshness: then no stale copy is for it.
  private var clientInsists: Bool {
    let directives = request.directives
    return directives.noCache || directives.maxAgeSeconds != nil
      || directives.minFreshSeconds != nil
  }

  private func serveWithoutNetwork(_ copy: CopyState?) -> Action {
    guard let copy else { return .fail(.notStored) }
    if copy.isFresh { return .serve(.fresh) }
    // What the client said of staleness is in both; a max-stale of its own goes before the route's
    // caution towards those who name an age.
    if copy.maxStaleAllows || !clientInsists && copy.isInStaleWhileRevalidate {
      return .serve(.stale)
    }
    return .fail(.notStored)
  }

  private func cacheOnly(_ copy: CopyState?) -> Action {
    guard let copy else { return .fail(.notStored) }
    if copy.isFresh { return .serve(.fresh) }
    let mayBeStale = copy.isInStaleWhileRevalidate || copy.mayServeOnFailure || copy.maxStaleAllows
    return mayBeStale && !copy.isError ? .serve(.stale) : .fail(.notStored)
  }

  private func cacheFirst(_ copy: CopyState?) -> Action {
    guard let copy else { return fetch(nil, reason: missReason) }
    if copy.isFresh { return .serve(.fresh) }
    if clientInsists { return fetch(copy, reason: copy.isFreshForRoute ? .request : .stale) }
    if copy.isInStaleWhileRevalidate, !copy.isError { return .serveThenRefresh(.stale) }
    if copy.maxStaleAllows, !copy.isError { return .serve(.stale) }
    return fetch(copy, reason: .stale)
  }

  private func staleWhileRevalidate(_ copy: CopyState?) -> Action {
    guard let copy else { return fetch(nil, reason: missReason) }
    if copy.isFresh { return .serveThenRefresh(.fresh) }
    if clientInsists || copy.isStaleForbidden || copy.isError {
      return fetch(copy, reason: copy.isFreshForRoute ? .request : .stale)
    }
    return .serveThenRefresh(.stale)
  }

  private func networkFirst(_ copy: CopyState?) -> Action {
    guard let copy else { return fetch(nil, reason: missReason) }
    let reason: ForwardReason = copy.isFreshForRoute ? .bypass : .stale
    guard case .fetch(var fetch) = fetch(copy, reason: reason) else { return .wait }
    // Without a copy that may stand in, a deadline would only turn a late answer into an error.
    fetch.deadlineMilliseconds = mayStandIn ? policyDeadlineMilliseconds : nil
    return .fetch(fetch)
  }

  private func fetch(_ copy: CopyState?, reason: ForwardReason) -> Action {
    // A part fills the store only where the route has the whole fetched for it.
    let fillsTheStore =
      request.method == .get && (!request.hasRange || rangeMiss == .fetchWhole)
    return .fetch(
      Fetch(
        isShared: fillsTheStore,
        isConditional: fillsTheStore && copy?.hasValidator == true,
        holdsBack: mayStandIn,
        deadlineMilliseconds: nil,
        reason: reason))
  }
}
