/// Compares ways to choose what a full cache gives up, by the hits that are left: the row `eviction`
/// of script/bench.
///
/// Prints a line for each workload and size of the cache: the share of requests that hit, in
/// percent, for each candidate; where sizes vary, the share of bytes too. Scans' own requests do
/// not count: nobody could have them hit. The same numbers each time, on any machine.
@main
struct EvictionBench {
  private static let keyCount = 1_000_000
  private static let warmUpRequests = 2_000_000
  private static let countedRequests = 3_000_000

  private static var candidates: [(name: String, policy: any EvictionPolicy.Type)] {
    [
      ("lru", LRU.self), ("s3-fifo", S3FIFO.self), ("sieve", Sieve.self),
      ("sieve-batched", BatchedSieve.self), ("filtered", FilteredSieve.self),
      ("store", StoreSieve.self),
    ]
  }

  static func main() {
    print("workload cache " + candidates.map(\.name).joined(separator: " "))
    let requestCount = warmUpRequests + countedRequests
    for skew in [0.8, 1.0] {
      let workload = Workload(keyCount: keyCount, skew: skew, requestCount: requestCount)
      measure("zipf-\(skew)", workload)
    }
    for skew in [0.8, 1.0] {
      let workload = Workload(
        keyCount: keyCount, skew: skew,
        scan: Workload.Scan(otherRequests: 60_000, scanRequests: 40_000),
        requestCount: requestCount)
      measure("scan-\(skew)", workload)
    }
    for skew in [0.8, 1.0] {
      let workload = Workload(
        keyCount: keyCount, skew: skew, hasSizes: true, requestCount: requestCount)
      measure("sizes-\(skew)", workload)
    }
  }

  private struct Ratios {
    var hits = 0
    var requests = 0
    var hitBytes = 0
    var bytes = 0
    var ofRequests: Double { 100 * Double(hits) / Double(max(1, requests)) }
    var ofBytes: Double { 100 * Double(hitBytes) / Double(max(1, bytes)) }
  }

  private static func measure(_ name: String, _ workload: Workload) {
    let allBytes = workload.allBytes
    for percent in [1, 10] {
      let ratios = candidates.map {
        run($0.policy, workload, capacityBytes: allBytes / 100 * percent)
      }
      print("\(name) \(percent)% " + ratios.map { text($0.ofRequests) }.joined(separator: " "))
      if allBytes > workload.keyCount {
        print("\(name)-bytes \(percent)% " + ratios.map { text($0.ofBytes) }.joined(separator: " "))
      }
    }
  }

  private static func run(
    _ type: any EvictionPolicy.Type, _ given: Workload, capacityBytes: Int
  ) -> Ratios {
    var workload = given
    let policy = type.init(keyCount: workload.keySpace, capacityBytes: capacityBytes)
    var ratios = Ratios()
    for number in 0..<(warmUpRequests + countedRequests) {
      let (key, isScan) = workload.next()
      let bytes = workload.bytes(of: key)
      let isHit = policy.request(key, bytes: bytes)
      guard policy.usedBytes <= capacityBytes else { fatalError("\(type) is over its budget") }
      if number < warmUpRequests || isScan { continue }
      ratios.requests += 1
      ratios.bytes += bytes
      if isHit {
        ratios.hits += 1
        ratios.hitBytes += bytes
      }
    }
    return ratios
  }

  /// With one digit behind the point.
  private static func text(_ percent: Double) -> String {
    let tenths = Int((percent * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
  }
}
