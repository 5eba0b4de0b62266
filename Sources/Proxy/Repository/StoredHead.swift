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
}
