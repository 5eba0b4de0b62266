/// Writes what counts of a request's query into its key: a route's `query`, `ignoreQuery` and
/// `sortQuery`.
///
/// The query that goes to the origin stays as it is; so whatever an origin may make of it must
/// show in the key. Parameters are told apart at `&`, as today's standard has it (the URL
/// standard's form decoding), and within these groups at `;`, as HTML 4 and older frameworks have
/// it; others drop a group with a `;` altogether. Two queries give one key only where all of these
/// see the same counting parameters. How names are read is `ParameterName`'s. Made once for each
/// route, called for each of its requests.
public struct QueryFilter: Sendable {
  /// A query with more parameters counts byte for byte: origins stop reading somewhere (PHP and qs
  /// after 1000), and a parameter behind that place is in the query, but not in the answer.
  public static let parametersMax = 256

  /// The query counts byte for byte, an empty one too: there is nothing to ask this filter.
  public let isPlain: Bool
  private let countsNothing: Bool
  /// nil: all names count.
  private let stems: [[UInt8]]?
  private let patterns: [[UInt8]]
  private let isSorted: Bool

  public init(_ recipe: KeyRecipe) {
    countsNothing = recipe.query == .none
    if case .names(let names) = recipe.query {
      stems = names.map(ParameterName.stem)
    } else {
      stems = nil
    }
    patterns = recipe.ignoreQuery.map { Array($0.utf8) }
    isSorted = recipe.sortQuery
    isPlain = recipe.query == .all && recipe.ignoreQuery.isEmpty && !recipe.sortQuery
  }

  /// Appends what counts of a query (without its `?`). False, and nothing appended: nothing counts,
  /// as if there were no query. Allocates where it sorts, and else only for the key's own room.
  public func appendKeyedQuery(_ query: Span<UInt8>, to key: inout [UInt8]) -> Bool {
    if countsNothing { return false }
    var separators = 0
    var hasSemicolon = false
    for index in query.indices {
      if query[index] == UInt8(ascii: ";") { hasSemicolon = true }
      if query[index] == UInt8(ascii: "&") || query[index] == UInt8(ascii: ";") { separators += 1 }
    }
    guard !isPlain, separators < Self.parametersMax else {
      Self.append(query, 0..<query.count, to: &key)
      return true
    }
    // A semicolon may or may not part two parameters of different names: no order of groups would
    // keep the order that either kind of origin sees.
    if isSorted, !hasSemicolon { return appendSorted(query, to: &key) }
    var isFirst = true
    var position = 0
    while let group = Self.nextGroup(query, &position) {
      guard let start = countingStart(query, group) else { continue }
      if !isFirst { key.append(UInt8(ascii: "&")) }
      // What an older origin reads as `base=USD` and today's as a part of an ignored value is not
      // to be taken for `base=USD` alone: an empty group goes before it, and nowhere else.
      if start != group.lowerBound { key.append(UInt8(ascii: "&")) }
      Self.append(query, start..<group.upperBound, to: &key)
      isFirst = false
    }
    return !isFirst
  }

  // MARK: What counts

  /// Where a group begins to count; nil: nowhere. The rest of it is kept whole: `symbols=EUR;USD`
  /// is one value or two parameters, as the origin has it.
  private func countingStart(_ query: Span<UInt8>, _ group: Range<Int>) -> Int? {
    if counts(query, group) { return group.lowerBound }
    var start = group.lowerBound
    while start < group.upperBound {
      var end = start
      while end < group.upperBound, query[end] != UInt8(ascii: ";") { end += 1 }
      if start < end, counts(query, start..<end) { return start }
      start = end + 1
    }
    return nil
  }

  private func counts(_ query: Span<UInt8>, _ parameter: Range<Int>) -> Bool {
    let raw = query.extracting(Self.nameRange(query, parameter))
    let name = ParameterName(raw)
    if name.isDoubtful { return true }
    if let stems {
      var isNamed = false
      for stem in stems where name.mayBe(stem: stem, raw) {
        isNamed = true
        break
      }
      if !isNamed { return false }
    }
    for pattern in patterns where name.isTaken(by: pattern, raw) { return false }
    return true
  }

  // MARK: Order

  private struct SortedGroup {
    var root: [UInt8]
    var range: Range<Int>
  }

  private func appendSorted(_ query: Span<UInt8>, to key: inout [UInt8]) -> Bool {
    var groups: [SortedGroup] = []
    var (hasHiddenUnderscore, hasUnderscore, isSortable) = (false, false, true)
    var position = 0
    while let range = Self.nextGroup(query, &position) {
      guard counts(query, range) else { continue }
      let raw = query.extracting(Self.nameRange(query, range))
      let name = ParameterName(raw)
      hasHiddenUnderscore = hasHiddenUnderscore || name.hasHiddenUnderscore
      hasUnderscore = hasUnderscore || name.hasUnderscore
      if name.isDoubtful { isSortable = false }
      var root: [UInt8] = []
      name.appendRoot(of: raw, to: &root)
      groups.append(SortedGroup(root: root, range: range))
    }
    // PHP reads `a.b` and `a_b` as one parameter, of which the last one holds; `a.b` also belongs
    // to `a` elsewhere. Where both are there, and where a name cannot be read, the order stays.
    if isSortable, !(hasHiddenUnderscore && hasUnderscore) {
      groups.sort { left, right in
        left.root == right.root
          ? left.range.lowerBound < right.range.lowerBound
          : left.root.lexicographicallyPrecedes(right.root)
      }
    }
    for (index, group) in groups.enumerated() {
      if index > 0 { key.append(UInt8(ascii: "&")) }
      Self.append(query, group.range, to: &key)
    }
    return !groups.isEmpty
  }

  // MARK: Bytes

  /// The next group between `&`; empty ones are passed over.
  private static func nextGroup(_ query: Span<UInt8>, _ position: inout Int) -> Range<Int>? {
    while position < query.count {
      let start = position
      while position < query.count, query[position] != UInt8(ascii: "&") { position += 1 }
      let group = start..<position
      position += 1
      if !group.isEmpty { return group }
    }
    return nil
  }

  private static func nameRange(_ query: Span<UInt8>, _ parameter: Range<Int>) -> Range<Int> {
    var end = parameter.lowerBound
    while end < parameter.upperBound, query[end] != UInt8(ascii: "=") { end += 1 }
    return parameter.lowerBound..<end
  }

  private static func append(_ query: Span<UInt8>, _ range: Range<Int>, to key: inout [UInt8]) {
    // SAFETY: the span outlives the call, and the array copies before it returns.
    unsafe query.extracting(range).withUnsafeBufferPointer { unsafe key.append(contentsOf: $0) }
  }
}
