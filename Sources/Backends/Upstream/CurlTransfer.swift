internal import CCurl
internal import CachePolicy

/// One request to an origin and its answer, over one easy handle at a time (a retry takes another).
///
/// Translates libcurl's callbacks into `OriginResponseReceiver`'s, and holds the answer back while it
/// is paused.
final class CurlTransfer: TimedTransfer, OriginTransfer {
  // SAFETY: a client ends its transfers before it goes.
  private unowned(unsafe) let client: CurlClient
  var handle: CurlHandle?
  /// Nothing was sent: the kept connection that libcurl chose is of no use any more.
  private(set) var metDeadConnection = false

  private let head = ResponseHeadReader()
  private var isPaused = false
  private var isReceivePausedByCurl = false
  private var isSendPausedByCurl = false
  private var failure: OriginError?
  private var resumeIsScheduled = false

  init(request: OriginRequest, client: CurlClient, receiver: any OriginResponseReceiver) {
    self.client = client
    super.init(request: request, loop: client.loop, receiver: receiver)
  }

  func beginAttempt(with handle: CurlHandle) {
    noteAttempt(isRenewed: metDeadConnection)
    metDeadConnection = false
    self.handle = handle
    head.reset()
    isReceivePausedByCurl = false
    isSendPausedByCurl = false
    failure = nil
    handle.use = .transfer(self)
    handle.prepare(request)
  }

  // MARK: libcurl's callbacks

  func received(headerLine bytes: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
    guard !isCancelled else { return 0 }
    madeProgress()
    answerHasBegun = true
    switch head.read(UnsafeRawBufferPointer(start: bytes, count: count)) {
    case .more, .trailer: return count
    case .interim(let status):
      receiver?.originSentInterim(
        status: status, fields: head.fields, version: head.version)
      head.beginNext()
      return isCancelled ? 0 : count
    case .final:
      headIsComplete = true
      var fields = head.takeFields()
      fields.removeHopByHop()
      receiver?.originSentHead(
        OriginResponseHead(
          status: head.status, fields: fields, contentLength: head.contentLength,
          endIsKnown: head.endIsKnown(answering: request.method) || isMultiplexed,
          version: head.version))
      return isCancelled ? 0 : count
    case .broken(let reason):
      failure = .broken(reason)
      return 0
    }
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
    if markCancelled() { client.cancelled(self) }
  }

  // MARK: The end

  override var isWaitingForOrigin: Bool { !isReceivePausedByCurl && !isSendPausedByCurl }

  func timeOut() {
    failure = timeOutError
    client.abort(self)
  }

  /// libcurl's result as ours; nil is success.
  func outcome(of code: CURLcode) -> OriginError? {
    if let failure { return failure }
    if code == CURLE_OK { return headIsComplete ? nil : .broken("no answer") }
    return CurlClient.error(of: code)
  }
}
