/// Reads the strategy that a client asks for (`Larder-Strategy`), against those that the route lets
/// it ask for (`clientStrategies`).
///
/// A choice changes how *this* request is answered and nothing else of the policy. It never widens
/// what the route allows: a strategy that the route does not list is not taken, and under one that
/// it lists the route's own `ttl`, windows, `negative`, `ignoreOrigin`, `perUser` and limits hold
/// as if the route had it as its own (so a network-only route which lists `cache-first` stores by
/// its own ttl, and only because its author wrote so). `deadline` counts under network-first alone,
/// `staleWhileRevalidate` under those that serve stale copies. The request's own `Cache-Control`
/// and the route's `clientMay` hold beside it. What cannot be read is ignored, never an error: an
/// app must not break where a route's list is cut down. Called for requests of routes with a list.
public enum ClientStrategy {
  public enum Choice: Sendable, Equatable {
    /// The request asks for none.
    case absent
    case strategy(Strategy)
    /// The route's own strategy holds.
    case ignored(Refusal)

    /// The strategy to use in place of the route's own.
    public var strategy: Strategy? {
      guard case .strategy(let strategy) = self else { return nil }
      return strategy
    }
  }

  /// Why a request's strategy is ignored: the same word in Cache-Status, the log and explain.
  public enum Refusal: String, Sendable, CaseIterable {
    /// The field has several lines, or several words.
    case several = "client-strategy-several"
    case unknown = "client-strategy-unknown"
    case notAllowed = "client-strategy-not-allowed"
  }

  /// Allocates nothing where the request has no such field.
  public static func read(_ request: Fields, allowed: [Strategy]) -> Choice {
    guard let index = request.firstIndex(of: .larderStrategy) else { return .absent }
    if request.firstIndex(of: .larderStrategy, from: index + 1) != nil {
      return .ignored(.several)
    }
    let word = request.value(at: index).map(ASCII.lowercased)
    if word.contains(where: { $0 == UInt8(ascii: ",") || ASCII.isSpace($0) }) {
      return .ignored(.several)
    }
    guard let strategy = Strategy(name: String(decoding: word, as: UTF8.self)) else {
      return .ignored(.unknown)
    }
    return allowed.contains(strategy) ? .strategy(strategy) : .ignored(.notAllowed)
  }
}
