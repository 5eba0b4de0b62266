/// Where the records of keys lie that a reader looked up lately: one look instead of a walk down the
/// tree, for as long as nothing is committed.
///
/// What is here holds within one snapshot alone, which its number names: in LMDB nothing that a
/// snapshot shows changes its place or its bytes while that snapshot is the newest, whether or not
/// somebody has it open meanwhile. Only keys with a single record are taken in. A key may lie in
/// either of two places, and where both are taken, a newcomer gets the one that its hash names; pages
/// are touched as they are needed. Owned by StoreReader, which compares the whole key and looks at purges all the same.
internal import CachePolicy

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

final class FoundRecords {
  private struct Place {
    var key: StoreKey
    /// 0: the place is empty.
    var snapshotNumber: UInt64
    var record: RecordView?
  }

  private static let count = 16 * 1024
  private let places: UnsafeMutablePointer<Place>

  init() {
    let bytes = Self.count * MemoryLayout<Place>.stride
    let mapped = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0)
    guard let mapped, mapped != MAP_FAILED else {
      fatalError("store: no memory for the found records")
    }
    // SAFETY: the kernel's pages are zero, which is an empty place, and there is room for `count`.
    places = mapped.bindMemory(to: Place.self, capacity: Self.count)
  }

  deinit { munmap(places, Self.count * MemoryLayout<Place>.stride) }

  /// The key's only record, where it was found in this snapshot.
  @inline(__always)
  func record(_ key: StoreKey, snapshotNumber: UInt64) -> RecordView? {
    let index = index(key)
    return record(key, snapshotNumber, at: index) ?? record(key, snapshotNumber, at: index ^ 1)
  }

  @inline(__always)
  private func record(_ key: StoreKey, _ snapshotNumber: UInt64, at index: Int) -> RecordView? {
    let place = places + index
    let isIt = place.pointee.key == key && place.pointee.snapshotNumber == snapshotNumber
    return isIt ? place.pointee.record : nil
  }

  func put(_ record: RecordView, _ key: StoreKey, snapshotNumber: UInt64) {
    let index = index(key)
    let isOtherFree =
      places[index].snapshotNumber == snapshotNumber
      && places[index ^ 1].snapshotNumber != snapshotNumber
    places[isOtherFree ? index ^ 1 : index] = Place(
      key: key, snapshotNumber: snapshotNumber, record: record)
  }

  // SAFETY: smaller than `count`, which is a power of two.
  @inline(__always)
  private func index(_ key: StoreKey) -> Int {
    Int(truncatingIfNeeded: key.low) & (Self.count - 1)
  }
}
