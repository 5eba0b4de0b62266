internal import CUV
internal import CachePolicy

/// Watches a descriptor that somebody else owns for readiness; used for libcurl's sockets and for
/// listening sockets.
public final class SocketWatcher {
  public struct Readiness: OptionSet, Sendable {
    public let rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
    public static let readable = Readiness(rawValue: 1)
    public static let writable = Readiness(rawValue: 2)
  }

  public let descriptor: Int32
  private let handle: UnsafeMutablePointer<uv_poll_t>
  private var work: ((Readiness, _ failed: Bool) -> Void)?
  /// What is watched for now.
  public private(set) var active: Readiness = []
  private var isClosed = false
  /// libuv has stopped the watch over an error, and nobody has said yet what is wanted now.
  private var isInterrupted = false

  public init(
    loop: EventLoop, descriptor: Int32,
    _ work: @escaping (_ ready: Readiness, _ failed: Bool) -> Void
  ) {
    self.descriptor = descriptor
    self.work = work
    handle = .allocate(capacity: 1)
    let status = uv_poll_init(loop.handle, handle, descriptor)
    invariant(status == 0, "a socket can be watched")
    handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
  }

  /// Sets what is watched for. Setting the same again costs nothing: libuv would take the
  /// descriptor out of the kernel's set and put it back.
  public func watch(_ readiness: Readiness) {
    guard !isClosed, isInterrupted || readiness != active else { return }
    isInterrupted = false
    active = readiness
    if readiness.isEmpty {
      uv_poll_stop(handle)
      return
    }
    uv_poll_start(handle, readiness.rawValue) { handle, status, events in
      // SAFETY: `data` is the watcher that retained itself until it is closed.
      let watcher = Unmanaged<SocketWatcher>.fromOpaque(handle!.pointee.data).takeUnretainedValue()
      if status < 0 {
        watcher.socketFailed()
      } else {
        watcher.work?(Readiness(rawValue: events & 3), false)
      }
    }
  }

  /// libuv stops watching a socket that has an error, and hides whether there is something to read.
  /// There may be: what the peer sent before its reset is still to be had. So the watch goes on
  /// until whoever reads has come to the error and closes, or asks for something else.
  private func socketFailed() {
    isInterrupted = true
    work?(active, true)
    if isInterrupted { watch(active) }
  }

  /// Stops watching. The descriptor may be closed as soon as this returns.
  public func close() {
    guard !isClosed else { return }
    isClosed = true
    work = nil
    uv_poll_stop(handle)
    // SAFETY: a uv_poll_t begins with the fields of a uv_handle_t.
    handle.withMemoryRebound(to: uv_handle_t.self, capacity: 1) { handle in
      uv_close(handle) { handle in
        let data = handle!.pointee.data!
        Unmanaged<SocketWatcher>.fromOpaque(data).release()
        UnsafeMutableRawPointer(handle!).deallocate()
      }
    }
  }
}
