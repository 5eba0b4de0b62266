/// Least recently used: each hit moves its key, which in a store on disk would be a write.
final class LRU: EvictionPolicy {
  private let capacityBytes: Int
  private var row: KeyRow
  private var sizes: [Int32]
  private(set) var usedBytes = 0

  init(keyCount: Int, capacityBytes: Int) {
    self.capacityBytes = capacityBytes
    row = KeyRow(keyCount: keyCount)
    sizes = Array(repeating: 0, count: keyCount)
  }

  func request(_ key: Int, bytes: Int) -> Bool {
    if sizes[key] > 0 {
      row.remove(Int32(key))
      row.append(Int32(key))
      return true
    }
    guard bytes <= capacityBytes else { return false }
    while usedBytes + bytes > capacityBytes {
      let victim = row.oldest
      row.remove(victim)
      usedBytes -= Int(sizes[Int(victim)])
      sizes[Int(victim)] = 0
    }
    row.append(Int32(key))
    sizes[key] = Int32(bytes)
    usedBytes += bytes
    return false
  }
}
