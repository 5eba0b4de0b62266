internal import Backends
internal import CachePolicy
internal import Synchronization

/// Gives a fill up that nobody reads any more, where nothing is stored of it or the route does not
/// finish such fetches.
///
/// `AbandonedFill` decides on what is stored; here it is asked and carried out, on the fill's owner
/// loop: when the last reader goes, with the head, and with every body byte that nobody waits for.
/// What is given up leaves nothing in the store, and whoever comes begins anew.
extension Fill {
  /// How a fill ends that nobody wants any more.
  static let deserted = OriginError.broken("all clients left")

  func giveUpIfAbandoned() {
    guard !isEnded else { return }
    // Under one lock: who joins before stays, and who comes behind does not join.
    let isAbandoned = shared.withLock { shared in
      guard shared.readers.isEmpty, shared.ending == nil, !goesOnUnread(shared) else {
        return false
      }
      shared.isAbandoned = true
      return true
    }
    guard isAbandoned else { return }
    repository.services.fillTable.close(self)
    transfer?.cancel()
    stopStoring(.abandoned)
    end(.failed(Fill.deserted))
  }

  /// The client of a change has left with its request sent: the origin may carry it out, and what its
  /// answer says of stored copies is to be heard.
  func goesOnAsChange() {
    if plan.change != nil { isChangeUnderWay = true }
  }

  private func goesOnUnread(_ shared: Shared) -> Bool {
    // Nothing has been sent, and somebody else may have the place.
    if queued != nil { return false }
    if shared.head == nil, isChangeUnderWay { return true }
    let isWanted =
      shared.head == nil ? plan.notStored == nil : shared.isStoring && !isSpilling
    guard isWanted else { return false }
    if plan.isBackground || shared.hasSatisfied { return true }
    return plan.route.policy.whenAbandoned.goesOn(
      receivedBytes: UInt64(shared.received), declaredBytes: shared.head?.contentLength)
  }
}
