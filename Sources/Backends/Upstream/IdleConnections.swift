#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// The origin connections that no transfer uses, and whether one may carry the next request.
///
/// What an origin sends unasked answers nobody (RFC 9112 §9.2), but libcurl would take bytes that
/// wait on a kept connection for the answer to whatever it sends next, and so would the end of a
/// connection be found out by failing a request on it. Both are looked for here: when an idle
/// socket stirs, and once more right before a request goes out. Owned by `CurlClient`, which
/// knows descriptors, while libcurl's callback before a request knows ports alone.
struct IdleConnections {
  /// Watched descriptors that no transfer uses now.
  private var idle: Set<Int32> = []
  private var portsOf: [Int32: UInt32] = [:]
  /// Several where the addresses differ.
  private var descriptorsOf: [UInt32: [Int32]] = [:]
  /// Connections of HTTP/2, on which an origin may speak at any time.
  private var multiplexed: Set<Int32> = []

  private static func key(_ localPort: UInt16, _ remotePort: UInt16) -> UInt32 {
    UInt32(localPort) << 16 | UInt32(remotePort)
  }

  func contains(_ descriptor: Int32) -> Bool { idle.contains(descriptor) }

  mutating func insert(_ descriptor: Int32) { idle.insert(descriptor) }

  mutating func remove(_ descriptor: Int32) { idle.remove(descriptor) }

  /// A connected descriptor is used for the first time.
  mutating func open(_ descriptor: Int32) {
    guard portsOf[descriptor] == nil,
      let localPort = IdleConnections.port(descriptor, getsockname),
      let remotePort = IdleConnections.port(descriptor, getpeername)
    else { return }
    let ports = IdleConnections.key(localPort, remotePort)
    portsOf[descriptor] = ports
    descriptorsOf[ports, default: []].append(descriptor)
  }

  mutating func close(_ descriptor: Int32) {
    idle.remove(descriptor)
    multiplexed.remove(descriptor)
    guard let ports = portsOf.removeValue(forKey: descriptor) else { return }
    descriptorsOf[ports]?.removeAll { $0 == descriptor }
    if descriptorsOf[ports]?.isEmpty == true { descriptorsOf[ports] = nil }
  }

  /// The connection between these ports turned out to speak HTTP/2.
  mutating func noteMultiplexed(localPort: Int, remotePort: Int) {
    for descriptor in descriptors(localPort, remotePort) { multiplexed.insert(descriptor) }
  }

  /// An idle connection has bytes to read, or has ended: it is of no use any more. Shut down both
  /// ways, it looks dead to libcurl, which closes it when it next comes by.
  func discard(_ descriptor: Int32) {
    if !multiplexed.contains(descriptor) { shutdown(descriptor, Int32(SHUT_RDWR)) }
  }

  /// Whether a request may go out on the connection between these ports: false where an idle one
  /// has bytes to read, or has ended.
  func mayCarryRequest(localPort: Int32, remotePort: Int32) -> Bool {
    for descriptor in descriptors(Int(localPort), Int(remotePort))
    where idle.contains(descriptor) && !multiplexed.contains(descriptor) {
      if hasInput(descriptor) { return false }
    }
    return true
  }

  private func descriptors(_ localPort: Int, _ remotePort: Int) -> [Int32] {
    descriptorsOf[
      IdleConnections.key(
        UInt16(truncatingIfNeeded: localPort), UInt16(truncatingIfNeeded: remotePort))] ?? []
  }

  private static func port(
    _ descriptor: Int32,
    _ name: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> UInt16? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      // SAFETY: a sockaddr_storage holds an address of any family, and in_port_t lies at the same
      // place in those of IPv4 and IPv6.
      let status = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        name(descriptor, $0, &length)
      }
      guard status == 0 else { return nil }
      return pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
        UInt16(bigEndian: $0.pointee.sin_port)
      }
    }
  }
}
