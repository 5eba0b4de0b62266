#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// What the process asks of the operating system about itself.
enum ProcessFacts {
  /// Raises the limit on open descriptors to what the system allows, and returns it.
  static func raiseDescriptorLimit() -> Int {
    var limit = rlimit()
    #if os(Linux)
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
      let resource = RLIMIT_NOFILE
    #endif
    guard getrlimit(resource, &limit) == 0 else { return 1024 }
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(resource, &limit)
    _ = getrlimit(resource, &limit)
    return Int(clamping: limit.rlim_cur)
  }

  static func pause(milliseconds: Int64) {
    var time = timespec(
      tv_sec: Int(milliseconds / 1000), tv_nsec: Int(milliseconds % 1000) * 1_000_000)
    nanosleep(&time, nil)
  }
}
