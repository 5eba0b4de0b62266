/// What is remembered of a stored response beside its bytes: the origin's words on freshness, as
/// numbers, and when it came.
///
/// The record keeps what the *origin* said; the route's policy is applied when the copy is read
/// (`Freshness`), so that a changed policies.json holds for what is stored already. Times are wall
/// clock milliseconds since 1970, durations milliseconds; -1 stands for "the origin did not say".
public struct StoredMetadata: Sendable, Equatable {
  /// Unique in the store and rising: a later copy has a larger one.
  public var entryID: UInt64
  public var status: UInt16
  public var flags: StoredFlags
  /// When the request that brought this response was sent.
  public var requestTimeMilliseconds: Int64
  /// When the response's head came in, or when a 304 last confirmed it.
  public var responseTimeMilliseconds: Int64
  /// corrected_initial_age of RFC 9111 §4.2.3, at `responseTimeMilliseconds`.
  public var initialAgeMilliseconds: Int64
  /// Freshness lifetime by the origin's words (RFC 9111 §4.2.1), heuristics included
  /// (`StoredFlags.heuristic`); -1: the origin gave none and none may be guessed.
  public var originLifetimeMilliseconds: Int64
  /// The origin's `stale-while-revalidate` (RFC 5861), or -1.
  public var originStaleWhileRevalidateMilliseconds: Int64
  /// The origin's `stale-if-error` (RFC 5861), or -1.
  public var originStaleIfErrorMilliseconds: Int64
  public var bodyLength: UInt64
  /// The response's Date (RFC 9110 §6.6.1), or when it came where that cannot be read: which of two
  /// copies is the more recent one (RFC 9111 §4).
  public var dateMilliseconds: Int64

  public init(
    entryID: UInt64, status: UInt16, flags: StoredFlags,
    requestTimeMilliseconds: Int64, responseTimeMilliseconds: Int64,
    initialAgeMilliseconds: Int64, originLifetimeMilliseconds: Int64,
    originStaleWhileRevalidateMilliseconds: Int64, originStaleIfErrorMilliseconds: Int64,
    bodyLength: UInt64, dateMilliseconds: Int64 = 0
  ) {
    self.entryID = entryID
    self.status = status
    self.flags = flags
    self.requestTimeMilliseconds = requestTimeMilliseconds
    self.responseTimeMilliseconds = responseTimeMilliseconds
    self.initialAgeMilliseconds = initialAgeMilliseconds
    self.originLifetimeMilliseconds = originLifetimeMilliseconds
    self.originStaleWhileRevalidateMilliseconds = originStaleWhileRevalidateMilliseconds
    self.originStaleIfErrorMilliseconds = originStaleIfErrorMilliseconds
    self.bodyLength = bodyLength
    self.dateMilliseconds = dateMilliseconds
  }
}

/// The origin's words that bear on reuse, one bit each.
public struct StoredFlags: OptionSet, Sendable, Hashable {
  public let rawValue: UInt16
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// `no-cache` without field names: validate before each use.
  public static let noCache = StoredFlags(rawValue: 1 << 0)
  public static let mustRevalidate = StoredFlags(rawValue: 1 << 1)
  public static let proxyRevalidate = StoredFlags(rawValue: 1 << 2)
  /// `s-maxage` was present (it implies proxy-revalidate, RFC 9111 §5.2.2.10).
  public static let sharedMaxAge = StoredFlags(rawValue: 1 << 3)
  /// The lifetime came from max-age, s-maxage or Expires.
  public static let explicitLifetime = StoredFlags(rawValue: 1 << 4)
  /// The lifetime is a guess (RFC 9111 §4.2.2).
  public static let heuristic = StoredFlags(rawValue: 1 << 5)
  public static let immutable = StoredFlags(rawValue: 1 << 6)
  /// The response has an ETag or Last-Modified to validate with.
  public static let hasValidator = StoredFlags(rawValue: 1 << 7)
  /// The origin has contradicted the copy since (404 or 410, or a 304 by which it is selected
  /// otherwise): it serves nobody until the origin confirms it, whatever a route overrules.
  public static let contradicted = StoredFlags(rawValue: 1 << 8)
  /// A HEAD has shown another answer since: it is stale, whatever its age (RFC 9111 §4.3.5).
  public static let outdated = StoredFlags(rawValue: 1 << 9)
}
