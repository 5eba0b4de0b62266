internal import Backends
internal import CachePolicy

/// Answers a request that has waited for the network: by the copy, by the network's answer, or by an
/// error of ours.
extension Exchange {
  func serveCopy(_ use: StrategyMachine.CopyUse) {
    let reader = repository.reader
    reader.begin()
    if use == .confirmed, case .confirmed(let confirmation) = fill?.progress.ending {
      withExtendedLifetime(confirmation) { serve(confirmation.record.view, use) }
      return
    }
    guard
      let record = repository.selectRecord(
        source.key!, wholeKey: source.wholeKey, request: source.head)
    else {
      reader.end()
      copyVanished(use)
      return
    }
    serve(record, use)
  }

  /// Within the reader's begin; ends it.
  func serve(_ record: RecordView, _ use: StrategyMachine.CopyUse) {
    let state = Freshness.copyState(
      of: record.metadata, policy: source.route.policy, request: machine.request.directives,
      nowMilliseconds: services.clock.nowMilliseconds)
    let status: UInt16? =
      use == .confirmed ? 304 : fill?.progress.head?.status ?? brokenStatus
    // A copy that landed meanwhile is a plain hit, and so is one for which nobody was asked.
    let isHit = use == .fresh || isUnasked || isBusy
    let forward = isHit ? nil : fetch.map { (reason: $0.reason, status: status) }
    let entryID = record.entryID
    let answer = CopyAnswer(
      record: record, state: state, route: source.route, use: use, forward: forward,
      isCollapsed: isCollapsed && forward != nil)
    let outcome = CopyServing.begin(answer, of: source.head, on: connection, by: repository)
    repository.reader.end()
    switch outcome {
    case .written:
      if isCollapsed { repository.countCollapsed(source.route) }
      finish()
      connection.endAnswer()
    case .streaming(let stream):
      if isCollapsed { repository.countCollapsed(source.route) }
      finish()
      stream.start()
    case .gone:
      goneEntryID = entryID
      copyVanished(use)
    }
  }

  private func copyVanished(_ use: StrategyMachine.CopyUse) {
    switch use {
    case .confirmed, .fresh: refetchWhole()
    case .deadline:
      // Without a copy the network is waited for, which is still on its way.
      machine.copyVanished()
      question = nil
      if let progress = fill?.progress, progress.head != nil { beginRelay(progress) }
    case .networkFailed, .stale:
      if let progress = fill?.progress, progress.head != nil {
        beginRelay(progress)
      } else {
        fail(.network)
      }
    }
  }

  /// A copy that landed while this request was on its way to begin a fill, where the strategy may
  /// serve it. The reader is begun where one is returned.
  func landedCopy() -> RecordView? {
    guard source.route.policy.strategy != .networkFirst else { return nil }
    let reader = repository.reader
    if let number = lackedInSnapshot, reader.stillLacks(source.key!, sinceSnapshot: number) {
      return nil
    }
    reader.begin()
    if let record = repository.selectRecord(
      source.key!, wholeKey: source.wholeKey, request: source.head),
      record.entryID != goneEntryID
    {
      let state = Freshness.copyState(
        of: record.metadata, policy: source.route.policy, request: machine.request.directives,
        nowMilliseconds: services.clock.nowMilliseconds)
      if state.isFresh { return record }
    }
    reader.end()
    return nil
  }

  func fail(_ failure: StrategyMachine.Failure) {
    let problem: Problem
    switch failure {
    case .notStored:
      problem = Problem(status: 504, detail: "no stored answer, and the network is not asked")
    case .staleForbidden where isBusy, .network where isBusy: problem = busyProblem
    case .staleForbidden:
      problem = Problem(
        status: 504,
        detail: "the stored answer must not serve without the origin: \(lastError?.reason ?? "")")
    case .network: problem = networkProblem
    }
    finish()
    leaveFill()
    repository.count(.error, route: source.route, isCollapsed: isCollapsed)
    connection.respond(
      problem,
      cacheStatus: Exchange.cacheStatus(
        of: failure, forward: fetch?.reason ?? passReason, isBusy: isBusy))
  }

  /// `Cache-Status` of a failure. `forward`: why the network was asked; nil: it was not.
  static func cacheStatus(
    of failure: StrategyMachine.Failure, forward: StrategyMachine.ForwardReason?,
    isBusy: Bool = false
  ) -> String {
    let word = forward.map { "fwd=\($0.rawValue)" } ?? "fwd=miss"
    let detail =
      isBusy ? "upstream-busy" : failure == .network ? "origin-failed" : failure.rawValue
    return "larder; \(word); detail=\(detail)"
  }

  /// Whether it was not the origin that failed, but its upstream's limits that let nobody ask it.
  private var isBusy: Bool {
    if case .busy = lastError { true } else { false }
  }

  /// RFC 9110 §15.6.4. Also where a stale copy is forbidden: 504 would blame the origin
  /// (RFC 9111 §5.2.2.2 leaves it to the more fitting status).
  private var busyProblem: Problem {
    guard case .busy(let seconds) = lastError else { return networkProblem }
    return Problem(
      status: 503, detail: lastError?.reason ?? "", fields: [("Retry-After", "\(seconds)")])
  }

  private var networkProblem: Problem {
    switch lastError {
    case .timedOut(let text): Problem(status: 504, detail: "the origin was too late: \(text)")
    case .requestBodyFailed: Problem(status: 400, detail: "the request's body broke off")
    case let error?: Problem(status: 502, detail: error.reason)
    case nil: Problem(status: 502, detail: "the origin gave no answer")
    }
  }

  /// Whether the client has what the network answers. A condition goes before a range
  /// (RFC 9110 §13.2.2).
  private func isNotModified(_ head: Fill.Head) -> Bool {
    fetch?.isShared == true
      && Validation.notModified(
        request: source.head.fields, status: head.status, stored: head.fields,
        nowSeconds: services.clock.nowMilliseconds / 1000)
  }

  /// Whether what has come does not yet say what the client gets. Nothing of the answer is out, so
  /// that a copy may still take its place.
  func awaitsPart(_ progress: Fill.Progress) -> Bool {
    guard source.head.fields.contains(.range), let head = progress.head, !isNotModified(head) else {
      return false
    }
    return requestedPart(head, progress) == .notYet
  }

  func beginRelay(_ progress: Fill.Progress) {
    guard let head = progress.head else { return }
    machine.answerBegan()
    deadline?.cancel()
    deadline = nil
    phase = .relaying
    let isMiss = head.notStored == nil && fetch != nil
    repository.count(isMiss ? .miss : .pass, route: source.route, isCollapsed: isCollapsed)
    connection.answerHasBegun = true
    if isNotModified(head) {
      writeNotModified(head)
      return
    }
    switch requestedPart(head, progress) {
    case .whole, .notYet:
      let whole = progress.ending == .whole ? UInt64(progress.receivedBytes) : nil
      encodeHead(head, knownLength: whole)
    case .part(let part, let length): encodePartialHead(head, part, of: length)
    case .unsatisfiable(let length):
      writeUnsatisfiable(head, length)
      return
    }
    pump(afterHead: true)
  }
}
