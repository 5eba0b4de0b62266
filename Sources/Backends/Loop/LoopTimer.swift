internal import CUV
internal import CachePolicy

/// A timer of an event loop: fires once or repeatedly, and can be cancelled at any time before.
public final class LoopTimer {
  private let handle: UnsafeMutablePointer<uv_timer_t>
  private var work: (() -> Void)?
  private var isClosed = false
  private let repeats: Bool

  /// Starts at once. `repeatMilliseconds` 0 fires once; the timer then closes itself.
  @discardableResult
  public init(
    loop: EventLoop, afterMilliseconds delay: Int64, repeatMilliseconds: Int64 = 0,
    _ work: @escaping () -> Void
  ) {
    handle = .allocate(capacity: 1)
    self.work = work
    repeats = repeatMilliseconds > 0
    uv_timer_init(loop.handle, handle)
    // The handle holds a reference until it is closed, so that a firing timer is always alive.
    handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
    uv_timer_start(
      handle,
      { handle in
        // SAFETY: `data` is the timer that retained itself at its start.
        let timer = Unmanaged<LoopTimer>.fromOpaque(handle!.pointee.data).takeUnretainedValue()
        timer.fire()
      }, UInt64(max(0, delay)), UInt64(max(0, repeatMilliseconds)))
  }

  private func fire() {
    let work = self.work
    if !repeats { cancel() }
    work?()
  }

  /// Stops the timer and lets go of its closure. Harmless when it has fired.
  public func cancel() {
    guard !isClosed else { return }
    isClosed = true
    work = nil
    // SAFETY: a uv_timer_t begins with the fields of a uv_handle_t.
    handle.withMemoryRebound(to: uv_handle_t.self, capacity: 1) { handle in
      uv_close(handle) { handle in
        let data = handle!.pointee.data!
        Unmanaged<LoopTimer>.fromOpaque(data).release()
        UnsafeMutableRawPointer(handle!).deallocate()
      }
    }
  }
}
