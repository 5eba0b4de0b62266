/// When a key whose refreshes in the background fail may be refreshed again: after a second, then
/// after two, four and so on, up to a minute.
///
/// Only what no client waits for is held back. Who must have the network's answer asks it at once,
/// and what it brings ends the waiting. Kept by `RefreshFailures`, a value a key.
public struct RefreshBackoff: Sendable, Equatable {
  public static let waitMillisecondsMin: Int64 = 1_000
  public static let waitMillisecondsMax: Int64 = 60_000

  public private(set) var failures = 0
  public private(set) var nextMilliseconds: Int64 = 0

  public init() {}

  /// A refresh failed at this time.
  public mutating func failed(nowMilliseconds now: Int64) {
    // Long ago: it says nothing of today's failures.
    if now - nextMilliseconds >= RefreshBackoff.waitMillisecondsMax { failures = 0 }
    failures += 1
    let wait = RefreshBackoff.waitMillisecondsMin << Int64(min(failures - 1, 16))
    nextMilliseconds = now + min(wait, RefreshBackoff.waitMillisecondsMax)
  }

  /// Whether the next one may be tried. A clock that was set back holds nothing up for longer than
  /// the longest wait.
  public func mayTry(nowMilliseconds now: Int64) -> Bool {
    now >= nextMilliseconds || nextMilliseconds - now > RefreshBackoff.waitMillisecondsMax
  }
}

/// How long a refresh that no client reads may take: as long as each of its upstream's
/// `totalTimeout` brings so much of the body.
///
/// A silence ends every fetch; this ends one that trickles, and would keep its key from being
/// fetched anew. A large body that moves is not cut.
public struct RefreshPatience: Sendable, Equatable {
  public static let bytesMin: UInt64 = 64 * 1024

  private var receivedBytes: UInt64 = 0

  public init() {}

  /// Another of those times has passed, and so much has come in all: whether it goes on.
  public mutating func goesOn(receivedBytes now: UInt64) -> Bool {
    defer { receivedBytes = now }
    return now >= receivedBytes + RefreshPatience.bytesMin
  }
}
