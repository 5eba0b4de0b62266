internal import Foundation
import Support

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// A client that sends bytes and reads bytes, over IPv4 or IPv6, for what no well-behaved client
/// does. Reading has a bound, so that a test fails where it would hang.
final class RawClient {
  enum Ending { case orderly, reset }
  struct TimedOut: Error {}
  struct NotConnected: Error {}

  private let descriptor: Int32
  private var isOpen = true
  private(set) var received: [UInt8] = []

  convenience init(_ proxy: TestProxy) throws { try self.init(port: proxy.port) }

  init(port: UInt16, overIPv6: Bool = false) throws {
    descriptor = RawClient.makeSocket(overIPv6 ? AF_INET6 : AF_INET)
    var time = timeval(tv_sec: 60, tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    let status: Int32
    if overIPv6 {
      var address = RawClient.loopbackIPv6(port)
      status = withSocketAddress(&address) { connect(descriptor, $0, $1) }
    } else {
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = port.bigEndian
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      status = withSocketAddress(&address) { connect(descriptor, $0, $1) }
    }
    guard status == 0 else { throw NotConnected() }
  }

  deinit { close() }

  /// Whether this machine has `::1`.
  static let hasIPv6: Bool = {
    let descriptor = makeSocket(AF_INET6)
    guard descriptor >= 0 else { return false }
    defer { systemClose(descriptor) }
    var address = loopbackIPv6(0)
    return withSocketAddress(&address) { bind(descriptor, $0, $1) } == 0
  }()

  private static func makeSocket(_ family: Int32) -> Int32 {
    #if canImport(Glibc)
      socket(family, Int32(SOCK_STREAM.rawValue), 0)
    #else
      socket(family, SOCK_STREAM, 0)
    #endif
  }

  private static func loopbackIPv6(_ port: UInt16) -> sockaddr_in6 {
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    address.sin6_port = port.bigEndian
    address.sin6_addr = in6addr_loopback
    return address
  }

  // MARK: Sending

  func send(_ text: String) { send(Array(text.utf8)) }

  /// All of it, unless the proxy ends the connection meanwhile.
  func send(_ bytes: [UInt8]) {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        systemSend(descriptor, $0.baseAddress! + sent, $0.count - sent, noSignalFlag)
      }
      guard count > 0 else { return }
      sent += count
    }
  }

  /// As much as the kernel takes at once; says how much that was.
  func sendWithoutWaiting(_ bytes: ArraySlice<UInt8>) -> Int {
    let count = bytes.withUnsafeBytes {
      systemSend(descriptor, $0.baseAddress, $0.count, noSignalFlag | Int32(MSG_DONTWAIT))
    }
    return max(0, count)
  }

  func finishSending() { _ = shutdown(descriptor, Int32(SHUT_WR)) }

  func close() {
    if isOpen { systemClose(descriptor) }
    isOpen = false
  }

  // MARK: Reading

  /// Reads on until the text has been received; false: the connection ended before.
  func read(until text: String) throws -> Bool {
    while !self.text.contains(text) {
      if try readOnce() != nil { return false }
    }
    return true
  }

  /// Reads on until the proxy has ended the connection, and says how it did.
  func readToEnd() throws -> Ending {
    while true {
      if let ending = try readOnce() { return ending }
    }
  }

  /// nil: something came.
  private func readOnce() throws -> Ending? {
    var piece = [UInt8](repeating: 0, count: 64 * 1024)
    let count = recv(descriptor, &piece, piece.count, 0)
    if count > 0 {
      received += piece[..<count]
      return nil
    }
    if count == 0 { return .orderly }
    if errno == EAGAIN { throw TimedOut() }
    return .reset
  }

  /// Everything received so far.
  var text: String { String(decoding: received, as: UTF8.self) }

  /// The statuses of all answers whose heads came, in order; bodies must not look like heads.
  var statuses: [Int] {
    text.components(separatedBy: "HTTP/1.1 ").dropFirst().compactMap { Int($0.prefix(3)) }
  }
}

private func withSocketAddress<Address>(
  _ address: inout Address, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32
) -> Int32 {
  withUnsafePointer(to: &address) { pointer in
    // SAFETY: every socket address begins with the fields of a sockaddr.
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      call($0, socklen_t(MemoryLayout<Address>.size))
    }
  }
}

// The type's own functions have the names of the system's.
#if canImport(Glibc)
  private let noSignalFlag = Int32(MSG_NOSIGNAL)
#else
  private let noSignalFlag: Int32 = 0
#endif
private func systemClose(_ descriptor: Int32) { _ = close(descriptor) }
private func systemSend(
  _ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, _ flags: Int32
) -> Int { send(descriptor, bytes, count, flags) }
