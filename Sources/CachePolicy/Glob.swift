/// Bytes with `*` among them, each for any number of bytes: how a segment of a pattern takes a
/// segment of a path.
///
/// A `*` in the text is a byte like any other, and only a star takes it. So a glob that takes
/// another glob's own bytes takes everything that the other takes: that is how `RouteCoverage` asks.
/// Called by whoever walks patterns.
enum Glob {
  static let star = UInt8(ascii: "*")

  /// Goes back to the last star only, so that its cost is at most the product of both lengths.
  static func matches(_ glob: Span<UInt8>, _ text: Span<UInt8>) -> Bool {
    var (position, index) = (0, 0)
    var (afterStar, resume) = (-1, 0)
    while index < text.count {
      if position < glob.count, glob[position] == star {
        position += 1
        afterStar = position
        resume = index
      } else if position < glob.count, glob[position] == text[index] {
        position += 1
        index += 1
      } else if afterStar >= 0 {
        resume += 1
        position = afterStar
        index = resume
      } else {
        return false
      }
    }
    while position < glob.count, glob[position] == star { position += 1 }
    return position == glob.count
  }

  /// How many bytes stand before the first star (all of them, without one) and behind the last.
  static func literalEnds(_ glob: [UInt8]) -> (prefixCount: Int, suffixCount: Int) {
    guard let first = glob.firstIndex(of: star), let last = glob.lastIndex(of: star) else {
      return (glob.count, glob.count)
    }
    return (first, glob.count - last - 1)
  }
}
