/// The tags of a record: the names by which copies of many keys are purged together.
///
/// In the record each is its length in two bytes, little-endian, and its bytes. Written by
/// `RecordBuffer.make`, which refuses more than `StoreConfiguration` allows: whoever collects tags
/// from a route and an answer counts them before. Read in place by who purges and who explains.

/// A record's tags, one after the other. Owns nothing: valid as long as the record's memory.
public struct RecordTags: Sequence, IteratorProtocol {
  private var rest: UnsafeRawBufferPointer

  init(_ section: UnsafeRawBufferPointer) { rest = section }

  /// The next tag's bytes; nil behind the last one.
  public mutating func next() -> UnsafeRawBufferPointer? {
    guard rest.count >= 2 else { return nil }
    // SAFETY: there are two bytes at least; the record's memory is the caller's to keep.
    let count = Int(UInt16(littleEndian: rest.loadUnaligned(as: UInt16.self)))
    guard count <= rest.count - 2 else { return nil }
    defer { rest = UnsafeRawBufferPointer(rebasing: rest[(2 + count)...]) }
    return UnsafeRawBufferPointer(rebasing: rest[2..<(2 + count)])
  }

  /// How many there are.
  public var count: Int { reduce(0) { count, _ in count + 1 } }

  /// The section that holds these tags.
  static func encode(_ tags: [[UInt8]]) -> [UInt8] {
    if tags.isEmpty { return [] }
    storeInvariant(
      tags.count <= StoreConfiguration.tagsMax
        && tags.reduce(0) { $0 + $1.count } <= StoreConfiguration.tagBytesMax,
      "a record's tags are within their limits")
    var section: [UInt8] = []
    for tag in tags {
      section.append(UInt8(truncatingIfNeeded: tag.count))
      section.append(UInt8(truncatingIfNeeded: tag.count >> 8))
      section += tag
    }
    return section
  }
}
