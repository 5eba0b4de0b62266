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
    let now = services.clock.nowMilliseconds
    guard worker.head.method == .get, services.refreshFailures.mayTry(key, nowMilliseconds: now),
      route.gate.mayAsk(nowMilliseconds: now)
    else { return }
    let source = FetchSource(
      head: worker.head.copy(), path: placement.keptPath, route: route, peer: "", key: key,
      wholeKey: placement.keptWholeKey)
    fetchInBackground(
      source, question(source), replacing: StoredMoment(record),
      copyMayStandIn: copy.mayServeOnFailure)
  }

  /// What a fetch may ask of what is stored for its key. Within the reader's begin and end.
  private func question(_ source: FetchSource) -> ValidationQuestion? {
    question(
      source.key!, wholeKey: source.wholeKey, request: source.head.fields,
      policy: source.route.policy)
  }

  private func fetchInBackground(
    _ source: FetchSource, _ question: ValidationQuestion?, replacing known: StoredMoment?,
    copyMayStandIn: Bool
  ) {
    let plan = plan(
      source, tableKey: source.key, notStored: nil, question: question,
      copyMayStandIn: copyMayStandIn, isBackground: true)
    let (outcome, fill) = services.fillTable.joinOrStart(
      source.key!, isAuthorized: source.head.fields.contains(.authorization),
      nowMilliseconds: services.clock.nowMilliseconds
    ) {
      guard source.route.gate.enterInBackground() else { return nil }
      let fill = Fill(plan: plan, repository: self)
      fill.hasPlace = true
      return fill
    }
    guard case .start = outcome, let fill else { return }
    fill.whenCopyIsLost = { [self] in
      // In a turn of its own: the fill that is ending is in the table still.
      worker.loop.later { [self] in
        fetchInBackground(source, nil, replacing: known, copyMayStandIn: copyMayStandIn)
      }
    }
    let request = originRequest(source, plan, body: nil)
    // After this turn's answer: the client who gets the stale copy does not wait for it.
    worker.loop.later { [self] in
      // Between the look-up and the table another loop's refresh may have landed and left it.
      if isReplaced(known, source) {
        fill.whenCopyIsLost = nil
        fill.end(.copyLost)
      } else {
        fill.start(request, source)
      }
    }
  }

  /// Which copy, and as of when: a confirmation leaves the copy and renews the moment.
  private struct StoredMoment: Equatable {
    let entryID: UInt64
    let responseTimeMilliseconds: Int64

    init(_ record: RecordView) {
      entryID = record.entryID
      responseTimeMilliseconds = record.metadata.responseTimeMilliseconds
    }
  }

  /// Whether another copy is there than the one that was to be replaced.
  private func isReplaced(_ known: StoredMoment?, _ source: FetchSource) -> Bool {
    reader.begin()
    defer { reader.end() }
    let found = selectRecord(
      source.key!, wholeKey: source.wholeKey, request: source.head.fields)
    guard let found else { return false }
    return StoredMoment(found) != known
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
      head: head, path: placement.keptPath, route: route, peer: "", key: key,
      wholeKey: placement.keptWholeKey)
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
      source, question(source), replacing: record.map { StoredMoment($0) },
      copyMayStandIn: copy?.mayServeOnFailure == true)
    guard let copy, let record, record.metadata.responseTimeMilliseconds >= lastLookMilliseconds,
      copy.lifetimeMilliseconds > 0
    else { return .cold }
    return .shortLived(
      waitMilliseconds: copy.lifetimeMilliseconds - Warmer.leadMilliseconds(of: copy))
  }

  /// What a fetch for this request is for. `tableKey`: under which others join it; nil: nobody does.
  func plan(
    _ source: FetchSource, tableKey: StoreKey?, notStored: NotStoredReason?,
    question: ValidationQuestion?, copyMayStandIn: Bool, isBackground: Bool = false
  ) -> FillPlan {
    FillPlan(
      source, tableKey: tableKey,
      request: OriginRequestBuilder.forwardedFields(
        source.head.fields, route: source.route, forStore: notStored == nil),
      notStored: notStored, question: question, copyMayStandIn: copyMayStandIn,
      requestTimeMilliseconds: services.clock.nowMilliseconds, isBackground: isBackground,
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

  func fillLanded(_ fill: Fill) {
    services.fillTable.forgetUnshareable(fill.plan.storeKey)
    services.refreshFailures.forget(fill.plan.storeKey)
  }

  /// A refresh that brought nothing for the store puts the next one off; what a purge made void, or
  /// a copy that is gone, is no failure.
  private func noteRefresh(_ fill: Fill, _ ending: Fill.Ending) {
    let key = fill.plan.storeKey
    switch ending {
    case .confirmed:
      services.refreshFailures.forget(key)
      return
    case .copyLost: return
    case .whole, .failed: break
    }
    guard fill.plan.isBackground, !fill.hasLanded, !fill.isInvalidated else { return }
    services.refreshFailures.failed(key, nowMilliseconds: services.clock.nowMilliseconds)
  }

  func fillEnded(_ fill: Fill, _ ending: Fill.Ending) {
    noteRefresh(fill, ending)
    guard case .failed(let error) = ending, error != Fill.deserted else { return }
    // A client that breaks off is no failure of the origin's.
    if case .requestBodyFailed = error { return }
    services.failures.note(
      error, of: fill.plan.route, nowMilliseconds: services.clock.nowMilliseconds)
  }
}
