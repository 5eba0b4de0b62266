/// A client's connection: raw HTTP/1.1 over a blocking socket, one step at a time.
///
/// `get` is the whole of a usual exchange. `send`, `readHead`, `readBody` and `finishAnswer` are its
/// parts, for pipelining, malformed requests, slow readers and clients that leave.
public final class ClientConnection {
  public enum Failure: Error {
    /// Nothing came in a time far beyond what a loaded machine needs.
    case timedOut
    /// The connection ended where an answer's head was due.
    case noAnswer
    case malformed(String)
  }

  private enum Body {
    case none
    case length(Int)
    case chunked
    case untilClose
  }

  /// Keys hold the authority, so that it is the same whatever the proxy's port.
  public static let authority = "app.example"

  /// What the admin listener is called as: without a token it answers to no other names.
  public static let adminAuthority = "localhost"

  private let socket: StreamSocket
  private let authority: String
  private var buffer: [UInt8] = []
  private var answer: Answer?
  private var body = Body.none
  private var chunkRemainder = 0
  private var isComplete = false
  private var sentMethods: [String] = []

  /// `receiveBufferBytes`: small for a client that is to exert back-pressure.
  public init(
    port: UInt16, authority: String = ClientConnection.authority, receiveBufferBytes: Int32? = nil
  ) throws {
    _ = ignoringBrokenPipes
    self.authority = authority
    socket = try StreamSocket.connected(port: port, receiveBufferBytes: receiveBufferBytes)
  }

  // MARK: Sending

  /// Bytes as they are; `method` of the request that they are, for the reading of its answer.
  public func send(raw text: String, method: String? = nil) {
    if let method { sentMethods.append(method) }
    socket.send(Array(text.utf8))
  }

  /// Fields as "Name: value". A body gets a Content-Length unless the fields frame it.
  public func send(
    _ method: String, _ path: String, _ fields: [String] = [], body: [UInt8]? = nil
  ) {
    var text = "\(method) \(path) HTTP/1.1\r\n"
    if !fields.contains(where: { $0.lowercased().hasPrefix("host:") }) {
      text += "Host: \(authority)\r\n"
    }
    for field in fields { text += field + "\r\n" }
    if let body { text += "Content-Length: \(body.count)\r\n" }
    sentMethods.append(method)
    socket.send(Array((text + "\r\n").utf8) + (body ?? []))
  }

  public func finishSending() { socket.finishSending() }

  // MARK: Exchanges

  public func get(_ path: String, _ fields: [String] = []) throws -> Answer {
    send("GET", path, fields)
    return try readAnswer()
  }

  /// The answer to the earliest request that has none yet.
  public func readAnswer() throws -> Answer {
    try readHead()
    return try finishAnswer()
  }

  // MARK: Reading, step by step

  /// The final head; interim answers before it are noted.
  @discardableResult
  public func readHead() throws -> Answer {
    let method = sentMethods.isEmpty ? "GET" : sentMethods.removeFirst()
    var interim: [Int] = []
    var head = try parseHead()
    while (100..<200).contains(head.status), head.status != 101 {
      interim.append(head.status)
      head = try parseHead()
    }
    head.interimStatuses = interim
    isComplete = false
    chunkRemainder = 0
    if method == "HEAD" || head.status == 204 || head.status == 304 {
      body = .none
    } else if head.all("Transfer-Encoding").contains("chunked") {
      body = .chunked
    } else if let length = head.first("Content-Length").flatMap({ Int($0) }) {
      body = .length(length)
    } else {
      body = .untilClose
    }
    answer = head
    return head
  }

  /// Reads on until at least `byteCount` bytes of the body are in, or it ends; all bytes so far.
  @discardableResult
  public func readBody(atLeast byteCount: Int) throws -> [UInt8] {
    while !isComplete, answer!.body.count < byteCount { try readMore() }
    return answer!.body
  }

  /// The whole answer, read to its end.
  public func finishAnswer() throws -> Answer {
    while !isComplete { try readMore() }
    return answer!
  }

  /// Whether the proxy has ended the connection, with nothing more to read.
  public func isClosedByPeer() throws -> Bool {
    guard buffer.isEmpty else { return false }
    switch socket.receive(appendingTo: &buffer) {
    case .bytes: return false
    case .end, .reset: return true
    case .timedOut: throw Failure.timedOut
    }
  }

  // MARK: The end

  public func close() { socket.close() }
  public func reset() { socket.reset() }

  // MARK: Parsing

  private func parseHead() throws -> Answer {
    guard let text = try line(endingWith: "\r\n\r\n") else { throw Failure.noAnswer }
    let lines = text.split(separator: "\r\n")
    let parts = (lines.first ?? "").split(separator: " ", maxSplits: 2)
    guard parts.count >= 2, parts[0].hasPrefix("HTTP/1."), let status = Int(parts[1]) else {
      throw Failure.malformed(text)
    }
    let fields = try lines.dropFirst().map { line in
      let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else { throw Failure.malformed(text) }
      return (name: String(parts[0]), value: String(parts[1].drop { $0 == " " }))
    }
    return Answer(status: status, fields: fields)
  }

  /// One step of the body: what is in the buffer, else what comes next.
  private func readMore() throws {
    switch body {
    case .none: isComplete = true
    case .length(let count):
      try take(count - answer!.body.count)
      if answer!.body.count == count { isComplete = true }
    case .untilClose:
      try take(.max)
      // Without a length the end of the connection is the end of the body.
      answer!.isCut = false
    case .chunked: try readChunk()
    }
  }

  private func readChunk() throws {
    if chunkRemainder == 0 {
      guard let text = try line(endingWith: "\r\n") else { return cut() }
      guard let size = Int(text, radix: 16) else { throw Failure.malformed("chunk size \(text)") }
      if size == 0 {
        // Trailers are not looked at.
        while let trailer = try line(endingWith: "\r\n") {
          if trailer.isEmpty {
            isComplete = true
            return
          }
        }
        return cut()
      }
      chunkRemainder = size
    }
    let before = answer!.body.count
    try take(chunkRemainder)
    chunkRemainder -= answer!.body.count - before
    if chunkRemainder == 0, !isComplete, try line(endingWith: "\r\n") != "" { cut() }
  }

  /// Moves up to `countMax` bytes into the body, waiting for the first.
  private func take(_ countMax: Int) throws {
    if countMax == 0 { return }
    if buffer.isEmpty, try !receive() { return cut() }
    if buffer.count <= countMax {
      answer!.body.append(contentsOf: buffer)
      buffer.removeAll(keepingCapacity: true)
    } else {
      answer!.body.append(contentsOf: buffer[..<countMax])
      buffer.removeFirst(countMax)
    }
  }

  private func cut() {
    answer!.isCut = true
    isComplete = true
  }

  /// False: the connection is over.
  private func receive() throws -> Bool {
    switch socket.receive(appendingTo: &buffer) {
    case .bytes: return true
    case .end, .reset: return false
    case .timedOut: throw Failure.timedOut
    }
  }

  /// nil: the connection ended before the ending came.
  private func line(endingWith text: String) throws -> String? {
    let ending = Array(text.utf8)
    var index = 0
    while true {
      while index + ending.count <= buffer.count {
        if buffer[index..<index + ending.count].elementsEqual(ending) {
          let line = String(decoding: buffer[..<index], as: UTF8.self)
          buffer.removeFirst(index + ending.count)
          return line
        }
        index += 1
      }
      guard try receive() else { return nil }
    }
  }
}
