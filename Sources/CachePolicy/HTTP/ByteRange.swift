/// Byte ranges (RFC 9110 §14.1): reading `Range`, and fitting it to a length.
///
/// A Range that is not understood is ignored, so it reads as nil; one that is understood but lies
/// outside the body resolves to no range at all. What is answered then, `RangeAnswer` says. Called
/// by whoever serves from a whole copy or a running fill, and where an origin's part is judged.
public enum ByteRange: Sendable, Equatable {
  /// `first-last`, both included.
  case closed(first: UInt64, last: UInt64)
  /// `first-`
  case from(first: UInt64)
  /// `-count`
  case suffix(count: UInt64)

  /// What a request asks for; nil: the whole, because it has no Range, one that is not understood,
  /// or several lines of it: it is no list (RFC 9110 §5.3, §14.2).
  public static func requested(in request: Fields, rangesMax: Int) -> [ByteRange]? {
    guard let value = request.soleValueRange(of: .range) else { return nil }
    return parse(request.bytes.span.extracting(value), rangesMax: rangesMax)
  }

  /// Reads a value of `Range`; nil for other units, for anything malformed, and for more than
  /// `rangesMax` ranges, which are taken for an attack (RFC 9110 §14.2, §17.15).
  public static func parse(_ value: Span<UInt8>, rangesMax: Int) -> [ByteRange]? {
    let range = ASCII.trimmed(value)
    guard range.count > 6 else { return nil }
    let unit = value.extracting(range.lowerBound..<range.lowerBound + 6)
    guard ASCII.equalsIgnoringCase(unit, "bytes=") else { return nil }
    let list = value.extracting(range.lowerBound + 6..<range.upperBound)
    var result: [ByteRange] = []
    var position = 0
    while let member = ASCII.nextListMember(list, &position) {
      guard result.count < rangesMax, let one = parseOne(list.extracting(member)) else {
        return nil
      }
      result.append(one)
    }
    return result.isEmpty ? nil : result
  }

  private static func parseOne(_ span: Span<UInt8>) -> ByteRange? {
    var dash = 0
    while dash < span.count, span[dash] != 0x2D { dash += 1 }
    guard dash < span.count else { return nil }
    let first = number(span.extracting(0..<dash))
    let last = number(span.extracting(dash + 1..<span.count))
    switch (dash > 0, dash + 1 < span.count) {
    case (true, true):
      guard let first, let last, first <= last else { return nil }
      return .closed(first: first, last: last)
    case (true, false): return first.map { .from(first: $0) }
    case (false, true): return last.map { .suffix(count: $0) }
    case (false, false): return nil
    }
  }

  /// Digits, saturating: a position beyond any body stays beyond it.
  static func number(_ span: Span<UInt8>) -> UInt64? {
    if span.isEmpty { return nil }
    var value: UInt64 = 0
    for index in span.indices {
      guard ASCII.isDigit(span[index]) else { return nil }
      let (scaled, tooLarge) = value.multipliedReportingOverflow(by: 10)
      let (sum, tooLargeSum) = scaled.addingReportingOverflow(UInt64(span[index] - 0x30))
      value = tooLarge || tooLargeSum ? .max : sum
    }
    return value
  }

  /// The bytes of a body of this length that are meant, or nil where there are none.
  public func resolved(length: UInt64) -> Range<UInt64>? {
    switch self {
    case .closed(let first, let last):
      return first < length ? first..<min(last, length - 1) + 1 : nil
    case .from(let first):
      return first < length ? first..<length : nil
    case .suffix(let count):
      return count > 0 && length > 0 ? length - min(count, length)..<length : nil
    }
  }
}

extension Fields {
  /// Where the value of this field lies in `bytes`, of a field that is no list; nil: there is no
  /// such line, or more than one, and then no telling which was meant (RFC 9110 §5.3).
  public func soleValueRange(of field: KnownField) -> Range<Int>? {
    guard let index = firstIndex(of: field), firstIndex(of: field, from: index + 1) == nil else {
      return nil
    }
    return lines[index].value
  }
}
