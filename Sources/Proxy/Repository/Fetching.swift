internal import Backends
internal import CachePolicy
internal import Synchronization

/// The repository's side towards the network: what a fetch is for and what it sends, and fetches that
/// no client waits for.
extension Repository {
  /// Starts a fetch that no client waits for. One a key at a time: where one runs, nothing happens.
  func refreshInBackground(
    _ route: RouteContext, _ key: StoreKey, _ record: RecordView, _ copy: CopyState
  ) {
    guard worker.head.method == .get else { return }
    let source = FetchSource(
      head: worker.head.copy(), path: placement.path, route: route, peer: "", key: key,
      wholeKey: placement.wholeKey)
    fetchInBackground(source, question(source), copyMayStandIn: copy.mayServeOnFailure)
  }

  /// What a fetch may ask of what is stored for its key. Within the reader's begin and end.
  private func question(_ source: FetchSource) -> ValidationQuestion? {
    question(
      source.key!, wholeKey: source.wholeKey, request: source.head.fields,
      policy: source.route.policy)
  }

  private func fetchInBackground(
    _ source: FetchSource, _ question: ValidationQuestion?, copyMayStandIn: Bool
  ) {
    let plan = plan(
      source, notStored: nil, question: question, copyMayStandIn: copyMayStandIn, isShared: true)
    let (outcome, fill) = services.fillTable.joinOrStart(
      source.key!, isAuthorized: source.head.fields.contains(.authorization),
      nowMilliseconds: services.clock.nowMilliseconds
    ) { Fill(plan: plan, repository: self) }
    guard case .start = outcome, let fill else { return }
    fill.whenCopyIsLost = { [self] in
      // In a turn of its own: the fill that is ending is in the table still.
      worker.loop.later { [self] in
        fetchInBackground(source, nil, copyMayStandIn: copyMayStandIn)
      }
    }
    let request = originRequest(source, plan, body: nil)
    // After this turn's answer: the client who gets the stale copy does not wait for it.
    worker.loop.later { fill.start(request, source) }
  }

  /// What `warm` found.
  enum Warmth {
    /// A fresh copy, which need not be looked at for so many milliseconds.
    case fresh(waitMilliseconds: Int64)
    /// A copy that came since the last look and is to be replaced by now: a fetch has begun.
    case shortLived(waitMilliseconds: Int64)
    /// No copy has come since the last look: a fetch has begun, unless the route keeps no copies.
    case cold
  }

  /// Sees to it that a copy of a request's answer is there and stays fresh for a while.
  func warm(_ head: RequestHead, lastLookMilliseconds: Int64) -> Warmth {
    guard placement.normalizePath(head) == nil, let route = placement.route(head, in: policies),
      route.policy.strategy.writesStore
    else { return .cold }
    guard makeKey(head, route) == nil else { return .cold }
    let key = storeKey()
    let source = FetchSource(
      head: head, path: placement.path, route: route, peer: "", key: key,
      wholeKey: placement.wholeKey)
    reader.begin()
    defer { reader.end() }
    let record = selectRecord(key, wholeKey: placement.wholeKey, request: head.fields)
    let copy = record.map {
      Freshness.copyState(
        of: $0.metadata, policy: route.policy, request: RequestDirectives(),
        nowMilliseconds: services.clock.nowMilliseconds)
    }
    if let copy, copy.isFresh {
      let wait = copy.timeToLiveMilliseconds - Warmer.leadMilliseconds(of: copy)
      if wait > 0 { return .fresh(waitMilliseconds: wait) }
    }
    fetchInBackground(
      source, question(source), copyMayStandIn: copy?.mayServeOnFailure == true)
    guard let copy, let record, record.metadata.responseTimeMilliseconds >= lastLookMilliseconds,
      copy.lifetimeMilliseconds > 0
    else { return .cold }
    return .shortLived(
      waitMilliseconds: copy.lifetimeMilliseconds - Warmer.leadMilliseconds(of: copy))
  }

  /// What a fetch for this request is for.
  func plan(
    _ source: FetchSource, notStored: NotStoredReason?, question: ValidationQuestion?,
    copyMayStandIn: Bool, isShared: Bool
  ) -> FillPlan {
    let forStore = notStored == nil
    let isChange = !source.head.method.isSafe
    let storeKey = source.key ?? source.postKey
    return FillPlan(
      tableKey: isShared ? source.key : nil, storeKey: storeKey ?? StoreKey(high: 0, low: 0),
      wholeKey: source.wholeKey, route: source.route, method: source.head.method,
      request: OriginRequestBuilder.forwardedFields(
        source.head.fields, route: source.route, forStore: forStore),
      directives: source.route.directives(of: source.head.fields), notStored: notStored,
      question: question, change: isChange ? source : nil, copyMayStandIn: copyMayStandIn,
      tags: storeKey != nil ? CopyTags.tags(of: source.route, path: source.path) : [],
      requestTimeMilliseconds: services.clock.nowMilliseconds,
      purgeCount: services.purgeCount.load(ordering: .sequentiallyConsistent))
  }

  /// The request that goes to the origin for a plan.
  func originRequest(
    _ source: FetchSource, _ plan: FillPlan,
    body: (source: any OriginBodySource, length: Int64?)?
  ) -> OriginRequest {
    var fields = plan.request
    plan.question?.apply(to: &fields)
    return originRequest(source, fields, body: body)
  }

  /// The request for the rest of a plan's answer, which broke off.
  func originRequest(
    _ source: FetchSource, _ plan: FillPlan, resuming resumption: Resumption,
    from receivedBytes: Int
  ) -> OriginRequest {
    var fields = plan.request
    resumption.ask(&fields, from: UInt64(receivedBytes))
    return originRequest(source, fields, body: nil)
  }

  private func originRequest(
    _ source: FetchSource, _ fields: Fields,
    body: (source: any OriginBodySource, length: Int64?)?
  ) -> OriginRequest {
    var fields = fields
    if case .remaining(let count) = MaxForwards(fields, method: source.head.method) {
      fields.remove(.maxForwards)
      let text = Array("\(count)".utf8)
      fields.appendKnown(.maxForwards, value: text.span)
    }
    let request = OriginRequest(
      endpoint: source.route.endpoint, method: source.head.method,
      methodToken: Array(source.head.methodToken),
      target: source.route.originTarget(path: source.path, query: source.head.query),
      body: body)
    OriginRequestBuilder.fill(
      request, fields, of: source.head, route: source.route, peer: source.peer)
    return request
  }

  /// A fill on this loop has its head: what follows from the answer itself happens here.
  func fillAnswered(_ fill: Fill, _ head: Fill.Head) {
    guard let reason = head.notStored else { return }
    if let known = fill.plan.notStored {
      // A route that stores nothing is no reason to count.
      if known != .strategy, known != .method { countNotStored(known) }
    } else {
      countNotStored(reason)
      if !head.isShareable, fill.plan.tableKey != nil { fillIsNotShareable(fill, because: reason) }
    }
  }

  /// The key's answers are each client's own: for a while nobody waits for another's fetch.
  func fillIsNotShareable(_ fill: Fill, because reason: NotStoredReason) {
    services.fillTable.rememberUnshareable(
      fill.plan.storeKey, because: reason, nowMilliseconds: services.clock.nowMilliseconds)
  }

  func fillLanded(_ fill: Fill) { services.fillTable.forgetUnshareable(fill.plan.storeKey) }

  func fillEnded(_ fill: Fill, _ ending: Fill.Ending) {
    guard case .failed(let error) = ending, error != Fill.deserted else { return }
    // A client that breaks off is no failure of the origin's.
    if case .requestBodyFailed = error { return }
    services.failures.note(
      error, of: fill.plan.route, nowMilliseconds: services.clock.nowMilliseconds)
  }
}
