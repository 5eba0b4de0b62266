/// How many requests one upstream is sent at once, and how many wait for a place.
public struct UpstreamLimits: Sendable, Equatable {
  /// nil: as many as there are.
  public var concurrentMax: Int?
  public var queuedMax: Int
  public var queueTimeoutMilliseconds: Int64

  public init(concurrentMax: Int?, queuedMax: Int, queueTimeoutMilliseconds: Int64) {
    self.concurrentMax = concurrentMax
    self.queuedMax = queuedMax
    self.queueTimeoutMilliseconds = queueTimeoutMilliseconds
  }

  /// Decides what becomes of one request more, beside those that run and those that wait.
  ///
  /// A request that no client waits for gets a place only where clients are left some: an eighth of
  /// all, at least one. It never waits, since whoever gets the stale copy next has it tried again.
  /// Where there is but one place, it may have that while nobody else wants it.
  public func admission(isBackground: Bool, active: Int, queued: Int) -> UpstreamAdmission {
    guard let concurrentMax else { return .admit }
    if isBackground {
      let kept = concurrentMax == 1 ? 0 : max(1, concurrentMax / 8)
      return queued == 0 && active < concurrentMax - kept ? .admit : .refuse
    }
    // Who came before goes before.
    if queued == 0, active < concurrentMax { return .admit }
    return queued < queuedMax ? .wait : .refuse
  }

  /// Whether the first of those who wait may go.
  public func admitsNext(active: Int) -> Bool { concurrentMax.map { active < $0 } ?? true }

  /// What a client that was refused is told to wait, in seconds (RFC 9110 §10.2.3).
  public var retryAfterSeconds: Int64 { max(1, (queueTimeoutMilliseconds + 999) / 1000) }
}

public enum UpstreamAdmission: Sendable, Equatable {
  case admit
  case wait
  case refuse
}

/// Whether an origin is known to be down: connections to it have failed several times in a row.
///
/// Then requests with a copy that may stand in for a failing network get it at once, but for one
/// every few seconds, which looks whether the origin is back. All others go on asking: they have
/// nothing to lose. The first answer ends it.
public struct OriginHealth: Sendable, Equatable {
  public static let failuresMax = 5
  public static let pauseMilliseconds: Int64 = 5_000

  public private(set) var failuresInRow = 0
  private var pausedUntilMilliseconds: Int64 = 0

  public init() {}

  public var isDown: Bool { failuresInRow == OriginHealth.failuresMax }

  /// No connection came about.
  public mutating func connectionFailed(nowMilliseconds now: Int64) {
    failuresInRow = min(failuresInRow + 1, OriginHealth.failuresMax)
    if isDown {
      pausedUntilMilliseconds = now + OriginHealth.pauseMilliseconds
    }
  }

  /// It said anything at all.
  public mutating func answered() { self = OriginHealth() }

  /// Whether a request that need not ask is to ask. Where the pause is over, the one that learns so
  /// is the one that looks, and the next pause begins.
  public mutating func mayAsk(nowMilliseconds now: Int64) -> Bool {
    guard isDown else { return true }
    let left = pausedUntilMilliseconds - now
    // A clock that was set back holds nothing up for longer than a pause.
    if left > 0, left <= OriginHealth.pauseMilliseconds { return false }
    pausedUntilMilliseconds = now + OriginHealth.pauseMilliseconds
    return true
  }
}
