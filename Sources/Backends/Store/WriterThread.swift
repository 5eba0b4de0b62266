/// The thread that the store's writer lives in.
///
/// Started once for each store, by LMDBStore; ends after `WriteQueue.stop`.
#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Carries the writer into its thread, which alone uses it from then on.
final class WriterThread: @unchecked Sendable {
  // @unchecked Sendable: handed over once, by `start`, and not kept.
  private var writer: StoreWriter?
  private let queue: WriteQueue

  private init(_ writer: StoreWriter, _ queue: WriteQueue) {
    self.writer = writer
    self.queue = queue
  }

  private func run() {
    writer?.run()
    // The environment is closed before anybody hears that the writer has ended.
    writer = nil
    queue.markStopped()
  }

  static func start(_ writer: StoreWriter, _ queue: WriteQueue) {
    #if canImport(Glibc)
      var thread = pthread_t()
    #else
      var thread: pthread_t?
    #endif
    // Signals are the main thread's: block them here while the thread inherits the mask. But not those
    // of the thread's own faults: a fault whose signal is blocked ends the process, whoever handles it
    // (SIGBUS: CMapGuard).
    var all = sigset_t()
    var previous = sigset_t()
    sigfillset(&all)
    for fault in [SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP] { sigdelset(&all, fault) }
    pthread_sigmask(SIG_SETMASK, &all, &previous)
    let argument = Unmanaged.passRetained(WriterThread(writer, queue)).toOpaque()
    let code = pthread_create(
      &thread, nil,
      { argument in
        #if canImport(Glibc)
          guard let argument else { return nil }
        #endif
        // SAFETY: retained by `start` for this one take.
        Unmanaged<WriterThread>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      }, argument)
    pthread_sigmask(SIG_SETMASK, &previous, nil)
    storeInvariant(code == 0, "the writer's thread starts")
    #if canImport(Glibc)
      pthread_detach(thread)
    #else
      if let thread { pthread_detach(thread) }
    #endif
  }
}
