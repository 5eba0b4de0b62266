/// Where a stored copy stands now, for this route and this client: the facts that
/// `StrategyMachine` chooses by.
///
/// A policy's windows and lifetimes count here, not in the record. What the origin forbids goes
/// before what a route or a client allows, unless the route overrules it by name.
public struct CopyState: Sendable, Equatable {
  /// current_age of RFC 9111 §4.2.3: what `Age` shows, whatever the route's ttl.
  public var ageMilliseconds: Int64
  /// The whole freshness lifetime that holds for the route; 0 where there is none.
  public var lifetimeMilliseconds: Int64
  /// What is left of it; 0 or less: stale, by so much. A fixed ttl counts from the receipt, the
  /// origin's own lifetime from the origin.
  public var timeToLiveMilliseconds: Int64
  /// May serve without a word from the network: fresh for the route, not `no-cache`, and good
  /// enough for the client's max-age, min-fresh and no-cache.
  public var isFresh: Bool
  /// Fresh for the route and not `no-cache`, whatever the client asks.
  public var isFreshForRoute: Bool
  /// Stale, but the client's max-stale covers it and nothing forbids it.
  public var maxStaleAllows: Bool
  /// Stale, within the window in which it serves while one refresh runs.
  public var isInStaleWhileRevalidate: Bool
  /// May serve where the network fails: fresh for the route, or stale and within the window.
  public var mayServeOnFailure: Bool
  /// The origin forbids any stale use: `no-cache`, `must-revalidate`, `proxy-revalidate`, or an
  /// `s-maxage` without windows of the origin's own beside it.
  public var isStaleForbidden: Bool
  /// A stored error: never served stale.
  public var isError: Bool
  public var hasValidator: Bool
  /// Beyond the route's `keep`: as if there were no copy.
  public var isPastKeep: Bool
}

extension Freshness {
  /// Puts policy, client and time beside what is remembered of a copy.
  public static func copyState(
    of metadata: StoredMetadata, policy: borrowing Policy, request: RequestDirectives,
    nowMilliseconds: Int64
  ) -> CopyState {
    let lifetime = effectiveLifetime(of: metadata, policy: policy)
    let residentMilliseconds = max(0, nowMilliseconds - metadata.responseTimeMilliseconds)
    let age = metadata.initialAgeMilliseconds + residentMilliseconds
    let timeToLive = lifetime.leftAtReceiptMilliseconds - residentMilliseconds
    let staleness = max(0, -timeToLive)
    let forbidden = Forbidden(metadata, ignoring: policy.ignoreOrigin)
    let windows = Windows(metadata, policy: policy, forbidden: forbidden)
    let isError = metadata.status >= 400
    let isPastKeep = policy.keepMilliseconds.map { residentMilliseconds >= $0 } ?? false
    let isStale = timeToLive <= 0 || metadata.flags.contains(.outdated)
    let isFreshForRoute = !isStale && !forbidden.anyUse && !isPastKeep
    let staleMayServe = isStale && !forbidden.staleUse && !isError && !isPastKeep
    let client = ClientWish(request, ageMilliseconds: age, timeToLiveMilliseconds: timeToLive)
    return CopyState(
      ageMilliseconds: age, lifetimeMilliseconds: lifetime.milliseconds,
      timeToLiveMilliseconds: timeToLive,
      isFresh: isFreshForRoute && client.acceptsFresh,
      isFreshForRoute: isFreshForRoute,
      maxStaleAllows: staleMayServe && !forbidden.beyondOriginWindows
        && request.maxStaleSeconds != nil && client.acceptsStale,
      isInStaleWhileRevalidate: staleMayServe && client.acceptsStale
        && staleness < windows.staleWhileRevalidateMilliseconds,
      mayServeOnFailure: isFreshForRoute
        || staleMayServe && staleness < windows.staleIfErrorMilliseconds,
      isStaleForbidden: forbidden.staleUse, isError: isError,
      hasValidator: metadata.flags.contains(.hasValidator), isPastKeep: isPastKeep)
  }

  /// How long after freshness ends a copy may serve, in milliseconds; 0 where it may not.
  public struct StaleWindows: Sendable, Equatable {
    public var staleWhileRevalidateMilliseconds: Int64
    /// `Int64.max`: at any age.
    public var staleIfErrorMilliseconds: Int64
  }

  /// The windows that hold for a copy on a route, what the origin forbids taken into account.
  public static func staleWindows(
    of metadata: StoredMetadata, policy: borrowing Policy
  ) -> StaleWindows {
    let forbidden = Forbidden(metadata, ignoring: policy.ignoreOrigin)
    guard !forbidden.staleUse, metadata.status < 400 else {
      return StaleWindows(staleWhileRevalidateMilliseconds: 0, staleIfErrorMilliseconds: 0)
    }
    let windows = Windows(metadata, policy: policy, forbidden: forbidden)
    return StaleWindows(
      staleWhileRevalidateMilliseconds: windows.staleWhileRevalidateMilliseconds,
      staleIfErrorMilliseconds: windows.staleIfErrorMilliseconds)
  }

  /// The lifetime that holds for the route, and what was left of it when the copy came.
  ///
  /// What a policy says counts from the receipt: an Age or Date of the origin's does not shorten
  /// it, and `min` and `max` bound what is left then. Errors follow `negative` or the origin,
  /// never ttl; a route with a ttl takes none of the origin's guesses for them either.
  static func effectiveLifetime(
    of metadata: StoredMetadata, policy: borrowing Policy
  ) -> (milliseconds: Int64, leftAtReceiptMilliseconds: Int64) {
    let initialAge = metadata.initialAgeMilliseconds
    let none = (milliseconds: Int64(0), leftAtReceiptMilliseconds: -initialAge)
    let origin = metadata.originLifetimeMilliseconds
    let byOrigin =
      origin < 0 ? none : (milliseconds: origin, leftAtReceiptMilliseconds: origin - initialAge)
    let isExplicit = metadata.flags.contains(.explicitLifetime)
    if metadata.status >= 400 {
      if let negative = policy.negativeLifetimeMilliseconds(status: metadata.status) {
        return (negative, negative)
      }
      return isExplicit || policy.timeToLive == .origin ? byOrigin : none
    }
    switch policy.timeToLive {
    case .origin: return byOrigin
    case .fixed(let fixed): return (fixed, fixed)
    case .clamped(let ifAbsent, let low, let high):
      var (lifetime, left) = byOrigin
      if !isExplicit, let ifAbsent { (lifetime, left) = (ifAbsent, ifAbsent) }
      if let low { (lifetime, left) = (max(lifetime, low), max(left, low)) }
      if let high { (lifetime, left) = (min(lifetime, high), min(left, high)) }
      return (lifetime, left)
    }
  }

  /// What the origin forbids, after the words that the route overrules.
  struct Forbidden {
    /// Even a fresh copy needs validation.
    var anyUse: Bool
    var staleUse: Bool
    /// Stale use is limited to the windows that the origin gave itself, beside its s-maxage.
    var beyondOriginWindows: Bool

    init(_ metadata: StoredMetadata, ignoring ignored: OriginWords) {
      let flags = metadata.flags
      anyUse =
        flags.contains(.contradicted)
        || flags.contains(.noCache) && !ignored.contains(.noCache)
      beyondOriginWindows = flags.contains(.sharedMaxAge) && !ignored.contains(.sharedMaxAge)
      let hasWindows =
        metadata.originStaleWhileRevalidateMilliseconds >= 0
        || metadata.originStaleIfErrorMilliseconds >= 0
      staleUse =
        anyUse || (flags.contains(.mustRevalidate) && !ignored.contains(.mustRevalidate))
        || (flags.contains(.proxyRevalidate) && !ignored.contains(.proxyRevalidate))
        || (beyondOriginWindows && !hasWindows)
    }
  }

  /// How long after freshness ends a copy may serve: the route's windows, else the origin's own.
  struct Windows {
    var staleWhileRevalidateMilliseconds: Int64
    var staleIfErrorMilliseconds: Int64

    init(_ metadata: StoredMetadata, policy: borrowing Policy, forbidden: Forbidden) {
      let originRefresh = max(0, metadata.originStaleWhileRevalidateMilliseconds)
      let originError = max(0, metadata.originStaleIfErrorMilliseconds)
      var refresh = policy.staleWhileRevalidateMilliseconds ?? originRefresh
      // network-first lives on old copies: any age, unless the route says less.
      var error =
        policy.staleIfErrorMilliseconds
        ?? (policy.strategy == .networkFirst ? Int64.max : originError)
      if forbidden.beyondOriginWindows {
        refresh = min(refresh, originRefresh)
        error = min(error, originError)
      }
      staleWhileRevalidateMilliseconds = refresh
      staleIfErrorMilliseconds = error
    }
  }

  /// What the client's directives let it be given (RFC 9111 §5.2.1).
  private struct ClientWish {
    var acceptsFresh: Bool
    var acceptsStale: Bool

    init(_ request: RequestDirectives, ageMilliseconds: Int64, timeToLiveMilliseconds: Int64) {
      // max-age=0 is how a client says "ask the origin", even of a copy that came this instant.
      let isYoung =
        request.maxAgeSeconds.map { $0 > 0 && ageMilliseconds <= $0 * 1000 } ?? true
      let staysFresh = request.minFreshSeconds.map { timeToLiveMilliseconds >= $0 * 1000 } ?? true
      acceptsFresh = !request.noCache && isYoung && staysFresh
      // Without a word of its own a client leaves staleness to the route; with max-age or
      // min-fresh it takes a stale answer only as far as its max-stale goes.
      let staleness = -timeToLiveMilliseconds
      let isWithin =
        request.maxStaleSeconds.map {
          $0 == ASCII.deltaSecondsMax || staleness <= $0 * 1000
        } ?? (request.maxAgeSeconds == nil)
      acceptsStale = acceptsFresh && isWithin
    }
  }
}
