import CachePolicy
import Testing

/// Who is admitted to an upstream, who waits, and who is refused, as a table; and when an origin is
/// known to be down.
struct UpstreamAdmissionTests {
  struct Row: Sendable, CustomTestStringConvertible {
    let max: Int?
    var queuedMax = 2
    let active: Int
    var queued = 0
    let client: UpstreamAdmission
    let background: UpstreamAdmission

    var testDescription: String {
      "\(max.map(String.init) ?? "any") at once, \(active) run, \(queued) of \(queuedMax) wait"
    }
  }

  static let rows = [
    Row(max: nil, active: 1_000_000, client: .admit, background: .admit),
    Row(max: nil, queuedMax: 0, active: 0, client: .admit, background: .admit),
    Row(max: 1, active: 0, client: .admit, background: .admit),
    Row(max: 1, active: 1, client: .wait, background: .refuse),
    Row(max: 1, queuedMax: 0, active: 1, client: .refuse, background: .refuse),
    Row(max: 2, active: 0, client: .admit, background: .admit),
    Row(max: 2, active: 1, client: .admit, background: .refuse),
    Row(max: 2, active: 2, client: .wait, background: .refuse),
    Row(max: 2, active: 2, queued: 1, client: .wait, background: .refuse),
    Row(max: 2, active: 2, queued: 2, client: .refuse, background: .refuse),
    // A reload has lowered the limit, or raised it a moment ago.
    Row(max: 2, active: 5, client: .wait, background: .refuse),
    Row(max: 4, active: 2, queued: 1, client: .wait, background: .refuse),
    Row(max: 16, active: 13, client: .admit, background: .admit),
    Row(max: 16, active: 14, client: .admit, background: .refuse),
    Row(max: 16, active: 15, client: .admit, background: .refuse),
  ]

  @Test(arguments: rows) func admission(_ row: Row) {
    let limits = UpstreamLimits(
      concurrentMax: row.max, queuedMax: row.queuedMax, queueTimeoutMilliseconds: 1_000)
    #expect(
      limits.admission(isBackground: false, active: row.active, queued: row.queued) == row.client)
    #expect(
      limits.admission(isBackground: true, active: row.active, queued: row.queued)
        == row.background)
  }

  @Test(arguments: [(Int?.none, 9, true), (2, 1, true), (2, 2, false), (2, 3, false)])
  func theNextGoesWhereThereIsAPlace(_ max: Int?, _ active: Int, _ goes: Bool) {
    let limits = UpstreamLimits(concurrentMax: max, queuedMax: 2, queueTimeoutMilliseconds: 1)
    #expect(limits.admitsNext(active: active) == goes)
  }

  @Test(arguments: [(Int64(1), Int64(1)), (1_000, 1), (1_001, 2), (600_000, 600)])
  func whoIsRefusedIsToldToWaitWholeSeconds(_ timeout: Int64, _ seconds: Int64) {
    let limits = UpstreamLimits(
      concurrentMax: 1, queuedMax: 1, queueTimeoutMilliseconds: timeout)
    #expect(limits.retryAfterSeconds == seconds)
  }

  // MARK: Health

  private func asks(_ health: inout OriginHealth, _ now: Int64) -> Bool {
    health.mayAsk(nowMilliseconds: now)
  }

  /// Down since this time.
  private func down(at now: Int64) -> OriginHealth {
    var health = OriginHealth()
    for _ in 0..<OriginHealth.failuresMax { health.connectionFailed(nowMilliseconds: now) }
    return health
  }

  @Test func anOriginIsAskedUntilItHasFailedSeveralTimes() {
    var health = OriginHealth()
    for _ in 1..<OriginHealth.failuresMax {
      health.connectionFailed(nowMilliseconds: 0)
      #expect(asks(&health, 0) == true)
    }
    health.connectionFailed(nowMilliseconds: 0)
    #expect(asks(&health, 0) == false)
  }

  @Test func afterThePauseOneLooks() {
    var health = down(at: 1_000)
    #expect(asks(&health, 5_999) == false)
    #expect(asks(&health, 6_000) == true)
    #expect(asks(&health, 6_000) == false)
    #expect(asks(&health, 10_999) == false)
    // The one that looked has failed.
    health.connectionFailed(nowMilliseconds: 8_000)
    #expect(asks(&health, 12_999) == false)
    #expect(asks(&health, 13_000) == true)
  }

  @Test func theFirstAnswerEndsIt() {
    var health = down(at: 1_000)
    health.answered()
    #expect(health == OriginHealth())
    #expect(asks(&health, 1_000) == true)
  }

  @Test func aClockThatIsSetBackHoldsNothingUp() {
    var health = down(at: 1_000_000_000)
    #expect(asks(&health, 1_000) == true)
  }
}
