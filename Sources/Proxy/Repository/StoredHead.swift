internal import CachePolicy

/// Reads the head that a record keeps: a status line and field lines, as they go out.
enum StoredHead {
  /// The fields, without the status line.
  static func fields(of head: UnsafeRawBufferPointer) -> Fields {
    Fields.parse(wireLines: Span(_unsafeBytes: withoutStatusLine(head)))
  }

  static func withoutStatusLine(_ head: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    guard let newline = head.firstIndex(of: 0x0A) else { return head }
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
      switch knownField(lines, line) {
      case .cacheControl, .cacheStatus, .contentLocation, .date, .expires, .vary:
        output.append(UnsafeRawBufferPointer(rebasing: lines[line]))
      case .eTag:
        hasEntityTag = true
        output.append(UnsafeRawBufferPointer(rebasing: lines[line]))
      case .lastModified: lastModified = line
      default: break
      }
      start = line.upperBound
    }
    if !hasEntityTag, let lastModified {
      output.append(UnsafeRawBufferPointer(rebasing: lines[lastModified]))
    }
  }

  /// A line with its end.
  private static func lineRange(_ lines: UnsafeRawBufferPointer, from start: Int) -> Range<Int> {
    let rest = UnsafeRawBufferPointer(rebasing: lines[start...])
    let length = rest.firstIndex(of: 0x0A).map { $0 + 1 } ?? rest.count
    return start..<start + length
  }

  private static func knownField(
    _ lines: UnsafeRawBufferPointer, _ line: Range<Int>
  ) -> KnownField? {
    let bytes = UnsafeRawBufferPointer(rebasing: lines[line])
    guard let colon = bytes.firstIndex(of: 0x3A) else { return nil }
    return KnownField.lookup(
      Span(_unsafeBytes: UnsafeRawBufferPointer(rebasing: bytes[0..<colon])))
  }
}
