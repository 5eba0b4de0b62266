internal import Backends
internal import CachePolicy

/// Writes the head of an answer that comes from the network: the origin's fields, then those that
/// are ours to say, and how the body is delimited.
extension Exchange {
  func writeNotModified(_ head: Fill.Head) {
    let output = worker.output
    output.removeAll()
    output.append("HTTP/1.1 304 Not Modified\r\n")
    CopyServing.append(Validation.notModifiedFields(of: head.fields), to: output)
    appendForwardFields(head, to: output)
    connection.writeAll(output.bytes)
    repository.count(bytesToClient: output.count)
    finish()
    leaveFill()
    connection.endAnswer()
  }

  func encodeHead(_ head: Fill.Head, knownLength: UInt64?) {
    let output = worker.output
    output.removeAll()
    output.append(head.encoded)
    if !isCollapsed { CopyServing.append(head.ownFields, to: output) }
    if let age = head.ageMilliseconds {
      output.append("Age: ")
      output.append(decimal: CopyServing.ageSeconds(age))
      output.append("\r\n")
    }
    let length = head.contentLength ?? knownLength
    if source.head.method == .head || head.status == 204 || head.status == 304 {
      framing = .none
      if head.status != 204, let length = head.contentLength {
        appendLength(length, to: output)
      }
    } else if let length {
      framing = .length
      appendLength(length, to: output)
    } else if connection.minorVersion == 1 {
      framing = .chunked
      output.append("Transfer-Encoding: chunked\r\n")
    } else {
      framing = .close
      connection.closeAfterAnswer()
    }
    appendForwardFields(head, to: output)
  }

  enum RequestedPart: Equatable {
    case whole
    /// `of`: the whole's length; nil: not known.
    case part(Range<Int>, of: Int?)
    case unsatisfiable(of: Int)
    /// More of the body has to come before it can be said.
    case notYet
  }

  /// What of the fill's body the client asked for, where the whole was fetched for a request of a
  /// part (`fetch-whole`). Several parts are the whole: a server may ignore Range (RFC 9110 §14.2),
  /// and in which order they lie in what has yet to come nobody knows.
  func requestedPart(_ head: Fill.Head, _ progress: Fill.Progress) -> RequestedPart {
    guard source.head.method == .get, head.status == 200, let fill,
      source.head.fields.contains(.range), !fill.plan.request.contains(.range),
      let ranges = ByteRange.requested(
        in: source.head.fields, rangesMax: worker.limits.rangesPerRequest),
      Validation.ifRangeHolds(
        request: source.head.fields, stored: head.fields,
        nowSeconds: worker.clock.nowMilliseconds / 1000)
    else { return .whole }
    let whole = progress.ending == .whole ? UInt64(progress.receivedBytes) : nil
    if let length = head.contentLength ?? whole {
      switch RangeAnswer.decide(ranges, length: length) {
      case .whole, .parts: return .whole
      case .part(let part):
        return .part(
          Int(clamping: part.lowerBound)..<Int(clamping: part.upperBound),
          of: Int(clamping: length))
      case .unsatisfiable: return .unsatisfiable(of: Int(clamping: length))
      }
    }
    // Where nothing is stored, what has come lies in memory, and the origin is paused until this
    // client reads it.
    let mayWait =
      progress.isStoring
      && UInt64(progress.receivedBytes) <= source.route.maxEntrySizeBytes
    switch RangeAnswer.decide(
      ranges, arrivedBytes: UInt64(progress.receivedBytes), mayWait: mayWait)
    {
    case .whole: return .whole
    case .part(let part): return .part(Int(part.lowerBound)..<Int(part.upperBound), of: nil)
    case .wait: return .notYet
    }
  }

  func encodePartialHead(_ head: Fill.Head, _ part: Range<Int>, of length: Int?) {
    offset = part.lowerBound
    partEnd = part.upperBound
    fill?.advance(self, to: offset)
    framing = .length
    let output = worker.output
    output.removeAll()
    output.append("HTTP/1.1 206 Partial Content\r\n")
    head.encoded.withUnsafeBytes {
      StoredHead.appendPartLines(of: $0, inParts: false, to: output)
    }
    if !isCollapsed { CopyServing.append(head.ownFields, to: output) }
    output.append("Content-Range: ")
    let range = ContentRange(
      bytes: UInt64(part.lowerBound)..<UInt64(part.upperBound),
      completeLength: length.map(UInt64.init))
    output.append(range.value)
    output.append("\r\n")
    appendLength(UInt64(part.count), to: output)
    appendForwardFields(head, to: output)
  }

  /// The fill goes on without this client.
  func writeUnsatisfiable(_ head: Fill.Head, _ length: Int) {
    let output = worker.output
    output.removeAll()
    output.append("HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: ")
    output.append(ContentRange.unsatisfied(length: UInt64(length)))
    output.append("\r\nDate: ")
    output.append(worker.date())
    output.append("\r\n")
    appendLength(0, to: output)
    appendForwardFields(head, to: output)
    connection.writeAll(output.bytes)
    repository.count(bytesToClient: output.count)
    finish()
    fill = nil
    connection.endAnswer()
  }

  private func appendLength(_ length: UInt64, to output: OutputBuffer) {
    output.append("Content-Length: ")
    output.append(decimal: length)
    output.append("\r\n")
  }

  /// `Cache-Status`, `Via`, the connection's field, and the end of the head.
  private func appendForwardFields(_ head: Fill.Head, to output: OutputBuffer) {
    output.append("Cache-Status: larder; fwd=")
    output.append((fetch?.reason ?? passReason ?? .bypass).rawValue)
    output.append("; fwd-status=")
    output.append(decimal: UInt64(head.status))
    if head.notStored == nil { output.append("; stored") }
    if isCollapsed { output.append("; collapsed") }
    if let reason = head.notStored {
      if fetch != nil || unkeyedReason != nil {
        output.append("; detail=")
        output.append(reason.rawValue)
      } else {
        output.append(source.route.detail)
      }
    } else {
      output.append(source.route.detail)
    }
    output.append("\r\nVia: ")
    output.append(head.version.text)
    output.append(" larder")
    connection.appendConnectionField(to: output)
    output.append("\r\n\r\n")
  }
}
