/// A growing run of raw bytes in which an answer's head is put together.
///
/// Owned by one loop and used again for every answer, so that a hit allocates nothing.
final class OutputBuffer {
  private var base: UnsafeMutableRawPointer
  private var capacity: Int
  private(set) var count = 0

  init(capacity: Int = 16 * 1024) {
    self.capacity = capacity
    base = .allocate(byteCount: capacity, alignment: 16)
  }

  deinit { base.deallocate() }

  /// What was appended since the last `removeAll`; valid until the next call that changes it.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

  func removeAll() { count = 0 }

  @inline(__always)
  private func reserve(_ extra: Int) {
    if count + extra > capacity { grow(by: extra) }
  }

  private func grow(by extra: Int) {
    var larger = capacity * 2
    while larger < count + extra { larger *= 2 }
    let grown = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
    // SAFETY: `count` bytes are initialized in the old memory and fit into the new.
    grown.copyMemory(from: base, byteCount: count)
    base.deallocate()
    base = grown
    capacity = larger
  }

  @inline(__always)
  func append(_ text: StaticString) {
    append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress, bytes.count > 0 else { return }
    reserve(bytes.count)
    // SAFETY: `reserve` made room, and the source is not this buffer's own memory.
    base.advanced(by: count).copyMemory(from: source, byteCount: bytes.count)
    count += bytes.count
  }

  func append(_ bytes: ArraySlice<UInt8>) { bytes.withUnsafeBytes { append($0) } }
  func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }

  /// Literals are `StaticString`s, which cost a copy and nothing else.
  @_disfavoredOverload
  func append(_ text: String) {
    var text = text
    text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
  }

  func append(byte: UInt8) {
    reserve(1)
    base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
    count += 1
  }

  /// A number in decimal, with its sign when negative.
  func append(decimal value: Int64) {
    if value < 0 {
      append(byte: 0x2D)
    }
    append(decimal: value.magnitude)
  }

  func append(decimal value: UInt64) {
    if value >= 100_000_000 {
      append(decimal: value / 100_000_000)
      append(digits: OutputBuffer.eightDigits(value % 100_000_000), count: 8)
    } else {
      let digits = OutputBuffer.eightDigits(value)
      let count = max(1, 8 &- digits.trailingZeroBitCount / 8)
      append(digits: digits &>> UInt64(8 &* (8 &- count)), count: count)
    }
  }

  /// The digits of a number below 100,000,000, the first one in the lowest byte: split into halves
  /// twice and then once more, in all parts of a word at once.
  private static func eightDigits(_ value: UInt64) -> UInt64 {
    let fours = value / 10_000 | (value % 10_000) &<< 32
    // Each division is a multiplication that is exact in its range.
    let hundreds = ((fours &* 10_486) &>> 20) & 0x0000_007F_0000_007F
    let twos = hundreds | (fours &- hundreds &* 100) &<< 16
    let tens = ((twos &* 103) &>> 10) & 0x000F_000F_000F_000F
    return tens | (twos &- tens &* 10) &<< 8
  }

  /// Up to eight digits by one store, the first one in the lowest byte.
  private func append(digits: UInt64, count digitCount: Int) {
    reserve(8)
    let text = digits | 0x3030_3030_3030_3030
    // SAFETY: `reserve` made room for all eight bytes, of which those count that are digits.
    base.storeBytes(of: text.littleEndian, toByteOffset: count, as: UInt64.self)
    count += digitCount
  }

  func append(hexadecimal value: Int) {
    append(String(value, radix: 16))
  }
}
