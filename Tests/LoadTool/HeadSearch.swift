/// What a load must know of an answer's head, found by one walk over its lines.
#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

struct HeadSearch {
  var headBytes: Int
  var statusCode: Int
  var contentLength: Int?

  /// nil: the head is not whole yet, or no head.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= 16, let start = bytes.baseAddress else { return nil }
    statusCode = bytes[9..<12].reduce(0) { $0 * 10 + Int($1) - 0x30 }
    var lineStart = 0
    while let newline = memchr(start + lineStart, 0x0A, bytes.count - lineStart) {
      let end = UnsafeRawPointer(newline) - start
      if end == lineStart + 1 {
        headBytes = end + 1
        return
      }
      let line = UnsafeRawBufferPointer(rebasing: bytes[lineStart..<end])
      if let length = Self.contentLength(line) { contentLength = length }
      lineStart = end + 1
    }
    return nil
  }

  private static func contentLength(_ line: UnsafeRawBufferPointer) -> Int? {
    let name: StaticString = "content-length:"
    let count = name.utf8CodeUnitCount
    // Most lines differ in length or in the letter behind the hyphen.
    guard line.count > count, line[8] | 0x20 == UInt8(ascii: "l"), line[7] == UInt8(ascii: "-")
    else { return nil }
    for index in 0..<count where line[index] | 0x20 != name.utf8Start[index] | 0x20 { return nil }
    return line[count...].reduce(0) {
      (0x30...0x39).contains($1) ? $0 * 10 + Int($1 - 0x30) : $0
    }
  }
}
