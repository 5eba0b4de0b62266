/// `load`: as many requests as a server answers, for as little work of this side as there can be.
///
/// One readiness, one receive, one send an answer: so that the server is what is measured, not
/// the client. The first answer on each connection is read wholly, and all must be the same (of
/// different keys, of the same length); of the others status, length and number of bytes count.
internal import CUV

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Keeps `--connections` busy for `--seconds` and prints requests a second. Each connection has one
/// request under way. Exit status 1: an answer was wrong, or none came.
func makeLoad(_ options: Options) throws(UsageError) -> Int32 {
  let port = try options.requiredPort()
  raiseDescriptorLimit()
  let load = Load(options, port: port)
  load.run()
  if let failure = load.failure {
    complain("LoadTool: \(failure)")
    return 1
  }
  load.report()
  return 0
}

/// All connections of one load, on one loop.
final class Load {
  let port: UInt16
  let expectedStatus: Int
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 * 1024, alignment: 16)
  private let loop: UnsafeMutablePointer<uv_loop_t>
  private let timer = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
  private let timeLimitMilliseconds: Int64
  /// Each key may have a body of its own.
  private let bodiesDiffer: Bool
  private var requests: Requests
  private var connections: [LoadConnection] = []
  private var answerCount = 0
  private var measuredFrom = (answers: 0, nanoseconds: UInt64(0))
  private var measuredUntil = (answers: 0, nanoseconds: UInt64(0))
  private var renewedCount = 0
  private var firstCount = 0
  /// Length and digest of the first answer's body.
  private var firstBody: (bytes: UInt64, digest: UInt64)?
  private(set) var failure: String?

  init(_ options: Options, port: UInt16) {
    self.port = port
    expectedStatus = options.expectedStatus
    timeLimitMilliseconds = options.timeLimitMilliseconds
    bodiesDiffer = options.keyCount > 0
    requests = Requests(options)
    loop = uv_default_loop()
    uv_timer_init(loop, timer)
    for number in 0..<options.connectionCount {
      // A few all come from 127.0.0.1, the only address that some proxies let in.
      connections.append(LoadConnection(self, number: number / 1000))
    }
  }

  /// Callbacks of C are formed here, outside the main actor.
  func run() {
    timer.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    for connection in connections { connection.open(loop) }
    // For the first answers; then anew for the time that counts.
    startTimer(milliseconds: 30_000)
    uv_run(loop, UV_RUN_DEFAULT)
  }

  private func startTimer(milliseconds: Int64) {
    uv_timer_start(
      timer,
      { timer in
        // SAFETY: the load outlives `run`, within which the timer fires.
        Unmanaged<Load>.fromOpaque(timer!.pointee.data).takeUnretainedValue().timeIsOver()
      }, UInt64(milliseconds), 0)
  }

  private func timeIsOver() {
    if firstCount < connections.count { fail("no answer on some connections") }
    measuredUntil = (answerCount, monotonicNanoseconds())
    uv_stop(loop)
  }

  func fail(_ reason: String) {
    if failure == nil { failure = reason }
    uv_stop(loop)
  }

  func nextRequest() -> UnsafeRawBufferPointer { requests.next() }

  /// The server has ended a connection, as it may between two answers.
  func hasEnded(_ connection: LoadConnection) {
    renewedCount += 1
    guard renewedCount <= 100 + answerCount / 100 else { return fail("connections keep ending") }
    connection.open(loop)
  }

  /// The first answer of a connection is whole.
  func answeredFirst(_ reader: ResponseReader) {
    answerCount += 1
    guard reader.statusCode == expectedStatus else { return fail("status \(reader.statusCode)") }
    let body = (bytes: reader.bodyBytes, digest: reader.digest)
    let expected = firstBody ?? body
    guard expected.bytes == body.bytes else { return fail("answers of different lengths") }
    guard bodiesDiffer || expected.digest == body.digest else { return fail("different bodies") }
    firstBody = body
    firstCount += 1
    if firstCount == connections.count {
      measuredFrom = (answerCount, monotonicNanoseconds())
      startTimer(milliseconds: timeLimitMilliseconds)
    }
  }

  /// Whether an answer with this head is as the first was; its bytes.
  func bodyBytes(of head: HeadSearch) -> Int? {
    guard head.statusCode == expectedStatus else {
      fail("status \(head.statusCode)")
      return nil
    }
    // A 304 has no body whatever its length says (RFC 9110 §15.4.5).
    if head.statusCode == 304 { return 0 }
    guard let length = head.contentLength, let firstBody, UInt64(length) == firstBody.bytes else {
      fail("an answer of another length")
      return nil
    }
    return length
  }

  func answered() { answerCount += 1 }

  func report() {
    let nanoseconds = measuredUntil.nanoseconds - measuredFrom.nanoseconds
    let count = measuredUntil.answers - measuredFrom.answers
    printFigures([
      ("answers", "\(measuredUntil.answers)"),
      ("bytes", "\(firstBody?.bytes ?? 0)"),
      ("renewed", "\(renewedCount)"),
      ("requests-per-second", "\(Int(Double(count) * 1e9 / Double(max(1, nanoseconds))))"),
    ])
  }
}
