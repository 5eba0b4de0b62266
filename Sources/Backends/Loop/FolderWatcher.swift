internal import CUV
internal import CachePolicy

/// Tells when something in a folder changes: a file written, made, renamed or removed.
///
/// A folder, not a file: editors and deployments put a new file in the place of the old one, and a
/// watch on the file would go with the old one. It says that there may be a change, not which: who
/// hears it looks. Network file systems may tell nothing. Used on its loop alone.
public final class FolderWatcher {
  private let handle: UnsafeMutablePointer<uv_fs_event_t>
  private var work: (() -> Void)?
  private var isClosed = false

  /// nil where the folder cannot be watched: it is not there, or the system allows no more watches.
  public init?(loop: EventLoop, folder: String, _ work: @escaping () -> Void) {
    handle = .allocate(capacity: 1)
    uv_fs_event_init(loop.handle, handle)
    // The handle holds a reference until it is closed, so that a watch that tells is always alive.
    handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
    self.work = work
    let status = uv_fs_event_start(
      handle,
      { handle, _, _, _ in
        // SAFETY: `data` is the watcher that retained itself until it is closed.
        let watcher = Unmanaged<FolderWatcher>.fromOpaque(handle!.pointee.data)
          .takeUnretainedValue()
        watcher.work?()
      }, folder, 0)
    if status != 0 {
      close()
      return nil
    }
  }

  public func close() {
    guard !isClosed else { return }
    isClosed = true
    work = nil
    // SAFETY: a uv_fs_event_t begins with the fields of a uv_handle_t.
    handle.withMemoryRebound(to: uv_handle_t.self, capacity: 1) { handle in
      uv_close(handle) { handle in
        let data = handle!.pointee.data!
        Unmanaged<FolderWatcher>.fromOpaque(data).release()
        UnsafeMutableRawPointer(handle!).deallocate()
      }
    }
  }
}
