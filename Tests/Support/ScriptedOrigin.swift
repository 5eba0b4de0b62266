internal import Foundation

/// A real HTTP/1.1 server on 127.0.0.1 that does exactly what a test scripts, path by path.
///
/// It runs on threads of its own, one for accepting and one a connection. It records every request,
/// and the test waits for requests and answers by condition, never by time. `stop` makes it an
/// origin that is gone: connections are refused, and nobody else gets the port meanwhile.
public final class ScriptedOrigin: Sendable {
  public typealias Script = @Sendable (RecordedRequest) -> OriginAnswer

  private struct State {
    var scripts: [String: Script] = [:]
    var requests: [RecordedRequest] = []
    var answers: [String: Int] = [:]
    var listener: StreamSocket?
    var connections: [ObjectIdentifier: StreamSocket] = [:]
    var gates: [ObjectIdentifier: Gate] = [:]
    var threadCount = 0
    var connectionCount = 0
  }

  public let port: UInt16
  /// Bound and never listening: it keeps the port while the origin is stopped.
  private let reservation: StreamSocket
  private let state = Monitored(State())

  public init() throws {
    _ = ignoringBrokenPipes
    let listener = try StreamSocket.bound(port: 0)
    port = listener.port
    reservation = try StreamSocket.bound(port: port)
    try run(listener)
  }

  deinit { stop() }

  // MARK: The script

  /// What a path's requests get; each path begins with 404.
  public func on(_ path: String, _ script: @escaping Script) {
    state.update { $0.scripts[path] = script }
  }

  public func on(_ path: String, _ answer: OriginAnswer) { on(path) { _ in answer } }

  /// One answer after the other; the last one for all that follow.
  public func on(_ path: String, inTurn answers: [OriginAnswer]) {
    precondition(!answers.isEmpty, "a script needs an answer")
    let first = requestCount(path)
    on(path) { answers[min($0.number - first, answers.count) - 1] }
  }

  // MARK: What it saw

  public var requests: [RecordedRequest] { state.read(\.requests) }

  public func requests(_ path: String) -> [RecordedRequest] {
    requests.filter { $0.path == path }
  }

  public func requestCount(_ path: String) -> Int {
    state.read { state in state.requests.count { $0.path == path } }
  }

  /// How many connections it has accepted.
  public var connectionCount: Int { state.read(\.connectionCount) }

  /// Waits until a path has had so many requests; false: it took far too long.
  public func waitForRequests(_ path: String, _ count: Int) -> Bool {
    state.wait { state in state.requests.count { $0.path == path } >= count }
  }

  /// Waits until so many answers of a path are out, to their end or to where they break.
  public func waitForAnswers(_ path: String, _ count: Int) -> Bool {
    state.wait { $0.answers[path, default: 0] >= count }
  }

  // MARK: Coming and going

  /// Kills it: what is open is cut, new connections are refused. Returns when its threads are gone.
  public func stop() {
    let (listener, connections, gates) = state.update { state in
      let taken = (state.listener, Array(state.connections.values), Array(state.gates.values))
      state.listener = nil
      return taken
    }
    listener?.interrupt()
    for connection in connections { connection.interrupt() }
    for gate in gates { gate.open() }
    _ = state.wait { $0.threadCount == 0 }
  }

  /// Comes back on the same port, with the same scripts.
  public func restart() throws { try run(try StreamSocket.bound(port: port)) }

  private func run(_ listener: StreamSocket) throws {
    try listener.listen()
    state.update { state in
      state.listener = listener
      state.threadCount += 1
    }
    let state = self.state
    Thread.detachNewThread {
      while let connection = listener.accept() {
        guard ScriptedOrigin.enter(connection, state) else { break }
        Thread.detachNewThread { ScriptedOrigin.serve(connection, state) }
      }
      listener.close()
      state.update { $0.threadCount -= 1 }
    }
  }

  /// False: the origin has stopped meanwhile.
  private static func enter(_ connection: StreamSocket, _ state: Monitored<State>) -> Bool {
    state.update { state in
      guard state.listener != nil else { return false }
      state.connections[ObjectIdentifier(connection)] = connection
      state.threadCount += 1
      state.connectionCount += 1
      return true
    }
  }

  // MARK: A connection

  private static func serve(_ connection: StreamSocket, _ state: Monitored<State>) {
    var reader = RequestReader(connection)
    while let request = reader.next() {
      let (recorded, script) = state.update { state in
        var recorded = request
        recorded.number = state.requests.count { $0.path == request.path } + 1
        state.requests.append(recorded)
        return (recorded, state.scripts[request.path])
      }
      let answer = script?(recorded) ?? .text("no script for this path\n", status: 404)
      let goesOn = Delivery(answer, recorded, connection) { gate in
        wait(at: gate, state)
      }.run()
      state.update { $0.answers[request.path, default: 0] += 1 }
      if !goesOn { break }
    }
    connection.close()
    state.update { state in
      state.connections[ObjectIdentifier(connection)] = nil
      state.threadCount -= 1
    }
  }

  /// Waits at a gate in such a way that `stop` does not have to wait with it.
  private static func wait(at gate: Gate, _ state: Monitored<State>) {
    let isRunning = state.update { state in
      state.gates[ObjectIdentifier(gate)] = gate
      return state.listener != nil
    }
    if isRunning { gate.pass() }
  }
}

/// One answer on its way out.
private struct Delivery {
  let answer: OriginAnswer
  let request: RecordedRequest
  let connection: StreamSocket
  let waitAt: (Gate) -> Void

  init(
    _ answer: OriginAnswer, _ request: RecordedRequest, _ connection: StreamSocket,
    waitAt: @escaping (Gate) -> Void
  ) {
    self.answer = answer
    self.request = request
    self.connection = connection
    self.waitAt = waitAt
  }

  /// Whether the connection can carry another answer.
  func run() -> Bool {
    if let gate = answer.gateBeforeHead { waitAt(gate) }
    if let raw = answer.rawBytes {
      connection.send(raw)
      return end(by: .close)
    }
    if let how = answer.breaksBeforeHead { return end(by: how) }
    guard connection.send(answer.interimBytes + answer.headBytes) else { return false }
    if request.method == "HEAD" || !answer.mayHaveBody { return true }
    return sendBody()
  }

  private func sendBody() -> Bool {
    let end = min(answer.breakOff?.byteCount ?? .max, answer.body.count)
    var position = 0
    for pause in answer.pauses.sorted(by: { $0.byteCount < $1.byteCount }) {
      let stop = min(pause.byteCount, end)
      guard send(position..<stop) else { return false }
      position = stop
      waitAt(pause.gate)
    }
    guard send(position..<end) else { return false }
    if let breakOff = answer.breakOff { return self.end(by: breakOff.how) }
    switch answer.framing {
    case .length: return true
    case .declared(let count): return count == answer.body.count
    case .chunked: return connection.send(Array("0\r\n\r\n".utf8))
    case .untilClose: return false
    }
  }

  private func send(_ range: Range<Int>) -> Bool {
    range.isEmpty || connection.send(answer.framedPiece(range))
  }

  private func end(by how: OriginAnswer.Break) -> Bool {
    switch how {
    case .reset: connection.reset()
    case .close: break
    case .badChunkSize: connection.send(Array("zz\r\n".utf8))
    }
    return false
  }
}
