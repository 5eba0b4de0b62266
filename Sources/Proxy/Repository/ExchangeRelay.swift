internal import Backends

/// Sends a fill's body to a client, as it grows and as the client takes it.
extension Exchange {
  /// How often one turn writes to one client, so that the others are served too.
  private static let writesPerTurnMax = 64

  /// Writes what there is until the client's connection or the fill has to be waited for.
  /// `afterHead`: the head is in the worker's output and goes out with the first bytes.
  func pump(afterHead: Bool = false) {
    guard let fill else { return }
    var headIsDue = afterHead
    var writes = 0
    while headIsDue || !connection.hasQueuedOutput {
      writes += 1
      if writes > Exchange.writesPerTurnMax {
        repository.worker.loop.later { [weak self] in self?.fillProgressed() }
        return
      }
      if framing == .none {
        if headIsDue { writeHead() }
        complete()
        return
      }
      if let partEnd, offset == partEnd {
        complete()
        return
      }
      switch fill.read(at: offset, for: self, on: repository.worker) {
      case .bytes(let chunk, let range):
        let wanted = withinPart(range)
        write(
          UnsafeRawBufferPointer(rebasing: chunk.bytes(upTo: wanted.upperBound)[wanted]), headIsDue)
      case .stored(let index, let from):
        guard writeStored(index, from, fill, headIsDue) else { return }
      case .wait:
        if headIsDue { writeHead() }
        return
      case .end:
        if headIsDue { writeHead() }
        if framing == .chunked { writeText("0\r\n\r\n") }
        complete()
        return
      case .failed:
        // The head is out: all that is left is to let the client see that the body broke off.
        finish()
        connection.abortAnswer(byReset: framing == .close)
        return
      }
      headIsDue = false
      // Not while the store is read: the fill may go on at once, and others' answers with it.
      fill.advance(self, to: offset)
    }
  }

  private func writeStored(_ index: UInt32, _ from: Int, _ fill: Fill, _ headIsDue: Bool) -> Bool {
    let reader = repository.reader
    reader.begin()
    let chunk = reader.chunk(entryID: fill.entryID, index: index)
    if let chunk, from < chunk.count {
      write(UnsafeRawBufferPointer(rebasing: chunk[withinPart(from..<chunk.count)]), headIsDue)
      reader.end()
      return true
    }
    reader.end()
    finish()
    connection.abortAnswer(byReset: framing == .close)
    return false
  }

  /// As much of what lies at `offset` as the client asked for.
  private func withinPart(_ range: Range<Int>) -> Range<Int> {
    guard let partEnd else { return range }
    return range.lowerBound..<min(range.upperBound, range.lowerBound + partEnd - offset)
  }

  private func writeHead() {
    let head = repository.worker.output.bytes
    connection.writeAll(head)
    repository.count(bytesToClient: head.count)
  }

  private func writeText(_ text: StaticString) {
    connection.writeAll(
      UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    repository.count(bytesToClient: text.utf8CodeUnitCount)
  }

  /// Writes body bytes in the answer's framing, behind the head where that is due.
  private func write(_ body: UnsafeRawBufferPointer, _ headIsDue: Bool) {
    let output = repository.worker.output
    if !headIsDue { output.removeAll() }
    if framing == .chunked {
      output.append(hexadecimal: body.count)
      output.append("\r\n")
    }
    let text: StaticString = "\r\n"
    let tail =
      framing == .chunked
      ? UnsafeRawBufferPointer(start: text.utf8Start, count: 2)
      : UnsafeRawBufferPointer(start: nil, count: 0)
    withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: 3) { pieces in
      pieces[0] = output.bytes
      pieces[1] = body
      pieces[2] = tail
      connection.writeAll(UnsafeBufferPointer(pieces))
    }
    repository.count(bytesToClient: output.count + body.count + tail.count)
    offset += body.count
  }

  private func complete() {
    finish()
    fill = nil
    connection.endAnswer()
  }
}

/// A request's body between a client and an origin: bounded, in order, read once.
final class RequestBodyBuffer: OriginBodySource {
  /// nil: the client has left, and what it sent is read to its end.
  private weak var exchange: Exchange?
  private var bytes: [UInt8] = []
  private var readCount = 0
  private var hasEnded = false
  private var hasFailed = false
  private(set) var hasBeenRead = false
  /// Whether anybody takes the body; else it is thrown away as it comes.
  var isWanted = false

  init(exchange: Exchange) { self.exchange = exchange }

  func append(_ arrived: UnsafeRawBufferPointer) {
    guard isWanted, let exchange else { return }
    bytes.append(contentsOf: arrived)
    if bytes.count - readCount > exchange.connection.worker.limits.requestBodyBufferBytes {
      exchange.connection.pauseReading()
    }
    tellFill()
  }

  func end() {
    hasEnded = true
    tellFill()
  }

  /// Only the fill that takes the body, which is this client's own and on its loop: another's, which
  /// the client has joined, is not to be touched from here.
  private func tellFill() {
    if isWanted { exchange?.fill?.requestBodyBecameAvailable() }
  }

  /// The client is gone: the origin must not take what came for the whole.
  func fail() {
    guard !hasEnded else { return }
    hasFailed = true
    tellFill()
  }

  func readBody(into buffer: UnsafeMutableRawBufferPointer) -> OriginBodyRead {
    hasBeenRead = true
    if hasFailed { return .failed }
    let available = bytes.count - readCount
    guard available > 0 else { return hasEnded ? .end : .wait }
    let count = min(available, buffer.count)
    bytes.withUnsafeBytes {
      buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[readCount..<readCount + count]))
    }
    readCount += count
    if readCount == bytes.count {
      bytes.removeAll(keepingCapacity: true)
      readCount = 0
    } else if readCount > 1 << 20 {
      bytes.removeFirst(readCount)
      readCount = 0
    }
    if let exchange, !exchange.clientHasLeft,
      bytes.count - readCount < exchange.connection.worker.limits.requestBodyBufferBytes / 2
    {
      exchange.connection.resumeReading()
    }
    return .bytes(count)
  }
}
