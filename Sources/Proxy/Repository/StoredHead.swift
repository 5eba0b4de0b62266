internal import CachePolicy

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Reads the head that a record keeps: a status line and field lines, as they go out.
enum StoredHead {
  /// The fields, without the status line.
  static func fields(of head: UnsafeRawBufferPointer) -> Fields {
    Fields.parse(wireLines: Span(_unsafeBytes: withoutStatusLine(head)))
  }

  static func withoutStatusLine(_ head: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    guard let newline = offset(of: 0x0A, head, 0..<head.count) else { return head }
    return UnsafeRawBufferPointer(rebasing: head[(newline + 1)...])
  }

  /// Appends the lines that a 304 carries (RFC 9110 §15.4.5), straight from the record: the same
  /// choice as `Validation.notModifiedFields`, without taking the head apart.
  static func appendNotModifiedLines(of head: UnsafeRawBufferPointer, to output: OutputBuffer) {
    let lines = withoutStatusLine(head)
    var hasEntityTag = false
    var lastModified: Range<Int>?
    var start = 0
    while start < lines.count {
      let line = lineRange(lines, from: start)
      start = line.upperBound
      guard mayStayIn304(firstByte: lines[line.lowerBound]) else { continue }
      switch knownField(lines, line) {
      case .cacheControl, .cacheStatus, .contentLocation, .date, .expires, .vary:
        output.append(UnsafeRawBufferPointer(rebasing: lines[line]))
      case .eTag:
        hasEntityTag = true
        output.append(UnsafeRawBufferPointer(rebasing: lines[line]))
      case .lastModified: lastModified = line
      default: break
      }
    }
    if !hasEntityTag, let lastModified {
      output.append(UnsafeRawBufferPointer(rebasing: lines[lastModified]))
    }
  }

  /// Whether a line that begins so may be one that a 304 carries.
  private static func mayStayIn304(firstByte: UInt8) -> Bool {
    switch firstByte | 0x20 {
    case UInt8(ascii: "c"), UInt8(ascii: "d"), UInt8(ascii: "e"), UInt8(ascii: "l"),
      UInt8(ascii: "v"):
      true
    default: false
    }
  }

  /// Appends the lines of a whole answer's head that its parts carry too, without the status line.
  ///
  /// Left out: what is of the whole's content and not of a part's (RFC 9110 §14.4, RFC 9530 §2), and,
  /// `inParts`, the Content-Type, which each part then carries (RFC 9110 §15.3.7.2).
  static func appendPartLines(
    of head: UnsafeRawBufferPointer, inParts: Bool, to output: OutputBuffer
  ) {
    let lines = withoutStatusLine(head)
    var start = 0
    while start < lines.count {
      let line = lineRange(lines, from: start)
      let bytes = UnsafeRawBufferPointer(rebasing: lines[line])
      switch knownField(lines, line) {
      case .contentRange, .contentLength: break
      case .contentType where inParts: break
      case nil where isDigestOfContent(bytes): break
      default: output.append(bytes)
      }
      start = line.upperBound
    }
  }

  private static func isDigestOfContent(_ line: UnsafeRawBufferPointer) -> Bool {
    guard let colon = offset(of: 0x3A, line, 0..<line.count) else { return false }
    let name = Span<UInt8>(_unsafeBytes: UnsafeRawBufferPointer(rebasing: line[0..<colon]))
    return ASCII.equalsIgnoringCase(name, "content-digest")
      || ASCII.equalsIgnoringCase(name, "content-md5")
  }

  /// A line with its end.
  private static func lineRange(_ lines: UnsafeRawBufferPointer, from start: Int) -> Range<Int> {
    start..<(offset(of: 0x0A, lines, start..<lines.count).map { $0 + 1 } ?? lines.count)
  }

  private static func knownField(
    _ lines: UnsafeRawBufferPointer, _ line: Range<Int>
  ) -> KnownField? {
    guard let colon = offset(of: 0x3A, lines, line) else { return nil }
    let name = UnsafeRawBufferPointer(rebasing: lines[line.lowerBound..<colon])
    return KnownField.lookup(Span(_unsafeBytes: name))
  }

  private static func offset(
    of byte: UInt8, _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>
  ) -> Int? {
    guard let base = bytes.baseAddress else { return nil }
    // SAFETY: the search stays within `range`, which lies in `bytes`.
    let found = memchr(base + range.lowerBound, Int32(byte), range.count)
    return found.map { UnsafeRawPointer($0) - base }
  }
}
