/// A hash table from (parent, bytes) to a number, looked up by a span without allocation.
///
/// Open addressing with linear probing, at most half full, one pool for all keys. Its content comes
/// from policies.json and is fixed once built, so nobody outside can make keys collide. Used by
/// `RouteTable` alone: for a node's literal children, and for host names.
struct ByteTable: Sendable {
  private struct Entry {
    var hash: UInt64
    var parent: UInt32
    var bytes: Range<Int>
    var value: Int32
  }
  private var entries: [Entry] = []
  /// Index into `entries`, or -1; its count is a power of two.
  private var slots: [Int32] = [-1, -1, -1, -1]
  private var pool: [UInt8] = []

  // FNV-1a, 64 bits.
  static func seed(parent: UInt32) -> UInt64 {
    (0xCBF2_9CE4_8422_2325 ^ UInt64(parent)) &* 0x0000_0100_0000_01B3
  }

  @inline(__always)
  static func mix(_ hash: UInt64, _ byte: UInt8) -> UInt64 {
    (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
  }

  func value(parent: UInt32, _ bytes: Span<UInt8>, _ range: Range<Int>) -> Int32? {
    var hash = Self.seed(parent: parent)
    for index in range { hash = Self.mix(hash, bytes[index]) }
    return value(parent: parent, hash: hash, bytes, range, lowercase: false)
  }

  /// The value under bytes whose hash the caller has counted already, from either end.
  func value(
    parent: UInt32, hash: UInt64, _ bytes: Span<UInt8>, _ range: Range<Int>, lowercase: Bool
  ) -> Int32? {
    var slot = firstSlot(hash)
    while slots[slot] >= 0 {
      let entry = entries[Int(slots[slot])]
      if entry.hash == hash, entry.parent == parent, entry.bytes.count == range.count {
        var offset = 0
        while offset < range.count {
          let byte = bytes[range.lowerBound + offset]
          guard
            pool[entry.bytes.lowerBound + offset]
              == (lowercase ? RoutePattern.asciiLowercased(byte) : byte)
          else { break }
          offset += 1
        }
        if offset == range.count { return entry.value }
      }
      slot = (slot + 1) & (slots.count - 1)
    }
    return nil
  }

  /// Sets a value under bytes that are hashed from first to last.
  mutating func set(_ value: Int32, parent: UInt32, _ bytes: [UInt8]) {
    let hash = bytes.reduce(Self.seed(parent: parent)) { Self.mix($0, $1) }
    set(value, parent: parent, hash: hash, bytes)
  }

  /// Sets a value under bytes that are hashed from last to first.
  mutating func set(_ value: Int32, parent: UInt32, reversed bytes: [UInt8]) {
    set(value, parent: parent, hash: Self.hash(parent: parent, reversed: bytes), bytes)
  }

  func value(parent: UInt32, reversed bytes: [UInt8]) -> Int32? {
    value(
      parent: parent, hash: Self.hash(parent: parent, reversed: bytes), bytes.span,
      0..<bytes.count, lowercase: false)
  }

  private static func hash(parent: UInt32, reversed bytes: [UInt8]) -> UInt64 {
    bytes.reversed().reduce(seed(parent: parent)) { mix($0, $1) }
  }

  private mutating func set(_ value: Int32, parent: UInt32, hash: UInt64, _ bytes: [UInt8]) {
    var slot = firstSlot(hash)
    while slots[slot] >= 0 {
      let entry = entries[Int(slots[slot])]
      if entry.hash == hash, entry.parent == parent, pool[entry.bytes].elementsEqual(bytes) {
        entries[Int(slots[slot])].value = value
        return
      }
      slot = (slot + 1) & (slots.count - 1)
    }
    let start = pool.count
    pool += bytes
    entries.append(
      Entry(hash: hash, parent: parent, bytes: start..<pool.count, value: value))
    if entries.count * 2 > slots.count {
      rebuild(slotCount: slots.count * 2)
    } else {
      slots[slot] = Int32(entries.count - 1)
    }
  }

  private mutating func rebuild(slotCount: Int) {
    slots = [Int32](repeating: -1, count: slotCount)
    for index in entries.indices {
      var slot = firstSlot(entries[index].hash)
      while slots[slot] >= 0 { slot = (slot + 1) & (slots.count - 1) }
      slots[slot] = Int32(index)
    }
  }

  private func firstSlot(_ hash: UInt64) -> Int {
    Int(truncatingIfNeeded: hash ^ (hash >> 32)) & (slots.count - 1)
  }
}
