internal import Backends
internal import CachePolicy
internal import Synchronization

/// One event loop with its client connections: the unit that everything on the data path belongs to.
///
/// Owns the scratch memory that requests are parsed and answers encoded in, and the tick that
/// enforces every time limit of its connections. Touched on its loop alone, but for the atomics.
final class Worker: @unchecked Sendable {
  // @unchecked Sendable: handed across threads as a reference, used through `loop.post`.

  /// How often time limits are looked at.
  static let tickMilliseconds: Int64 = 100

  let index: Int
  let loop = EventLoop()
  /// Those of the configuration in force; a reload changes them.
  var limits: Limits {
    didSet { head.forgetBlock() }
  }
  let clock: Clock
  /// How many connections this loop serves; read by the accepting loop to find the least busy.
  let connectionCount = Atomic<Int>(0)

  /// Where heads are parsed; a request that outlives its turn takes a copy.
  let head = RequestHead()
  /// Where answers' heads are encoded.
  let output = OutputBuffer()
  /// Answers that wait for those behind them, so that pipelined requests are answered by one write;
  /// of the connection that takes requests just now.
  let held = OutputBuffer()
  private(set) var isDraining = false

  private var connections: [Connection] = []
  private var tickTimer: LoopTimer?
  private var tickWork: [() -> Void] = []
  private var closeWork: [() -> Void] = []
  private var thread: LoopThread?
  private var dateSecond: Int64 = -1
  private var dateBytes: [UInt8] = []

  init(index: Int, limits: Limits, clock: Clock) {
    self.index = index
    self.limits = limits
    self.clock = clock
  }

  /// Runs the loop on a thread of its own.
  func start() {
    loop.post { [self] in
      tickTimer = LoopTimer(
        loop: loop, afterMilliseconds: Worker.tickMilliseconds,
        repeatMilliseconds: Worker.tickMilliseconds
      ) { [unowned self] in tick() }
    }
    thread = loop.start()
  }

  /// Adds work that is done with every tick, and work that is done when the loop ends.
  func onTick(_ work: @escaping () -> Void) { tickWork.append(work) }
  func onClose(_ work: @escaping () -> Void) { closeWork.append(work) }

  private func tick() {
    let now = loop.monotonicMilliseconds
    for work in tickWork { work() }
    var index = connections.count
    while index > 0 {
      index -= 1
      // A connection that closes leaves the list at once, the last one taking its place.
      if index < connections.count { connections[index].checkPatience(now) }
    }
  }

  // MARK: Connections

  /// Takes over an accepted descriptor.
  func adopt(
    _ descriptor: Int32, peer: SocketAddress, handler: any RequestHandler,
    onClose: @escaping @Sendable () -> Void
  ) {
    guard
      let connection = Connection(
        worker: self, descriptor: descriptor, peer: peer, handler: handler, onClose: onClose)
    else {
      closeDescriptor(descriptor)
      connectionCount.subtract(1, ordering: .relaxed)
      onClose()
      return
    }
    connection.slot = connections.count
    connections.append(connection)
    connection.start()
  }

  func forget(_ connection: Connection) {
    let last = connections.removeLast()
    if last !== connection {
      connections[connection.slot] = last
      last.slot = connection.slot
    }
    connectionCount.subtract(1, ordering: .relaxed)
  }

  // MARK: The end

  /// Closes idle connections, and has the others close after their answer.
  func drain() {
    isDraining = true
    for connection in connections.reversed() { connection.drain() }
  }

  /// Closes everything and ends the loop; `join` waits for its thread.
  func stop() {
    loop.post { [self] in
      for connection in connections.reversed() { connection.close() }
      for work in closeWork { work() }
      tickTimer?.cancel()
      tickWork = []
      closeWork = []
      loop.stop()
    }
  }

  func join() { thread?.join() }

  // MARK: Date

  /// The Date field's value for now, formatted once a second.
  func date() -> [UInt8] {
    let second = clock.nowMilliseconds / 1000
    if second != dateSecond {
      dateSecond = second
      dateBytes.removeAll(keepingCapacity: true)
      HTTPDate.format(second, into: &dateBytes)
    }
    return dateBytes
  }
}
