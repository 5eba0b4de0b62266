internal import Foundation

@testable import Support

/// An origin whose every byte and wait a test writes out: one closure for each connection.
final class RawOrigin: Sendable {
  /// One accepted connection, in the hands of its closure.
  final class Connection {
    /// From 1 on.
    let number: Int
    private let socket: StreamSocket
    private var buffer: [UInt8] = []
    private let heads: Monitored<[String]>

    init(_ socket: StreamSocket, number: Int, heads: Monitored<[String]>) {
      self.socket = socket
      self.number = number
      self.heads = heads
    }

    /// The next request's head, noted in the origin's `heads`; nil: the proxy has closed.
    @discardableResult
    func readHead() -> String? {
      while true {
        if let text = String(bytes: buffer, encoding: .utf8), let end = text.range(of: "\r\n\r\n") {
          let head = String(text[..<end.lowerBound])
          buffer.removeFirst(head.utf8.count + 4)
          heads.update { $0.append(inOriginForm(head)) }
          return inOriginForm(head)
        }
        guard case .bytes = socket.receive(appendingTo: &buffer) else { return nil }
      }
    }

    /// Takes so many bytes; fewer where the proxy ends the connection.
    func read(_ count: Int) -> [UInt8] {
      while buffer.count < count {
        guard case .bytes = socket.receive(appendingTo: &buffer, upTo: 1 << 20) else { break }
      }
      let taken = Array(buffer.prefix(count))
      buffer.removeFirst(taken.count)
      return taken
    }

    /// False: the proxy has closed.
    @discardableResult
    func send(_ text: String) -> Bool { send(Array(text.utf8)) }
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool { socket.send(bytes) }
    func close() { socket.close() }
    func reset() { socket.reset() }
    /// For the origin's end.
    func interrupt() { socket.interrupt() }
  }

  let port: UInt16
  private let listener: StreamSocket
  private let received = Monitored<[String]>([])
  private let running = Monitored<Int>(1)
  private let sockets = Monitored<[StreamSocket]>([])

  init(_ serve: @escaping @Sendable (Connection) -> Void) throws {
    listener = try StreamSocket.bound(port: 0)
    port = listener.port
    try listener.listen()
    let (listener, received, running, sockets) = (listener, received, running, sockets)
    Thread.detachNewThread {
      var number = 0
      while let socket = listener.accept() {
        number += 1
        let connection = Handed(connection: Connection(socket, number: number, heads: received))
        sockets.update { $0.append(socket) }
        running.update { $0 += 1 }
        Thread.detachNewThread {
          serve(connection.connection)
          connection.connection.close()
          running.update { $0 -= 1 }
        }
      }
      running.update { $0 -= 1 }
    }
  }

  /// Carries a connection to its thread.
  private struct Handed: @unchecked Sendable {
    // @unchecked Sendable: made by the accepting thread and used by the connection's own alone.
    let connection: Connection
  }

  /// Every request's head so far, in the order of arrival.
  var heads: [String] { received.read { $0 } }

  /// Waits until so many heads have come; false: it took far too long.
  func waitForHeads(_ count: Int) -> Bool { received.wait { $0.count >= count } }

  /// Ends what is open, and returns when its threads are gone.
  func stop() {
    listener.interrupt()
    for socket in sockets.read({ $0 }) { socket.interrupt() }
    _ = running.wait { $0 == 0 }
  }
}

/// A proxy before an origin that the test writes out, for the time of one test.
func rawScenario(
  _ routes: String = "", upstream: String = "\"retries\": 0", limits: String = "",
  origin serve: @escaping @Sendable (RawOrigin.Connection) -> Void,
  _ body: (RawOrigin, TestProxy) throws -> Void
) throws {
  let origin = try RawOrigin(serve)
  let unused = try ScriptedOrigin()
  let policies = scenarioPolicies(routes, upstream: upstream, limits: limits)
    .replacingOccurrences(of: "{ORIGIN}", with: "127.0.0.1:\(origin.port)")
  let proxy = try TestProxy(policies: policies, origin: unused)
  defer {
    origin.stop()
    unused.stop()
    proxy.stop()
  }
  try body(origin, proxy)
}
