/// Decides what a request for parts gets out of a whole (RFC 9110 §14.2, §15.3.7, §15.5.17).
///
/// It knows of lengths and nothing of bytes. Whether a Range counts at all (the method, the status
/// of what would be sent without it, If-Range) is settled before. Called where a copy serves, and
/// where a client follows a fill of the whole.
public enum RangeAnswer: Sendable, Equatable {
  /// 200, as if there were no Range.
  case whole
  /// 206 with this part.
  case part(Range<UInt64>)
  /// 206 as `multipart/byteranges`: two parts or more, which do not touch each other.
  case parts([Range<UInt64>])
  /// 416.
  case unsatisfiable

  /// Out of a body of this length.
  public static func decide(_ requested: [ByteRange], length: UInt64) -> RangeAnswer {
    let parts = coalesced(requested.compactMap { $0.resolved(length: length) })
    if parts.count > 1 { return .parts(parts) }
    // Several ranges of which one is left: a plain part says the same (RFC 9110 §15.3.7.2).
    if let part = parts.first { return .part(part) }
    // The end of an empty body can be had, and no Content-Range can name it (RFC 9110 §14.1.2).
    let wantsEndOfNothing = length == 0 && requested.contains { $0.isSatisfiableSuffix }
    return wantsEndOfNothing ? .whole : .unsatisfiable
  }

  /// Ranges that overlap or touch become one: who asks for the same bytes many times over gets them
  /// once (RFC 9110 §15.3.7.2, §17.15). Otherwise they stay in the order in which they were asked
  /// for.
  static func coalesced(_ ranges: [Range<UInt64>]) -> [Range<UInt64>] {
    guard ranges.count > 1 else { return ranges }
    var merged: [(range: Range<UInt64>, order: Int)] = []
    for (order, range) in ranges.enumerated().sorted(by: { $0.1.lowerBound < $1.1.lowerBound }) {
      if let last = merged.last, range.lowerBound <= last.range.upperBound {
        let end = max(last.range.upperBound, range.upperBound)
        merged[merged.count - 1] = (last.range.lowerBound..<end, min(last.order, order))
      } else {
        merged.append((range, order))
      }
    }
    return merged.sorted { $0.order < $1.order }.map(\.range)
  }

  /// Out of a body that still grows and whose length nobody knows.
  public enum WhileGrowing: Sendable, Equatable {
    case whole
    /// 206 with this part, which is there; the whole's length is not (RFC 9110 §14.4: `*`).
    case part(Range<UInt64>)
    /// More has to come before there is an answer.
    case wait
  }

  /// `arrivedBytes`: how much of it is there. `mayWait`: whether waiting can come to an end.
  ///
  /// Only a single range with both ends named is answered by a part, once its last byte is there:
  /// it is settled by nothing that comes behind. What depends on where the body ends (`500-`,
  /// `-500`), and several ranges, would wait for all of it, and get the whole at once instead.
  public static func decide(
    _ requested: [ByteRange], arrivedBytes: UInt64, mayWait: Bool
  ) -> WhileGrowing {
    guard requested.count == 1, case .closed(let first, let last) = requested[0] else {
      return .whole
    }
    if last < arrivedBytes { return .part(first..<last + 1) }
    return mayWait ? .wait : .whole
  }
}

extension ByteRange {
  /// `-500`, however short the body: only `-0` asks for nothing (RFC 9110 §14.1.2).
  fileprivate var isSatisfiableSuffix: Bool {
    if case .suffix(let count) = self { return count > 0 }
    return false
  }
}
