internal import CachePolicy

/// An error that Larder itself makes, as a client sees it: `application/problem+json` (RFC 9457).
struct Problem {
  let status: UInt16
  /// One sentence on this occurrence.
  let detail: String
  /// Fields beside Content-Type, such as Allow or Retry-After.
  var fields: [(name: String, value: String)] = []
  /// Several things that are wrong, one sentence each: the member `errors` of the report.
  var errors: [String] = []

  /// What goes with 405 on the public listener (RFC 9110 §15.5.6).
  static let allowedMethods = (
    name: "Allow", value: "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
  )

  /// Statuses that a cache may guess a lifetime for carry `no-store`: an error of ours is nobody's
  /// to keep.
  var body: [UInt8] {
    let title = StatusText.reason(status)
    var text = "{\"title\":\"\(title)\",\"status\":\(status)"
    text += ",\"detail\":\"\(Problem.escaped(detail))\""
    if !errors.isEmpty {
      text += ",\"errors\":["
      text += errors.map { "\"\(Problem.escaped($0))\"" }.joined(separator: ",") + "]"
    }
    return Array((text + "}\n").utf8)
  }

  private static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case _ where scalar.value < 0x20: result += " "
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

extension Connection {
  /// Answers with a problem report.
  func respond(_ problem: Problem, cacheStatus: String? = nil) {
    var fields = problem.fields
    fields.append(("Content-Type", "application/problem+json"))
    fields.append(("Cache-Control", "no-store"))
    if let cacheStatus { fields.append(("Cache-Status", cacheStatus)) }
    respond(status: problem.status, fields: fields, body: problem.body)
  }

  /// Writes a whole answer of our own making and ends the exchange.
  func respond(status: UInt16, fields: [(name: String, value: String)], body: [UInt8]) {
    let output = worker.output
    output.removeAll()
    output.append("HTTP/1.1 ")
    output.append(decimal: UInt64(status))
    output.append(byte: 0x20)
    output.append(StatusText.reason(status))
    output.append("\r\nDate: ")
    output.append(worker.date())
    for field in fields {
      output.append("\r\n")
      output.append(field.name)
      output.append(": ")
      output.append(field.value)
    }
    if status != 204, status != 304 {
      output.append("\r\nContent-Length: ")
      output.append(decimal: UInt64(body.count))
    }
    appendConnectionField(to: output)
    output.append("\r\n\r\n")
    if !isHeadRequest { output.append(body) }
    answerHasBegun = true
    writeAll(output.bytes)
    countOwnAnswer(byteCount: output.count)
    endAnswer()
  }

  /// `Connection: close`, or `keep-alive` for a client of HTTP/1.0 that asked for it.
  ///
  /// Who has said that it closes does so, also where the reason for it has gone by the answer's end
  /// (RFC 9112 §9.6).
  func appendConnectionField(to output: OutputBuffer) {
    if closesAfterAnswer {
      closeAfterAnswer()
      output.append("\r\nConnection: close")
    } else if minorVersion == 0 {
      output.append("\r\nConnection: keep-alive")
    }
  }
}
