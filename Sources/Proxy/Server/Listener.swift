internal import Backends
internal import CachePolicy
internal import Synchronization

/// Accepts connections on one socket and hands each to the loop that has the fewest.
///
/// One loop accepts for all: two processes can then never share a port by accident, as they could
/// with SO_REUSEPORT, and long-lived connections spread evenly, as they do not by its hash.
final class Listener {
  private let socket: ListeningSocket
  private let workers: [Worker]
  private let handlers: [any RequestHandler]
  private let gate: ConnectionGate
  private var watcher: SocketWatcher?

  /// `handlers` has one for each worker. `start` is called on the first worker's loop.
  init(
    socket: ListeningSocket, workers: [Worker], handlers: [any RequestHandler],
    gate: ConnectionGate
  ) {
    self.socket = socket
    self.workers = workers
    self.handlers = handlers
    self.gate = gate
  }

  func start() {
    watcher = SocketWatcher(loop: workers[0].loop, descriptor: socket.descriptor) {
      [unowned self] _, _ in acceptAll()
    }
    watcher?.watch(.readable)
  }

  /// The most connections that one turn accepts, so that those already open are served too.
  private static let acceptsPerTurn = 64

  private func acceptAll(atMost count: Int = Listener.acceptsPerTurn) {
    for _ in 0..<count {
      do throws(AcceptError) {
        guard let accepted = try socket.accept() else { return }
        take(accepted.descriptor, accepted.peer)
      } catch {
        // Out of descriptors or memory: the waiting connections stay in the kernel's queue, and
        // the tick looks at them again; trying at once would only spin.
        gate.acceptFailures.add(1, ordering: .relaxed)
        watcher?.watch([])
        return
      }
    }
  }

  /// Looks at waiting connections again after a failure; called with the first worker's tick.
  func tick() { watcher?.watch(.readable) }

  private func take(_ descriptor: Int32, _ peer: SocketAddress) {
    guard gate.enter() else {
      refuse(descriptor)
      return
    }
    var best = 0
    var fewest = Int.max
    for (index, worker) in workers.enumerated() {
      let count = worker.connectionCount.load(ordering: .relaxed)
      if count < fewest {
        fewest = count
        best = index
      }
    }
    let worker = workers[best]
    worker.connectionCount.add(1, ordering: .relaxed)
    let gate = self.gate
    if best == 0 {
      worker.adopt(descriptor, peer: peer, handler: handlers[0]) { gate.leave() }
    } else {
      let handler = HandlerReference(handler: handlers[best])
      worker.loop.post {
        worker.adopt(descriptor, peer: peer, handler: handler.handler) { gate.leave() }
      }
    }
  }

  private static let refusal: StaticString = """
    HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n\
    Cache-Control: no-store\r\nConnection: close\r\n\r\n
    """

  /// Politely: with an answer, best effort, and at no cost to the loop.
  private func refuse(_ descriptor: Int32) {
    let text = Listener.refusal
    sendAndClose(
      descriptor, UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Accepts no more. Who has connected already is served: to close the socket over them would
  /// reset connections that, for all their clients know, are open.
  func close() {
    acceptAll(atMost: 4096)
    watcher?.close()
    watcher = nil
    socket.closeSocket()
  }
}

/// Carries a handler to the loop it belongs to.
private struct HandlerReference: @unchecked Sendable {
  // @unchecked Sendable: the handler is used on its own worker's loop alone.
  let handler: any RequestHandler
}

/// Counts the process's client connections and holds their number to its limit.
final class ConnectionGate: Sendable {
  let connectionsMax: Atomic<Int>
  let open = Atomic<Int>(0)
  let accepted = Atomic<UInt64>(0)
  let refused = Atomic<UInt64>(0)
  let acceptFailures = Atomic<UInt64>(0)

  init(connectionsMax: Int) { self.connectionsMax = Atomic(connectionsMax) }

  func enter() -> Bool {
    guard open.load(ordering: .relaxed) < connectionsMax.load(ordering: .relaxed) else {
      refused.add(1, ordering: .relaxed)
      return false
    }
    open.add(1, ordering: .relaxed)
    accepted.add(1, ordering: .relaxed)
    return true
  }

  func leave() { open.subtract(1, ordering: .relaxed) }
}
