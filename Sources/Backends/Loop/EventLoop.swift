internal import CUV
internal import CachePolicy
internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// One libuv loop on one thread: the owner of every stream, timer and watcher made with it.
///
/// Objects of a loop are touched on its thread alone; everything else reaches them through `post`.
/// The loop also lends one read buffer, since a read is consumed before the next one begins.
public final class EventLoop: @unchecked Sendable {
  // @unchecked Sendable: `post` and `stop` are safe from any thread (an async handle and a mutex);
  // all other members are used on the loop's own thread, which `assertOnLoop` checks in debug.

  /// The size of the buffer that reads land in, in bytes.
  public static let readBufferBytes = 64 * 1024

  let handle: UnsafeMutablePointer<uv_loop_t>
  private let wakeup: UnsafeMutablePointer<uv_async_t>
  private let inbox = Mutex<[@Sendable () -> Void]>([])
  private let thread = Mutex<pthread_t?>(nil)
  let readBuffer: UnsafeMutablePointer<CChar>
  private let beforeWaiting: UnsafeMutablePointer<uv_prepare_t>
  private var turnEndWork: [() -> Void] = []
  private var laterWork: [() -> Void] = []
  private var isStopping = false
  /// While the loop's turn reads the store: by whose guard what it writes goes out.
  private(set) var mapVisitor: OpaquePointer?

  public init() {
    handle = .allocate(capacity: 1)
    wakeup = .allocate(capacity: 1)
    beforeWaiting = .allocate(capacity: 1)
    readBuffer = .allocate(capacity: EventLoop.readBufferBytes)
    let status = uv_loop_init(handle)
    invariant(status == 0, "a libuv loop can be made")
    let asyncStatus = uv_async_init(handle, wakeup) { EventLoop.of($0!.pointee.data).drainInbox() }
    invariant(asyncStatus == 0, "a libuv async handle can be made")
    wakeup.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    uv_prepare_init(handle, beforeWaiting)
    beforeWaiting.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    beforeWaiting.withMemoryRebound(to: uv_handle_t.self, capacity: 1) { uv_unref($0) }
  }

  deinit {
    uv_loop_close(handle)
    handle.deallocate()
    wakeup.deallocate()
    beforeWaiting.deallocate()
    readBuffer.deallocate()
  }

  private static func of(_ data: UnsafeMutableRawPointer?) -> EventLoop {
    // SAFETY: every handle's data that is read here was set to this loop, which outlives its run.
    Unmanaged<EventLoop>.fromOpaque(data!).takeUnretainedValue()
  }

  /// Runs on the calling thread until `stop`.
  public func run() {
    thread.withLock { $0 = pthread_self() }
    uv_run(handle, UV_RUN_DEFAULT)
    thread.withLock { $0 = nil }
  }

  /// Starts a thread that runs the loop; `join` waits for its end.
  public func start() -> LoopThread {
    LoopThread { self.run() }
  }

  /// Queues work for the loop's next turn, from any thread, in the order of the calls.
  public func post(_ work: @escaping @Sendable () -> Void) {
    let wasEmpty = inbox.withLock { queue in
      queue.append(work)
      return queue.count == 1
    }
    if wasEmpty { uv_async_send(wakeup) }
  }

  /// Queues work for the loop's next turn, from its own thread.
  public func later(_ work: @escaping () -> Void) {
    laterWork.append(work)
    if laterWork.count == 1 { uv_async_send(wakeup) }
  }

  /// Adds work that is done at the end of every turn, before the loop waits again, in the order in
  /// which it was added. Called before the loop runs, or on its thread.
  public func atTurnEnd(_ work: @escaping () -> Void) {
    turnEndWork.append(work)
    guard turnEndWork.count == 1 else { return }
    uv_prepare_start(beforeWaiting) { prepare in
      for work in EventLoop.of(prepare!.pointee.data).turnEndWork { work() }
    }
  }

  /// What is written from now on may lie in the store's map, or be made of what does; nil: no more.
  @inline(__always)
  func reads(by visitor: OpaquePointer?) { mapVisitor = visitor }

  private func drainInbox() {
    let postponed = laterWork
    laterWork = []
    for work in postponed { work() }
    let queued = inbox.withLock { queue in
      let taken = queue
      queue = []
      return taken
    }
    for work in queued { work() }
  }

  /// Whether the caller is on this loop's thread (true before it runs).
  public var isCurrent: Bool {
    thread.withLock { owner in
      guard let owner else { return true }
      return pthread_equal(owner, pthread_self()) != 0
    }
  }

  /// Ends `run` after the current turn; all handles are closed first.
  public func stop() {
    post { [self] in
      guard !isStopping else { return }
      isStopping = true
      uv_walk(
        handle,
        { handle, _ in
          if uv_is_closing(handle) == 0 { EventLoop.closeForStop(handle!) }
        }, nil)
    }
  }

  private static func closeForStop(_ handle: UnsafeMutablePointer<uv_handle_t>) {
    // Streams, timers and watchers are closed by their owners before; what remains is the async.
    uv_close(handle, nil)
  }

  /// Milliseconds of a clock that only moves forward, as of this turn.
  public var monotonicMilliseconds: UInt64 { uv_now(handle) }

  /// Cores that this process may run on (its affinity, where the system tells), at least 1.
  public static var coreCount: Int { Int(uv_available_parallelism()) }

  /// The error text of a libuv status.
  public static func describe(_ status: Int32) -> String {
    String(cString: uv_strerror(status))
  }
}

/// A thread that runs one closure, and that can be waited for once.
public final class LoopThread: Sendable {
  private let identifier: Mutex<pthread_t?>

  public init(_ body: @escaping @Sendable () -> Void) {
    identifier = Mutex(nil)
    let box = Unmanaged.passRetained(ThreadBody(body: body))
    #if canImport(Glibc)
      var created = pthread_t()
      let status = pthread_create(&created, nil, { runThreadBody($0!) }, box.toOpaque())
      identifier.withLock { $0 = created }
    #else
      var created: pthread_t?
      let status = pthread_create(&created, nil, { runThreadBody($0) }, box.toOpaque())
      identifier.withLock { $0 = created }
    #endif
    invariant(status == 0, "a thread can be started")
  }

  /// Waits for the closure to return.
  public func join() {
    let thread = identifier.withLock { stored in
      let taken = stored
      stored = nil
      return taken
    }
    if let thread { pthread_join(thread, nil) }
  }
}

private final class ThreadBody: Sendable {
  let body: @Sendable () -> Void
  init(body: @escaping @Sendable () -> Void) { self.body = body }
}

private func runThreadBody(_ argument: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
  // SAFETY: the argument is the box that `LoopThread` retained for this one call.
  let box = Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue()
  box.body()
  return nil
}
