/// A 64-bit checksum over stored bytes: tells damage from what was written, nothing more.
///
/// Two lanes of multiply-and-fold over 16 bytes each, so that a 64 KiB chunk costs a few
/// microseconds. Not a hash against an adversary: whoever can write the file can forge it. The
/// seed binds the bytes to their place. Written by RecordCodec and the writer, checked by readers.
enum StoreChecksum {
  private static let mixer0: UInt64 = 0x9e37_79b9_7f4a_7c15
  private static let mixer1: UInt64 = 0xd6e8_feb8_6659_fd93
  private static let mixer2: UInt64 = 0xa076_1d64_78bd_642f

  @inline(__always)
  private static func folded(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
  }

  @inline(__always)
  private static func word(_ base: UnsafeRawPointer, _ offset: Int) -> UInt64 {
    UInt64(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  /// The checksum of a body chunk: bound to its entry and number.
  static func ofChunk(
    _ bytes: UnsafeRawBufferPointer, entryID: UInt64, index: UInt32
  ) -> UInt64 {
    of(bytes, seed: folded(entryID ^ mixer1, UInt64(index) ^ mixer2))
  }

  static func of(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
    var lane0 = seed ^ mixer2
    var lane1 = seed &+ mixer1
    let count = bytes.count
    var offset = 0
    // SAFETY: every load ends at or before `count`; the caller keeps the bytes for the call.
    if let base = bytes.baseAddress {
      while count &- offset >= 32 {
        lane0 = folded(word(base, offset) ^ mixer0, word(base, offset &+ 8) ^ lane0)
        lane1 = folded(word(base, offset &+ 16) ^ mixer1, word(base, offset &+ 24) ^ lane1)
        offset &+= 32
      }
      while count &- offset >= 8 {
        lane0 = folded(word(base, offset) ^ mixer0, lane0 ^ mixer1)
        offset &+= 8
      }
      if offset < count {
        var last: UInt64 = 0
        var shift: UInt64 = 0
        while offset < count {
          last |= UInt64(base.load(fromByteOffset: offset, as: UInt8.self)) << shift
          shift &+= 8
          offset &+= 1
        }
        lane1 = folded(last ^ mixer1, lane1 ^ mixer0)
      }
    }
    return folded(lane0 ^ UInt64(count), lane1 ^ mixer2) ^ lane0
  }
}
