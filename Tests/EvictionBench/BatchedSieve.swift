/// SIEVE alone, in a store such as Larder's: a mark is a byte that entries share whose IDs are alike
/// in their lower 22 bits, and a full store evicts down to 97 % at once, since each eviction is a
/// transaction.
final class BatchedSieve: EvictionPolicy {
  private static let markCount = 4 * 1024 * 1024
  private let capacityBytes: Int
  private var row: KeyRow
  private var sizes: [Int32]
  private var entryIDs: [Int32]
  private var marks = Array(repeating: UInt8(0), count: BatchedSieve.markCount)
  private var lastEntryID: Int32 = 0
  private var hand = KeyRow.none
  private(set) var usedBytes = 0

  init(keyCount: Int, capacityBytes: Int) {
    self.capacityBytes = capacityBytes
    row = KeyRow(keyCount: keyCount)
    sizes = Array(repeating: 0, count: keyCount)
    entryIDs = Array(repeating: 0, count: keyCount)
  }

  func request(_ key: Int, bytes: Int) -> Bool {
    if sizes[key] > 0 {
      marks[mark(of: key)] = 1
      return true
    }
    guard bytes <= capacityBytes else { return false }
    if usedBytes + bytes > capacityBytes {
      let target = min(capacityBytes / 100 * 97, capacityBytes - bytes)
      while usedBytes > target { evict() }
    }
    lastEntryID += 1
    entryIDs[key] = lastEntryID
    row.append(Int32(key))
    sizes[key] = Int32(bytes)
    usedBytes += bytes
    return false
  }

  private func mark(of key: Int) -> Int { Int(entryIDs[key]) & (BatchedSieve.markCount - 1) }

  private func evict() {
    var victim = hand == KeyRow.none ? row.oldest : hand
    while marks[mark(of: Int(victim))] != 0 {
      marks[mark(of: Int(victim))] = 0
      victim = row.newer(than: victim)
      if victim == KeyRow.none { victim = row.oldest }
    }
    hand = row.newer(than: victim)
    row.remove(victim)
    usedBytes -= Int(sizes[Int(victim)])
    sizes[Int(victim)] = 0
  }
}
