internal import Backends
internal import CachePolicy
internal import Synchronization

/// A fill that waits for a place among those that its upstream is asked by.
struct QueuedFill {
  let request: OriginRequest
  let ticket: UInt64
  let timer: LoopTimer
}

/// The fill's way through its upstream's gate, and the time that a refresh has; on the owner loop.
extension Fill {
  /// Asks the origin, now or when there is a place; fails where there is none in time.
  func enterUpstream(_ request: OriginRequest) {
    if hasPlace {
      send(request)
      return
    }
    switch plan.route.gate.enter(self) {
    case .admitted:
      hasPlace = true
      send(request)
    case .waits(let ticket, let milliseconds):
      let timer = LoopTimer(loop: owner.loop, afterMilliseconds: milliseconds) { [weak self] in
        self?.waitedInVain()
      }
      queued = QueuedFill(request: request, ticket: ticket, timer: timer)
    case .refused:
      // Whoever begins it has not returned yet.
      owner.loop.later { [weak self] in self?.failAsBusy() }
    }
  }

  private func send(_ request: OriginRequest) {
    transfer = repository.remote.start(request, receiver: self)
    if plan.isBackground, !isEnded { limitTime() }
  }

  /// The gate gives it a place; told on the owner loop.
  func placeIsFree() {
    guard let queued, !isEnded else {
      plan.route.gate.leave()
      return
    }
    queued.timer.cancel()
    self.queued = nil
    hasPlace = true
    send(queued.request)
  }

  private func waitedInVain() {
    guard let queued, plan.route.gate.giveUp(ticket: queued.ticket, isRefused: true) else { return }
    self.queued = nil
    failAsBusy()
  }

  /// Its only reader may be gone: nothing was sent for it yet, and others wait for the place. Told to
  /// go, as the others are whose time is over; one that still reads learns so.
  func giveUpPlaceInLine(of reader: any FillReader) {
    guard owner.loop.isCurrent, queued != nil,
      shared.withLock({ $0.readers.count == 1 && $0.readers.contains(reader) })
    else { return }
    waitedInVain()
  }

  private func failAsBusy() {
    originFailed(.busy(retryAfterSeconds: plan.route.gate.retryAfterSeconds))
  }

  /// It has ended.
  func leaveUpstream() {
    patience?.cancel()
    patience = nil
    if hasPlace {
      hasPlace = false
      plan.route.gate.leave()
    }
    if let queued {
      queued.timer.cancel()
      // Where a place is on its way, `placeIsFree` gives it back.
      _ = plan.route.gate.giveUp(ticket: queued.ticket, isRefused: false)
      self.queued = nil
    }
  }

  /// Ends a refresh that trickles while nobody reads it.
  private func limitTime() {
    let milliseconds = plan.route.endpoint.stallTimeoutMilliseconds
    var rule = RefreshPatience()
    patience = LoopTimer(
      loop: owner.loop, afterMilliseconds: milliseconds, repeatMilliseconds: milliseconds
    ) { [weak self] in
      guard let self, !isEnded else { return }
      let (received, isRead) = shared.withLock { ($0.received, !$0.readers.isEmpty) }
      guard !rule.goesOn(receivedBytes: UInt64(received)), !isRead else { return }
      transfer?.cancel()
      stopStoring(.incomplete)
      end(.failed(.timedOut("the refresh brought too little in its time")))
    }
  }
}
