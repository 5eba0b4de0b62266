/// One non-blocking client connection to 127.0.0.1, with its unsent bytes and its reader.
///
/// Owns the descriptor. It never waits: whoever polls calls `advance` when the socket is ready.
#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

final class LoopbackConnection {
  enum Failure: Error {
    case system(call: String, code: Int32)
    case response(ResponseReader.Failure)
    /// The peer closed before the response's end.
    case closedEarly
  }

  let descriptor: Int32
  private(set) var reader = ResponseReader()
  private(set) var responsesCompleted = 0
  /// The status codes of completed responses, with how often each came.
  private(set) var statusCounts: [Int: Int] = [:]
  private(set) var peerHasClosed = false
  private var unsent: [UInt8] = []
  private var unsentOffset = 0
  var wantsWrite: Bool { unsentOffset < unsent.count }

  /// Starts to connect. `receiveBufferBytes` is for readers that must exert back-pressure. `number`:
  /// of a crowd; its members come from several addresses, since one has too few ports for all that
  /// have come and gone within a minute.
  init(port: UInt16, receiveBufferBytes: Int32? = nil, number: Int = 0) throws(Failure) {
    #if canImport(Glibc)
      descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    guard descriptor >= 0 else { throw .system(call: "socket", code: errno) }
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    var enabled: Int32 = 1
    let flagBytes = socklen_t(MemoryLayout<Int32>.size)
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &enabled, flagBytes)
    if var size = receiveBufferBytes {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, flagBytes)
    }
    #if os(Linux)
      // All of 127.0.0.0/8 is this machine there, and the port is chosen when it connects.
      var source = loopbackAddress(port: 0, lastByte: UInt32(1 + number % 16))
      setsockopt(descriptor, Int32(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT, &enabled, flagBytes)
      let bound = withUnsafePointer(to: &source) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      if bound != 0 { throw .system(call: "bind", code: errno) }
    #endif
    var address = loopbackAddress(port: port)
    let status = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    // All stored properties are set, so deinit closes the descriptor when this throws.
    if status != 0, errno != EINPROGRESS { throw .system(call: "connect", code: errno) }
  }

  deinit { close(descriptor) }

  /// Whether the connection is made, or has failed: its next use says which.
  var isConnected: Bool {
    var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    return poll(&polled, 1, 0) != 0
  }

  /// Queues a GET; it goes out with the next `advance`.
  func request(_ path: String, authority: String) {
    if !wantsWrite {
      unsent.removeAll(keepingCapacity: true)
      unsentOffset = 0
    }
    unsent.append(contentsOf: "GET \(path) HTTP/1.1\r\nHost: \(authority)\r\n\r\n".utf8)
  }

  /// Writes and reads what the socket takes and gives, at most `readBytesMax` of the latter.
  /// Returns the bytes read.
  @discardableResult
  func advance(
    into buffer: UnsafeMutableRawBufferPointer, readBytesMax: Int = .max
  ) throws(Failure) -> Int {
    try writeUnsent()
    var total = 0
    while total < readBytesMax, !peerHasClosed {
      let count = recv(descriptor, buffer.baseAddress, min(buffer.count, readBytesMax - total), 0)
      if count < 0 {
        if errno == EAGAIN || errno == EINTR || errno == ENOTCONN { return total }
        throw .system(call: "recv", code: errno)
      }
      if count == 0 {
        peerHasClosed = true
        let wasComplete = reader.isComplete
        reader.peerClosed()
        if reader.isComplete, !wasComplete { countCompleted() }
        return total
      }
      total += count
      try digest(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      if count < buffer.count { return total }
    }
    return total
  }

  private func writeUnsent() throws(Failure) {
    while wantsWrite {
      let count = unsent.withUnsafeBytes { bytes in
        send(descriptor, bytes.baseAddress! + unsentOffset, bytes.count - unsentOffset, 0)
      }
      if count < 0 {
        if errno == EAGAIN || errno == EINTR || errno == ENOTCONN { return }
        throw .system(call: "send", code: errno)
      }
      unsentOffset += count
    }
  }

  private func digest(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
    var rest = bytes
    while !rest.isEmpty {
      if reader.isComplete { reader = ResponseReader() }
      let taken: Int
      do { taken = try reader.consume(rest) } catch { throw .response(error) }
      rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
      if reader.isComplete { countCompleted() }
    }
  }

  func forgetStatusCounts() { statusCounts.removeAll(keepingCapacity: true) }

  private func countCompleted() {
    responsesCompleted += 1
    statusCounts[reader.statusCode, default: 0] += 1
  }
}

func loopbackAddress(port: UInt16, lastByte: UInt32 = 1) -> sockaddr_in {
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = (0x7F00_0000 + lastByte).bigEndian
  return address
}

/// Waits for up to `timeoutMilliseconds` until any of the connections can go on, and returns the
/// indices of those that can.
func waitUntilReady(
  _ connections: [LoopbackConnection], timeoutMilliseconds: Int32
) -> [Int] {
  var polled = connections.map { connection in
    let events = Int16(POLLIN) | (connection.wantsWrite ? Int16(POLLOUT) : 0)
    return pollfd(fd: connection.descriptor, events: events, revents: 0)
  }
  guard poll(&polled, nfds_t(polled.count), timeoutMilliseconds) > 0 else { return [] }
  return polled.indices.filter { polled[$0].revents != 0 }
}
