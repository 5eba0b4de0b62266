/// `ports` and `first`: what a script needs before it can measure.
#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Prints ports that were free a moment ago: all are bound at once, so they differ.
func printFreePorts(_ options: Options) throws(UsageError) -> Int32 {
  guard options.count <= 100 else { throw UsageError(reason: "at most 100 ports") }
  var descriptors: [Int32] = []
  defer { for descriptor in descriptors { close(descriptor) } }
  for _ in 0..<options.count {
    #if canImport(Glibc)
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    descriptors.append(descriptor)
    var address = loopbackAddress(port: 0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
      }
    }
    guard isBound else {
      complain("LoadTool: no free port: \(String(cString: strerror(errno)))")
      return 1
    }
    report("\(UInt16(bigEndian: address.sin_port))")
  }
  return 0
}

/// Connects until someone listens and answers 200; prints how long that took from the start.
func waitForFirstAnswer(_ options: Options) throws(UsageError) -> Int32 {
  let port = try options.requiredPort()
  let startMilliseconds = monotonicMilliseconds()
  let endMilliseconds = startMilliseconds + options.timeLimitMilliseconds
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
  defer { buffer.deallocate() }
  var lastStatusCode = 0
  while monotonicMilliseconds() < endMilliseconds {
    if let statusCode = askOnce(port, options, buffer, endMilliseconds) {
      lastStatusCode = statusCode
      if statusCode == 200 {
        report("\(monotonicMilliseconds() - startMilliseconds)")
        return 0
      }
    }
    usleep(500)
  }
  complain("LoadTool: no 200 in time (last status \(lastStatusCode))")
  return 1
}

/// One connection, one request. Nil when nobody answers: the caller asks again.
private func askOnce(
  _ port: UInt16, _ options: Options, _ buffer: UnsafeMutableRawBufferPointer,
  _ endMilliseconds: Int64
) -> Int? {
  do {
    let connection = try LoopbackConnection(port: port)
    connection.request(options.path, authority: options.authority)
    while connection.responsesCompleted == 0, monotonicMilliseconds() < endMilliseconds {
      _ = waitUntilReady([connection], timeoutMilliseconds: 10)
      try connection.advance(into: buffer)
      if connection.peerHasClosed { break }
    }
    return connection.responsesCompleted > 0 ? connection.reader.statusCode : nil
  } catch {
    return nil  // Refused or reset: the server is not up yet, which is what is waited for.
  }
}
