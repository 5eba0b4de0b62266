internal import CachePolicy

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// One connection to an origin: writes a request, takes the answer out of the bytes that come, and
/// is there for the next one where both sides leave it open (RFC 9112 §9.3).
///
/// It carries one transfer at a time. Whatever is ambiguous about an answer's framing ends the
/// connection with it, and so do bytes that nobody asked for: they would be taken for the answer to
/// the next request. Owned by `HTTP1Client`, which hears of its end.
final class HTTP1Connection: TCPStreamOwner {
  private enum Phase {
    case idle
    case head
    /// The body has a length or chunks.
    case body
    /// The body ends with the connection.
    case bodyUntilClose
    case closed
  }

  let pool: OriginPool
  // SAFETY: a client closes its connections before it goes.
  private unowned(unsafe) let client: HTTP1Client
  private let stream: TCPStream
  private var transfer: HTTP1Transfer?
  private var phase = Phase.idle
  private let reader = ResponseHeadReader()
  private var decoder = BodyDecoder(.none)
  /// The begin of a header line whose end has not come yet.
  private var line: [UInt8] = []
  /// It may carry another request after this one.
  private var isPersistent = true

  private var sending = Sending.done
  private enum Sending {
    case done
    /// The request's body is on its way; the length that is left to send, where it is known.
    case body(remaining: Int64?)
    /// The origin takes no more: what it answers is waited for.
    case broken
  }
  /// The request's head waits for the first bytes of the body, to go out with them.
  private var headIsUnsent = false
  /// The client's body has no bytes now.
  private(set) var isWaitingForRequestBody = false
  private var isSendingBody = false

  /// An answer has come by it: its origin may close it at any time, for having served enough.
  var hasCarried = false
  /// Since when it carries nothing, in the loop's monotonic milliseconds.
  private(set) var idleSinceMilliseconds: UInt64

  /// nil: the descriptor cannot be used, and is closed.
  init?(client: HTTP1Client, pool: OriginPool, descriptor: Int32) {
    guard let stream = TCPStream(loop: client.loop, descriptor: descriptor) else {
      closeDescriptor(descriptor)
      return nil
    }
    self.client = client
    self.pool = pool
    self.stream = stream
    stream.carriesStoredBytes = false
    idleSinceMilliseconds = client.loop.monotonicMilliseconds
    stream.owner = self
    stream.startReading()
  }

  /// Whether an idle connection can carry a request: not where the origin has closed it, or has sent
  /// what nobody asked for (RFC 9112 §9.2).
  var isUsable: Bool { phase == .idle && !stream.hasInput }

  // MARK: The request

  func send(_ transfer: HTTP1Transfer) {
    self.transfer = transfer
    transfer.connection = self
    phase = .head
    reader.reset()
    isPersistent = true
    isWaitingForRequestBody = false
    sending = .done
    if let body = transfer.request.body, body.length != 0 {
      sending = .body(remaining: body.length)
    }
    if transfer.isPaused { pauseReading() }
    headIsUnsent = true
    sendBody()
    if headIsUnsent { write([]) }
  }

  /// Sends what there is of the request's body, as far as the socket takes it.
  func sendBody() {
    guard !isSendingBody else { return }
    isSendingBody = true
    defer { isSendingBody = false }
    isWaitingForRequestBody = false
    while case .body(let remaining) = sending, stream.queuedBytes == 0,
      let transfer, let body = transfer.request.body
    {
      let room = client.bodyBuffer
      switch body.source.readBody(into: room) {
      case .bytes(let count):
        // An empty chunk would end the body.
        invariant(count > 0 && count <= room.count, "a body source hands out bytes")
        transfer.madeProgress()
        if let remaining {
          guard count <= remaining else { return requestBodyFailed() }
          // It is whole with its last byte, whether or not its source has said so.
          let left = remaining - Int64(count)
          sending = left == 0 ? .done : .body(remaining: left)
          write([UnsafeRawBufferPointer(rebasing: room[..<count])])
        } else {
          writeChunk(UnsafeRawBufferPointer(rebasing: room[..<count]))
        }
      case .wait:
        isWaitingForRequestBody = true
        return
      case .end:
        guard remaining == nil else { return requestBodyFailed() }
        sending = .done
        write([HTTP1Connection.bytes("0\r\n\r\n")])
      case .failed: return requestBodyFailed()
      }
    }
  }

  private func requestBodyFailed() { fail(.requestBodyFailed) }

  private func writeChunk(_ bytes: UnsafeRawBufferPointer) {
    var size = String(bytes.count, radix: 16) + "\r\n"
    size.withUTF8 { write([UnsafeRawBufferPointer($0), bytes, HTTP1Connection.bytes("\r\n")]) }
  }

  private static func bytes(_ text: StaticString) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
  }

  /// Writes pieces of the body, behind the head where that is not out yet. What the socket does not
  /// take at once is queued. A connection that is broken for writing may hold an answer still; the
  /// end is what reading comes to.
  private func write(_ pieces: [UnsafeRawBufferPointer]) {
    guard headIsUnsent, let transfer else { return pieces.withUnsafeBufferPointer(write) }
    headIsUnsent = false
    transfer.request.withHead { head in
      if pieces.isEmpty {
        withUnsafePointer(to: head) { write(UnsafeBufferPointer(start: $0, count: 1)) }
      } else {
        ([head] + pieces).withUnsafeBufferPointer(write)
      }
    }
  }

  private func write(_ pieces: UnsafeBufferPointer<UnsafeRawBufferPointer>) {
    guard let taken = stream.tryWrite(pieces) else {
      sending = .broken
      return
    }
    if !stream.queue(copying: pieces, skipping: taken) { sending = .broken }
  }

  // MARK: The answer

  func streamDidRead(_ bytes: UnsafeRawBufferPointer) {
    client.passingOn {
      // Of a head, a whole line is progress: bytes could come one by one for a day.
      if phase != .head { transfer?.madeProgress() }
      transfer?.answerHasBegun = true
      var rest = bytes
      while !rest.isEmpty {
        let taken: Int
        switch phase {
        case .head: taken = readHead(rest)
        case .body: taken = readBody(rest)
        case .bodyUntilClose:
          transfer?.receiver?.originSentBody(rest)
          taken = rest.count
        case .idle: return client.discard(self)
        case .closed: return
        }
        rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
        if isWhole { finish(isFollowed: !rest.isEmpty) }
      }
    }
  }

  private var isWhole: Bool { phase == .body && decoder.isComplete }

  /// Takes one line, or what there is of it.
  private func readHead(_ bytes: UnsafeRawBufferPointer) -> Int {
    // SAFETY: the search stays within `bytes`.
    guard let found = memchr(bytes.baseAddress!, 0x0A, bytes.count) else {
      line.append(contentsOf: bytes)
      if line.count > ResponseHeadReader.bytesMax {
        fail(.broken("header block too large"))
      } else if reader.status == 0, !line.withUnsafeBytes(ResponseHeadReader.canBeginAnswer) {
        fail(.broken("not an answer of HTTP"))
      }
      return bytes.count
    }
    transfer?.madeProgress()
    let count = UnsafeRawPointer(found) - bytes.baseAddress! + 1
    let end = UnsafeRawBufferPointer(rebasing: bytes[..<count])
    if line.isEmpty {
      take(reader.read(end))
    } else {
      line.append(contentsOf: end)
      let outcome = line.withUnsafeBytes { reader.read($0) }
      line.removeAll(keepingCapacity: true)
      take(outcome)
    }
    return count
  }

  private func take(_ outcome: ResponseHeadReader.Outcome) {
    switch outcome {
    case .more, .trailer: break
    case .broken(let reason): fail(.broken(reason))
    case .interim where reader.version == .http2, .final where reader.version == .http2:
      fail(.broken("HTTP/2 where HTTP/1.1 was spoken"))
    case .interim(let status):
      transfer?.receiver?.originSentInterim(
        status: status, fields: reader.fields, version: reader.version)
      reader.beginNext()
    case .final: beginBody()
    }
  }

  /// How the answer's body is delimited: RFC 9112 §6.3, in its order.
  private func beginBody() {
    guard let transfer else { return }
    let isHTTP10 = reader.version == .http10
    var fields = reader.takeFields()
    // RFC 9112 §9.3, in its order: close is heeded whatever else is there.
    isPersistent =
      fields.contains(.connection)
      ? !fields.connectionHas(option: "close")
        && (!isHTTP10 || fields.connectionHas(option: "keep-alive"))
      : !isHTTP10
    phase = .body
    if reader.isWithoutBody(answering: transfer.request.method) {
      decoder = BodyDecoder(.none)
    } else if reader.isChunked {
      decoder = BodyDecoder(.chunked, acceptsPaddedSizes: true)
      // Faulty framing: what follows may be anything.
      if isHTTP10 { isPersistent = false }
    } else if let length = reader.contentLength {
      decoder = BodyDecoder(.length(length))
    } else {
      phase = .bodyUntilClose
    }
    transfer.headIsComplete = true
    transfer.madeProgress()
    fields.removeHopByHop()
    transfer.receiver?.originSentHead(
      OriginResponseHead(
        status: reader.status, fields: fields, contentLength: reader.contentLength,
        endIsKnown: reader.endIsKnown(answering: transfer.request.method),
        version: reader.version))
  }

  private func readBody(_ bytes: UnsafeRawBufferPointer) -> Int {
    let (taken, outcome) = decoder.decode(bytes) { transfer?.receiver?.originSentBody($0) }
    if case .refused(let fault) = outcome { fail(.broken(fault.reason.description)) }
    return taken
  }

  // MARK: The end

  func streamDidReachEnd() {
    client.passingOn {
      switch phase {
      case .idle: client.discard(self)
      case .head: fail(.broken(hasAnswered ? "the head broke off" : "no answer"))
      case .body: fail(.broken("the body broke off"))
      case .bodyUntilClose: finish(isFollowed: true)
      case .closed: break
      }
    }
  }

  func streamDidFail() {
    client.passingOn {
      // Of a write: what the origin has answered may wait to be read.
      if stream.isReading || transfer?.isPaused == true {
        sending = .broken
      } else if phase == .idle {
        client.discard(self)
      } else {
        fail(.broken(hasAnswered ? "the connection broke within the answer" : "no answer"))
      }
    }
  }

  func streamDidDrain() {
    transfer?.madeProgress()
    sendBody()
  }

  func streamDidClose() {}

  private var hasAnswered: Bool { transfer?.answerHasBegun == true }

  /// The answer is whole. `isFollowed`: the connection has more to say, or nothing ever again.
  private func finish(isFollowed: Bool) {
    guard let transfer else { return }
    var isFree = isPersistent && !isFollowed && stream.queuedBytes == 0
    // An origin that has answered without the whole request reads the rest of it as the next one,
    // or closes.
    if case .done = sending {} else { isFree = false }
    detach()
    client.finished(transfer, self, isFree: isFree)
  }

  private func fail(_ error: OriginError) {
    guard let transfer else { return }
    detach()
    client.failed(transfer, self, error)
  }

  /// Lets go of the transfer.
  func detach() {
    transfer?.connection = nil
    transfer = nil
    isWaitingForRequestBody = false
    if !line.isEmpty { line.removeAll(keepingCapacity: true) }
    guard phase != .closed else { return }
    phase = .idle
    idleSinceMilliseconds = client.loop.monotonicMilliseconds
    stream.startReading()
  }

  func pauseReading() { stream.stopReading() }

  func resumeReading() { stream.startReading() }

  /// False: it is closed already.
  func close() -> Bool {
    guard phase != .closed else { return false }
    phase = .closed
    stream.owner = nil
    stream.close()
    return true
  }
}
