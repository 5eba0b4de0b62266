/// One endpoint's connections on one loop, and the transfers that wait for one.
///
/// It only keeps them in order: `HTTP1Client` decides.
final class OriginPool {
  let endpoint: OriginEndpoint
  /// Connections that carry nothing, the one used last behind the others.
  var idle: [HTTP1Connection] = []
  /// Connections that are open or being made.
  var connectionCount = 0
  /// Those that are being made.
  var connectingCount = 0
  /// More are being asked for just now.
  var isConnecting = false
  /// A reload has taken the endpoint away: nothing is kept for it.
  var isRetired = false

  /// Those who take any connection.
  private var line = TransferLine()
  /// Those who were sent on a kept connection that was dead: they take a new one, since a failed
  /// repetition is not to be repeated (RFC 9112 §9.3.1).
  private var lineForNew = TransferLine()

  init(endpoint: OriginEndpoint) { self.endpoint = endpoint }

  var waitingCount: Int { line.count + lineForNew.count }

  func enqueue(_ transfer: HTTP1Transfer) {
    transfer.waitsIn = self
    if transfer.isRenewed { lineForNew.append(transfer) } else { line.append(transfer) }
  }

  /// Nothing where it does not wait here.
  func leave(_ transfer: HTTP1Transfer) {
    guard transfer.waitsIn === self else { return }
    transfer.waitsIn = nil
    if transfer.isRenewed { lineForNew.noteLeft() } else { line.noteLeft() }
  }

  /// Takes the one who has waited longest for a connection of that kind.
  func next(isNew: Bool) -> HTTP1Transfer? {
    guard waitingCount > 0, let transfer = (isNew ? lineForNew.take() : nil) ?? line.take() else {
      return nil
    }
    leave(transfer)
    return transfer
  }
}

/// Transfers in the order of their coming; those that have left lie among them for a while.
private struct TransferLine {
  private var transfers: [HTTP1Transfer] = []
  private var start = 0
  /// Those that wait still.
  private(set) var count = 0

  mutating func append(_ transfer: HTTP1Transfer) {
    transfers.append(transfer)
    count += 1
  }

  /// The first that waits still. What lies before it is looked at no more: who was taken may come
  /// back, behind the others.
  mutating func take() -> HTTP1Transfer? {
    while start < transfers.count {
      let transfer = transfers[start]
      start += 1
      if transfer.waitsIn != nil { return transfer }
    }
    return nil
  }

  /// One of them waits no longer, and is let go of before such are the larger part.
  mutating func noteLeft() {
    count -= 1
    if count == 0 {
      transfers.removeAll()
      start = 0
    } else if transfers.count > 64, transfers.count > 2 * count {
      transfers = transfers[start...].filter { $0.waitsIn != nil }
      start = 0
    }
  }
}
