#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Requests that follow from a seed: Zipf popularity, with or without scans, of objects of one size
/// or of many.
///
/// The same requests come to each candidate. Made and asked by EvictionBench.
struct Workload {
  /// Runs of keys that are asked for once, between runs of the others.
  struct Scan {
    var otherRequests: Int
    var scanRequests: Int
  }
  let keyCount: Int
  /// Keys of scans lie behind the others.
  let keySpace: Int
  private let scan: Scan?
  private let hasSizes: Bool
  private let popularity: AliasTable
  private var random: SplitMix
  private var position = 0
  private var nextScanKey: Int

  init(
    keyCount: Int, skew: Double, scan: Scan? = nil, hasSizes: Bool = false, requestCount: Int
  ) {
    self.keyCount = keyCount
    self.scan = scan
    self.hasSizes = hasSizes
    let scanned = scan.map {
      (requestCount / ($0.otherRequests + $0.scanRequests) + 1) * $0.scanRequests
    }
    keySpace = keyCount + (scanned ?? 0)
    popularity = AliasTable(weights: (1...keyCount).map { pow(Double($0), -skew) })
    random = SplitMix(seed: 1)
    nextScanKey = keyCount
  }

  /// The next key, and whether it is a scan's.
  mutating func next() -> (key: Int, isScan: Bool) {
    defer { position += 1 }
    if let scan,
      position % (scan.otherRequests + scan.scanRequests) >= scan.otherRequests
    {
      defer { nextScanKey += 1 }
      return (nextScanKey, true)
    }
    return (popularity.draw(&random), false)
  }

  /// What a key's object weighs: 1, or from 200 bytes to 10 MB, evenly on a logarithmic scale and
  /// thinner the larger (a mean of some 60 KB), whatever its popularity.
  func bytes(of key: Int) -> Int {
    guard hasSizes else { return 1 }
    var own = SplitMix(seed: UInt64(key) &* 0x9e37_79b9_7f4a_7c15)
    let place = own.unit() * own.unit()
    return Int(200 * pow(50_000, place))
  }

  var allBytes: Int { (0..<keyCount).reduce(0) { $0 + bytes(of: $1) } }
}

/// SplitMix64: small, and the same everywhere.
struct SplitMix {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var word = state
    word = (word ^ (word >> 30)) &* 0xbf58_476d_1ce4_e5b9
    word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
    return word ^ (word >> 31)
  }

  /// From 0 to 1, without 1.
  mutating func unit() -> Double { Double(next() >> 11) * 0x1p-53 }
}

/// Draws from any distribution by two random numbers (Walker's alias method).
struct AliasTable {
  private var thresholds: [Double]
  private var aliases: [Int]

  init(weights: [Double]) {
    let count = weights.count
    let sum = weights.reduce(0, +)
    thresholds = weights.map { $0 / sum * Double(count) }
    aliases = Array(0..<count)
    var low = (0..<count).filter { thresholds[$0] < 1 }
    var high = (0..<count).filter { thresholds[$0] >= 1 }
    while let small = low.popLast(), let large = high.last {
      aliases[small] = large
      thresholds[large] -= 1 - thresholds[small]
      if thresholds[large] < 1 { low.append(high.removeLast()) }
    }
  }

  func draw(_ random: inout SplitMix) -> Int {
    let index = Int(truncatingIfNeeded: random.next() % UInt64(thresholds.count))
    return random.unit() < thresholds[index] ? index : aliases[index]
  }
}
