/// The names of entries that failed their trial and were evicted: a table of hashes in which a
/// newcomer takes its place from whoever has it.
///
/// Four bytes for each entry of the store, sixteen MiB at most, and nothing after a start. Two keys
/// that share a name do no harm: one of them stays a little longer than it should. Owned by
/// StoreWriter, whose thread alone uses it.
final class DepartedNames {
  private var names: [UInt32] = []
  private static let countMin = 4096
  private static let countMax = 4 * 1024 * 1024

  /// Makes room for as many names as there are entries; the names that there were are forgotten.
  func grow(toCount entryCount: UInt64) {
    guard names.isEmpty || entryCount > UInt64(names.count), names.count < Self.countMax else {
      return
    }
    var count = Self.countMin
    while UInt64(count) < entryCount, count < Self.countMax { count *= 2 }
    names = Array(repeating: 0, count: count)
  }

  func note(_ key: EntriesKey) {
    guard !names.isEmpty else { return }
    let (index, name) = place(of: key)
    names[index] = name
  }

  /// Whether the name is there; it is not from then on.
  func take(_ key: EntriesKey) -> Bool {
    guard !names.isEmpty else { return false }
    let (index, name) = place(of: key)
    guard names[index] == name else { return false }
    names[index] = 0
    return true
  }

  /// Keys are hashes already, a path's half and a whole key's; variants of one key differ in theirs.
  private func place(of key: EntriesKey) -> (index: Int, name: UInt32) {
    let word = (key.storeKey.low ^ key.variantHash) &* 0x9e37_79b9_7f4a_7c15
    return (
      Int(truncatingIfNeeded: word >> 32) & (names.count - 1),
      UInt32(truncatingIfNeeded: word) | 1
    )
  }
}
