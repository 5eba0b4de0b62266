internal import CachePolicy

/// What both clients know of one exchange with an origin: who is told, how often it was tried, and
/// the two times that bound an answer: to the first byte, and between bytes.
///
/// `CurlTransfer` and `HTTP1Transfer` are its kinds. It belongs to its client's loop.
class TimedTransfer {
  let request: OriginRequest
  final let loop: EventLoop
  final private(set) var receiver: (any OriginResponseReceiver)?
  final private(set) var isCancelled = false
  final private(set) var attempts = 0
  /// Something of an answer has come.
  final var answerHasBegun = false
  /// The final answer's head is whole.
  final var headIsComplete = false
  /// Its place in `RunningTransfers`.
  final var slot = -1
  /// When the wait for the next byte is over, in the loop's monotonic milliseconds.
  final private(set) var patienceEndsMilliseconds: UInt64 = 0

  private let firstByteTimeoutMilliseconds: UInt64
  private let stallTimeoutMilliseconds: UInt64
  private let retriesMax: Int

  init(request: OriginRequest, loop: EventLoop, receiver: any OriginResponseReceiver) {
    self.request = request
    self.loop = loop
    self.receiver = receiver
    let endpoint = request.endpoint
    firstByteTimeoutMilliseconds = UInt64(endpoint.firstByteTimeoutMilliseconds)
    stallTimeoutMilliseconds = UInt64(endpoint.stallTimeoutMilliseconds)
    retriesMax = endpoint.retriesMax
  }

  /// `isRenewed`: the connection chosen before turned out dead, and nothing was sent; that is no
  /// attempt.
  final func noteAttempt(isRenewed: Bool) {
    if !isRenewed { attempts += 1 }
    answerHasBegun = false
    headIsComplete = false
    madeProgress()
  }

  final func madeProgress() {
    patienceEndsMilliseconds =
      loop.monotonicMilliseconds
      + (headIsComplete ? stallTimeoutMilliseconds : firstByteTimeoutMilliseconds)
  }

  /// Whether the origin is the one who keeps us waiting.
  var isWaitingForOrigin: Bool { true }

  final var timeOutError: OriginError {
    .timedOut(headIsComplete ? "no progress in the body" : "no answer in time")
  }

  /// Whether the request may be sent once more: nothing of an answer came, and either nothing was
  /// sent or sending twice does no harm (RFC 9110 §9.2.2).
  final func mayRetry(after error: OriginError) -> Bool {
    guard !isCancelled, !headIsComplete, attempts <= retriesMax,
      request.body?.source.hasBeenRead != true
    else { return false }
    switch error {
    case .unreachable: return true
    case .broken: return request.method.isIdempotent && !answerHasBegun
    case .timedOut, .requestBodyFailed, .busy: return false
    }
  }

  /// The receiver hears nothing more. False: it has been told the end already.
  final func markCancelled() -> Bool {
    guard !isCancelled, receiver != nil else { return false }
    isCancelled = true
    receiver = nil
    return true
  }

  /// Tells the receiver the end, once.
  final func finish(_ error: OriginError?) {
    guard let receiver else { return }
    self.receiver = nil
    if let error { receiver.originFailed(error) } else { receiver.originFinished() }
  }
}

/// The transfers that a client carries out now, each at a place that it knows.
struct RunningTransfers<Transfer: TimedTransfer> {
  private(set) var all: [Transfer] = []

  mutating func insert(_ transfer: Transfer) {
    transfer.slot = all.count
    all.append(transfer)
  }

  mutating func remove(_ transfer: Transfer) {
    let last = all.removeLast()
    if last !== transfer {
      all[transfer.slot] = last
      last.slot = transfer.slot
    }
    transfer.slot = -1
  }

  /// Those whose patience has ended.
  func late(_ nowMilliseconds: UInt64) -> [Transfer] {
    all.filter { $0.patienceEndsMilliseconds <= nowMilliseconds && $0.isWaitingForOrigin }
  }
}

/// What a loop's clients have done for their origins since they were made.
public struct OriginCounters: Sendable, Equatable {
  public var requests: UInt64 = 0
  public var failures: UInt64 = 0
  public var connectionsOpened: UInt64 = 0
  public var connectionsReused: UInt64 = 0
  public init() {}

  public mutating func add(_ other: OriginCounters) {
    requests += other.requests
    failures += other.failures
    connectionsOpened += other.connectionsOpened
    connectionsReused += other.connectionsReused
  }
}
