/// What of a request tells copies apart beyond its upstream, authority and path: a route's `key`.
///
/// Names of request fields are in lower case; names of query parameters and cookies are compared
/// as they are. Made by the reading of policies.json, carried out by `QueryFilter` and by whoever
/// writes a request's whole key.
public struct KeyRecipe: Sendable, Equatable {
  public enum Query: Sendable, Equatable {
    /// The whole query, byte for byte.
    case all
    case none
    /// These parameters alone.
    case names([String])
  }

  public var query: Query
  /// Parameters that do not count, as patterns in which `*` stands for any number of characters.
  public var ignoreQuery: [String]
  /// Whether parameters are put in the order of their names.
  public var sortQuery: Bool
  public var headers: [String]
  public var cookies: [String]

  public init(
    query: Query = .all, ignoreQuery: [String] = [], sortQuery: Bool = false,
    headers: [String] = [], cookies: [String] = []
  ) {
    self.query = query
    self.ignoreQuery = ignoreQuery
    self.sortQuery = sortQuery
    self.headers = headers
    self.cookies = cookies
  }
}
