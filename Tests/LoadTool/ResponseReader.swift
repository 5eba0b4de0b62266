/// Reads responses off one connection, bit by bit, and judges whether each is whole.
///
/// Owns framing (Content-Length, chunked, end of connection) and a digest of the body; keeps no
/// body. Refuses what RFC 9112 calls malformed: the tool's use is to notice it.
struct ResponseReader {
  enum Failure: String, Error {
    case headTooLong, malformedHead, malformedChunk
  }

  private enum State: Equatable {
    case head
    case body(remaining: UInt64)
    case untilClose
    case chunkSize
    case chunkData(remaining: UInt64)
    /// The CR LF behind a chunk's data.
    case chunkEnd
    /// Trailer lines; an empty one ends the message.
    case trailer
    case complete
  }

  static let headBytesMax = 65_536

  private var state = State.head
  private var line: [UInt8] = []
  private(set) var statusCode = 0
  private(set) var bodyBytes: UInt64 = 0
  /// FNV-1a, 64 bits, of the decoded body.
  private(set) var digest: UInt64 = 0xcbf2_9ce4_8422_2325
  /// Whether the connection may carry another request after this response.
  private(set) var isPersistent = true
  var isComplete: Bool { state == .complete }

  /// Takes bytes up to the response's end and returns how many those were.
  mutating func consume(_ bytes: UnsafeRawBufferPointer) throws(Failure) -> Int {
    var position = 0
    while position < bytes.count, state != .complete {
      switch state {
      case .head:
        let byte = bytes[position]
        line.append(byte)
        position += 1
        if line.count > Self.headBytesMax { throw .headTooLong }
        // An array for every byte would make a herd of ten thousand slow to read.
        if byte == 0x0A, line.suffix(4) == [0x0D, 0x0A, 0x0D, 0x0A] { try finishHead() }
      case .body(let remaining):
        let taken = absorb(bytes, position, remaining)
        position += taken
        let left = remaining - UInt64(taken)
        state = left == 0 ? .complete : .body(remaining: left)
      case .untilClose:
        position += absorb(bytes, position, .max)
      case .chunkData(let remaining):
        let taken = absorb(bytes, position, remaining)
        position += taken
        let left = remaining - UInt64(taken)
        state = left == 0 ? .chunkEnd : .chunkData(remaining: left)
      case .chunkSize, .chunkEnd, .trailer:
        line.append(bytes[position])
        position += 1
        if line.count > Self.headBytesMax { throw .headTooLong }
        if line.last == 0x0A { try finishChunkLine() }
      case .complete: break
      }
    }
    return position
  }

  /// The peer has closed: only a body that ends so is whole now.
  mutating func peerClosed() {
    if state == .untilClose { state = .complete }
  }

  private mutating func absorb(
    _ bytes: UnsafeRawBufferPointer, _ position: Int, _ limit: UInt64
  ) -> Int {
    let taken = Int(min(UInt64(bytes.count - position), limit))
    for byte in bytes[position..<position + taken] {
      digest = (digest ^ UInt64(byte)) &* 0x0000_0100_0000_01b3
    }
    bodyBytes += UInt64(taken)
    return taken
  }

  private mutating func finishHead() throws(Failure) {
    defer { line.removeAll(keepingCapacity: true) }
    guard line.count >= 12, line.starts(with: Array("HTTP/1.".utf8)),
      let code = decimal(line[9..<12])
    else { throw .malformedHead }
    if code < 200 { return }  // An interim answer: the final one follows (RFC 9110 §15.2).
    statusCode = Int(code)
    isPersistent = line[7] == UInt8(ascii: "1")
    var length: UInt64?
    var isChunked = false
    for field in line.split(separator: 0x0A).dropFirst() {
      guard let colon = field.firstIndex(of: UInt8(ascii: ":")) else { continue }
      let value = trimmed(field[field.index(after: colon)...])
      if isName(field[..<colon], "content-length") {
        guard let number = decimal(value), length == nil || length == number else {
          throw .malformedHead
        }
        length = number
      } else if isName(field[..<colon], "transfer-encoding") {
        isChunked = isName(value, "chunked")
      } else if isName(field[..<colon], "connection"), isName(value, "close") {
        isPersistent = false
      }
    }
    // RFC 9112 §6.3: no body at all, then chunked, then a length, then the connection's end.
    if statusCode == 204 || statusCode == 304 || length == 0 {
      state = .complete
    } else if isChunked {
      state = .chunkSize
    } else if let length {
      state = .body(remaining: length)
    } else {
      state = .untilClose
      isPersistent = false
    }
  }

  private mutating func finishChunkLine() throws(Failure) {
    defer { line.removeAll(keepingCapacity: true) }
    guard line.count >= 2, line[line.count - 2] == 0x0D else { throw .malformedChunk }
    let text = line.dropLast(2)
    switch state {
    case .chunkEnd:
      guard text.isEmpty else { throw .malformedChunk }
      state = .chunkSize
    case .trailer:
      if text.isEmpty { state = .complete }
    default:
      let digits = text.prefix { $0 != UInt8(ascii: ";") }
      guard
        let size = UInt64(String(decoding: trimmed(digits), as: UTF8.self), radix: 16)
      else { throw .malformedChunk }
      state = size == 0 ? .trailer : .chunkData(remaining: size)
    }
  }
}

private func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
  let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
  var rest = bytes.drop(while: isBlank)
  while let last = rest.last, isBlank(last) { rest.removeLast() }
  return rest
}

/// Compares without case; `name` is in lower case.
private func isName(_ bytes: ArraySlice<UInt8>, _ name: StaticString) -> Bool {
  guard bytes.count == name.utf8CodeUnitCount else { return false }
  return name.withUTF8Buffer { lower in
    zip(bytes, lower).allSatisfy { ((0x41...0x5A).contains($0) ? $0 | 0x20 : $0) == $1 }
  }
}

private func decimal(_ bytes: ArraySlice<UInt8>) -> UInt64? {
  guard !bytes.isEmpty, bytes.count < 19 else { return nil }
  var value: UInt64 = 0
  for byte in bytes {
    guard (0x30...0x39).contains(byte) else { return nil }
    value = value * 10 + UInt64(byte - 0x30)
  }
  return value
}
