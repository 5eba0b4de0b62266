internal import Backends
internal import CachePolicy

/// A copy that answers, and why.
struct CopyAnswer {
  let record: RecordView
  let state: CopyState
  let route: RouteContext
  let use: StrategyMachine.CopyUse
  /// Where the network was asked first: the `fwd` word, and the status it answered with.
  let forward: (reason: StrategyMachine.ForwardReason, status: UInt16?)?
  /// Whether the network was asked by another request's fetch.
  var isCollapsed = false

  /// A confirmed copy is a hit; one that serves stale is not, however fresh the reason sounds.
  var kind: Counters.Kind {
    if use == .confirmed || use == .fresh { return .hit }
    return state.timeToLiveMilliseconds > 0 ? .hit : .stale
  }
}

/// Writes a copy out of the store to a client: whole, as a range of it, or as 304.
///
/// Called between the reader's begin and end. Head and short bodies go out by one write straight
/// from the map; of a long body the first chunks do, and a `CopyStream` carries on. What is special
/// about parts is in CopyParts.swift.
enum CopyServing {
  /// How much of a long body is offered to the kernel at once, in chunks.
  static let chunksPerWrite = 40

  enum Outcome {
    /// The caller ends the answer.
    case written
    /// The caller starts it once the reader has ended.
    case streaming(CopyStream)
    /// The body is being removed, or damaged: the copy is a miss, and nothing was written.
    case gone
  }

  static func begin(
    _ answer: CopyAnswer, of request: RequestHead, on connection: Connection,
    by repository: Repository
  ) -> Outcome {
    let outcome = write(answer, of: request, on: connection, by: repository)
    if case .gone = outcome { return .gone }
    repository.services.store.markUsed(entryID: answer.record.entryID)
    repository.count(answer.kind, route: answer.route)
    connection.answerHasBegun = true
    return outcome
  }

  private static func write(
    _ answer: CopyAnswer, of request: RequestHead, on connection: Connection,
    by repository: Repository
  ) -> Outcome {
    let record = answer.record
    // Read once: where the file is cut short meanwhile, a second look may say something else.
    let (isInline, entryID) = (record.isInline, record.entryID)
    let isPinned = !isInline && repository.services.store.pin(entryID: entryID)
    if !isInline, !isPinned { return .gone }
    let stream = isPinned ? CopyStream(connection, repository, entryID) : nil
    if isNotModified(record, request, repository.services.clock) {
      writeNotModified(answer, on: connection, repository)
      return .written
    }
    let output = connection.worker.output
    output.removeAll()
    var range = 0..<record.bodyLength
    var head = record.head
    if request.method == .get, request.fields.contains(.range), record.status == 200 {
      switch requestedPart(of: record, request, by: repository) {
      case .whole: break
      case .part(let part):
        range = part
        appendHead(ofPart: part, of: record, to: output)
        head = UnsafeRawBufferPointer(start: nil, count: 0)
      case .parts(let parts):
        return write(parts: parts, of: answer, as: stream, on: connection, repository)
      case .unsatisfiable:
        writeUnsatisfiable(answer, on: connection, repository)
        return .written
      }
    }
    if hasBody(record.status) {
      output.append("Content-Length: ")
      output.append(decimal: UInt64(range.count))
      output.append("\r\n")
    }
    appendAnswerFields(answer, to: output)
    connection.appendConnectionField(to: output)
    output.append("\r\n\r\n")
    if request.method == .head || range.isEmpty || !hasBody(record.status) {
      write(
        connection, repository, head, output.bytes, UnsafeRawBufferPointer(start: nil, count: 0))
      return .written
    }
    guard let stream else {
      let inlineBody = record.inlineBody
      guard range.upperBound <= UInt64(inlineBody.count) else { return .gone }
      repository.count(bytesFromStore: range.count, route: answer.route)
      let body = inlineBody[Int(range.lowerBound)..<Int(range.upperBound)]
      write(connection, repository, head, output.bytes, UnsafeRawBufferPointer(rebasing: body))
      return .written
    }
    guard stream.writeFirst(head, output.bytes, range) else { return .gone }
    repository.count(bytesFromStore: range.count, route: answer.route)
    return stream.isComplete ? .written : .streaming(stream)
  }

  private static func hasBody(_ status: UInt16) -> Bool { status != 204 && status != 304 }

  /// Writes head and body at once; what the kernel does not take is copied and queued.
  private static func write(
    _ connection: Connection, _ repository: Repository, _ head: UnsafeRawBufferPointer,
    _ fields: UnsafeRawBufferPointer, _ body: UnsafeRawBufferPointer
  ) {
    withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: 3) { pieces in
      pieces[0] = head
      pieces[1] = fields
      pieces[2] = body
      connection.writeAll(UnsafeBufferPointer(pieces))
    }
    repository.count(bytesToClient: head.count + fields.count + body.count)
  }

  // MARK: Fields of the answer

  /// `Age`, `Cache-Status` and `Via`; the last line is left open for the connection's field.
  static func appendAnswerFields(_ answer: CopyAnswer, to output: OutputBuffer) {
    output.append("Age: ")
    output.append(decimal: ageSeconds(answer.state.ageMilliseconds))
    if let forward = answer.forward {
      output.append("\r\nCache-Status: larder; fwd=")
      output.append(forward.reason.rawValue)
      if let status = forward.status {
        output.append("; fwd-status=")
        output.append(decimal: UInt64(status))
      }
      output.append("; ttl=")
    } else {
      output.append("\r\nCache-Status: larder; hit; ttl=")
    }
    output.append(decimal: seconds(answer.state.timeToLiveMilliseconds))
    if answer.isCollapsed { output.append("; collapsed") }
    output.append(
      answer.route.detailAndVia(answer.record.metadata.flags.receivedVersion))
  }

  /// A value of Age: no larger than what stands for "more than can be said" (RFC 9111 §1.2.2).
  static func ageSeconds(_ milliseconds: Int64) -> Int64 {
    min(max(0, milliseconds / 1000), ASCII.deltaSecondsMax)
  }

  /// Whole seconds, rounded down also below zero.
  private static func seconds(_ milliseconds: Int64) -> Int64 {
    milliseconds >= 0 ? milliseconds / 1000 : -((999 - milliseconds) / 1000)
  }

  // MARK: 304

  private static func isNotModified(
    _ record: RecordView, _ request: RequestHead, _ clock: Clock
  ) -> Bool {
    guard request.fields.contains(.ifNoneMatch) || request.fields.contains(.ifModifiedSince) else {
      return false
    }
    if record.lastModified.isEmpty, !request.fields.contains(.ifNoneMatch) {
      // The Date stands for it, and has to be looked for.
      return Validation.notModified(
        request: request.fields, status: record.status,
        stored: StoredHead.fields(of: record.head), nowSeconds: clock.nowMilliseconds / 1000)
    }
    return Validation.notModified(
      request: request.fields, status: record.status,
      eTag: Span(_unsafeBytes: record.entityTag),
      lastModified: Span(_unsafeBytes: record.lastModified),
      date: [UInt8]().span, nowSeconds: clock.nowMilliseconds / 1000)
  }

  private static func writeNotModified(
    _ answer: CopyAnswer, on connection: Connection, _ repository: Repository
  ) {
    let output = connection.worker.output
    output.removeAll()
    output.append("HTTP/1.1 304 Not Modified\r\n")
    StoredHead.appendNotModifiedLines(of: answer.record.head, to: output)
    appendAnswerFields(answer, to: output)
    connection.appendConnectionField(to: output)
    output.append("\r\n\r\n")
    connection.writeAll(output.bytes)
    repository.count(bytesToClient: output.count)
  }

  static func append(_ fields: Fields, to output: OutputBuffer) {
    for line in fields.lines {
      output.append(fields.bytes[line.name])
      output.append(": ")
      output.append(fields.bytes[line.value])
      output.append("\r\n")
    }
  }
}
