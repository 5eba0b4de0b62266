/// The limit row of script/bench: libuv and one constant answer, nothing else.
///
/// Owns the command line and the listener. It reads no request beyond finding its empty line, so
/// it is no HTTP server: it says how fast one loop can be when the proxy's own work costs nothing.
/// Loopback only; prints `ready PORT` once it listens and runs until it is ended.
internal import CUV

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

@main
enum BareServer {
  static let bodyBytesMax = 64 << 20

  static func main() {
    serve()
  }

  /// Callbacks are formed here and below, outside the main actor.
  nonisolated static func serve() {
    guard let (port, bodyBytes) = parse(CommandLine.arguments.dropFirst()) else {
      print("usage: BareServer [--port 0...65535] [--bytes 0...\(bodyBytesMax) | --bytes none]")
      exit(2)
    }
    let server = ConstantAnswer(bodyBytes: bodyBytes)
    guard let loop = uv_default_loop() else { fail("uv_default_loop", Int32(ENOMEM)) }
    let listener = UnsafeMutablePointer<uv_tcp_t>.allocate(capacity: 1)
    check("uv_tcp_init", uv_tcp_init(loop, listener))
    // SAFETY: the answer lives as long as the process: this retain is never released.
    listener.pointee.data = Unmanaged.passRetained(server).toOpaque()

    var address = sockaddr_in()
    check("uv_ip4_addr", uv_ip4_addr("127.0.0.1", Int32(port), &address))
    let bound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { uv_tcp_bind(listener, $0, 0) }
    }
    check("uv_tcp_bind", bound)
    check("uv_listen", uv_listen(stream(listener), 1024) { acceptConnection($0, status: $1) })
    print("ready \(boundPort(listener))")
    fflush(nil)
    uv_run(loop, UV_RUN_DEFAULT)
  }

  nonisolated static func parse(_ words: ArraySlice<String>) -> (port: UInt16, bytes: Int?)? {
    var port: UInt16 = 0
    var bodyBytes: Int? = 1024
    var rest = words
    while let name = rest.popFirst() {
      guard let value = rest.popFirst() else { return nil }
      switch name {
      case "--port":
        guard let number = UInt16(value) else { return nil }
        port = number
      // A 304.
      case "--bytes" where value == "none": bodyBytes = nil
      case "--bytes":
        guard let number = Int(value), (0...bodyBytesMax).contains(number) else { return nil }
        bodyBytes = number
      default: return nil
      }
    }
    return (port, bodyBytes)
  }

  nonisolated static func boundPort(_ listener: UnsafeMutablePointer<uv_tcp_t>) -> UInt16 {
    var address = sockaddr_in()
    var length = Int32(MemoryLayout<sockaddr_in>.size)
    let named = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        uv_tcp_getsockname(listener, $0, &length)
      }
    }
    check("uv_tcp_getsockname", named)
    return UInt16(bigEndian: address.sin_port)
  }
}

func stream(_ tcp: UnsafeMutablePointer<uv_tcp_t>) -> UnsafeMutablePointer<uv_stream_t> {
  // SAFETY: libuv lays every stream handle out with uv_stream_t's fields first.
  UnsafeMutableRawPointer(tcp).assumingMemoryBound(to: uv_stream_t.self)
}

func check(_ call: String, _ status: Int32) {
  if status < 0 { fail(call, status) }
}

func fail(_ call: String, _ status: Int32) -> Never {
  let line = "BareServer: \(call): \(String(cString: uv_strerror(status)))\n"
  _ = write(2, line, line.utf8.count)
  exit(1)
}
