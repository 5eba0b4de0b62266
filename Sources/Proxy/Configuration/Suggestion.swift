/// Finds what somebody may have meant: the nearest of the known words.
///
/// Used for unknown keys and values of policies.json, and for flags and commands. Says nothing
/// rather than something far-fetched.
enum Suggestion {
  /// Among more words than these none is looked for: each error would cost a walk through them.
  static let wordsMax = 2_000

  /// The known word that differs least, letters' case aside; nil: none is near.
  static func nearest(to word: String, among known: [String]) -> String? {
    guard known.count <= wordsMax else { return nil }
    let folded = Array(word.lowercased().unicodeScalars)
    let distanceMax = max(1, folded.count / 3)
    var best: (word: String, distance: Int)?
    for candidate in known {
      let other = Array(candidate.lowercased().unicodeScalars)
      guard abs(other.count - folded.count) <= distanceMax else { continue }
      let distance = self.distance(folded, other)
      if distance <= distanceMax, distance < best?.distance ?? .max {
        best = (candidate, distance)
      }
    }
    return best?.word
  }

  /// `, did you mean "ttl"?`, or nothing; with `orList`: or all of the known words.
  static func sentence(
    for word: String, among known: [String], orList: Bool = false
  ) -> String {
    if let near = nearest(to: word, among: known) { return ", did you mean \"\(near)\"?" }
    return orList ? "; one of \(known.joined(separator: ", "))" : ""
  }

  /// Insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
  private static func distance(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar]) -> Int {
    var beforePrevious: [Int] = []
    var previous = Array(0...right.count)
    for row in left.indices {
      var current = [row + 1]
      for column in right.indices {
        let cost = left[row] == right[column] ? 0 : 1
        var value = min(
          previous[column + 1] + 1, current[column] + 1, previous[column] + cost)
        if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
          value = min(value, beforePrevious[column - 1] + 1)
        }
        current.append(value)
      }
      beforePrevious = previous
      previous = current
    }
    return previous[right.count]
  }
}
