/// SIEVE (Zhang et al., NSDI 2024): a hand goes from old to new; what was asked for since it last
/// came by loses its mark and stays, the other goes.
final class Sieve: EvictionPolicy {
  private let capacityBytes: Int
  private var row: KeyRow
  private var sizes: [Int32]
  private var isVisited: [Bool]
  private var hand = KeyRow.none
  private(set) var usedBytes = 0

  init(keyCount: Int, capacityBytes: Int) {
    self.capacityBytes = capacityBytes
    row = KeyRow(keyCount: keyCount)
    sizes = Array(repeating: 0, count: keyCount)
    isVisited = Array(repeating: false, count: keyCount)
  }

  func request(_ key: Int, bytes: Int) -> Bool {
    if sizes[key] > 0 {
      isVisited[key] = true
      return true
    }
    guard bytes <= capacityBytes else { return false }
    while usedBytes + bytes > capacityBytes { evict() }
    row.append(Int32(key))
    sizes[key] = Int32(bytes)
    isVisited[key] = false
    usedBytes += bytes
    return false
  }

  private func evict() {
    var victim = hand == KeyRow.none ? row.oldest : hand
    while isVisited[Int(victim)] {
      isVisited[Int(victim)] = false
      victim = row.newer(than: victim)
      if victim == KeyRow.none { victim = row.oldest }
    }
    hand = row.newer(than: victim)
    row.remove(victim)
    usedBytes -= Int(sizes[Int(victim)])
    sizes[Int(victim)] = 0
  }
}
