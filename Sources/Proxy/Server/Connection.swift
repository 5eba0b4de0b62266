internal import Backends
internal import CachePolicy

/// What serves the requests of a listener; one instance a loop.
protocol RequestHandler: AnyObject {
  /// A request's head is in `connection.worker.head`. The handler answers now or later, through the
  /// connection; where it answers later it has set `connection.exchange`.
  func handleRequest(on connection: Connection)
  /// A request was refused by the parser or a limit; the connection answers it by itself.
  func requestWasRefused(_ refusal: RequestRefusal)
  /// An answer of the connection's own making went out.
  func ownAnswerWasWritten(byteCount: Int)
}

/// A request whose answer takes more than one turn of the loop: told what its client does.
protocol ConnectionExchange: AnyObject {
  /// All that was written is with the kernel: more may be written.
  func clientTookAll()
  func requestBodyArrived(_ bytes: UnsafeRawBufferPointer)
  func requestBodyEnded()
  /// The client sends no more. It may be gone; or it still reads, as some do: nobody can tell.
  func clientFinishedSending()
  /// The client is gone, or its body broke. Nothing more may be written.
  func clientLeft()
}

extension ConnectionExchange {
  func clientFinishedSending() {}
}

/// One client connection: takes requests out of its bytes one after another, and gives each the
/// time and the memory that Limits allow.
///
/// It knows HTTP/1.1's framing and nothing of caching. Requests on one connection are answered in
/// order: the next is looked at when the answer before it is written. Every reason for which it
/// ends is in `Closing`.
final class Connection {
  enum Phase {
    /// Reading a head, or waiting for one to begin.
    case head
    /// An exchange has the request; its body may still be coming in.
    case exchange
    /// The answer is out and nothing more is served: what still comes is thrown away until the
    /// client closes, so that our last bytes are not lost to a reset (RFC 9112 §9.6).
    case lingering
    case closed
  }

  /// What a connection is waited for, each with a limit.
  enum Patience {
    case none, nextRequest, head, body, write, linger
  }

  /// How long a connection may linger.
  private static let lingerMilliseconds: UInt64 = 2_000

  // SAFETY: a worker closes its connections before it ends, and handlers live as long as workers.
  unowned(unsafe) let worker: Worker
  private let peer: SocketAddress
  /// The client's address as text, made when it is first needed.
  private(set) lazy var peerHost = peer.host
  private unowned(unsafe) let handler: any RequestHandler
  let stream: TCPStream
  private let onClose: @Sendable () -> Void
  var slot = 0

  private(set) var phase = Phase.head
  private var scanner = HeadScanner()
  private var body = BodyDecoder(.none)
  private var pending: [UInt8] = []
  private(set) var isConsuming = false
  /// While consuming: how many of the bytes at hand lie behind the current request.
  private(set) var followingBytes = 0
  private var inputHasEnded = false
  private var isReadPaused = false
  var isBroken = false

  /// The exchange that has the current request, where it outlives its turn.
  var exchange: (any ConnectionExchange)?
  /// Of the current request: whether its answer has no body, and how it was asked.
  private(set) var isHeadRequest = false
  private(set) var minorVersion: UInt8 = 1
  private var wantsClose = false
  private var continueIsDue = false

  private var patience = Patience.nextRequest
  private var patienceEnds: UInt64 = 0
  var lastQueuedBytes = 0

  init?(
    worker: Worker, descriptor: Int32, peer: SocketAddress, handler: any RequestHandler,
    onClose: @escaping @Sendable () -> Void
  ) {
    guard let stream = TCPStream(loop: worker.loop, descriptor: descriptor) else { return nil }
    self.worker = worker
    self.peer = peer
    self.handler = handler
    self.stream = stream
    self.onClose = onClose
  }

  func start() {
    stream.owner = self
    let patience = worker.limits.headerTimeoutMilliseconds
    // Accepted at the very end: who has something to say has said it by now.
    waitFor(.nextRequest, worker.isDraining ? min(patience, 1_000) : patience)
    stream.startReading()
  }

  // MARK: Input

  private func consumePending() {
    guard !isConsuming, !pending.isEmpty else { return }
    var taken = pending
    pending = []
    let consumed = taken.withUnsafeBytes { consume($0) }
    if consumed < taken.count, phase != .closed {
      taken.removeFirst(consumed)
      pending = taken
    }
    regulateReading()
    // What is left is the beginning of a head, whose end will not come.
    if inputHasEnded, phase == .head, stream.queuedBytes == 0 { close() }
  }

  /// Whether more input has a place: a client that sends requests and does not take the answers
  /// must not fill the memory.
  private var hasInputRoom: Bool {
    pending.count < EventLoop.readBufferBytes || phase == .head && !hasQueuedOutput
  }

  private func regulateReading() {
    guard phase == .head || phase == .exchange else { return }
    if !hasInputRoom {
      if !isReadPaused { pauseReading() }
    } else if isReadPaused, phase == .head {
      resumeReading()
    }
  }

  /// Serves as many requests as the bytes hold; returns how many bytes are done with.
  private func consume(_ bytes: UnsafeRawBufferPointer) -> Int {
    isConsuming = true
    defer {
      flushHeld()
      isConsuming = false
    }
    var position = 0
    while position < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[position...])
      switch phase {
      case .closed, .lingering: return bytes.count
      case .head:
        guard stream.queuedBytes == 0 else { return position }
        guard let taken = consumeHead(rest) else { return position }
        position += taken
      case .exchange:
        guard !body.isComplete, !continueIsDue else { return position }
        position += consumeBody(rest)
      }
    }
    return position
  }

  /// nil: the head is not complete yet.
  private func consumeHead(_ bytes: UnsafeRawBufferPointer) -> Int? {
    var skipped = 0
    // One empty line before a request is passed over (RFC 9112 §2.2).
    if bytes.count >= 2, bytes[0] == 0x0D, bytes[1] == 0x0A {
      scanner.reset()
      skipped = 2
      if bytes.count == 2 { return 2 }
    }
    let rest = UnsafeRawBufferPointer(rebasing: bytes[skipped...])
    let head = worker.head
    switch scanner.scan(rest, limits: worker.limits, previous: head) {
    case .more:
      if patience != .head { waitFor(.head, worker.limits.headerTimeoutMilliseconds) }
      return skipped == 0 ? nil : skipped
    case .refused(let refusal):
      refuse(refusal)
      return bytes.count
    case .complete(let length):
      scanner.reset()
      do throws(RequestRefusal) {
        try RequestParser.parse(
          UnsafeRawBufferPointer(rebasing: rest[0..<length]), into: head)
      } catch {
        refuse(error)
        return bytes.count
      }
      followingBytes = rest.count - length
      beginExchange()
      return skipped + length
    }
  }

  private func beginExchange() {
    phase = .exchange
    isHeadRequest = worker.head.method == .head
    minorVersion = worker.head.minorVersion
    wantsClose = !worker.head.isPersistent
    answerHasBegun = false
    continueIsDue = worker.head.expectsContinue
    body = BodyDecoder(worker.head.framing)
    patience = .none
    handler.handleRequest(on: self)
    if phase == .exchange, patience == .none { waitForBody() }
  }

  /// From here on the client has to send its body, where it has one and was not told to wait.
  private func waitForBody() {
    guard !body.isComplete, !continueIsDue, !isReadPaused else { return }
    waitFor(.body, worker.limits.bodyStallMilliseconds)
  }

  private func consumeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
    waitFor(.body, worker.limits.bodyStallMilliseconds)
    let (consumed, outcome) = body.decode(bytes) { exchange?.requestBodyArrived($0) }
    followingBytes = bytes.count - consumed
    switch outcome {
    case .more: break
    case .complete:
      if patience == .body { patience = .none }
      exchange?.requestBodyEnded()
    case .refused(let fault):
      refuseBody(RequestRefusal(fault == .trailerTooLarge ? 431 : 400, fault.reason))
    }
    return consumed
  }

  /// Answers a request that never became one, and closes.
  private func refuse(_ refusal: RequestRefusal) {
    handler.requestWasRefused(refusal)
    phase = .exchange
    isHeadRequest = false
    answerHasBegun = false
    wantsClose = true
    body = BodyDecoder(.none)
    respond(
      Problem(
        status: refusal.status, detail: refusal.reason.description,
        fields: refusal.status == 405 ? [Problem.allowedMethods] : []))
  }

  /// The request's body broke: its exchange ends, with an answer if none has begun, and so does the
  /// connection.
  private func refuseBody(_ refusal: RequestRefusal) {
    let exchange = self.exchange
    self.exchange = nil
    exchange?.clientLeft()
    wantsClose = true
    // An answer that has begun is counted already; now the client sees it cut.
    guard !answerHasBegun else { return close() }
    handler.requestWasRefused(refusal)
    respond(Problem(status: refusal.status, detail: refusal.reason.description))
  }

  // MARK: What an exchange asks for

  /// The request's body may come: tells a client that waits for it (RFC 9110 §10.1.1).
  func acceptBody() {
    guard continueIsDue, phase == .exchange, !answerHasBegun else { return }
    continueIsDue = false
    let text: StaticString = "HTTP/1.1 100 Continue\r\n\r\n"
    writeAll(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    if patience == .none { waitForBody() }
    if !isConsuming { consumePending() }
  }

  /// Whether the request's body is in.
  var requestBodyIsComplete: Bool { body.isComplete }

  /// Back-pressure: takes no more of the request's body until `resumeReading`.
  func pauseReading() {
    isReadPaused = true
    stream.stopReading()
    if patience == .body { patience = .none }
  }

  func resumeReading() {
    guard isReadPaused else { return }
    isReadPaused = false
    if phase != .closed, !inputHasEnded { stream.startReading() }
    if !body.isComplete { waitFor(.body, worker.limits.bodyStallMilliseconds) }
  }

  /// Whether the answer's head has to say `Connection: close`.
  var closesAfterAnswer: Bool {
    wantsClose || worker.isDraining || inputHasEnded && !hasMoreInput || !body.isComplete
  }

  /// Whether bytes are at hand behind the current request.
  private var hasMoreInput: Bool { isConsuming ? followingBytes > 0 : !pending.isEmpty }

  /// Has the connection closed after this answer.
  func closeAfterAnswer() { wantsClose = true }

  var hasQueuedOutput: Bool { stream.queuedBytes > 0 }

  /// The answer is written (or queued); the connection goes on to the next request, or closes.
  func endAnswer() {
    exchange = nil
    guard phase == .exchange else { return }
    if closesAfterAnswer {
      beginLingering()
      return
    }
    phase = .head
    if patience != .write { waitFor(.nextRequest, worker.limits.idleMilliseconds) }
    regulateReading()
    continueWithPending()
  }

  /// The answer cannot be completed: the connection is cut, so that the client sees it broke off;
  /// by a reset where only that can tell it from the answer's end.
  func abortAnswer(byReset: Bool = false) {
    exchange = nil
    close(byReset: byReset)
  }

  /// Counts an answer of our own making.
  func countOwnAnswer(byteCount: Int) { handler.ownAnswerWasWritten(byteCount: byteCount) }

  private func continueWithPending() {
    guard !isConsuming, !pending.isEmpty else { return }
    // A fresh turn: the caller may be deep inside another exchange's callbacks.
    worker.loop.later { [weak self] in
      guard let self, phase == .head else { return }
      consumePending()
    }
  }

  private func beginLingering() {
    phase = .lingering
    pending = []
    flushHeld()
    stream.shutDown()
    if inputHasEnded {
      if stream.queuedBytes == 0 { close() }
      return
    }
    if isReadPaused {
      isReadPaused = false
      stream.startReading()
    }
    patience = .linger
    patienceEnds = worker.loop.monotonicMilliseconds + Connection.lingerMilliseconds
  }

  // MARK: Time

  func waitFor(_ what: Patience, _ milliseconds: Int64) {
    patience = what
    patienceEnds = worker.loop.monotonicMilliseconds + UInt64(milliseconds)
  }

  /// Ends the connection where a limit has passed; called with every tick.
  func checkPatience(_ now: UInt64) {
    guard patience != .none, now >= patienceEnds else { return }
    switch patience {
    case .none: break
    case .nextRequest: close()
    case .linger:
      if stream.queuedBytes > 0, stream.queuedBytes != lastQueuedBytes {
        lastQueuedBytes = stream.queuedBytes
        patienceEnds = now + UInt64(worker.limits.bodyStallMilliseconds)
      } else {
        close()
      }
    case .head: refuse(RequestRefusal(408, "the header block took too long"))
    case .body: refuseBody(RequestRefusal(408, "the request's body stalled"))
    case .write:
      if stream.remainingBytes != lastQueuedBytes {
        lastQueuedBytes = stream.remainingBytes
        waitFor(.write, worker.limits.bodyStallMilliseconds)
      } else {
        close()
      }
    }
  }

  /// Set by whoever writes an answer's head; an interim answer does not count.
  var answerHasBegun = false

  // MARK: The end

  /// Closes at once when idle, else after the running answer.
  func drain() {
    wantsClose = true
    if phase == .head, stream.queuedBytes == 0, pending.isEmpty { close() }
  }

  func close(byReset: Bool = false) {
    guard phase != .closed else { return }
    flushHeld()
    phase = .closed
    patience = .none
    pending = []
    let exchange = self.exchange
    self.exchange = nil
    exchange?.clientLeft()
    if byReset { stream.reset() } else { stream.close() }
    stream.owner = nil
    worker.forget(self)
    onClose()
  }
}

extension Connection: TCPStreamOwner {
  func streamDidRead(_ bytes: UnsafeRawBufferPointer) {
    if pending.isEmpty {
      let consumed = consume(bytes)
      if consumed < bytes.count, phase != .closed, phase != .lingering {
        pending.append(contentsOf: bytes[consumed...])
      }
    } else {
      pending.append(contentsOf: bytes)
      consumePending()
    }
    regulateReading()
  }

  func streamDidReachEnd() {
    inputHasEnded = true
    switch phase {
    case .head:
      // Requests may still be waiting for the answer before them to be written.
      if !pending.isEmpty {
        if stream.queuedBytes == 0 { consumePending() }
      } else if stream.queuedBytes == 0 {
        close()
      } else {
        beginLingering()
      }
    case .lingering: if stream.queuedBytes == 0 { close() }
    case .exchange:
      // A client may close its sending side and still read; but a body that is not whole is broken.
      if body.isComplete { exchange?.clientFinishedSending() } else { close() }
    case .closed: break
    }
  }

  func streamDidDrain() {
    if patience == .write { patience = .none }
    switch phase {
    case .exchange: exchange?.clientTookAll()
    case .head:
      waitFor(.nextRequest, worker.limits.idleMilliseconds)
      if pending.isEmpty { regulateReading() } else { continueWithPending() }
    case .lingering: if inputHasEnded { close() }
    case .closed: break
    }
  }

  func streamDidFail() { close() }
  func streamDidClose() {}
}
