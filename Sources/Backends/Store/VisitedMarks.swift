internal import Synchronization

/// One mark for each entry: was it served since the eviction's hand last came by?
///
/// A byte array indexed by the low bits of the entry's ID, touched lazily by the kernel, so that a
/// hit costs one load. Two entries that share a byte share the mark: the worst that follows is an
/// entry that is kept a little longer. Set by event loops, cleared by the writer.
#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

final class VisitedMarks: @unchecked Sendable {
  // @unchecked Sendable: the pointer is constant and its elements are atomics.
  private let marks: UnsafeMutablePointer<Atomic<UInt8>>
  private static let count = 4 * 1024 * 1024

  init() {
    let anonymous = MAP_PRIVATE | MAP_ANON
    let mapped = mmap(nil, Self.count, PROT_READ | PROT_WRITE, anonymous, -1, 0)
    guard let mapped, mapped != MAP_FAILED else {
      fatalError("store: no memory for the visited marks")
    }
    // SAFETY: the kernel's pages are zero, which is an Atomic<UInt8> of 0, and of this size.
    marks = mapped.bindMemory(to: Atomic<UInt8>.self, capacity: Self.count)
  }

  deinit { munmap(marks, Self.count) }

  @inline(__always)
  func mark(_ entryID: UInt64) {
    let index = Int(truncatingIfNeeded: entryID) & (Self.count - 1)
    // Read first: a hot entry's line stays shared between the cores.
    if marks[index].load(ordering: .relaxed) == 0 {
      marks[index].store(1, ordering: .relaxed)
    }
  }

  /// Clears the mark; true: it was set.
  func clear(_ entryID: UInt64) -> Bool {
    let index = Int(truncatingIfNeeded: entryID) & (Self.count - 1)
    if marks[index].load(ordering: .relaxed) == 0 { return false }
    marks[index].store(0, ordering: .relaxed)
    return true
  }
}
