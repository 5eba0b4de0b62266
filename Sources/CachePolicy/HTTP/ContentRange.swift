/// `Content-Range` (RFC 9110 §14.4): which bytes of the whole a part is, written and read.
///
/// Other units and what is not in the grammar read as nil, and so does what says of itself that it
/// cannot be (§14.4 forbids to combine such a part with anything). Called by whoever answers with a
/// part, and where an origin's part is judged.
public struct ContentRange: Sendable, Equatable {
  public var bytes: Range<UInt64>
  /// Of the whole; nil: not known (`*`).
  public var completeLength: UInt64?

  public init(bytes: Range<UInt64>, completeLength: UInt64?) {
    self.bytes = bytes
    self.completeLength = completeLength
  }

  /// Reads `bytes first-last/length`; nil also for the `bytes */length` of a 416.
  public init?(_ value: Span<UInt8>) {
    guard value.count > 6 else { return nil }
    guard ASCII.equalsIgnoringCase(value.extracting(0..<6), "bytes ") else { return nil }
    guard let dash = ContentRange.index(of: 0x2D, in: value, from: 6),
      let slash = ContentRange.index(of: 0x2F, in: value, from: dash + 1),
      let first = ByteRange.number(value.extracting(6..<dash)),
      let last = ByteRange.number(value.extracting(dash + 1..<slash)),
      first <= last, last < .max
    else { return nil }
    bytes = first..<last + 1
    let length = value.extracting(slash + 1..<value.count)
    if length.count == 1, length[0] == 0x2A {
      completeLength = nil
    } else {
      guard let number = ByteRange.number(length), number > last else { return nil }
      completeLength = number
    }
  }

  private static func index(of byte: UInt8, in span: Span<UInt8>, from start: Int) -> Int? {
    var index = start
    while index < span.count {
      if span[index] == byte { return index }
      index += 1
    }
    return nil
  }

  /// The value for a 206, or for one of its parts.
  public var value: String {
    let length = completeLength.map(String.init) ?? "*"
    return "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(length)"
  }

  /// The value for a 416.
  public static func unsatisfied(length: UInt64) -> String { "bytes */\(length)" }
}

extension Range<UInt64> {
  /// How many bytes it is. Not `count`, which is an Int and traps where a peer's numbers are large.
  public var byteCount: UInt64 { upperBound - lowerBound }
}
