internal import CachePolicy

/// One request to an origin over HTTP/1.1, and its answer: waits for a connection, has one, or has
/// come to its end (a retry takes another connection).
final class HTTP1Transfer: TimedTransfer, OriginTransfer {
  // SAFETY: a client ends its transfers before it goes.
  private unowned(unsafe) let client: HTTP1Client
  /// What carries it now; nil: it waits for one, or has ended.
  var connection: HTTP1Connection?
  /// Where it stands in line for a connection.
  var waitsIn: OriginPool?
  /// It was sent on a connection that turned out to be dead, and is to have a new one.
  var isRenewed = false
  private(set) var isPaused = false

  init(request: OriginRequest, client: HTTP1Client, receiver: any OriginResponseReceiver) {
    self.client = client
    super.init(request: request, loop: client.loop, receiver: receiver)
  }

  /// Whether the request can be sent once more without harm, where nothing of an answer came.
  var isRepeatable: Bool {
    request.method.isIdempotent && request.body?.source.hasBeenRead != true
  }

  /// Whether a connection that the origin closes while the request is on its way would fail it.
  var needsRecentConnection: Bool { !request.method.isIdempotent || request.body != nil }

  override var isWaitingForOrigin: Bool {
    !isPaused && connection?.isWaitingForRequestBody != true
  }

  // MARK: OriginTransfer

  /// What has been read by now still comes: at most the loop's read buffer.
  func pause() {
    guard !isPaused else { return }
    isPaused = true
    connection?.pauseReading()
  }

  func resume() {
    guard isPaused else { return }
    isPaused = false
    madeProgress()
    connection?.resumeReading()
  }

  func bodyBecameAvailable() {
    guard let connection, connection.isWaitingForRequestBody else { return }
    madeProgress()
    connection.sendBody()
  }

  func cancel() {
    if markCancelled() { client.cancelled(self) }
  }
}
