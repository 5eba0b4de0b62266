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
  /// More names for purges than a record may carry: without one of them it could not be purged.
  case tooManyTags = "too-many-tags"
  // What happened to the body or the store.
  case endUnknown = "end-unknown"
  case incomplete
  case tooLarge = "too-large"
  case invalidated
  case queueFull = "queue-full"
  case storeFull = "store-full"
  case storeFailed = "store-failed"
}
