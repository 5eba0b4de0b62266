/// The frame of a `multipart/byteranges` body (RFC 9110 §14.6): what stands between the parts, and
/// how long all of it is.
///
/// It holds no byte of the body: whoever serves writes each delimiter, then the part's bytes from
/// where they lie. The boundary is 128 random bits of the caller's, made anew for each answer, so
/// that no body can hold it but by a chance that never comes, and none has to be searched for it.
public struct MultipartByteRanges: Sendable, Equatable {
  public let parts: [Range<UInt64>]
  private let completeLength: UInt64
  private let boundary: [UInt8]
  /// A whole line, of each part; empty where the copy has no Content-Type.
  private let contentTypeLine: [UInt8]

  /// `parts` lie in a body of `completeLength` bytes and do not overlap; `contentType` is the value
  /// of the body's own field, empty where it has none.
  public init(
    parts: [Range<UInt64>], completeLength: UInt64, contentType: Span<UInt8>,
    randomness: (UInt64, UInt64)
  ) {
    self.parts = parts
    self.completeLength = completeLength
    boundary =
      MultipartByteRanges.hexadecimal(randomness.0) + MultipartByteRanges.hexadecimal(randomness.1)
    var line: [UInt8] = []
    if !contentType.isEmpty {
      line.append(contentsOf: "Content-Type: ".utf8)
      for index in contentType.indices { line.append(contentType[index]) }
      line.append(contentsOf: "\r\n".utf8)
    }
    contentTypeLine = line
  }

  private static func hexadecimal(_ value: UInt64) -> [UInt8] {
    let digits = Array(String(value, radix: 16).utf8)
    return Array(repeating: UInt8(ascii: "0"), count: 16 - digits.count) + digits
  }

  /// The value of the answer's Content-Type.
  public var mediaType: [UInt8] { Array("multipart/byteranges; boundary=".utf8) + boundary }

  /// What stands before the part of this number, its head included; behind the last part, with the
  /// number that follows, the end of the whole.
  public func delimiter(before number: Int) -> [UInt8] {
    var text: [UInt8] = number == 0 ? [] : Array("\r\n".utf8)
    text.append(contentsOf: "--".utf8)
    text.append(contentsOf: boundary)
    guard number < parts.count else {
      text.append(contentsOf: "--\r\n".utf8)
      return text
    }
    text.append(contentsOf: "\r\n".utf8)
    text.append(contentsOf: contentTypeLine)
    let range = ContentRange(bytes: parts[number], completeLength: completeLength)
    text.append(contentsOf: "Content-Range: \(range.value)\r\n\r\n".utf8)
    return text
  }

  /// Of the parts alone.
  public var partBytes: UInt64 { parts.reduce(0) { $0 + $1.byteCount } }

  /// Of the whole body, delimiters included: the answer's Content-Length.
  public var contentLength: UInt64 {
    (0...parts.count).reduce(partBytes) { $0 + UInt64(delimiter(before: $1).count) }
  }
}
