internal import Backends
internal import CachePolicy

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Watches a file by its folder, and orders a look at it once the folder has been quiet.
///
/// Editors write a new file and rename it, deployments swing a symbolic link, of the file or of a
/// folder on the way to it: so the folders of the file, of every link on the way and of what it leads
/// to are watched, and what counts is whether the file reads differently, which `changed` finds out.
/// Lives on one loop.
final class FileChanges {
  /// How long the folder must be quiet, so that a file is not read while it is being written.
  static let quietMilliseconds: Int64 = 100
  /// Folders that never are quiet: a look is due after this long all the same.
  static let patienceMilliseconds: UInt64 = 1000

  private let path: String
  private let loop: EventLoop
  private let changed: () -> Void
  private var watchers: [FolderWatcher] = []
  private var timer: LoopTimer?
  private var firstStirMilliseconds: UInt64?

  init(path: String, loop: EventLoop, _ changed: @escaping () -> Void) {
    self.path = path
    self.loop = loop
    self.changed = changed
    watch()
  }

  /// Watches where the path leads now. Anew each time: a name may stand for another folder by now.
  private func watch() {
    for watcher in watchers { watcher.close() }
    var folders: Set<String> = []
    collectFolders(of: path, into: &folders, linksLeft: FileChanges.linksMax)
    watchers = folders.compactMap { folder in
      FolderWatcher(loop: loop, folder: folder) { [unowned self] in stirred() }
    }
  }

  /// More links than these are not followed, by the system neither.
  private static let linksMax = 40

  /// The folder of the file, and of each link on the way there, and the same of what links lead to.
  private func collectFolders(of path: String, into folders: inout Set<String>, linksLeft: Int) {
    folders.insert(FileChanges.folder(of: path))
    guard linksLeft > 0 else { return }
    var end = path.startIndex
    while end < path.endIndex {
      end = path[end...].dropFirst().firstIndex(of: "/") ?? path.endIndex
      let prefix = String(path[..<end])
      guard let target = FileChanges.link(at: prefix) else { continue }
      folders.insert(FileChanges.folder(of: prefix))
      let folder = FileChanges.folder(of: prefix)
      let whole = target.hasPrefix("/") ? target : "\(folder)/\(target)"
      collectFolders(of: whole + path[end...], into: &folders, linksLeft: linksLeft - 1)
      return
    }
  }

  /// What a symbolic link holds; nil: it is none.
  private static func link(at path: String) -> String? {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink(path, &buffer, buffer.count)
    guard count > 0 else { return nil }
    return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
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
    for watcher in watchers { watcher.close() }
    watchers = []
  }
}
