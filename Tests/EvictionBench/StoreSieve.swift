/// What Larder's store does (`Sources/Backends/Store/Eviction.swift`), as it really is:
/// `FilteredSieve` with marks that entries share whose IDs are alike in their lower 22 bits, names
/// in a table in which a newcomer takes its place from whoever has it, and evictions down to 97 % at
/// once, since each is a transaction.
final class StoreSieve: EvictionPolicy {
  private let capacityBytes: Int
  private let trialBytesMax: Int
  private var row: KeyRow
  private var sizes: [Int32]
  private static let markCount = 4 * 1024 * 1024
  private var marks = Array(repeating: UInt8(0), count: StoreSieve.markCount)
  private var entryIDs: [Int32]
  private var lastEntryID: Int32 = 0
  private var hand = KeyRow.none
  /// The oldest key on trial; all behind it are.
  private var trialStart = KeyRow.none
  private var isOnTrial: [Bool]
  private var trialBytes = 0
  private var count = 0
  private(set) var usedBytes = 0
  private var names = Array(repeating: UInt32(0), count: 4096)

  init(keyCount: Int, capacityBytes: Int) {
    self.capacityBytes = capacityBytes
    trialBytesMax = capacityBytes / 10
    row = KeyRow(keyCount: keyCount)
    sizes = Array(repeating: 0, count: keyCount)
    entryIDs = Array(repeating: 0, count: keyCount)
    isOnTrial = Array(repeating: false, count: keyCount)
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
    marks[mark(of: key)] = takeName(key) ? 1 : 0
    isOnTrial[key] = true
    if trialStart == KeyRow.none { trialStart = Int32(key) }
    trialBytes += bytes
    usedBytes += bytes
    count += 1
    if count > names.count { names = Array(repeating: 0, count: 2 * names.count) }
    return false
  }

  private func mark(of key: Int) -> Int { Int(entryIDs[key]) & (StoreSieve.markCount - 1) }

  private func place(of key: Int) -> (index: Int, name: UInt32) {
    var hash = SplitMix(seed: UInt64(key))
    let word = hash.next()
    return (Int(word >> 32) & (names.count - 1), UInt32(truncatingIfNeeded: word) | 1)
  }

  private func takeName(_ key: Int) -> Bool {
    let (index, name) = place(of: key)
    guard names[index] == name else { return false }
    names[index] = 0
    return true
  }

  private func evict() {
    if trialBytes > trialBytesMax || row.oldest == trialStart { endTrial() } else { sieve() }
  }

  private func endTrial() {
    let key = trialStart
    trialStart = row.newer(than: key)
    trialBytes -= Int(sizes[Int(key)])
    isOnTrial[Int(key)] = false
    if clearMark(Int(key)) { return }
    let (index, name) = place(of: Int(key))
    names[index] = name
    remove(key)
  }

  private func clearMark(_ key: Int) -> Bool {
    let index = mark(of: key)
    defer { marks[index] = 0 }
    return marks[index] != 0
  }

  private func sieve() {
    var victim = hand == KeyRow.none || isOnTrial[Int(hand)] ? row.oldest : hand
    while clearMark(Int(victim)) {
      victim = row.newer(than: victim)
      if victim == trialStart || victim == KeyRow.none { victim = row.oldest }
    }
    hand = row.newer(than: victim)
    remove(victim)
  }

  private func remove(_ key: Int32) {
    if hand == key { hand = row.newer(than: key) }
    row.remove(key)
    usedBytes -= Int(sizes[Int(key)])
    sizes[Int(key)] = 0
    count -= 1
  }
}
