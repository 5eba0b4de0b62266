/// A blocking TCP socket on 127.0.0.1: the only way in which tests speak to proxy and origin.
///
/// Owns its descriptor. Receiving has a bound, so that a test fails where it would hang. Another
/// thread may call `interrupt`, which wakes whoever is blocked; nothing else is shared.
#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// What the system refused.
public struct SocketError: Error, CustomStringConvertible {
  public let description: String

  init(_ call: String) { description = "\(call): \(String(cString: strerror(errno)))" }
}

final class StreamSocket: @unchecked Sendable {
  // @unchecked Sendable: the descriptor is closed under the lock of `isClosed` and used by its one
  // owner; `interrupt` takes the lock too.

  enum Received {
    case bytes
    case end
    case reset
    case timedOut
  }

  private let descriptor: Int32
  private let isClosed = Monitored(false)

  private init(descriptor: Int32) { self.descriptor = descriptor }

  deinit { close() }

  // MARK: Making

  private static func make() throws -> StreamSocket {
    #if canImport(Glibc)
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | closeOnExecFlag, 0)
    #else
      let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    guard descriptor >= 0 else { throw SocketError("socket") }
    return StreamSocket(descriptor: descriptor)
  }

  /// A socket bound to a port of 127.0.0.1; 0 takes a free one. It listens only after `listen`.
  static func bound(port: UInt16) throws -> StreamSocket {
    let made = try make()
    made.set(SOL_SOCKET, SO_REUSEADDR, 1)
    var address = loopback(port)
    let status = withSocketAddress(&address) { bind(made.descriptor, $0, $1) }
    guard status == 0 else { throw SocketError("bind") }
    return made
  }

  func listen() throws {
    guard systemListen(descriptor, 1024) == 0 else { throw SocketError("listen") }
  }

  static func connected(port: UInt16, receiveBufferBytes: Int32?) throws -> StreamSocket {
    let made = try make()
    if let receiveBufferBytes { made.set(SOL_SOCKET, SO_RCVBUF, receiveBufferBytes) }
    made.set(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
    made.boundReceiving()
    var address = loopback(port)
    let status = withSocketAddress(&address) { connect(made.descriptor, $0, $1) }
    guard status == 0 else { throw SocketError("connect") }
    return made
  }

  /// nil: the socket was interrupted.
  func accept() -> StreamSocket? {
    while true {
      let accepted = systemAccept(descriptor, nil, nil)
      if accepted >= 0 {
        _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
        let made = StreamSocket(descriptor: accepted)
        made.set(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        return made
      }
      if errno != EINTR && errno != ECONNABORTED { return nil }
    }
  }

  var port: UInt16 {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        _ = getsockname(descriptor, $0, &length)
      }
    }
    return UInt16(bigEndian: address.sin_port)
  }

  // MARK: Bytes

  /// False: the peer is gone.
  @discardableResult
  func send(_ bytes: [UInt8]) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        systemSend(descriptor, $0.baseAddress! + sent, $0.count - sent, noSignalFlag)
      }
      if count < 0 {
        if errno == EINTR { continue }
        return false
      }
      sent += count
    }
    return true
  }

  /// Appends what has come, waiting for the first byte.
  func receive(appendingTo buffer: inout [UInt8], upTo countMax: Int = 64 * 1024) -> Received {
    var piece = [UInt8](repeating: 0, count: countMax)
    while true {
      let count = recv(descriptor, &piece, piece.count, 0)
      if count > 0 {
        buffer.append(contentsOf: piece[..<count])
        return .bytes
      }
      if count == 0 { return .end }
      switch errno {
      case EINTR: continue
      case EAGAIN: return .timedOut
      default: return .reset
      }
    }
  }

  // MARK: The end

  /// Says that nothing more will be sent.
  func finishSending() { _ = shutdown(descriptor, Int32(SHUT_WR)) }

  /// Gives the descriptor away: it is the caller's, and not this socket's any more.
  func takeDescriptor() -> Int32 {
    isClosed.update { $0 = true }
    return descriptor
  }

  /// Wakes the thread that is blocked in this socket; it closes it.
  func interrupt() {
    isClosed.update { closed in
      if !closed { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }
    }
  }

  /// Closes by a reset: the peer sees an error, not an end.
  func reset() {
    isClosed.update { closed in
      guard !closed else { return }
      closed = true
      var linger = linger(l_onoff: 1, l_linger: 0)
      setsockopt(
        descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
      _ = systemClose(descriptor)
    }
  }

  func close() {
    isClosed.update { closed in
      if !closed { _ = systemClose(descriptor) }
      closed = true
    }
  }

  // MARK: Options

  private func set(_ level: Int32, _ option: Int32, _ value: Int32) {
    var value = value
    setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Waits for bytes no longer than anything in a test may wait.
  func boundReceiving() {
    var time = timeval(tv_sec: waitBoundSeconds, tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
  }
}

private func loopback(_ port: UInt16) -> sockaddr_in {
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
  return address
}

private func withSocketAddress<Result>(
  _ address: inout sockaddr_in, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
) -> Result {
  withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
}

// The type's own functions have the names of the system's.
#if canImport(Glibc)
  private let noSignalFlag = Int32(MSG_NOSIGNAL)
  private let closeOnExecFlag = Int32(SOCK_CLOEXEC.rawValue)
#else
  private let noSignalFlag: Int32 = 0
#endif
private func systemListen(_ descriptor: Int32, _ backlog: Int32) -> Int32 {
  listen(descriptor, backlog)
}
private func systemAccept(
  _ descriptor: Int32, _ address: UnsafeMutablePointer<sockaddr>?,
  _ length: UnsafeMutablePointer<socklen_t>?
) -> Int32 { accept(descriptor, address, length) }
private func systemSend(
  _ descriptor: Int32, _ bytes: UnsafeRawPointer, _ count: Int, _ flags: Int32
) -> Int { send(descriptor, bytes, count, flags) }
private func systemClose(_ descriptor: Int32) -> Int32 { close(descriptor) }

/// A write to a connection that the peer has left fails, instead of ending the process.
let ignoringBrokenPipes: Void = { _ = signal(SIGPIPE, SIG_IGN) }()
