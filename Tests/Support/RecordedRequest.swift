/// One request as the scripted origin got it.
public struct RecordedRequest: Sendable {
  public let method: String
  /// As on the request line.
  public let target: String
  public let fields: [(name: String, value: String)]
  public var body: [UInt8] = []
  /// How manieth request for its path this is, from 1 on.
  public var number = 0

  /// The target without its query.
  public var path: String { String(target.prefix { $0 != "?" }) }

  public var bodyText: String { String(decoding: body, as: UTF8.self) }

  /// The first line of this name, in any case.
  public func first(_ name: String) -> String? {
    fields.first { $0.name.lowercased() == name.lowercased() }?.value
  }
}

/// Takes requests out of a connection's bytes. It believes what the proxy sends, and ends the
/// connection over what it cannot read.
struct RequestReader {
  private var buffer: [UInt8] = []
  private let socket: StreamSocket

  init(_ socket: StreamSocket) { self.socket = socket }

  /// nil: the connection is over.
  mutating func next() -> RecordedRequest? {
    guard let head = line(endingWith: [13, 10, 13, 10]).map(inOriginForm) else { return nil }
    let lines = head.split(separator: "\r\n", omittingEmptySubsequences: true)
    let parts = (lines.first ?? "").split(separator: " ")
    guard parts.count == 3 else { return nil }
    let fields = lines.dropFirst().map { line in
      let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      return (
        name: String(parts[0]), value: parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
      )
    }
    var request = RecordedRequest(
      method: String(parts[0]), target: String(parts[1]), fields: fields)
    if request.first("Expect") != nil { socket.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) }
    if request.first("Transfer-Encoding") != nil {
      guard let body = chunkedBody() else { return nil }
      request.body = body
    } else if let count = request.first("Content-Length").flatMap({ Int($0) }) {
      guard let body = take(count) else { return nil }
      request.body = body
    }
    return request
  }

  private mutating func chunkedBody() -> [UInt8]? {
    var body: [UInt8] = []
    while let size = line(endingWith: [13, 10]).flatMap({ Int($0, radix: 16) }) {
      if size == 0 { return line(endingWith: [13, 10]) == nil ? nil : body }
      guard let piece = take(size), take(2) != nil else { return nil }
      body += piece
    }
    return nil
  }

  /// The text before an ending, which is taken too.
  private mutating func line(endingWith ending: [UInt8]) -> String? {
    var searched = 0
    while true {
      var index = searched
      while index + ending.count <= buffer.count {
        if buffer[index..<index + ending.count].elementsEqual(ending) {
          let text = String(decoding: buffer[..<index], as: UTF8.self)
          buffer.removeFirst(index + ending.count)
          return text
        }
        index += 1
      }
      searched = max(0, buffer.count - ending.count + 1)
      guard case .bytes = socket.receive(appendingTo: &buffer) else { return nil }
    }
  }

  private mutating func take(_ count: Int) -> [UInt8]? {
    while buffer.count < count {
      guard case .bytes = socket.receive(appendingTo: &buffer) else { return nil }
    }
    defer { buffer.removeFirst(count) }
    return Array(buffer[..<count])
  }
}

/// A request's head as it is without the forward proxy that scenarios may go through: with a path for
/// its target, not the whole URL.
public func inOriginForm(_ head: String) -> String {
  let parts = head.split(separator: " ", maxSplits: 2)
  guard reachesOriginByLibcurl, parts.count == 3, parts[1].hasPrefix("http://") else { return head }
  return "\(parts[0]) \(parts[1].dropFirst(7).drop { $0 != "/" }) \(parts[2])"
}
