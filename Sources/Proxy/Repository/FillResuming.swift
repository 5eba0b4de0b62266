internal import Backends
internal import CachePolicy
internal import Synchronization

/// Asks for the rest of a body that broke off, so that its readers and the store have it whole
/// (RFC 9110 §15.3.7.3).
///
/// `Resumption` decides what may be put together; here it is carried out, on the fill's owner loop.
/// Readers notice nothing but the wait. What cannot be continued ends the fill as broken.
extension Fill {
  /// Whether the rest has been asked for.
  ///
  /// Only where the origin's answer broke off: a silence has used up the upstream's time, and what
  /// failed for reasons of our own would fail again.
  func resume(after error: OriginError) -> Bool {
    guard case .broken = error, !isEnded, resumptionsLeft > 0, let source,
      // A request's body has been read, and is not there a second time.
      source.head.framing == .none, let resumption = resumption ?? makeResumption()
    else { return false }
    let (receivedBytes, hasReaders, isPaused) = shared.withLock {
      ($0.received, !$0.readers.isEmpty, $0.isPaused)
    }
    guard metadata != nil || hasReaders, UInt64(receivedBytes) < resumption.completeLength else {
      return false
    }
    resumptionsLeft -= 1
    self.resumption = resumption
    let request = repository.originRequest(
      source, plan, resuming: resumption, from: receivedBytes)
    transfer = repository.remote.start(request, receiver: self)
    // The readers are as far behind as they were.
    if isPaused { transfer?.pause() }
    return true
  }

  private func makeResumption() -> Resumption? {
    guard let head = progress.head else { return nil }
    return Resumption(
      method: plan.method, request: plan.request, status: head.status, response: head.fields,
      contentLength: head.contentLength, nowSeconds: owner.clock.nowMilliseconds / 1000)
  }

  /// The head of the answer to that: the rest, or nothing that helps.
  func continueBody(_ resumption: Resumption, _ answer: OriginResponseHead) {
    let received = UInt64(progress.receivedBytes)
    guard
      resumption.isContinued(
        by: answer.status, answer.fields, contentLength: answer.contentLength, from: received)
    else {
      breakOff("the body broke off, and the origin has another now")
      return
    }
    repository.countResumedBody()
    guard metadata != nil, let head = progress.head else { return }
    // The origin may have come to forbid what it allowed (RFC 9111 §3.4).
    let merged = Validation.merge(
      stored: head.fields, answer: answer.fields,
      targeted: plan.route.targetedCacheControl)
    let now = owner.clock.nowMilliseconds
    let words = AnswerWords(
      status: head.status, merged, on: plan.route, method: plan.method, request: plan.request,
      requestDirectives: plan.directives, ownTags: plan.tags,
      requestTimeMilliseconds: plan.requestTimeMilliseconds, responseTimeMilliseconds: now
    ) { response, ignoresVary in
      repository.selectingBlock(response: response, request: plan.request, ignore: ignoresVary)
    }
    if let reason = words.notStored {
      stopStoring(reason)
    } else if words.varyBlock != head.varyBlock || words.tags != head.tags {
      // It would lie where others find it, or where a purge does not.
      stopStoring(.incomplete)
    }
  }

  /// False: more came than belongs to the body, and the fill has ended.
  func isWithinResumedBody(_ arrivedBytes: Int) -> Bool {
    guard let resumption else { return true }
    guard UInt64(progress.receivedBytes + arrivedBytes) > resumption.completeLength else {
      return true
    }
    breakOff("the rest of the body is longer than its Content-Range")
    return false
  }

  private func breakOff(_ reason: String) {
    transfer?.cancel()
    stopStoring(.incomplete)
    end(.failed(.broken(reason)))
  }
}
