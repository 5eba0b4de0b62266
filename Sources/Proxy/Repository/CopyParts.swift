internal import Backends
internal import CachePolicy

/// Parts of a copy (RFC 9110 §14): which of them a request gets, the heads of 206 and 416, and
/// several parts in one answer.
///
/// Called by `CopyServing.write` alone, for GET requests with a Range that select a copy of a 200.
extension CopyServing {
  static func requestedPart(
    of record: RecordView, _ request: RequestHead, by repository: Repository
  ) -> RangeAnswer {
    let limits = repository.worker.limits
    guard
      let ranges = ByteRange.requested(in: request.fields, rangesMax: limits.rangesPerRequest)
    else { return .whole }
    let stored = StoredHead.fields(of: record.head)
    guard
      Validation.ifRangeHolds(
        request: request.fields, stored: stored,
        nowSeconds: repository.services.clock.nowMilliseconds / 1000)
    else { return .whole }
    return RangeAnswer.decide(ranges, length: record.bodyLength)
  }

  static func appendHead(
    ofPart part: Range<UInt64>, of record: RecordView, to output: OutputBuffer
  ) {
    output.append("HTTP/1.1 206 Partial Content\r\n")
    StoredHead.appendPartLines(of: record.head, inParts: false, to: output)
    output.append("Content-Range: ")
    output.append(ContentRange(bytes: part, completeLength: record.bodyLength).value)
    output.append("\r\n")
  }

  /// Several parts: a small body's all at once, a long one's as `CopyStream` gets to them.
  static func write(
    parts: [Range<UInt64>], of answer: CopyAnswer, as stream: CopyStream?,
    on connection: Connection, _ repository: Repository
  ) -> Outcome {
    let record = answer.record
    var random = SystemRandomNumberGenerator()
    let stored = StoredHead.fields(of: record.head)
    let multipart = MultipartByteRanges(
      parts: parts, completeLength: record.bodyLength,
      contentType: stored.bytes.span.extracting(stored.firstValueRange(of: .contentType)),
      randomness: (random.next(), random.next()))
    let output = connection.worker.output
    output.append("HTTP/1.1 206 Partial Content\r\n")
    StoredHead.appendPartLines(of: record.head, inParts: true, to: output)
    output.append("Content-Type: ")
    output.append(multipart.mediaType)
    output.append("\r\nContent-Length: ")
    output.append(decimal: multipart.contentLength)
    output.append("\r\n")
    appendAnswerFields(answer, to: output)
    connection.appendConnectionField(to: output)
    output.append("\r\n\r\n")
    if let stream {
      guard stream.writeFirst(output, of: multipart) else { return .gone }
    } else {
      for (number, part) in parts.enumerated() {
        output.append(multipart.delimiter(before: number))
        output.append(
          UnsafeRawBufferPointer(
            rebasing: record.inlineBody[Int(part.lowerBound)..<Int(part.upperBound)]))
      }
      output.append(multipart.delimiter(before: parts.count))
      connection.writeAll(output.bytes)
      repository.count(bytesToClient: output.count)
    }
    repository.count(bytesFromStore: Int(multipart.partBytes), route: answer.route)
    guard let stream, !stream.isComplete else { return .written }
    return .streaming(stream)
  }

  static func writeUnsatisfiable(
    _ answer: CopyAnswer, on connection: Connection, _ repository: Repository
  ) {
    let output = connection.worker.output
    output.append("HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: ")
    output.append(ContentRange.unsatisfied(length: answer.record.bodyLength))
    output.append("\r\nContent-Length: 0\r\nDate: ")
    output.append(connection.worker.date())
    output.append("\r\n")
    appendAnswerFields(answer, to: output)
    connection.appendConnectionField(to: output)
    output.append("\r\n\r\n")
    connection.writeAll(output.bytes)
    repository.count(bytesToClient: output.count)
  }
}
