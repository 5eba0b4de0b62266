internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Wall clock time, in milliseconds since 1970, that a test can move forward.
///
/// Everything that decides on freshness or age reads this clock; loops read it once a turn. Timers
/// of the event loop (deadlines, time-outs) are the kernel's and do not follow it.
public final class Clock: Sendable {
  private let offsetMilliseconds = Atomic<Int64>(0)

  public init() {}

  public var nowMilliseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
      + offsetMilliseconds.load(ordering: .relaxed)
  }

  /// Moves the clock forward; for tests.
  public func advance(byMilliseconds amount: Int64) {
    offsetMilliseconds.wrappingAdd(amount, ordering: .relaxed)
  }
}
