internal import CUV
internal import CachePolicy

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Why a listening socket could not be made: source *internal* (configuration or environment).
public struct ListenError: Error, Sendable, CustomStringConvertible {
  public let description: String
  public let isAddressInUse: Bool
}

/// A bound and listening TCP socket. It is bound without SO_REUSEPORT, so that a second instance
/// on the same port is refused by the kernel, never joined by accident; one loop accepts and hands
/// the accepted descriptors to the others.
public final class ListeningSocket: Sendable {
  public let descriptor: Int32
  public let host: String
  /// The port really bound, where 0 was asked for.
  public let port: UInt16

  /// Binds and listens. `host` is a numeric address or a name; `port` 0 takes a free one.
  public init(host: String, port: UInt16, backlog: Int32 = 1024) throws(ListenError) {
    var hints = addrinfo()
    #if canImport(Glibc)
      hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    #else
      hints.ai_socktype = SOCK_STREAM
    #endif
    hints.ai_flags = AI_PASSIVE
    var found: UnsafeMutablePointer<addrinfo>?
    let lookup = getaddrinfo(host.isEmpty ? nil : host, String(port), &hints, &found)
    guard lookup == 0, let address = found else {
      throw ListenError(
        description: "cannot listen on \(host):\(port): \(String(cString: gai_strerror(lookup)))",
        isAddressInUse: false)
    }
    defer { freeaddrinfo(found) }
    let opened = larder_socket(address.pointee.ai_family)
    guard opened >= 0 else {
      throw ListeningSocket.failure(host, port, opened)
    }
    _ = larder_set_option(opened, SOL_SOCKET, SO_REUSEADDR, 1)
    if address.pointee.ai_family == AF_INET6 {
      _ = larder_set_option(opened, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1)
    }
    var status = larder_bind(opened, address.pointee.ai_addr, address.pointee.ai_addrlen)
    if status == 0 { status = larder_listen(opened, backlog) }
    guard status == 0 else {
      close(opened)
      throw ListeningSocket.failure(host, port, status)
    }
    descriptor = opened
    self.host = host
    self.port = ListeningSocket.boundPort(opened)
  }

  private static func failure(_ host: String, _ port: UInt16, _ status: Int32) -> ListenError {
    let inUse = status == -EADDRINUSE
    let advice = inUse ? "; another process has the port, stop it or choose another" : ""
    return ListenError(
      description:
        "cannot listen on \(host):\(port): \(String(cString: strerror(-status)))\(advice)",
      isAddressInUse: inUse)
  }

  private static func boundPort(_ descriptor: Int32) -> UInt16 {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      // SAFETY: sockaddr_storage is large enough for, and aligned as, every socket address.
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        guard getsockname(descriptor, address, &length) == 0 else { return 0 }
        return SocketAddress.port(address)
      }
    }
  }

  /// The next waiting connection, or nil when there is none; throws the errno when the process is
  /// out of descriptors or memory.
  public func accept() throws(AcceptError) -> (descriptor: Int32, peer: SocketAddress)? {
    var storage = sockaddr_storage()
    while true {
      let accepted = larder_accept(descriptor, &storage)
      if accepted >= 0 { return (accepted, SocketAddress(storage)) }
      switch -accepted {
      case EAGAIN: return nil
      case EINTR, ECONNABORTED: continue
      default: throw AcceptError(errorNumber: -accepted)
      }
    }
  }

  public func closeSocket() { close(descriptor) }
}

public struct AcceptError: Error, Sendable {
  public let errorNumber: Int32
}

/// The address of a peer: an IPv4 or IPv6 address as bytes, written out only when it is asked for.
public struct SocketAddress: Sendable {
  private let storage: sockaddr_storage

  init(_ storage: sockaddr_storage) { self.storage = storage }

  /// The numeric address without port, such as `127.0.0.1` or `::1`.
  public var host: String {
    var copy = storage
    var buffer = [CChar](repeating: 0, count: 64)
    let family = Int32(storage.ss_family)
    withUnsafePointer(to: &copy) { pointer in
      // SAFETY: the family says which address structure the storage holds.
      if family == AF_INET6 {
        pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { address in
          _ = uv_ip6_name(address, &buffer, buffer.count)
        }
      } else {
        pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { address in
          _ = uv_ip4_name(address, &buffer, buffer.count)
        }
      }
    }
    return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  static func port(_ address: UnsafePointer<sockaddr>) -> UInt16 {
    if Int32(address.pointee.sa_family) == AF_INET6 {
      return address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
        UInt16(bigEndian: $0.pointee.sin6_port)
      }
    }
    return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
      UInt16(bigEndian: $0.pointee.sin_port)
    }
  }
}

/// Closes a descriptor that no stream has taken over.
public func closeDescriptor(_ descriptor: Int32) { close(descriptor) }

/// Another descriptor of the same socket, the caller's to close; nil: the process has no more.
func duplicateDescriptor(_ descriptor: Int32) -> Int32? {
  let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
  return copy >= 0 ? copy : nil
}

/// Whether bytes, an end or an error wait to be read on a socket.
func hasInput(_ descriptor: Int32) -> Bool {
  var byte: UInt8 = 0
  let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
  return count >= 0 || errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR
}

/// Reads a socket's pending error, which clears it: from then on the socket reads as ended.
func takeSocketError(_ descriptor: Int32) {
  var code: Int32 = 0
  var length = socklen_t(MemoryLayout<Int32>.size)
  getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
}

/// Sends a short last word on a descriptor that no stream has taken over, and closes it. What the
/// peer has sent is read first, since unread bytes would turn the close into a reset.
public func sendAndClose(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) {
  _ = send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
  shutdown(descriptor, Int32(SHUT_WR))
  withUnsafeTemporaryAllocation(byteCount: 8 * 1024, alignment: 16) { buffer in
    _ = recv(descriptor, buffer.baseAddress, buffer.count, 0)
  }
  close(descriptor)
}
