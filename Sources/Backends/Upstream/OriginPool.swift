/// One endpoint's connections on one loop, and the transfers that wait for one.
///
/// A value store without a will of its own: `HTTP1Client` decides.
final class OriginPool {
  let endpoint: OriginEndpoint
  /// Connections that carry nothing, the one used last behind the others.
  var idle: [HTTP1Connection] = []
  /// Connections that are open or being made.
  var connectionCount = 0
  /// Those that are being made.
  var connectingCount = 0
  /// A reload has taken the endpoint away: nothing is kept for it.
  var isRetired = false

  /// Transfers in the order of their coming; those that have left the line lie among them still.
  private var line: [HTTP1Transfer] = []
  private var lineStart = 0
  private(set) var waitingCount = 0

  init(endpoint: OriginEndpoint) { self.endpoint = endpoint }

  func enqueue(_ transfer: HTTP1Transfer) {
    transfer.isInLine = true
    line.append(transfer)
    waitingCount += 1
  }

  func leave(_ transfer: HTTP1Transfer) {
    guard transfer.isInLine else { return }
    transfer.isInLine = false
    waitingCount -= 1
    if waitingCount == 0 { clear() }
  }

  /// Takes the one who has waited longest.
  func next() -> HTTP1Transfer? {
    while lineStart < line.count {
      let transfer = line[lineStart]
      lineStart += 1
      guard transfer.isInLine else { continue }
      leave(transfer)
      // What has been taken is let go of before it is the larger part.
      if lineStart > 64, lineStart * 2 > line.count {
        line.removeFirst(lineStart)
        lineStart = 0
      }
      return transfer
    }
    return nil
  }

  private func clear() {
    line.removeAll()
    lineStart = 0
  }
}
