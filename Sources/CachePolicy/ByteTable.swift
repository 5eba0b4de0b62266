/// A hash table from (parent, bytes) to a number, looked up without allocation.
///
/// Open addressing with linear probing, at most half full. A slot holds everything that most
/// look-ups need, the first 16 bytes of the key too, so that a table which outgrew the processor's
/// cache costs one miss a look-up. Its content comes from policies.json and is fixed once built, so
/// nobody outside can make keys collide. Used by `RouteTrie` alone.
struct ByteTable: Sendable {
  /// A key while its bytes are added one by one: a host's from its end, so that one pass meets
  /// every name that the host ends in.
  struct Probe {
    fileprivate var hash: UInt64
    fileprivate var low: UInt64 = 0
    fileprivate var high: UInt64 = 0
    fileprivate var count: UInt32 = 0
    fileprivate let parent: UInt32

    @inline(__always)
    init(parent: UInt32) {
      self.parent = parent
      // FNV-1a, 64 bits.
      hash = (0xCBF2_9CE4_8422_2325 ^ UInt64(parent)) &* 0x0000_0100_0000_01B3
    }

    @inline(__always)
    mutating func add(_ byte: UInt8) {
      hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
      if count < 8 {
        low |= UInt64(byte) &<< UInt64(count &* 8)
      } else if count < 16 {
        high |= UInt64(byte) &<< UInt64((count &- 8) &* 8)
      }
      count &+= 1
    }
  }

  /// In which order a probe got the bytes of its range.
  enum Order {
    case forward
    /// From the last to the first, in lower case.
    case reversedLowercase
    case reversed
  }

  private struct Slot {
    var low: UInt64 = 0
    var high: UInt64 = 0
    var parent: UInt32 = 0
    var count: UInt32 = 0
    /// Where the bytes behind the sixteenth lie in the pool.
    var poolStart: UInt32 = 0
    /// -1: the slot is free.
    var value: Int32 = -1
  }
  /// Their count is a power of two.
  private var slots = [Slot](repeating: Slot(), count: 4)
  private var used = 0
  private var pool: [UInt8] = []

  private static let inlineCount = 16

  // MARK: Looking up

  /// The value under a range's bytes, in their order.
  @inline(__always)
  func value(parent: UInt32, _ bytes: Span<UInt8>, _ range: Range<Int>) -> Int32? {
    var probe = Probe(parent: parent)
    for index in range { probe.add(bytes[index]) }
    return value(probe, bytes, range, .forward)
  }

  /// The value under a probe that was given the range's bytes in this order.
  func value(
    _ probe: Probe, _ bytes: Span<UInt8>, _ range: Range<Int>, _ order: Order
  ) -> Int32? {
    var index = firstSlot(probe.hash)
    while slots[index].value >= 0 {
      if isSame(slots[index], probe), hasTail(slots[index], bytes, range, order) {
        return slots[index].value
      }
      index = (index + 1) & (slots.count - 1)
    }
    return nil
  }

  @inline(__always)
  private func isSame(_ slot: Slot, _ probe: Probe) -> Bool {
    slot.low == probe.low && slot.high == probe.high && slot.parent == probe.parent
      && slot.count == probe.count
  }

  /// Compares what is beyond the bytes in the slot.
  @inline(__always)
  private func hasTail(
    _ slot: Slot, _ bytes: Span<UInt8>, _ range: Range<Int>, _ order: Order
  ) -> Bool {
    guard range.count > Self.inlineCount else { return true }
    for offset in Self.inlineCount..<range.count {
      let byte =
        switch order {
        case .forward: bytes[range.lowerBound + offset]
        case .reversed: bytes[range.upperBound - 1 - offset]
        case .reversedLowercase: ASCII.lowercased(bytes[range.upperBound - 1 - offset])
        }
      if pool[Int(slot.poolStart) + offset - Self.inlineCount] != byte { return false }
    }
    return true
  }

  private func firstSlot(_ hash: UInt64) -> Int {
    Int(truncatingIfNeeded: hash ^ (hash >> 32)) & (slots.count - 1)
  }

  // MARK: Filling

  /// Sets the value under bytes, in the order in which a probe gets them.
  mutating func set(_ value: Int32, parent: UInt32, _ bytes: [UInt8]) {
    if (used + 1) * 2 > slots.count { grow() }
    var probe = Probe(parent: parent)
    for byte in bytes { probe.add(byte) }
    var index = firstSlot(probe.hash)
    while slots[index].value >= 0 {
      if isSame(slots[index], probe),
        hasTail(slots[index], bytes.span, 0..<bytes.count, .forward)
      {
        slots[index].value = value
        return
      }
      index = (index + 1) & (slots.count - 1)
    }
    slots[index] = Slot(
      low: probe.low, high: probe.high, parent: parent, count: probe.count,
      poolStart: UInt32(pool.count), value: value)
    pool += bytes.dropFirst(Self.inlineCount)
    used += 1
  }

  private mutating func grow() {
    let old = slots
    slots = [Slot](repeating: Slot(), count: old.count * 2)
    for slot in old where slot.value >= 0 {
      var index = firstSlot(hash(of: slot))
      while slots[index].value >= 0 { index = (index + 1) & (slots.count - 1) }
      slots[index] = slot
    }
  }

  private func hash(of slot: Slot) -> UInt64 {
    var probe = Probe(parent: slot.parent)
    for index in 0..<Int(slot.count) {
      switch index {
      case ..<8: probe.add(UInt8(truncatingIfNeeded: slot.low >> UInt64(index * 8)))
      case ..<16: probe.add(UInt8(truncatingIfNeeded: slot.high >> UInt64((index - 8) * 8)))
      default: probe.add(pool[Int(slot.poolStart) + index - Self.inlineCount])
      }
    }
    return probe.hash
  }
}
