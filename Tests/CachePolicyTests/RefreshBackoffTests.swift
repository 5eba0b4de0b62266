import CachePolicy
import Testing

/// When refreshes that fail are tried again, and how long one may take.
struct RefreshBackoffTests {
  @Test func theWaitDoublesUpToAMinute() {
    var backoff = RefreshBackoff()
    var now: Int64 = 1_000_000
    #expect(backoff.mayTry(nowMilliseconds: now))
    for wait: Int64 in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
      backoff.failed(nowMilliseconds: now)
      #expect(!backoff.mayTry(nowMilliseconds: now))
      #expect(!backoff.mayTry(nowMilliseconds: now + wait * 1_000 - 1), "after \(wait) s")
      now += wait * 1_000
      #expect(backoff.mayTry(nowMilliseconds: now), "after \(wait) s")
    }
  }

  @Test func whatFailedLongAgoDoesNotCount() {
    var backoff = RefreshBackoff()
    for now in stride(from: Int64(0), to: 100_000, by: 10_000) {
      backoff.failed(nowMilliseconds: now)
    }
    let next = backoff.nextMilliseconds
    var soon = backoff
    soon.failed(nowMilliseconds: next + 59_999)
    #expect(!soon.mayTry(nowMilliseconds: next + 59_999 + 59_999))
    backoff.failed(nowMilliseconds: next + 60_000)
    #expect(backoff.failures == 1)
    #expect(backoff.mayTry(nowMilliseconds: next + 61_000))
  }

  @Test func failuresWithoutEndOverflowNothing() {
    var backoff = RefreshBackoff()
    for second in 0..<100 { backoff.failed(nowMilliseconds: Int64(second) * 1_000) }
    #expect(backoff.nextMilliseconds == 99_000 + 60_000)
  }

  @Test func aClockThatIsSetBackHoldsNothingUp() {
    var backoff = RefreshBackoff()
    backoff.failed(nowMilliseconds: 1_000_000_000)
    #expect(backoff.mayTry(nowMilliseconds: 1_000))
  }

  @Test(arguments: [
    ("nothing came", [UInt64(0)], [false]),
    ("just enough", [65_536], [true]),
    ("a byte too little", [65_535], [false]),
    ("enough at first", [65_536, 131_071], [true, false]),
    ("enough each time", [100_000, 200_000, 265_536], [true, true, true]),
    ("all at first, then nothing", [10_000_000, 10_000_000], [true, false]),
  ])
  func aRefreshGoesOnWhileItMoves(_ name: String, _ received: [UInt64], _ goesOn: [Bool]) {
    var patience = RefreshPatience()
    #expect(received.map { patience.goesOn(receivedBytes: $0) } == goesOn)
  }
}
