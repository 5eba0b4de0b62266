internal import CachePolicy
internal import CountingAllocator

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Measures what finding a route costs, by the number of routes, and what it allocates: the row
/// `routes` of script/bench.
///
/// Prints one line for each table: the number of routes, the nanoseconds of one look-up (the median
/// of the rounds), and how often the allocator was called for all look-ups of a round. Each round
/// looks up the same number of requests, spread evenly over the table's routes.
@main
struct RouteBench {
  private static let routeCounts = [10, 100, 1_000, 10_000]
  private static let rounds = 21
  private static let lookupsPerRound = 100_000
  private static let requestCount = 512

  static func main() {
    for count in routeCounts { measure(routeCount: count) }
  }

  /// A gateway's routes: each service has a list, an item, an action and the rest, and every other
  /// one a host of its own, at each number of routes.
  private static func pattern(_ index: Int) -> RoutePattern {
    let service = index / 4
    let host = service % 2 == 1 ? "//service\(service).example.com" : ""
    let text =
      switch index % 4 {
      case 0: "GET \(host)/service\(service)/items"
      case 1: "GET \(host)/service\(service)/items/{id}"
      case 2: "POST \(host)/service\(service)/items/{id}/actions/*"
      default: "\(host)/service\(service)/files/**"
      }
    do {
      return try RoutePattern(parsing: text)
    } catch {
      fatalError("\(text): \(error.message)")
    }
  }

  private struct Request {
    let method: [UInt8]
    let host: [UInt8]
    let path: [UInt8]
    let route: Int
  }

  private static func request(_ index: Int) -> Request {
    let service = index / 4
    let path =
      switch index % 4 {
      case 0: "/service\(service)/items"
      case 1: "/service\(service)/items/4711"
      case 2: "/service\(service)/items/4711/actions/close"
      default: "/service\(service)/files/reports/2026/11/summary.pdf"
      }
    return Request(
      method: Array((index % 4 == 2 ? "POST" : "GET").utf8),
      host: Array("service\(service).example.com".utf8), path: Array(path.utf8), route: index)
  }

  private static func measure(routeCount: Int) {
    let allocationsBefore = counting_allocator_calls()
    let table = RouteTable(patterns: (0..<routeCount).map(pattern))
    // A count that stands still would show nothing.
    guard counting_allocator_calls() != allocationsBefore || allocationsBefore < 0 else {
      fatalError("calls of the allocator are not counted")
    }
    // A step that shares no factor with the count: the requests are spread over all routes.
    let requests = (0..<requestCount).map { request($0 * 7_919 % routeCount) }
    var nanoseconds: [Double] = []
    var allocations = 0
    for _ in 0..<rounds {
      let allocationsBefore = counting_allocator_calls()
      let start = now()
      var wrong = 0
      for lookup in 0..<lookupsPerRound {
        let request = requests[lookup & (requestCount - 1)]
        let found = table.match(
          method: request.method.span, host: request.host.span, path: request.path.span)
        if found != request.route { wrong += 1 }
      }
      nanoseconds.append(Double(now() - start) / Double(lookupsPerRound))
      allocations = counting_allocator_calls() - allocationsBefore
      guard wrong == 0 else { fatalError("\(wrong) requests found another route than their own") }
    }
    let median = nanoseconds.sorted()[rounds / 2]
    print(routeCount, Int(median.rounded()), allocations)
  }

  private static func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}
