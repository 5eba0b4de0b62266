internal import Backends
internal import Synchronization

/// Tells the log of origins that fail: the first failure of a route at once, those of the next ten
/// seconds in one line. A dead origin under load must not flood the log, nor be silent.
final class FailureLog: Sendable {
  static let quietMilliseconds: Int64 = 10_000

  private struct Route {
    var quietUntilMilliseconds: Int64
    var untold = 0
  }

  private let log: Log
  private let routes = Mutex<[String: Route]>([:])

  init(_ log: Log) { self.log = log }

  func note(_ error: OriginError, of route: RouteContext, nowMilliseconds now: Int64) {
    let untold = routes.withLock { routes -> Int? in
      if let known = routes[route.name], now < known.quietUntilMilliseconds {
        routes[route.name]?.untold += 1
        return nil
      }
      let untold = routes[route.name]?.untold ?? 0
      routes[route.name] = Route(quietUntilMilliseconds: now + FailureLog.quietMilliseconds)
      return untold
    }
    guard let untold else { return }
    let others = untold == 0 ? "" : " (and \(untold) failures since the last line)"
    let upstream = String(decoding: route.upstreamName, as: UTF8.self)
    let authority = String(decoding: route.upstreamAuthority, as: UTF8.self)
    log.warning("\(route.name): upstream \"\(upstream)\" (\(authority)): \(error.reason)\(others)")
  }
}
