/// `keys`: one request for each of many URLs, over few connections, to fill a store.
#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Requests `prefix`0, `prefix`1, … `prefix`(count − 1) in that order; every answer must be 200.
func requestKeys(_ options: Options) throws(UsageError) -> Int32 {
  let port = try options.requiredPort()
  let startMilliseconds = monotonicMilliseconds()
  let endMilliseconds = startMilliseconds + options.timeLimitMilliseconds
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
  defer { buffer.deallocate() }
  var walk = KeyWalk(options: options, port: port)
  var failures = Failures()
  do {
    for _ in 0..<min(options.connectionCount, options.count) { try walk.open() }
    while walk.answeredCount < options.count, monotonicMilliseconds() < endMilliseconds {
      for index in waitUntilReady(walk.connections, timeoutMilliseconds: 100) {
        try walk.advance(index, buffer)
      }
    }
  } catch {
    failures.add(error)
  }
  let milliseconds = max(1, monotonicMilliseconds() - startMilliseconds)
  report("answered \(walk.answeredCount) of \(options.count)")
  report("milliseconds \(milliseconds)")
  report("requests-per-second \(Int64(walk.answeredCount) * 1000 / milliseconds)")
  failures.explain()
  let others = walk.statusCounts.filter { $0.key != 200 }
  for (statusCode, count) in others { complain("status \(statusCode): \(count)") }
  return walk.answeredCount == options.count && others.isEmpty ? 0 : 1
}

/// The connections of a walk over the keys and how far each has come.
private struct KeyWalk {
  let options: Options
  let port: UInt16
  private(set) var connections: [LoopbackConnection] = []
  private(set) var answeredCount = 0
  private(set) var statusCounts: [Int: Int] = [:]
  /// Requests sent and not yet answered, for each connection.
  private var outstanding: [Int] = []
  private var nextKey = 0

  init(options: Options, port: UInt16) {
    self.options = options
    self.port = port
  }

  mutating func open() throws(LoopbackConnection.Failure) {
    connections.append(try LoopbackConnection(port: port))
    outstanding.append(0)
    fill(connections.count - 1)
  }

  mutating func advance(
    _ index: Int, _ buffer: UnsafeMutableRawBufferPointer
  ) throws(LoopbackConnection.Failure) {
    let connection = connections[index]
    let answeredBefore = connection.responsesCompleted
    try connection.advance(into: buffer)
    let answered = connection.responsesCompleted - answeredBefore
    answeredCount += answered
    outstanding[index] -= answered
    for (statusCode, count) in connection.statusCounts {
      statusCounts[statusCode, default: 0] += count
    }
    connection.forgetStatusCounts()
    if connection.peerHasClosed {
      // Servers may end a persistent connection between two requests, but not within one.
      guard outstanding[index] == 0 else { throw .closedEarly }
      connections[index] = try LoopbackConnection(port: port)
    }
    fill(index)
    try connections[index].advance(into: buffer, readBytesMax: 0)
  }

  private mutating func fill(_ index: Int) {
    while outstanding[index] < options.pipelineDepth, nextKey < options.count {
      let digits = "\(nextKey)"
      let zeros = String(repeating: "0", count: max(0, options.digitsMin - digits.utf8.count))
      connections[index].request(
        "\(options.prefix)\(zeros)\(digits)", authority: options.authority)
      nextKey += 1
      outstanding[index] += 1
    }
  }
}
