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

  /// How long `queryRules` is.
  public static let queryRulesBytes = 8

  /// A hash of all that says how queries are filtered: the same for the same rules, also in another
  /// process.
  public var queryRules: [UInt8] {
    var text: [String]
    switch query {
    case .all: text = ["all"]
    case .none: text = ["none"]
    case .names(let names): text = ["names"] + names
    }
    text += ["ignore"] + ignoreQuery + [sortQuery ? "sorted" : "as it comes"]
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for word in text {
      for byte in word.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
      // Between two words; no byte of UTF-8.
      hash = (hash ^ 0xFF) &* 0x100_0000_01b3
    }
    return (0..<8).map { UInt8(truncatingIfNeeded: hash >> UInt64(8 * $0)) }
  }
}
