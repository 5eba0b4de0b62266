internal import Backends
internal import CachePolicy

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Watches a file by its folder, and orders a look at it once the folder has been quiet.
///
/// Editors write a new file and rename it, deployments swing a symbolic link: so the folder of the
/// path and the folder of what the path leads to are both watched, and what counts is whether the
/// file reads differently, which `changed` finds out. Lives on one loop.
final class FileChanges {
  /// How long the folder must be quiet, so that a file is not read while it is being written.
  static let quietMilliseconds: Int64 = 100
  /// Folders that never are quiet: a look is due after this long all the same.
  static let patienceMilliseconds: UInt64 = 1000

  private let path: String
  private let loop: EventLoop
  private let changed: () -> Void
  private var watchers: [String: FolderWatcher] = [:]
  private var timer: LoopTimer?
  private var firstStirMilliseconds: UInt64?

  init(path: String, loop: EventLoop, _ changed: @escaping () -> Void) {
    self.path = path
    self.loop = loop
    self.changed = changed
    watch()
  }

  /// Watches where the path leads now.
  private func watch() {
    let folders = Set([path, resolved].compactMap { $0 }.map(FileChanges.folder))
    for (folder, watcher) in watchers where !folders.contains(folder) {
      watcher.close()
      watchers[folder] = nil
    }
    for folder in folders where watchers[folder] == nil {
      watchers[folder] = FolderWatcher(loop: loop, folder: folder) { [unowned self] in stirred() }
    }
  }

  /// The path without symbolic links; nil where it leads nowhere.
  private var resolved: String? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return String(cString: found)
  }

  private static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  private func stirred() {
    let now = loop.monotonicMilliseconds
    let first = firstStirMilliseconds ?? now
    firstStirMilliseconds = first
    timer?.cancel()
    let isOverdue = now - first >= FileChanges.patienceMilliseconds
    timer = LoopTimer(
      loop: loop, afterMilliseconds: isOverdue ? 0 : FileChanges.quietMilliseconds
    ) { [unowned self] in
      firstStirMilliseconds = nil
      timer = nil
      watch()
      changed()
    }
  }

  func close() {
    timer?.cancel()
    for watcher in watchers.values { watcher.close() }
    watchers = [:]
  }
}
