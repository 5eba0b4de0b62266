/// Why a response was not stored: the same word in Cache-Status, the log, the stats and `explain`.
public enum NotStoredReason: String, Sendable, CaseIterable, Error {
  // What the request or the response says (RFC 9111 §3).
  case strategy
  case method
  case requestNoStore = "request-no-store"
  case noStore = "no-store"
  case `private`
  case authorization
  case setCookie = "set-cookie"
  case varyAny = "vary-any"
  case status
  case noLifetime = "no-lifetime"
  case partialContent = "partial-content"
  case eventStream = "event-stream"
  case range
  /// The request lacks the user's identity that the route's copies are kept apart by.
  case noIdentity = "no-identity"
  /// The whole key is longer than a key may be.
  case keyTooLong = "key-too-long"
  /// Tags that cannot all be kept: a purge could miss the copy.
  case unusableTags = "unusable-tags"
  // What happened to the body or the store.
  case endUnknown = "end-unknown"
  case incomplete
  /// All clients left, and the route does not finish such fetches.
  case abandoned
  case tooLarge = "too-large"
  case invalidated
  case queueFull = "queue-full"
  case storeFull = "store-full"
  case storeFailed = "store-failed"
}
