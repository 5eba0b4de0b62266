internal import Backends
internal import CachePolicy

/// The repository of one loop: takes each request, finds its route and its copy, has the
/// `StrategyMachine` decide, and carries out what needs no waiting. What waits is an `Exchange`.
///
/// A hit is one look-up and one write within one turn, and allocates nothing. No read transaction
/// outlives a call into this type.
final class Repository: RequestHandler, @unchecked Sendable {
  // @unchecked Sendable: fills carry a reference across loops; all but `services` and `worker` is
  // touched on the worker's loop alone.

  let worker: Worker
  let services: Services
  let remote: any RemoteDataSource
  let reader: StoreReader
  private(set) var counters = Counters()
  /// What holds for requests from now on.
  private(set) var policies: PolicySet
  var placement = RequestPlacement()

  init(
    worker: Worker, services: Services, policies: PolicySet, remote: any RemoteDataSource,
    reader: StoreReader
  ) {
    self.worker = worker
    self.services = services
    self.remote = remote
    self.reader = reader
    self.policies = policies
    counters.reserve(slots: services.counterSlots.count)
  }

  /// Swaps the policies: requests from now on are served by these.
  func use(_ policies: PolicySet) {
    self.policies = policies
    counters.reserve(slots: services.counterSlots.count)
  }

  // MARK: A request

  func handleRequest(on connection: Connection) {
    if let problem = placement.refusal(worker.head) {
      respond(connection, problem)
      return
    }
    if worker.head.isAsterisk {
      counters[CounterSlots.none].count(.pass)
      connection.respond(
        status: 204, fields: [Problem.allowedMethods], body: [])
      return
    }
    guard let route = placement.route(worker.head, in: policies) else {
      respond(connection, RequestPlacement.noRoute)
      return
    }
    serve(connection, route)
  }

  func requestWasRefused(_ refusal: RequestRefusal) {
    counters[CounterSlots.none].count(.error)
  }

  func ownAnswerWasWritten(byteCount: Int) { count(bytesToClient: byteCount) }

  private func serve(_ connection: Connection, _ route: RouteContext) {
    var machine = route.machine(for: worker.head)
    guard route.keepsCopies(for: worker.head.method) else {
      let action = machine.requestArrived(copy: nil)
      begin(connection, route, machine, action, key: nil, copy: nil)
      return
    }
    if let reason = makeKey(worker.head, route) {
      machine.requestLacksKey()
      let action = machine.requestArrived(copy: nil)
      begin(connection, route, machine, action, key: nil, copy: nil, unkeyed: reason)
      return
    }
    let key = storeKey()
    reader.begin()
    let record = selectRecord(key, wholeKey: placement.wholeKey, request: worker.head.fields)
    var copy: CopyState?
    if let record {
      copy = Freshness.copyState(
        of: record.metadata, policy: route.policy, request: machine.request.directives,
        nowMilliseconds: services.clock.nowMilliseconds)
    }
    let action = machine.requestArrived(copy: copy)
    switch action {
    case .serve(let use), .serveThenRefresh(let use):
      let entryID = record!.entryID
      let answer = CopyAnswer(
        record: record!, state: copy!, route: route, use: use, forward: nil)
      let outcome = CopyServing.begin(answer, of: worker.head, on: connection, by: self)
      if case .serveThenRefresh = action { refreshInBackground(route, key, record!, copy!) }
      reader.end()
      switch outcome {
      case .written: connection.endAnswer()
      case .streaming(let stream): stream.start()
      case .gone:
        let action = machine.requestArrived(copy: nil)
        begin(connection, route, machine, action, key: key, copy: nil, goneEntryID: entryID)
      }
    default:
      let found = record.map { (entryID: $0.entryID, fields: validators(of: $0)) }
      reader.end()
      begin(connection, route, machine, action, key: key, copy: found)
    }
  }

  private func begin(
    _ connection: Connection, _ route: RouteContext, _ machine: StrategyMachine,
    _ action: StrategyMachine.Action, key: StoreKey?,
    copy: (entryID: UInt64, fields: Fields)?, goneEntryID: UInt64? = nil,
    unkeyed: NotStoredReason? = nil
  ) {
    let exchange = Exchange(
      repository: self, connection: connection, head: worker.head, path: placement.path,
      route: route, machine: machine, key: key, wholeKey: key == nil ? [] : placement.wholeKey,
      copy: copy)
    exchange.goneEntryID = goneEntryID
    exchange.unkeyedReason = unkeyed
    connection.exchange = exchange
    exchange.perform(action)
  }

  // MARK: Keys and copies

  /// Makes the request's key; a reason: it has none.
  private func makeKey(_ head: borrowing RequestHead, _ route: RouteContext) -> NotStoredReason? {
    placement.makeKey(
      head, route, bytesMax: worker.limits.cacheKeyBytes, digest: services.digest)
  }

  /// The place of the key that was made last.
  func storeKey() -> StoreKey {
    placement.wholeKey.withUnsafeBytes { wholeKey in
      placement.path.withUnsafeBytes {
        StoreKeyHash.key(services.store.keySecret, wholeKey: wholeKey, path: $0)
      }
    }
  }

  /// The newest copy that the request selects (RFC 9111 §4.1). Within `reader.begin` and `end`.
  func selectRecord(_ key: StoreKey, wholeKey: [UInt8], request: Fields) -> RecordView? {
    var best: RecordView?
    var candidate = wholeKey.withUnsafeBytes { reader.firstRecord(key, wholeKey: $0) }
    while let record = candidate {
      let isNewer = best.map { $0.entryID < record.entryID } ?? true
      if isNewer, isSelected(record.varyBlock, request) { best = record }
      candidate = reader.nextRecord()
    }
    return best
  }

  private func isSelected(_ block: UnsafeRawBufferPointer, _ request: Fields) -> Bool {
    if block.isEmpty { return true }
    return matches(block: Span(_unsafeBytes: block), request)
  }

  /// Whether a request selects what carries a block of `selectingBlock`.
  func matches(block: Span<UInt8>, _ request: Fields) -> Bool {
    let request = Vary.mayHoldSecrets(block: block) ? withoutSecrets(request) : request
    return Vary.matches(block: block, request: request)
  }

  /// The Vary block of an answer to a request, with digests in the place of secrets; nil: it varies
  /// by what no request shows.
  func selectingBlock(response: Fields, request: Fields, ignore: Bool) -> [UInt8]? {
    let block = Vary.selectingBlock(response: response, request: request, ignore: ignore)
    guard let block, Vary.mayHoldSecrets(block: block.span) else { return block }
    return Vary.selectingBlock(
      response: response, request: withoutSecrets(request), ignore: ignore)
  }

  /// The fields with keyed digests in the place of what may be somebody's secret: what a Vary block
  /// is made from, so that nobody's cookie, token or key lies in the store.
  private func withoutSecrets(_ fields: Fields) -> Fields {
    guard fields.lines.contains(where: { Vary.mayBeSecret($0.known) }) else { return fields }
    var result = Fields()
    for line in fields.lines {
      guard Vary.mayBeSecret(line.known) else {
        result.append(line: line, of: fields)
        continue
      }
      let value = services.digest(fields.bytes.span.extracting(line.value))
      result.append(name: fields.bytes.span.extracting(line.name), value: value.span)
    }
    return result
  }

  /// The fields by which a copy can be validated, in memory of their own.
  private func validators(of record: RecordView) -> Fields {
    var fields = Fields()
    if !record.entityTag.isEmpty {
      fields.appendKnown(.eTag, value: Span(_unsafeBytes: record.entityTag))
    }
    if !record.lastModified.isEmpty {
      fields.appendKnown(.lastModified, value: Span(_unsafeBytes: record.lastModified))
    }
    return fields
  }

  // MARK: Fills

  /// Starts a fetch that no client waits for. One a key at a time: where one runs, nothing happens.
  private func refreshInBackground(
    _ route: RouteContext, _ key: StoreKey, _ record: RecordView, _ copy: CopyState
  ) {
    guard worker.head.method == .get else { return }
    let source = FetchSource(
      head: worker.head, path: placement.path, route: route, peer: "", key: key,
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
      copyMayStandIn: copy?.mayServeOnFailure == true, isShared: true)
    let (outcome, fill) = services.fillTable.joinOrStart(
      source.key!, isAuthorized: source.head.fields.contains(.authorization),
      nowMilliseconds: services.clock.nowMilliseconds
    ) { Fill(plan: plan, repository: self) }
    guard case .start = outcome, let fill else { return }
    let request = originRequest(source, plan, validators: copied, body: nil)
    // After this turn's answer: the client who gets the stale copy does not wait for it.
    worker.loop.later { fill.start(request) }
  }

  /// Sees to it that a copy of a request's answer is there and stays fresh for a while; answers when
  /// to look again, in milliseconds from now, and nil where it is not: then a fetch has begun. Where
  /// the route keeps no copy of it the answer is nil too, and nothing begins.
  func warm(_ head: RequestHead) -> Int64? {
    worker.head = head
    guard placement.normalizePath(head) == nil, let route = placement.route(head, in: policies),
      route.policy.strategy.writesStore
    else { return nil }
    guard makeKey(head, route) == nil else { return nil }
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
      if wait > 0 { return wait }
    }
    fetchInBackground(source, replacing: record, copy)
    return nil
  }

  /// What a fetch for this request is for.
  func plan(
    _ source: FetchSource, notStored: NotStoredReason?, validated: UInt64?, copyMayStandIn: Bool,
    isShared: Bool
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
      requestTimeMilliseconds: services.clock.nowMilliseconds)
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

  /// Brings a confirmed copy up to date; false: it is no longer there.
  func refresh(
    _ entryID: UInt64, of plan: FillPlan, with fields: Fields, nowMilliseconds now: Int64
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
    let merged = Validation.merge(stored: stored, notModified: fields)
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

  // MARK: Counting

  func count(_ kind: Counters.Kind, route: RouteContext?, isCollapsed: Bool = false) {
    let slot = route?.slot ?? CounterSlots.none
    counters[slot].count(kind)
    if isCollapsed { counters[slot].collapsed += 1 }
  }

  /// One of the answers counted was another's fill.
  func countCollapsed(_ route: RouteContext) { counters[route.slot].collapsed += 1 }

  func count(bytesToClient count: Int) { counters.bytesToClients += UInt64(count) }

  func count(bytesFromStore count: Int, route: RouteContext) {
    counters[route.slot].bytesFromStore += UInt64(count)
  }

  func count(bytesFromOrigin count: Int, route: RouteContext) {
    counters[route.slot].bytesFromOrigin += UInt64(count)
  }

  func countNotStored(_ reason: NotStoredReason) {
    counters.notStored[reason, default: 0] += 1
  }

  /// Answers with an error of our own, before any route.
  private func respond(_ connection: Connection, _ problem: Problem) {
    counters[CounterSlots.none].count(.error)
    connection.respond(problem, cacheStatus: "larder; detail=\(problem.status)")
  }
}

/// The request that a fetch is made for, in memory of its own.
struct FetchSource {
  var head: RequestHead
  var path: [UInt8]
  var route: RouteContext
  /// The client's address; empty where no client is behind the fetch.
  var peer: String
  /// nil: the request has no place in the store.
  var key: StoreKey?
  var wholeKey: [UInt8]
}
