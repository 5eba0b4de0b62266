internal import CachePolicy
internal import Dispatch

@testable import Backends
@testable import Support

/// An `OriginClient` on a loop of its own, and the origin that it asks: a listening socket that the
/// test itself plays, byte by byte.
///
/// Nothing here sleeps. `settle` returns when the loop has read what was sent to it.
final class OriginFixture: @unchecked Sendable {
  // @unchecked Sendable: `client` is touched on the loop alone; the rest is constant or locked.
  let loop = EventLoop()
  let endpoint: OriginEndpoint
  private(set) var client: OriginClient!
  private let thread: LoopThread
  private let listener: StreamSocket
  private let accepted = Monitored<[StreamSocket]>([])
  private var acceptor: LoopThread?

  struct Limits {
    var connectionsMax = 8
    var idleConnectionsMax = 8
    var connectTimeoutMilliseconds: Int64 = 60_000
    var firstByteTimeoutMilliseconds: Int64 = 60_000
    var stallTimeoutMilliseconds: Int64 = 60_000
    var retriesMax = 0
    /// The origin's port is bound, and nobody listens.
    var isClosed = false
    /// Makes the connections; nil: libcurl.
    var connector: ScriptedConnector?
  }

  init(_ limits: Limits = Limits()) throws {
    OriginClient.prepareProcess()
    _ = ignoringBrokenPipes
    listener = try StreamSocket.bound(port: 0)
    if !limits.isClosed { try listener.listen() }
    endpoint = OriginFixture.endpoint(port: listener.port, limits)
    let client = OriginClient(
      loop: loop, endpoints: [endpoint], connectionsMax: limits.connectionsMax,
      idleConnectionsMax: limits.idleConnectionsMax, connector: limits.connector)
    self.client = client
    thread = loop.start()
    guard !limits.isClosed else { return }
    let (listener, accepted) = (listener, accepted)
    acceptor = LoopThread {
      while let socket = listener.accept() {
        socket.boundReceiving()
        accepted.update { $0.append(socket) }
      }
    }
  }

  static func endpoint(port: UInt16, _ limits: Limits = Limits()) -> OriginEndpoint {
    OriginEndpoint(
      url: "http://127.0.0.1:\(port)",
      connectTimeoutMilliseconds: limits.connectTimeoutMilliseconds,
      firstByteTimeoutMilliseconds: limits.firstByteTimeoutMilliseconds,
      stallTimeoutMilliseconds: limits.stallTimeoutMilliseconds, retriesMax: limits.retriesMax)
  }

  var port: UInt16 { listener.port }

  /// Does work on the loop, and waits for it.
  func onLoop<Result>(_ work: @escaping () -> Result) -> Result {
    let box = Box<Result>()
    let call = Unchecked(value: work)
    let done = DispatchSemaphore(value: 0)
    loop.post {
      box.value = call.value()
      done.signal()
    }
    done.wait()
    return box.value!
  }

  private struct Unchecked<Value>: @unchecked Sendable { let value: Value }
  private final class Box<Value>: @unchecked Sendable { var value: Value? }

  /// Returns when the loop has dealt with all that was sent to it before: what is readable when the
  /// first message comes is read in the same turn, and the second comes in a later one.
  func settle() {
    onLoop {}
    onLoop {}
  }

  /// Returns when the loop's clock has moved on by so much, then lets the client look at it.
  func tick(afterMilliseconds milliseconds: UInt64) {
    let begin = onLoop { self.loop.monotonicMilliseconds }
    while onLoop({ self.loop.monotonicMilliseconds }) <= begin + milliseconds {}
    onLoop { self.client.tick() }
  }

  /// The client's next connection, in the order of their coming.
  func accept() -> OriginSide? {
    guard accepted.wait(until: { !$0.isEmpty }) else { return nil }
    return OriginSide(accepted.update { $0.removeFirst() }, self)
  }

  /// Connections that came, and were not taken by `accept`.
  var waitingConnections: Int { accepted.read { $0.count } }

  /// Nobody is listened to any more; the connections there are stay.
  func stopListening() {
    listener.interrupt()
    acceptor?.join()
    listener.close()
  }

  func start(
    _ method: Method = .get, body: ScriptedBody? = nil, length: Int64? = nil,
    to other: OriginEndpoint? = nil,
    on event: @escaping (Exchanged, Exchanged.Event) -> Void = { _, _ in }
  ) -> Exchanged {
    let exchanged = Exchanged(on: event)
    let body = body.map { Unchecked(value: $0) }
    onLoop { [self] in
      exchanged.begin(client, other ?? endpoint, method, body?.value, length)
    }
    return exchanged
  }

  var counters: OriginCounters { onLoop { self.client.counters } }

  /// Closes the client, and ends the loop.
  func stop() {
    onLoop { self.client.close() }
    loop.stop()
    thread.join()
    stopListening()
  }
}

/// The origin's end of one connection.
final class OriginSide {
  private let socket: StreamSocket
  private let fixture: OriginFixture
  private var received: [UInt8] = []

  init(_ socket: StreamSocket, _ fixture: OriginFixture) {
    self.socket = socket
    self.fixture = fixture
  }

  /// The next request's head; nil: the client has closed.
  @discardableResult
  func readHead() -> String? {
    while true {
      if let end = end(of: received) {
        let head = String(decoding: received[..<(end - 4)], as: UTF8.self)
        received.removeFirst(end)
        return head
      }
      guard case .bytes = socket.receive(appendingTo: &received) else { return nil }
    }
  }

  private func end(of bytes: [UInt8]) -> Int? {
    guard bytes.count >= 4 else { return nil }
    for index in 4...bytes.count
    where bytes[(index - 4)..<index].elementsEqual([0x0D, 0x0A, 0x0D, 0x0A]) { return index }
    return nil
  }

  /// So many bytes behind the head; fewer where the client closes.
  func read(_ count: Int) -> String {
    while received.count < count {
      guard case .bytes = socket.receive(appendingTo: &received) else { break }
    }
    let taken = received.prefix(count)
    received.removeFirst(taken.count)
    return String(decoding: taken, as: UTF8.self)
  }

  /// All that comes until the client closes; nil: it does not.
  func readToEnd() -> [UInt8]? {
    while true {
      switch socket.receive(appendingTo: &received) {
      case .bytes: continue
      case .end, .reset:
        defer { received = [] }
        return received
      case .timedOut: return nil
      }
    }
  }

  /// Sends bytes, and waits until the client has seen them.
  func send(_ text: String) { send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) {
    socket.send(bytes)
    fixture.settle()
  }

  func finishSending() {
    socket.finishSending()
    fixture.settle()
  }

  func close() {
    socket.close()
    fixture.settle()
  }

  func reset() {
    socket.reset()
    fixture.settle()
  }
}
