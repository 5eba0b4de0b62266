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
      output.append(decimal: age / 1000)
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
    if let reason = head.notStored {
      if fetch != nil {
        output.append("; detail=")
        output.append(reason.rawValue)
      } else {
        output.append(source.route.detail)
      }
    } else {
      output.append("; stored")
      if isCollapsed { output.append("; collapsed") }
      output.append(source.route.detail)
    }
    output.append("\r\nVia: 1.1 larder")
    connection.appendConnectionField(to: output)
    output.append("\r\n\r\n")
  }
}
