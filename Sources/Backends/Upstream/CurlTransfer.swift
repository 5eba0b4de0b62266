internal import CCurl
internal import CachePolicy

/// One request to an origin and its answer, over one easy handle at a time (a retry takes another).
///
/// Translates libcurl's callbacks into `OriginResponseReceiver`'s, holds the answer back while it
/// is paused, and knows the two times that bound an answer: to the first byte, and between bytes.
final class CurlTransfer: OriginTransfer {
  let request: OriginRequest
  // SAFETY: a client ends its transfers before it goes.
  private unowned(unsafe) let client: CurlClient
  private var receiver: (any OriginResponseReceiver)?
  var handle: CurlHandle?
  private(set) var attempts = 0
  /// Nothing was sent: the kept connection that libcurl chose is of no use any more.
  private(set) var metDeadConnection = false

  private var head = ResponseHeadReader()
  private(set) var headIsComplete = false
  private var isPaused = false
  private var isReceivePausedByCurl = false
  private var isSendPausedByCurl = false
  private(set) var isCancelled = false
  private var failure: OriginError?
  private var resumeIsScheduled = false

  /// When the wait for the next byte is over, in the loop's monotonic milliseconds.
  private(set) var patienceEndsMilliseconds: UInt64 = 0
  var slot = -1

  init(request: OriginRequest, client: CurlClient, receiver: any OriginResponseReceiver) {
    self.request = request
    self.client = client
    self.receiver = receiver
    let endpoint = request.endpoint
    firstByteTimeoutMilliseconds = UInt64(endpoint.firstByteTimeoutMilliseconds)
    stallTimeoutMilliseconds = UInt64(endpoint.stallTimeoutMilliseconds)
    retriesMax = endpoint.retriesMax
  }

  private let firstByteTimeoutMilliseconds: UInt64
  private let stallTimeoutMilliseconds: UInt64
  private let retriesMax: Int

  func beginAttempt(with handle: CurlHandle) {
    // Choosing a dead connection is no attempt.
    if !metDeadConnection { attempts += 1 }
    metDeadConnection = false
    self.handle = handle
    head = ResponseHeadReader()
    headIsComplete = false
    isReceivePausedByCurl = false
    isSendPausedByCurl = false
    failure = nil
    handle.transfer = self
    handle.prepare(request)
    patienceEndsMilliseconds = client.loop.monotonicMilliseconds + firstByteTimeoutMilliseconds
  }

  // MARK: libcurl's callbacks

  func received(headerLine bytes: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
    guard !isCancelled else { return 0 }
    madeProgress()
    switch head.read(UnsafeRawBufferPointer(start: bytes, count: count)) {
    case .more, .trailer: return count
    case .interim(let status):
      receiver?.originSentInterim(
        status: status, fields: head.fields, version: head.version)
      head.beginNext()
      return isCancelled ? 0 : count
    case .final:
      headIsComplete = true
      var fields = head.fields
      fields.removeHopByHop()
      receiver?.originSentHead(
        OriginResponseHead(
          status: head.status, fields: fields, contentLength: head.contentLength,
          endIsKnown: endIsKnown,
          version: head.version))
      return isCancelled ? 0 : count
    case .broken(let reason):
      failure = .broken(reason)
      return 0
    }
  }

  /// A transfer coding in HTTP/1.0 is faulty framing (RFC 9112 §6.1): what it ends with proves
  /// nothing.
  private var endIsKnown: Bool {
    head.isChunked && head.version != .http10 || head.contentLength != nil || isMultiplexed
      || head.status == 204
      || head.status == 304 || request.method == .head
  }

  func received(body bytes: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
    guard !isCancelled else { return 0 }
    if isPaused {
      isReceivePausedByCurl = true
      return Int(CURL_WRITEFUNC_PAUSE)
    }
    madeProgress()
    receiver?.originSentBody(UnsafeRawBufferPointer(start: bytes, count: count))
    return isCancelled ? 0 : count
  }

  func wantsBody(_ bytes: UnsafeMutablePointer<CChar>?, _ capacity: Int) -> Int {
    guard !isCancelled, let body = request.body else { return Int(CURL_READFUNC_ABORT) }
    madeProgress()
    switch body.source.readBody(
      into: UnsafeMutableRawBufferPointer(start: bytes, count: capacity))
    {
    case .bytes(let count): return count
    case .end: return 0
    case .wait:
      isSendPausedByCurl = true
      return Int(CURL_READFUNC_PAUSE)
    case .failed:
      failure = .requestBodyFailed
      return Int(CURL_READFUNC_ABORT)
    }
  }

  func mayGoOut(_ localPort: Int32, _ remotePort: Int32) -> Bool {
    guard !isCancelled else { return false }
    metDeadConnection = !client.mayCarryRequest(localPort: localPort, remotePort: remotePort)
    return !metDeadConnection
  }

  /// HTTP/2 comes by ALPN alone: in clear text a status line that says so is no proof of it.
  var isMultiplexed: Bool {
    head.version == .http2 && request.endpoint.url.hasPrefix("https:")
  }

  private func madeProgress() {
    patienceEndsMilliseconds =
      client.loop.monotonicMilliseconds
      + (headIsComplete ? stallTimeoutMilliseconds : firstByteTimeoutMilliseconds)
  }

  // MARK: OriginTransfer

  func pause() { isPaused = true }

  func resume() {
    guard isPaused else { return }
    isPaused = false
    if isReceivePausedByCurl { scheduleContinue() }
  }

  func bodyBecameAvailable() {
    if isSendPausedByCurl { scheduleContinue() }
  }

  /// libcurl is told from a fresh turn: it may call back from within, and may not be entered twice.
  private func scheduleContinue() {
    guard !resumeIsScheduled else { return }
    resumeIsScheduled = true
    client.afterCallbacks { [self] in
      resumeIsScheduled = false
      guard let handle, !isCancelled else { return }
      isReceivePausedByCurl = false
      isSendPausedByCurl = false
      madeProgress()
      client.entered { _ = curl_easy_pause(handle.easy, CURLPAUSE_CONT) }
    }
  }

  func cancel() {
    guard !isCancelled, receiver != nil else { return }
    isCancelled = true
    receiver = nil
    client.cancelled(self)
  }

  // MARK: The end

  /// Whether the origin is the one who keeps us waiting.
  var isWaitingForOrigin: Bool { !isReceivePausedByCurl && !isSendPausedByCurl }

  func timeOut() {
    failure = .timedOut(headIsComplete ? "no progress in the body" : "no answer in time")
    client.abort(self)
  }

  /// libcurl's result as ours; nil is success.
  func outcome(of code: CURLcode) -> OriginError? {
    if let failure { return failure }
    switch code {
    case CURLE_OK: return headIsComplete ? nil : .broken("no answer")
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT,
      CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION:
      return .unreachable(String(cString: curl_easy_strerror(code)))
    case CURLE_OPERATION_TIMEDOUT: return .noConnectionInTime
    default: return .broken(String(cString: curl_easy_strerror(code)))
    }
  }

  /// Whether the request may be sent once more: nothing of an answer came, and either nothing was
  /// sent or sending twice does no harm (RFC 9110 §9.2.2).
  func mayRetry(after error: OriginError) -> Bool {
    guard !isCancelled, !headIsComplete, attempts <= retriesMax,
      request.body?.source.hasBeenRead != true
    else { return false }
    switch error {
    case .unreachable: return true
    case .broken: return request.method.isIdempotent && head.status == 0
    case .timedOut, .requestBodyFailed, .busy: return false
    }
  }

  func finish(_ error: OriginError?) {
    guard let receiver else { return }
    self.receiver = nil
    if let error { receiver.originFailed(error) } else { receiver.originFinished() }
  }
}
