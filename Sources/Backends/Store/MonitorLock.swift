/// A lock that one can wait under: a pthread mutex with its condition.
///
/// `Mutex` of the standard library has no condition, and the store's writer waits for work with a
/// time limit. Time limits are real time (the monotonic clock), never the test's. Used by
/// WriteQueue alone.
#if canImport(Glibc)
  internal import CUV
  internal import Glibc
#else
  internal import Darwin
#endif

final class MonitorLock: @unchecked Sendable {
  // @unchecked Sendable: both pointers are constant, and pthreads make what they point at safe.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>

  init() {
    mutex = .allocate(capacity: 1)
    condition = .allocate(capacity: 1)
    // SAFETY: both are initialised in place and stay there until deinit.
    mutex.initialize(to: pthread_mutex_t())
    condition.initialize(to: pthread_cond_t())
    pthread_mutex_init(mutex, nil)
    #if canImport(Glibc)
      var attributes = pthread_condattr_t()
      pthread_condattr_init(&attributes)
      pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
      pthread_cond_init(condition, &attributes)
      pthread_condattr_destroy(&attributes)
    #else
      pthread_cond_init(condition, nil)
    #endif
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  @inline(__always)
  func lock() { pthread_mutex_lock(mutex) }

  @inline(__always)
  func unlock() { pthread_mutex_unlock(mutex) }

  /// Wakes all who wait.
  func wakeAll() { pthread_cond_broadcast(condition) }

  /// Waits, unlocked, until woken (or for no reason); the caller looks again at what it waits for.
  func wait() { pthread_cond_wait(condition, mutex) }

  /// As `wait()`, at most this long.
  func wait(milliseconds: Int64) {
    var limit = timespec()
    #if canImport(Glibc)
      clock_gettime(CLOCK_MONOTONIC, &limit)
      let nanoseconds = Int64(limit.tv_nsec) + milliseconds % 1000 * 1_000_000
      limit.tv_sec += Int(milliseconds / 1000 + nanoseconds / 1_000_000_000)
      limit.tv_nsec = Int(nanoseconds % 1_000_000_000)
      pthread_cond_timedwait(condition, mutex, &limit)
    #else
      limit.tv_sec = Int(milliseconds / 1000)
      limit.tv_nsec = Int(milliseconds % 1000 * 1_000_000)
      pthread_cond_timedwait_relative_np(condition, mutex, &limit)
    #endif
  }

  static var monotonicMilliseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}
