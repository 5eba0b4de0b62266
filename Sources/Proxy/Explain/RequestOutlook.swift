internal import Backends
internal import CachePolicy

/// What the data path would make of a request before it looks into the store: every step of
/// `Repository`, by the same functions, with what came of each kept.
///
/// Made for `explain` and for the tests in policies.json. Pure: no store, no network, no clock.
struct RequestOutlook {
  let head: RequestHead
  /// In normal form; as it came where the request is refused.
  let path: [UInt8]
  /// The answer of our own that the request gets, before any route or for want of one.
  let refusal: Problem?
  /// The routes of the file that were tried and do not take it, where they were asked for.
  let passed: [RouteTable.PassedRoute]
  /// nil: it is refused.
  let routed: Routed?

  struct Routed {
    /// In its own strategy.
    let asWritten: RouteContext
    /// In the strategy that answers.
    let route: RouteContext
    /// In the file's order; nil: the defaults.
    let index: Int?
    let choice: ClientStrategy.Choice
    /// nil: there is none, and `unkeyed` may say why.
    let wholeKey: [UInt8]?
    let unkeyed: NotStoredReason?
    /// Before `requestArrived`.
    let machine: StrategyMachine
    /// What reaches the origin of the request's fields, where its answer may be stored.
    let fieldsToOrigin: Fields
    /// The route's own; nil: one of them cannot be made.
    let tags: [[UInt8]]?

    /// Copies are each user's own; a request without an identity has none.
    var isUsersOwn: Bool { route.options.perUser != nil }
  }

  /// `digest` is the keyed hash that takes the place of credentials. `isTraced`: whether to say why
  /// routes were passed, which costs a look at each.
  init(
    _ head: RequestHead, in policies: PolicySet, with placement: inout RequestPlacement,
    isTraced: Bool = false, digest: (Span<UInt8>) -> [UInt8]
  ) {
    self.head = head
    if let refusal = placement.refusal(head) {
      path = Array(head.path)
      self.refusal = refusal
      (passed, routed) = ([], nil)
      return
    }
    path = placement.path
    passed = isTraced ? placement.trace(head, in: policies) : []
    guard let asWritten = placement.routeAsWritten(head, in: policies),
      let route = placement.route(head, in: policies)
    else {
      refusal = RequestPlacement.noRoute
      routed = nil
      return
    }
    refusal = nil
    var machine = route.machine(for: head)
    var unkeyed: NotStoredReason?
    let hasCopies = route.keepsCopies(for: head.method)
    if hasCopies {
      unkeyed = placement.makeKey(
        head, route, bytesMax: policies.configuration.limits.cacheKeyBytes, digest: digest)
      if unkeyed != nil { machine.requestLacksKey() }
    }
    routed = Routed(
      asWritten: asWritten, route: route,
      index: placement.routeIndex(head, in: policies),
      choice: ClientStrategy.read(head.fields, allowed: asWritten.options.clientStrategies),
      wholeKey: hasCopies && unkeyed == nil ? placement.wholeKey : nil, unkeyed: unkeyed,
      machine: machine,
      fieldsToOrigin: OriginRequestBuilder.forwardedFields(
        head.fields, route: route, forStore: true),
      tags: CopyTags.tags(of: route, path: placement.path))
  }
}

extension RequestOutlook.Routed {
  /// The whole URL that the origin would be asked for.
  func originURL(of outlook: RequestOutlook) -> String {
    let target = route.originTarget(path: outlook.path, query: outlook.head.query)
    return route.endpoint.url + String(decoding: target, as: UTF8.self)
  }

  /// What of the key stands for the query; nil: there is no key, or nothing of a query counts.
  var keyedQuery: String? {
    guard let wholeKey, let parts = CacheKey.Parts(wholeKey.span), let query = parts.query else {
      return nil
    }
    return String(decoding: wholeKey[query], as: UTF8.self)
  }

  /// What would become of this answer of the origin's.
  func storing(
    status: UInt16, _ fields: Fields, to head: RequestHead, nowMilliseconds: Int64
  ) -> AnswerOutlook {
    let words = AnswerWords(
      status: status, fields, on: route, method: head.method, request: fieldsToOrigin,
      requestDirectives: route.directives(of: head.fields), ownTags: tags,
      requestTimeMilliseconds: nowMilliseconds, responseTimeMilliseconds: nowMilliseconds
    ) { Vary.selectingBlock(response: $0, request: fieldsToOrigin, ignore: $1) }
    var refused = notStoredWhateverComes(head) ?? words.notStored
    if refused == nil, let length = fields.first(.contentLength),
      let bytes = UInt64(String(decoding: length, as: UTF8.self)),
      bytes > route.maxEntrySizeBytes
    {
      refused = .tooLarge
    }
    let state = Freshness.copyState(
      of: words.metadata, policy: route.policy, request: RequestDirectives(),
      nowMilliseconds: nowMilliseconds)
    return AnswerOutlook(
      notStored: refused, lifetimeMilliseconds: state.lifetimeMilliseconds,
      tags: (words.tags ?? []).map { String(decoding: $0, as: UTF8.self) })
  }

  /// What would become of the answer of an origin that lets everybody store it.
  func storingAtBest(_ head: RequestHead) -> AnswerOutlook {
    storing(
      status: 200, Fields([("Cache-Control", "public, max-age=60")]), to: head, nowMilliseconds: 0)
  }

  /// Why no answer to this request is stored; nil: the answer's words decide.
  private func notStoredWhateverComes(_ head: RequestHead) -> NotStoredReason? {
    var machine = machine
    switch machine.requestArrived(copy: nil) {
    case .fetch(let fetch): return route.notStored(fetch, for: head)
    case .pass(let reason):
      let directives = route.directives(of: head.fields)
      if reason == .request, directives.noStore { return .requestNoStore }
      return RouteContext.notStored(reason, unkeyed: unkeyed)
    // The network is not asked.
    case .fail: return unkeyed ?? .strategy
    case .serve, .serveThenRefresh, .relay, .wait: return nil
    }
  }
}

/// What would become of an origin's answer.
struct AnswerOutlook: Equatable {
  /// nil: it is stored.
  var notStored: NotStoredReason?
  /// How long it is fresh on the route; 0: not at all.
  var lifetimeMilliseconds: Int64
  /// The route's tags, and those that the answer brings.
  var tags: [String]
}
