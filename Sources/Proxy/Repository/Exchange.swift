internal import Backends
internal import CachePolicy

/// A request that waits for the network: carries out what its `StrategyMachine` decides as the fill
/// it follows goes on.
///
/// Lives on its client's loop from the moment the store alone could not answer until the answer is
/// out. It holds no policy: every event goes to the machine, every action comes from it.
final class Exchange: ConnectionExchange, FillReader, @unchecked Sendable {
  // @unchecked Sendable: touched on its client's loop alone; fills elsewhere carry the reference.

  enum Phase {
    /// Nothing of an answer is out.
    case waiting
    /// The fill's answer is on its way to the client.
    case relaying
    case over
  }

  /// How the answer's body is delimited.
  enum BodyFraming {
    case none
    case length
    case chunked
    /// By the end of the connection (HTTP/1.0 clients).
    case close
  }

  let repository: Repository
  let connection: Connection
  let source: FetchSource
  var machine: StrategyMachine
  /// What the origin may be asked about what is stored.
  var question: ValidationQuestion?
  var phase = Phase.waiting
  private(set) var fetch: StrategyMachine.Fetch?
  private(set) var passReason: StrategyMachine.ForwardReason?
  /// A copy whose body could not be had: it does not serve, however fresh its record looks.
  var goneEntryID: UInt64?
  /// The snapshot in which nothing was stored for the request; nil: something was.
  var lackedInSnapshot: UInt64?
  /// Why the request has no place in the store; nil: it has one, or needs none.
  var unkeyedReason: NotStoredReason?
  /// The origin has once confirmed what was not there.
  private var hasLostCopy = false
  var fill: Fill?
  /// The client is gone, unanswered or in the middle of its answer.
  private(set) var clientHasLeft = false
  /// The origin is known to be down, and was not asked.
  private(set) var isUnasked = false
  /// Whether the fill was another's.
  private(set) var isCollapsed = false
  var deadline: LoopTimer?
  var lastError: OriginError?
  /// Of the answer that broke off, where it had begun.
  var brokenStatus: UInt16?
  var framing = BodyFraming.none
  /// Of the fill's body: what has been sent on so far.
  var offset = 0
  /// Where the part ends that the client asked for; nil: at the body's end.
  var partEnd: Int?
  /// nil: the request has none.
  private var requestBody: RequestBodyBuffer?

  init(
    repository: Repository, connection: Connection, head: RequestHead, path: [UInt8],
    route: RouteContext, machine: StrategyMachine, key: StoreKey?, wholeKey: [UInt8],
    question: ValidationQuestion?, postKey: StoreKey?
  ) {
    self.repository = repository
    self.connection = connection
    self.machine = machine
    self.question = question
    source = FetchSource(
      head: head, path: path, route: route, peer: connection.peerHost, key: key,
      wholeKey: wholeKey, postKey: postKey)
  }

  var services: Services { repository.services }
  var worker: Worker { repository.worker }

  // MARK: Actions

  func perform(_ action: StrategyMachine.Action) {
    switch action {
    case .serve(let use), .serveThenRefresh(let use): serveCopy(use)
    case .fetch(let fetch): begin(fetch)
    case .pass(let reason): pass(reason)
    case .relay: relayOrHold()
    case .wait: waitForFill()
    case .fail(let failure): fail(failure)
    }
  }

  private func begin(_ fetch: StrategyMachine.Fetch) {
    self.fetch = fetch
    // Known to be down: the copy that would stand in for it does so at once.
    if machine.mayStandIn,
      !source.route.gate.mayAsk(nowMilliseconds: services.clock.nowMilliseconds)
    {
      isUnasked = true
      perform(machine.originFailed())
      return
    }
    if let milliseconds = fetch.deadlineMilliseconds {
      deadline = LoopTimer(loop: worker.loop, afterMilliseconds: milliseconds) { [weak self] in
        self?.deadlinePassed()
      }
    }
    if fetch.isShared {
      joinOrStart(tableKey: source.key!)
    } else {
      startAlone(notStored: source.route.notStored(fetch, for: source.head))
    }
  }

  private func pass(_ reason: StrategyMachine.ForwardReason) {
    passReason = reason
    startAlone(notStored: RouteContext.notStored(reason, unkeyed: unkeyedReason))
  }

  /// Follows the key's running fill, or begins it.
  private func joinOrStart(tableKey: StoreKey) {
    let plan = repository.plan(
      source, tableKey: tableKey, notStored: nil, question: question,
      copyMayStandIn: machine.mayStandIn)
    let (outcome, fill) = services.fillTable.joinOrStart(
      tableKey, isAuthorized: source.head.fields.contains(.authorization),
      nowMilliseconds: services.clock.nowMilliseconds
    ) { [repository] in
      let fill = Fill(plan: plan, repository: repository)
      _ = fill.join(self)
      return fill
    }
    switch outcome {
    case .alone: startAlone(notStored: nil)
    case .join(let running):
      switch running.join(self) {
      case .joined: break
      case .refused:
        startAlone(notStored: nil)
        return
      case .isAbandoned:
        services.fillTable.close(running)
        joinOrStart(tableKey: tableKey)
        return
      }
      isCollapsed = true
      self.fill = running
      fillProgressed()
    case .start:
      isCollapsed = false
      self.fill = fill
      // Between the look-up and now another loop's fill may have landed and left the table.
      if let landed = landedCopy() {
        leaveFill(abandoning: true)
        serve(landed, .fresh)
        return
      }
      start(fill!, plan)
    }
  }

  /// A fetch that nobody joins.
  private func startAlone(notStored: NotStoredReason?) {
    let plan = repository.plan(
      source, tableKey: nil, notStored: notStored, question: notStored == nil ? question : nil,
      copyMayStandIn: machine.mayStandIn)
    let fill = Fill(plan: plan, repository: repository)
    isCollapsed = false
    self.fill = fill
    if plan.mayLand { services.fillTable.enter(fill) }
    _ = fill.join(self)
    start(fill, plan)
  }

  private func start(_ fill: Fill, _ plan: FillPlan) {
    var body: (source: any OriginBodySource, length: Int64?)?
    // A body on GET or HEAD is not forwarded where the answer may be stored.
    let forwardsBody = source.route.policy.strategy == .networkOnly || passReason == .method
    if source.head.framing != .none {
      let buffer = requestBody ?? RequestBodyBuffer(exchange: self)
      requestBody = buffer
      buffer.isWanted = forwardsBody
      if forwardsBody {
        if case .length(let length) = source.head.framing {
          body = (buffer, Int64(length))
        } else {
          body = (buffer, nil)
        }
      }
    }
    // Before the fetch begins: its answer may be here when `start` returns.
    if body != nil { connection.acceptBody() }
    let request = repository.originRequest(source, plan, body: body)
    fill.wait(self, on: worker)
    fill.start(request, source)
  }

  // MARK: Events

  func fillProgressed() {
    guard let fill else { return }
    switch phase {
    case .over: return
    case .relaying: pump()
    case .waiting: answerArrived(fill.progress)
    }
  }

  func fillSentInterim(_ text: [UInt8], status: UInt16) {
    // A client of HTTP/1.0 would take it for the answer. The 100 of a request with a body was ours
    // to send, and has been.
    guard phase == .waiting, connection.minorVersion == 1,
      status != 100 || source.head.framing == .none
    else { return }
    text.withUnsafeBytes { connection.writeAll($0) }
    repository.count(bytesToClient: text.count)
  }

  private func answerArrived(_ progress: Fill.Progress) {
    switch progress.ending {
    case .confirmed(let confirmation):
      if isCollapsed, !mayShare(confirmation) { return }
      perform(machine.originAnswered(status: 304, confirmsCopy: true))
      return
    case .copyLost:
      refetchWhole()
      return
    case .failed(let error):
      lastError = error
      brokenStatus = progress.head?.status
      leaveFill()
      perform(machine.originFailed(afterStatus: brokenStatus))
      return
    case .whole, nil: break
    }
    guard let head = progress.head else {
      waitForFill()
      return
    }
    if isCollapsed, !mayShare(head) { return }
    if phase == .waiting {
      perform(machine.originAnswered(status: head.status, confirmsCopy: false))
    }
  }

  /// Whether a joiner may have the fill's answer; where not, it fetches for itself.
  private func mayShare(_ head: Fill.Head) -> Bool {
    if !head.isShareable {
      leaveFill()
      startAlone(notStored: nil)
      return false
    }
    guard let block = head.varyBlock else { return true }
    return isVariant(block) { head.fields }
  }

  /// The same of a copy that the fill had confirmed.
  private func mayShare(_ confirmation: Confirmation) -> Bool {
    guard confirmation.isShareable else {
      leaveFill()
      startAlone(notStored: nil)
      return false
    }
    return isVariant(confirmation.varyBlock) {
      StoredHead.fields(of: confirmation.record.view.head)
    }
  }

  /// Whether a block is this request's. Where it is not, another variant is wanted, and there is one
  /// fill for all who want the same.
  private func isVariant(_ block: [UInt8], of response: () -> Fields) -> Bool {
    let request = OriginRequestBuilder.forwardedFields(
      source.head.fields, route: source.route, forStore: true)
    if repository.matches(block: block.span, request) { return true }
    leaveFill()
    let own =
      repository.selectingBlock(response: response(), request: request, ignore: false) ?? []
    let variant = Vary.variantHash(own.span)
    let key = source.key!
    joinOrStart(tableKey: StoreKey(high: key.high ^ variant, low: key.low &+ variant))
    return false
  }

  /// The copy that the origin confirmed is not there: the whole answer is fetched.
  func refetchWhole() {
    leaveFill()
    machine.copyVanished()
    question = nil
    // Another's fill may ask the same question again: who has been here before goes alone.
    if hasLostCopy {
      startAlone(notStored: nil)
    } else {
      hasLostCopy = true
      joinOrStart(tableKey: source.key!)
    }
  }

  func waitForFill() {
    guard phase != .over, let fill else { return }
    fill.wait(self, on: worker)
    // What came between the last look and now would not be told.
    let progress = fill.progress
    if progress.ending != nil { worker.loop.later { [weak self] in self?.fillProgressed() } }
  }

  /// Sends the network's answer on, or holds it back while a copy could still take its place.
  private func relayOrHold() {
    guard let fill, phase == .waiting else { return }
    let progress = fill.progress
    if machine.mayStandIn, fetch?.holdsBack == true, progress.ending != .whole,
      progress.receivedBytes < worker.limits.rescueHoldBytes
    {
      waitForFill()
      return
    }
    if awaitsPart(progress) {
      waitForFill()
      return
    }
    beginRelay(progress)
  }

  private func deadlinePassed() {
    guard phase == .waiting else { return }
    let action = machine.deadlinePassed()
    if action != .wait { perform(action) }
  }

  // MARK: The end

  /// The answer is decided on, or out: nothing more is waited for.
  func finish() {
    phase = .over
    deadline?.cancel()
    deadline = nil
    leaveFill()
  }

  func leaveFill(abandoning: Bool = false) {
    guard let fill else { return }
    // Those who have joined it meanwhile look again, and find what made it needless.
    if abandoning { fill.end(.copyLost) }
    fill.leave(self, isSatisfied: phase == .over && !clientHasLeft)
    if phase != .over || abandoning { self.fill = nil }
  }
}

// MARK: - The client's side

extension Exchange {
  func clientTookAll() {
    guard phase == .relaying else { return }
    pump()
  }

  func requestBodyArrived(_ bytes: UnsafeRawBufferPointer) { requestBody?.append(bytes) }

  func requestBodyEnded() { requestBody?.end() }

  func clientFinishedSending() { fill?.giveUpPlaceInLine(of: self) }

  func clientLeft() {
    // Before the body fails, which the fill may report at once: there is nobody to answer.
    phase = .over
    clientHasLeft = true
    if connection.requestBodyIsComplete { fill?.goesOnAsChange() } else { requestBody?.fail() }
    finish()
    fill = nil
  }
}
