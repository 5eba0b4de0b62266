/// What a scripted origin does with one request: a value that a test puts together.
///
/// Begins with one of the static functions; the others change a copy: where it waits, how its body
/// is delimited, where and how it breaks off.
public struct OriginAnswer: Sendable {
  public enum Framing: Sendable {
    case length
    /// A Content-Length that is not the body's.
    case declared(Int)
    case chunked
    case untilClose
  }

  public enum Break: Sendable {
    /// RST.
    case reset
    /// An orderly end in the wrong place: a short body, or no last chunk.
    case close
    /// A chunk size that is none.
    case badChunkSize
  }

  public var status: Int
  public var fields: [(name: String, value: String)]
  public var body: [UInt8]
  public var framing = Framing.length
  var interim: [(status: Int, fields: [(name: String, value: String)])] = []
  var gateBeforeHead: Gate?
  var pauses: [(byteCount: Int, gate: Gate)] = []
  var breakOff: (byteCount: Int, how: Break)?
  var breaksBeforeHead: Break?
  var rawBytes: [UInt8]?

  private init(status: Int, fields: [(name: String, value: String)], body: [UInt8]) {
    self.status = status
    self.fields = fields
    self.body = body
  }

  // MARK: Beginnings

  /// `fields` as "Name: value", one a line of the list.
  public static func text(_ body: String, status: Int = 200, _ fields: String...) -> OriginAnswer {
    OriginAnswer(status: status, fields: fields.map(OriginAnswer.field), body: Array(body.utf8))
  }

  public static func bytes(_ body: [UInt8], status: Int = 200, _ fields: String...) -> OriginAnswer
  {
    OriginAnswer(status: status, fields: fields.map(OriginAnswer.field), body: body)
  }

  /// Status and fields only.
  public static func empty(status: Int, _ fields: String...) -> OriginAnswer {
    OriginAnswer(status: status, fields: fields.map(OriginAnswer.field), body: [])
  }

  /// Takes the request, and ends the connection without a word.
  public static func silence(_ how: Break) -> OriginAnswer {
    var answer = OriginAnswer(status: 0, fields: [], body: [])
    answer.breaksBeforeHead = how
    return answer
  }

  /// Exactly these bytes, and then the end of the connection.
  public static func raw(_ text: String) -> OriginAnswer {
    var answer = OriginAnswer(status: 0, fields: [], body: [])
    answer.rawBytes = Array(text.utf8)
    return answer
  }

  private static func field(_ line: String) -> (name: String, value: String) {
    let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    precondition(parts.count == 2, "a field is written as \"Name: value\"")
    return (String(parts[0]), String(parts[1].drop { $0 == " " }))
  }

  // MARK: Changes

  /// Waits before the head.
  public func waiting(for gate: Gate) -> OriginAnswer {
    var changed = self
    changed.gateBeforeHead = gate
    return changed
  }

  /// Waits in the body, with the head and `byteCount` bytes of it sent. In order, where several.
  public func pausing(after byteCount: Int, for gate: Gate) -> OriginAnswer {
    var changed = self
    changed.pauses.append((byteCount, gate))
    return changed
  }

  /// Ends the connection with `byteCount` bytes of the body sent.
  public func broken(after byteCount: Int, by how: Break) -> OriginAnswer {
    var changed = self
    changed.breakOff = (byteCount, how)
    return changed
  }

  public func framed(_ framing: Framing) -> OriginAnswer {
    var changed = self
    changed.framing = framing
    return changed
  }

  /// Sends an interim answer first, such as 103.
  public func after(interim status: Int, _ fields: String...) -> OriginAnswer {
    var changed = self
    changed.interim.append((status, fields.map(OriginAnswer.field)))
    return changed
  }

  // MARK: As bytes

  private static func lines(
    _ status: Int, _ fields: [(name: String, value: String)]
  ) -> String {
    "HTTP/1.1 \(status) Scripted\r\n" + fields.map { "\($0.name): \($0.value)\r\n" }.joined()
  }

  var interimBytes: [UInt8] {
    Array(interim.map { OriginAnswer.lines($0.status, $0.fields) + "\r\n" }.joined().utf8)
  }

  /// Whether the status lets a body follow at all.
  var mayHaveBody: Bool { status != 204 && status != 304 }

  var headBytes: [UInt8] {
    var text = OriginAnswer.lines(status, fields)
    if mayHaveBody {
      switch framing {
      case .length: text += "Content-Length: \(body.count)\r\n"
      case .declared(let count): text += "Content-Length: \(count)\r\n"
      case .chunked: text += "Transfer-Encoding: chunked\r\n"
      case .untilClose: text += "Connection: close\r\n"
      }
    }
    return Array((text + "\r\n").utf8)
  }

  /// A piece of the body in the answer's framing.
  func framedPiece(_ range: Range<Int>) -> [UInt8] {
    guard case .chunked = framing, !range.isEmpty else { return Array(body[range]) }
    return Array("\(String(range.count, radix: 16))\r\n".utf8) + body[range] + [0x0D, 0x0A]
  }
}
