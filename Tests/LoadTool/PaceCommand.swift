/// `pace`: requests at a fixed rate, whatever the answers do, and how long each took.
///
/// A request's time counts from the moment it was due, not from when it went out: a server that
/// stalls is charged for all that had to wait behind the stall.
#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Sends `--rate` requests a second over `--connections`, each waiting for its answer before the
/// next, and prints latencies in microseconds. Every answer must be 200 and as long as the first.
/// Exit status 3: the server does not keep up, so that there are no latencies to tell.
func keepPace(_ options: Options) throws(UsageError) -> Int32 {
  let port = try options.requiredPort()
  do throws(PaceFailure) {
    var pace = try Pace(options, port: port)
    try pace.run()
    return reportLatencies(of: pace)
  } catch {
    complain(error.reason)
    return error.isOfPaceAlone ? 3 : 1
  }
}

private func reportLatencies(of pace: borrowing Pace) -> Int32 {
  report("answers \(pace.latencies.count)")
  for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
    report("\(name) \(pace.latencies.microseconds(atShare: share))")
  }
  report("max \(pace.latencies.maxMicroseconds)")
  return 0
}

private struct PaceFailure: Error {
  let reason: String
  /// All answers were right, but too few of them in time.
  var isOfPaceAlone = false
}

private struct Pace {
  private var idle: [PacedConnection] = []
  /// Those that wait for an answer, and what is polled for each: few, unless the server is slow.
  /// To poll these alone, not every connection, is what lets one core send 60,000 a second.
  private var busy: [PacedConnection] = []
  private var polled: [pollfd] = []
  /// When the requests were due that no connection was free for, oldest first.
  private var waiting: [UInt64] = []
  private var waitingStart = 0
  private let nanosecondsPerRequest: Double
  private let requestCount: Int
  private var answerBytes: Int?
  private(set) var latencies = Latencies()

  init(_ options: Options, port: UInt16) throws(PaceFailure) {
    nanosecondsPerRequest = 1e9 / Double(options.rate)
    requestCount = options.rate * Int(options.timeLimitMilliseconds / 1000)
    let request =
      "GET \(options.path) HTTP/1.1\r\nHost: \(options.authority)\r\n\r\n"
    for _ in 0..<options.connectionCount {
      idle.append(try PacedConnection(port: port, request: Array(request.utf8)))
    }
  }

  mutating func run() throws(PaceFailure) {
    let start = monotonicNanoseconds()
    // Who is not done by then will not be: twice the time, and two seconds.
    let end = start + UInt64(Double(requestCount) * nanosecondsPerRequest * 2) + 2_000_000_000
    var dueCount = 0
    while latencies.count < requestCount {
      let now = monotonicNanoseconds()
      guard now < end else {
        throw PaceFailure(reason: "the server does not keep up", isOfPaceAlone: true)
      }
      while dueCount < requestCount,
        start + UInt64(Double(dueCount) * nanosecondsPerRequest) <= now
      {
        waiting.append(start + UInt64(Double(dueCount) * nanosecondsPerRequest))
        dueCount += 1
      }
      try sendWaiting()
      try receiveAnswers()
    }
  }

  private mutating func sendWaiting() throws(PaceFailure) {
    while waitingStart < waiting.count, let connection = idle.popLast() {
      try connection.send(dueAt: waiting[waitingStart])
      waitingStart += 1
      busy.append(connection)
      polled.append(pollfd(fd: connection.descriptor, events: Int16(POLLIN), revents: 0))
    }
    if waitingStart == waiting.count {
      waiting.removeAll(keepingCapacity: true)
      waitingStart = 0
    }
  }

  /// Without waiting: the next request is due in microseconds.
  private mutating func receiveAnswers() throws(PaceFailure) {
    guard !busy.isEmpty, poll(&polled, nfds_t(polled.count), 0) > 0 else { return }
    // From the end: what takes the place of one that is done was looked at already.
    for index in busy.indices.reversed() where polled[index].revents != 0 {
      guard let answer = try busy[index].receive() else { continue }
      latencies.add(nanoseconds: monotonicNanoseconds() - answer.dueNanoseconds)
      guard answerBytes == nil || answerBytes == answer.bodyBytes else {
        throw PaceFailure(reason: "answers of different lengths")
      }
      answerBytes = answer.bodyBytes
      idle.append(busy[index])
      busy.swapAt(index, busy.count - 1)
      polled.swapAt(index, polled.count - 1)
      busy.removeLast()
      polled.removeLast()
    }
  }
}

/// One connection with at most one request under way.
private final class PacedConnection {
  let descriptor: Int32
  private let connection: LoopbackConnection
  private let request: [UInt8]
  private var dueNanoseconds: UInt64 = 0
  private var bytes: [UInt8] = []
  private var buffer = [UInt8](repeating: 0, count: 128 * 1024)
  /// Of the running answer, once its head is read: how many bytes head and body have.
  private var expected: (headBytes: Int, bodyBytes: Int)?

  init(port: UInt16, request: [UInt8]) throws(PaceFailure) {
    self.request = request
    do {
      connection = try LoopbackConnection(port: port)
    } catch {
      throw PaceFailure(reason: "a connection cannot be made")
    }
    descriptor = connection.descriptor
    // A connection to this machine is made at once, or not at all.
    var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    poll(&polled, 1, 1000)
  }

  func send(dueAt nanoseconds: UInt64) throws(PaceFailure) {
    dueNanoseconds = nanoseconds
    let sent = request.withUnsafeBytes { transmit(descriptor, $0.baseAddress, $0.count) }
    guard sent == request.count else { throw PaceFailure(reason: "a request does not go out") }
  }

  /// The answer that is whole now; nil: it is not.
  func receive() throws(PaceFailure) -> (dueNanoseconds: UInt64, bodyBytes: Int)? {
    let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
    if count < 0, errno == EAGAIN { return nil }
    guard count > 0 else { throw PaceFailure(reason: "the server ended a connection") }
    bytes.append(contentsOf: buffer[..<count])
    if expected == nil { expected = try readHead() }
    guard let expected, bytes.count >= expected.headBytes + expected.bodyBytes else { return nil }
    guard bytes.count == expected.headBytes + expected.bodyBytes else {
      throw PaceFailure(reason: "more than one answer")
    }
    bytes.removeAll(keepingCapacity: true)
    self.expected = nil
    return (dueNanoseconds, expected.bodyBytes)
  }

  /// How long the answer is; nil: its head is not whole yet.
  private func readHead() throws(PaceFailure) -> (headBytes: Int, bodyBytes: Int)? {
    let found = bytes.withUnsafeBytes { PacedConnection.readHead($0) }
    guard let found else { return nil }
    guard bytes.starts(with: "HTTP/1.1 200 ".utf8) else {
      throw PaceFailure(reason: "an answer other than 200")
    }
    guard let length = found.contentLength else {
      throw PaceFailure(reason: "an answer without Content-Length")
    }
    return (found.headBytes, length)
  }

  private static func readHead(
    _ bytes: UnsafeRawBufferPointer
  ) -> (headBytes: Int, contentLength: Int?)? {
    let name: StaticString = "content-length:"
    let nameBytes = name.utf8CodeUnitCount
    var contentLength: Int?
    var start = 0
    while let newline = memchr(bytes.baseAddress! + start, 0x0A, bytes.count - start) {
      let end = UnsafeRawPointer(newline) - bytes.baseAddress!
      if end == start + 1 { return (end + 1, contentLength) }
      if end - start > nameBytes, begins(bytes.baseAddress! + start, name, nameBytes) {
        contentLength = bytes[start + nameBytes..<end].reduce(0) {
          (0x30...0x39).contains($1) ? $0 * 10 + Int($1 - 0x30) : $0
        }
      }
      start = end + 1
    }
    return nil
  }

  private static func begins(
    _ bytes: UnsafeRawPointer, _ name: StaticString, _ count: Int
  ) -> Bool {
    for index in 0..<count
    where bytes.load(fromByteOffset: index, as: UInt8.self) | 0x20 != name.utf8Start[index] | 0x20 {
      return false
    }
    return true
  }
}

/// Counts of latencies in steps of about one per cent.
private struct Latencies {
  private var counts = [Int](repeating: 0, count: 64 * 64)
  private(set) var count = 0
  private(set) var maxMicroseconds: UInt64 = 0

  mutating func add(nanoseconds: UInt64) {
    let microseconds = nanoseconds / 1000
    maxMicroseconds = max(maxMicroseconds, microseconds)
    counts[Latencies.slot(microseconds)] += 1
    count += 1
  }

  func microseconds(atShare share: Double) -> UInt64 {
    var left = Int((Double(count) * share).rounded(.up))
    for (slot, count) in counts.enumerated() {
      left -= count
      if left <= 0 { return min(Latencies.upperBound(slot), maxMicroseconds) }
    }
    return maxMicroseconds
  }

  /// Exact below 64; above, 32 steps to each doubling.
  private static func slot(_ value: UInt64) -> Int {
    guard value >= 64 else { return Int(value) }
    let exponent = 63 - value.leadingZeroBitCount
    return (exponent - 4) * 32 + Int(value >> UInt64(exponent - 5))
  }

  private static func upperBound(_ slot: Int) -> UInt64 {
    guard slot >= 64 else { return UInt64(slot) }
    let exponent = slot / 32 + 3
    return (UInt64(slot % 32 + 32 + 1) << UInt64(exponent - 5)) - 1
  }
}

private func transmit(_ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int) -> Int {
  send(descriptor, start, count, 0)
}
