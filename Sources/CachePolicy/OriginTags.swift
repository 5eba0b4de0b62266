/// Reads the tags that an origin gives an answer: `Surrogate-Key` (parted by spaces) and
/// `Cache-Tag` (parted by commas), on any number of lines.
///
/// An answer with a tag that cannot be kept is not stored: a tag that is lost is a purge that
/// misses. Called when an answer may be stored.
public enum OriginTags {
  public enum Outcome: Sendable, Equatable {
    /// Each tag once, in the order of the lines.
    case tags([[UInt8]])
    /// The answer is not to be stored.
    case unusable(Refusal)
  }

  /// Why an answer's tags cannot be kept: the same word in the log and the answer's detail.
  public enum Refusal: String, Sendable, Error, CaseIterable {
    /// More than `TagTemplate.bytesMax` bytes.
    case tooLong = "tag-too-long"
    /// What is not printable ASCII, or a space within a Cache-Tag.
    case forbiddenByte = "tag-forbidden-byte"
    case tooMany = "too-many-tags"
  }

  /// The most tags that one answer may have, repeated ones not counted.
  public static let tagsMax = 1000

  public static func read(_ response: Fields) -> Outcome {
    guard response.contains(.surrogateKey) || response.contains(.cacheTag) else {
      return .tags([])
    }
    let all = response.bytes.span
    var tags: [[UInt8]] = []
    var seen: Set<[UInt8]> = []
    for line in response.lines where line.known == .surrogateKey || line.known == .cacheTag {
      let isList = line.known == .cacheTag
      var position = line.value.lowerBound
      while let range = nextTag(all, &position, line.value.upperBound, isList: isList) {
        if range.count > TagTemplate.bytesMax { return .unusable(.tooLong) }
        var tag: [UInt8] = []
        for index in range {
          guard all[index] > 0x20, all[index] < 0x7F else { return .unusable(.forbiddenByte) }
          tag.append(all[index])
        }
        guard seen.insert(tag).inserted else { continue }
        if tags.count == tagsMax { return .unusable(.tooMany) }
        tags.append(tag)
      }
    }
    return .tags(tags)
  }

  /// The next tag that is not empty, without spaces around it.
  private static func nextTag(
    _ all: Span<UInt8>, _ position: inout Int, _ end: Int, isList: Bool
  ) -> Range<Int>? {
    while position < end {
      let start = position
      while position < end, isList ? all[position] != 0x2C : !ASCII.isSpace(all[position]) {
        position += 1
      }
      let tag = ASCII.trimmed(all, start..<position)
      position += 1
      if !tag.isEmpty { return tag }
    }
    return nil
  }
}
