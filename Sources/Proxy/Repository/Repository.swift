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
  var placement = RequestPlacement(remembersTargets: true)
  /// Whether the last look-up found copies and none that the request selects.
  private(set) var foundOtherVariantsOnly = false

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
    placement.forgetTargets()
    counters.reserve(slots: services.counterSlots.count)
  }

  // MARK: A request

  func handleRequest(on connection: Connection) {
    let head = worker.head
    if let known = placement.recall(head) {
      answer(connection, head, known.route, known.route.machine(for: head), known.key)
      return
    }
    if let problem = placement.refusal(head) {
      respond(connection, problem)
      return
    }
    let isLastStop =
      head.method == .options
      && MaxForwards(head.fields, method: .options) == .reached
    if head.isAsterisk || isLastStop {
      counters[CounterSlots.none].count(.pass)
      connection.respond(
        status: 204, fields: [Problem.allowedMethods], body: [])
      return
    }
    guard let route = placement.route(head, in: policies) else {
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
      begin(connection, route, machine, action, key: nil, postKey: postKey(route))
      return
    }
    if let reason = makeKey(worker.head, route) {
      machine.requestLacksKey()
      let action = machine.requestArrived(copy: nil)
      begin(connection, route, machine, action, key: nil, unkeyed: reason)
      return
    }
    let key = storeKey()
    placement.remember(worker.head, route, key)
    answer(connection, worker.head, route, machine, key)
  }

  /// Answers a request that has a place in the store: `key`, and the placement's whole key.
  private func answer(
    _ connection: Connection, _ head: RequestHead, _ route: RouteContext,
    _ machine: StrategyMachine, _ key: StoreKey
  ) {
    var machine = machine
    reader.begin()
    let record = selectRecord(key, wholeKey: placement.wholeKey, request: head)
    var copy: CopyState?
    if foundOtherVariantsOnly { machine.onlyOtherVariantsAreStored() }
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
      let outcome = CopyServing.begin(answer, of: head, on: connection, by: self)
      if case .serveThenRefresh = action { refreshInBackground(route, key, record!, copy!) }
      reader.end()
      switch outcome {
      case .written: connection.endAnswer()
      case .streaming(let stream): stream.start()
      case .gone:
        let action = machine.requestArrived(copy: nil)
        begin(connection, route, machine, action, key: key, goneEntryID: entryID)
      }
    default:
      var question: ValidationQuestion?
      let isLacking = record == nil && !foundOtherVariantsOnly
      // Where nothing is stored there is nothing to ask about.
      if !isLacking, case .fetch(let fetch) = action, fetch.isShared {
        question = self.question(
          key, wholeKey: placement.wholeKey, request: head.fields, policy: route.policy)
      }
      let lackedInSnapshot = isLacking ? reader.snapshotNumber : nil
      reader.end()
      begin(
        connection, route, machine, action, key: key, question: question,
        lackedInSnapshot: lackedInSnapshot)
    }
  }

  private func begin(
    _ connection: Connection, _ route: RouteContext, _ machine: StrategyMachine,
    _ action: StrategyMachine.Action, key: StoreKey?, question: ValidationQuestion? = nil,
    postKey: StoreKey? = nil, goneEntryID: UInt64? = nil, unkeyed: NotStoredReason? = nil,
    lackedInSnapshot: UInt64? = nil
  ) {
    let exchange = Exchange(
      repository: self, connection: connection, head: worker.head.copy(), path: placement.keptPath,
      route: route, machine: machine, key: key,
      wholeKey: key == nil && postKey == nil ? [] : placement.keptWholeKey, question: question,
      postKey: postKey)
    exchange.goneEntryID = goneEntryID
    exchange.unkeyedReason = unkeyed
    exchange.lackedInSnapshot = lackedInSnapshot
    connection.exchange = exchange
    exchange.perform(action)
  }

  // MARK: Keys and copies

  /// Makes the request's key; a reason: it has none.
  func makeKey(_ head: RequestHead, _ route: RouteContext) -> NotStoredReason? {
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

  /// The most recent copy that the request selects (RFC 9111 §4, §4.1). Within `reader.begin` and
  /// `end`.
  func selectRecord(
    _ key: StoreKey, wholeKey: [UInt8], request: RequestHead
  ) -> RecordView? {
    var best: RecordView?
    var candidate = wholeKey.withUnsafeBytes { reader.firstRecord(key, wholeKey: $0) }
    let hasCandidates = candidate != nil
    while let record = candidate, record.varyBlock.isEmpty {
      if best.map({ record.isMoreRecent(than: $0) }) ?? true { best = record }
      candidate = reader.nextRecord()
    }
    if let candidate { best = selectRecord(candidate, best, request.fields) }
    foundOtherVariantsOnly = hasCandidates && best == nil
    return best
  }

  /// Goes on where a copy varies: from `first`, with the most recent of those before it.
  private func selectRecord(
    _ first: RecordView, _ recent: RecordView?, _ request: Fields
  ) -> RecordView? {
    var selecting = SelectingRequest(request, services)
    var best = recent
    var candidate: RecordView? = first
    while let record = candidate {
      let isNewer = best.map { record.isMoreRecent(than: $0) } ?? true
      if isNewer, selecting.selects(Span(_unsafeBytes: record.varyBlock)) { best = record }
      candidate = reader.nextRecord()
    }
    return best
  }

  /// Whether a request selects what carries a block of `selectingBlock`.
  func matches(block: Span<UInt8>, _ request: Fields) -> Bool {
    var selecting = SelectingRequest(request, services)
    return selecting.selects(block)
  }

  /// The Vary block of an answer to a request, with digests in the place of secrets; nil: it varies
  /// by what no request shows.
  func selectingBlock(response: Fields, request: Fields, ignore: Bool) -> [UInt8]? {
    var selecting = SelectingRequest(request, services)
    return selecting.block(of: response, ignoresVary: ignore)
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

  func countResumedBody() { counters.resumedBodies += 1 }

  func countNotStored(_ reason: NotStoredReason) {
    counters.notStored[reason, default: 0] += 1
  }

  /// Answers with an error of our own, before any route.
  private func respond(_ connection: Connection, _ problem: Problem) {
    counters[CounterSlots.none].count(.error)
    connection.respond(problem, cacheStatus: "larder; detail=\(problem.status)")
  }
}

/// The request that a fetch is made for, in memory of its own. A reference, so that handing it on
/// costs nothing; never changed.
final class FetchSource: Sendable {
  let head: RequestHead
  let path: [UInt8]
  let route: RouteContext
  /// The client's address; empty where no client is behind the fetch.
  let peer: String
  /// nil: the request has no place in the store.
  let key: StoreKey?
  let wholeKey: [UInt8]
  /// Where a POST's answer may land for later GETs; nil: nowhere.
  let postKey: StoreKey?

  init(
    head: RequestHead, path: [UInt8], route: RouteContext, peer: String, key: StoreKey?,
    wholeKey: [UInt8], postKey: StoreKey? = nil
  ) {
    self.head = head
    self.path = path
    self.route = route
    self.peer = peer
    self.key = key
    self.wholeKey = wholeKey
    self.postKey = postKey
  }
}
