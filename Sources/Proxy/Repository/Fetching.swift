internal import Backends
internal import CachePolicy

/// The repository's side towards the network: what a fetch is for and what it sends, fetches that no
/// client waits for, and what becomes of a copy that the origin confirms.
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
      head: worker.head.copy(), path: placement.path, route: route, peer: "", key: key,
      wholeKey: placement.wholeKey)
    fetchInBackground(source, replacing: record, copy)
  }

  private func fetchInBackground(
    _ source: FetchSource, replacing record: RecordView?, _ copy: CopyState?
  ) {
    var copied = Fields()
    if let record, copy?.hasValidator == true { copied = validators(of: record) }
    let plan = plan(
      source, notStored: nil, validated: copied.count > 0 ? record?.entryID : nil,
      copyMayStandIn: copy?.mayServeOnFailure == true, isShared: true, isBackground: true)
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
    let request = originRequest(source, plan, validators: copied, body: nil)
    let known = record.map { StoredMoment($0) }
    // After this turn's answer: the client who gets the stale copy does not wait for it.
    worker.loop.later { [self] in
      // Between the look-up and the table another loop's refresh may have landed and left it.
      if isReplaced(known, source) {
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
    fetchInBackground(source, replacing: record, copy)
    guard let copy, let record, record.metadata.responseTimeMilliseconds >= lastLookMilliseconds,
      copy.lifetimeMilliseconds > 0
    else { return .cold }
    return .shortLived(
      waitMilliseconds: copy.lifetimeMilliseconds - Warmer.leadMilliseconds(of: copy))
  }

  /// What a fetch for this request is for.
  func plan(
    _ source: FetchSource, notStored: NotStoredReason?, validated: UInt64?, copyMayStandIn: Bool,
    isShared: Bool, isBackground: Bool = false
  ) -> FillPlan {
    let forStore = notStored == nil
    return FillPlan(
      tableKey: isShared ? source.key : nil, storeKey: source.key ?? StoreKey(high: 0, low: 0),
      wholeKey: source.wholeKey, route: source.route, method: source.head.method,
      request: OriginRequestBuilder.forwardedFields(
        source.head.fields, route: source.route, forStore: forStore),
      directives: source.route.directives(of: source.head.fields), notStored: notStored,
      validatedEntryID: validated, copyMayStandIn: copyMayStandIn,
      tags: forStore ? CopyTags.tags(of: source.route, path: source.path) : [],
      requestTimeMilliseconds: services.clock.nowMilliseconds, isBackground: isBackground)
  }

  /// The request that goes to the origin for a plan.
  func originRequest(
    _ source: FetchSource, _ plan: FillPlan, validators: Fields,
    body: (source: any OriginBodySource, length: Int64?)?
  ) -> OriginRequest {
    var fields = plan.request
    if plan.validatedEntryID != nil {
      Validation.makeConditional(&fields, stored: validators)
    }
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
    if ending == .confirmed { services.refreshFailures.forget(key) }
    guard fill.plan.isBackground, !fill.hasLanded, ending != .confirmed, ending != .copyLost,
      !fill.isInvalidated
    else { return }
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

  /// Brings a confirmed copy up to date; false: it is no longer there.
  func refresh(
    _ entryID: UInt64, of plan: FillPlan, with fields: Fields, version: ReceivedVersion,
    nowMilliseconds now: Int64
  ) -> Bool {
    reader.begin()
    defer { reader.end() }
    var candidate = plan.wholeKey.withUnsafeBytes {
      reader.firstRecord(plan.storeKey, wholeKey: $0)
    }
    while let record = candidate, record.entryID != entryID { candidate = reader.nextRecord() }
    guard let record = candidate else { return false }
    let stored = StoredHead.fields(of: record.head)
    guard Validation.confirms(stored: stored, notModified: fields) else { return false }
    let merged = Validation.merge(
      stored: stored, notModified: fields, targeted: plan.route.targetedCacheControl)
    let directives = ResponseDirectives(merged, targeted: plan.route.targetedCacheControl)
    // The 304's own Age counts (a cache before the origin may have confirmed), but is not kept.
    var spoken = merged
    if let age = fields.first(.age) { spoken.appendKnown(.age, value: age.span) }
    var metadata = Freshness.originWords(
      status: record.metadata.status, spoken, directives,
      requestTimeMilliseconds: plan.requestTimeMilliseconds, responseTimeMilliseconds: now)
    if let reason = Storability.decide(
      method: .get, request: plan.request, requestDirectives: plan.directives,
      status: metadata.status, response: merged, responseDirectives: directives,
      policy: plan.route.policy, metadata: metadata, identity: plan.route.keyedIdentity)
    {
      // The confirmation itself forbids to keep what it confirms.
      countNotStored(reason)
      services.store.remove(key: plan.storeKey)
      return false
    }
    guard let tags = CopyTags.adding(originTagsOf: merged, to: plan.tags) else {
      countNotStored(.unusableTags)
      services.store.remove(key: plan.storeKey)
      return false
    }
    metadata.entryID = entryID
    metadata.bodyLength = record.bodyLength
    metadata.flags.receivedVersion = version
    let refreshed = RecordWriter.make(
      metadata: metadata, route: plan.route, wholeKey: plan.wholeKey,
      varyBlock: Array(record.varyBlock), tags: tags, fields: merged,
      encodedHead: Fill.encode(status: metadata.status, merged),
      inlineBody: record.isInline ? [record.inlineBody] : nil, chunkCount: record.chunkCount)
    _ = services.store.put(
      refreshed, key: plan.storeKey, mode: .refresh,
      variantsMax: plan.route.policy.maxVariants)
    return true
  }
}
