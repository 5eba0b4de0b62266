/// SIEVE behind a filter: the newest tenth of the row is on trial, and what leaves it without having
/// been asked for goes; what was asked for stays where it is, and is the hand's from then on. What
/// failed leaves its name, by which it passes if it comes again soon.
///
/// The idea of S3-FIFO without a second queue: one row in the order of IDs, one mark an entry, no
/// write but the removals.
final class FilteredSieve: EvictionPolicy {
  private let capacityBytes: Int
  private let trialBytesMax: Int
  private var row: KeyRow
  private var sizes: [Int32]
  private var isVisited: [Bool]
  private var hand = KeyRow.none
  /// The oldest key on trial; all behind it are.
  private var trialStart = KeyRow.none
  private var isOnTrial: [Bool]
  private var trialBytes = 0
  private var count = 0
  private(set) var usedBytes = 0
  private var departures: [Int32]
  private var departureCount: Int32 = 0

  init(keyCount: Int, capacityBytes: Int) {
    self.capacityBytes = capacityBytes
    trialBytesMax = capacityBytes / 10
    row = KeyRow(keyCount: keyCount)
    sizes = Array(repeating: 0, count: keyCount)
    isVisited = Array(repeating: false, count: keyCount)
    isOnTrial = Array(repeating: false, count: keyCount)
    departures = Array(repeating: -1, count: keyCount)
  }

  func request(_ key: Int, bytes: Int) -> Bool {
    if sizes[key] > 0 {
      isVisited[key] = true
      return true
    }
    guard bytes <= capacityBytes else { return false }
    while usedBytes + bytes > capacityBytes { evict() }
    let isKnown = departures[key] >= 0 && Int(departureCount - departures[key]) <= count
    departures[key] = -1
    row.append(Int32(key))
    sizes[key] = Int32(bytes)
    isVisited[key] = isKnown
    isOnTrial[key] = true
    if trialStart == KeyRow.none { trialStart = Int32(key) }
    trialBytes += bytes
    usedBytes += bytes
    count += 1
    return false
  }

  private func evict() {
    if trialBytes > trialBytesMax || row.oldest == trialStart { endTrial() } else { sieve() }
  }

  private func endTrial() {
    let key = trialStart
    trialStart = row.newer(than: key)
    trialBytes -= Int(sizes[Int(key)])
    isOnTrial[Int(key)] = false
    if isVisited[Int(key)] {
      isVisited[Int(key)] = false
      return
    }
    departureCount += 1
    departures[Int(key)] = departureCount
    remove(key)
  }

  private func sieve() {
    var victim = hand == KeyRow.none || isOnTrial[Int(hand)] ? row.oldest : hand
    while isVisited[Int(victim)] {
      isVisited[Int(victim)] = false
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
