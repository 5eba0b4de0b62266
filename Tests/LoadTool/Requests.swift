/// The requests of a load, ready to be sent: one, or one of many by chance.
///
/// Owns their bytes for as long as the process runs.
struct Requests {
  private let bytes: UnsafeMutableRawBufferPointer
  /// Up to here it is the same for all keys.
  private let prefixBytes: Int
  private let suffix: [UInt8]
  private let keyCount: UInt64
  private let digitsMin: Int
  private var state: UInt64 = 0x9e37_79b9_7f4a_7c15

  /// `--keys N`: for `prefix`0 to `prefix`(N − 1); otherwise for the path.
  init(_ options: Options) {
    keyCount = UInt64(options.keyCount)
    digitsMin = options.digitsMin
    let target = keyCount > 0 ? options.prefix : options.path
    let field = options.field.map { "\($0)\r\n" } ?? ""
    let beginning = Array("GET \(target)".utf8)
    suffix = Array(" HTTP/1.1\r\nHost: \(options.authority)\r\n\(field)\r\n".utf8)
    prefixBytes = beginning.count
    bytes = .allocate(byteCount: beginning.count + 20 + suffix.count, alignment: 16)
    bytes.copyBytes(from: beginning + suffix)
  }

  /// Valid until the next call. Keys are by xorshift, of the same seed each time.
  mutating func next() -> UnsafeRawBufferPointer {
    var count = prefixBytes
    if keyCount > 0 {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      count = append(decimal: (state >> 32) % keyCount, at: count)
      UnsafeMutableRawBufferPointer(rebasing: bytes[count...]).copyBytes(from: suffix)
    }
    return UnsafeRawBufferPointer(rebasing: bytes[..<(count + suffix.count)])
  }

  private func append(decimal number: UInt64, at position: Int) -> Int {
    var digits = 1
    var rest = number / 10
    while rest > 0 {
      digits += 1
      rest /= 10
    }
    digits = max(digits, digitsMin)
    rest = number
    for index in (position..<position + digits).reversed() {
      bytes[index] = UInt8(0x30 + rest % 10)
      rest /= 10
    }
    return position + digits
  }
}
