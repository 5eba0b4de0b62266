/// Whether a response may be stored, and what of its head is (RFC 9111 §3, and the route's policy).
///
/// Every refusal has its `NotStoredReason`. The order of the questions is the order of the reasons:
/// the route's own choice first, then what the two messages forbid, then whether a copy could ever
/// serve. It says nothing of bodies; the fill and the store do. Called once a response's head.
public enum Storability {
  /// Whose copy the key makes it (`perUser`).
  public enum KeyedIdentity: Sendable, Equatable {
    /// Everybody's.
    case none
    /// One user's, keyed by Authorization.
    case authorization
    /// One user's, keyed by another field or a cookie.
    case other
  }

  /// nil: store. `metadata` is what `Freshness.originWords` made of the response, and
  /// `requestDirectives` are those that the route lets count.
  public static func decide(
    method: Method, request: Fields, requestDirectives: RequestDirectives,
    status: UInt16, response: Fields, responseDirectives: ResponseDirectives,
    policy: Policy, metadata: StoredMetadata, identity: KeyedIdentity = .none
  ) -> NotStoredReason? {
    guard policy.strategy.writesStore else { return .strategy }
    guard method == .get else { return .method }
    if let reason = refusal(ofStatus: status) { return reason }
    if requestDirectives.noStore { return .requestNoStore }
    if let reason = refusal(
      status: status, response, responseDirectives, policy.ignoreOrigin, identity)
    {
      return reason
    }
    let mayShare =
      !request.contains(.authorization) || identity == .authorization
      || policy.ignoreOrigin.contains(.authorization)
      // RFC 9111 §3.5: the three directives by which an origin lets an authorized answer be shared.
      || responseDirectives.isPublic || responseDirectives.mustRevalidate
      || responseDirectives.sharedMaxAgeSeconds != nil
    if !mayShare { return .authorization }
    if isEventStream(response) { return .eventStream }
    return usefulness(status: status, responseDirectives, policy, metadata)
  }

  /// Whether the answer to a POST may be kept for later GETs (RFC 9110 §9.3.3): its origin gave it an
  /// explicit lifetime, and says by Content-Location that it is what a GET of the target would bring
  /// (`namesItsTarget`). Whether such an answer to a GET may be stored, `decide` tells as ever.
  public static func answersLaterGets(
    status: UInt16, metadata: StoredMetadata, namesItsTarget: Bool
  ) -> Bool {
    status == 200 && namesItsTarget && metadata.flags.contains(.explicitLifetime)
  }

  /// Statuses that never stand for the whole answer to another request.
  private static func refusal(ofStatus status: UInt16) -> NotStoredReason? {
    switch status {
    case 206: .partialContent
    // The answer to a range, which the key does not hold.
    case 416: .range
    // Answers to a condition, or to a proxy's own credentials, and what is no final status.
    case 304, 407, 412, 0..<200, 600...: .status
    default: nil
    }
  }

  /// What the response itself forbids.
  private static func refusal(
    status: UInt16, _ response: Fields, _ directives: ResponseDirectives,
    _ ignored: OriginWords, _ identity: KeyedIdentity
  ) -> NotStoredReason? {
    if directives.mustUnderstand {
      // RFC 9111 §5.2.2.3: who understands the status ignores the no-store beside it.
      if !StatusRules.isUnderstood(status) { return .status }
    } else if directives.noStore, !ignored.contains(.noStore) {
      return .noStore
    }
    if directives.isPrivate, identity == .none, !ignored.contains(.private) { return .private }
    if response.contains(.setCookie), !ignored.contains(.setCookie),
      !leavesOutSetCookie(directives)
    {
      return .setCookie
    }
    if Vary.isAny(response), !ignored.contains(.vary) { return .varyAny }
    return nil
  }

  /// `private="set-cookie"` and `no-cache="set-cookie"`: the origin itself says that the rest may
  /// be shared without it (RFC 9111 §5.2.2.4, §5.2.2.7).
  private static func leavesOutSetCookie(_ directives: ResponseDirectives) -> Bool {
    directives.fieldsNotStored.contains { ASCII.equalsIgnoringCase($0.span, "set-cookie") }
  }

  /// Whether the status may be kept on these grounds, and whether the copy could ever serve.
  private static func usefulness(
    status: UInt16, _ directives: ResponseDirectives, _ policy: Policy, _ metadata: StoredMetadata
  ) -> NotStoredReason? {
    let isExplicit = metadata.flags.contains(.explicitLifetime)
    if status >= 400 {
      let negative = policy.negativeLifetimeMilliseconds(status: status)
      // A route without a ttl is RFC 9111 alone, with its guesses (§4.2.2).
      let isGuessed = metadata.flags.contains(.heuristic) && policy.timeToLive == .origin
      guard negative != nil || isExplicit || isGuessed else { return .status }
    } else if !isExplicit, !directives.isPublic, !StatusRules.isUnderstood(status) {
      return .status
    } else if !isExplicit, !directives.isPublic, !StatusRules.isHeuristicallyCacheable(status),
      !givesLifetime(policy.timeToLive)
    {
      return .status
    }
    return couldServe(status: status, policy, metadata) ? nil : .noLifetime
  }

  private static func givesLifetime(_ timeToLive: TimeToLive) -> Bool {
    switch timeToLive {
    case .origin: false
    case .fixed: true
    case .clamped(let ifAbsent, let low, _): ifAbsent != nil || low != nil
    }
  }

  /// Whether the copy will be of use to anyone: fresh, by validation, or stale within a window.
  private static func couldServe(
    status: UInt16, _ policy: Policy, _ metadata: StoredMetadata
  ) -> Bool {
    let forbidden = Freshness.Forbidden(metadata, ignoring: policy.ignoreOrigin)
    let lifetime = Freshness.effectiveLifetime(of: metadata, policy: policy)
    if lifetime.leftAtReceiptMilliseconds > 0, !forbidden.anyUse { return true }
    // An error is kept for its lifetime alone.
    if status >= 400 { return false }
    if metadata.flags.contains(.hasValidator) { return true }
    // These two keep a copy for the day when the network is gone.
    if policy.strategy == .networkFirst || policy.strategy == .networkAndStore { return true }
    let windows = Freshness.Windows(metadata, policy: policy, forbidden: forbidden)
    return !forbidden.staleUse
      && max(windows.staleWhileRevalidateMilliseconds, windows.staleIfErrorMilliseconds) > 0
  }

  private static func isEventStream(_ response: Fields) -> Bool {
    guard let index = response.firstIndex(of: .contentType) else { return false }
    let value = response.bytes.span.extracting(response.lines[index].value)
    var position = 0
    guard let type = ASCII.nextListMember(value, &position, separator: 0x3B) else { return false }
    return ASCII.equalsIgnoringCase(value.extracting(type), "text/event-stream")
  }

  /// The part of a response's head that is stored (RFC 9111 §3.1).
  ///
  /// Left out: what is for one connection, what `private="…"` and `no-cache="…"` name, and Age (it
  /// is kept as a number and written anew). Set-Cookie is there only where the route overrules it
  /// by name, and is then replayed as it is.
  public static func storedFields(
    of response: Fields, directives: ResponseDirectives
  ) -> Fields {
    var stored = response
    stored.removeHopByHop()
    stored.remove(.age)
    for name in directives.fieldsNotStored { stored.remove(named: name.span) }
    return stored
  }
}
