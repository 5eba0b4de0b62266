/// How far each reader of a fill is in its body.
///
/// Most fills have one reader, who costs nothing here but a comparison; ten thousand may come to a
/// key that all want, and are found by hash. Part of `Fill.Shared`, behind its lock.
struct ReaderOffsets: Sendable {
  private var first: (reader: ObjectIdentifier, offset: Int)?
  /// Those who are not the first.
  private var others: [ObjectIdentifier: Int] = [:]

  var count: Int { (first == nil ? 0 : 1) + others.count }
  var isEmpty: Bool { first == nil && others.isEmpty }

  /// Where the slowest is; nil: there is none.
  var slowest: Int? {
    guard let first else { return others.values.min() }
    return others.isEmpty ? first.offset : min(first.offset, others.values.min() ?? first.offset)
  }

  func contains(_ reader: AnyObject) -> Bool {
    let reader = ObjectIdentifier(reader)
    return first?.reader == reader || others[reader] != nil
  }

  /// Enters a reader, or moves it.
  mutating func set(_ reader: AnyObject, to offset: Int) {
    let reader = ObjectIdentifier(reader)
    if first?.reader == reader || first == nil && others[reader] == nil {
      first = (reader, offset)
    } else {
      others[reader] = offset
    }
  }

  mutating func remove(_ reader: AnyObject) {
    let reader = ObjectIdentifier(reader)
    if first?.reader == reader { first = nil } else { others[reader] = nil }
  }
}
