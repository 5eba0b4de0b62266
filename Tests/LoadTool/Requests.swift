/// The requests of a load, ready to be sent: one, or one of many by chance.
///
/// Owns their bytes for as long as the process runs.
struct Requests {
  private let bytes: UnsafeMutableRawBufferPointer
  private let ranges: [Range<Int>]
  private var state: UInt64 = 0x9e37_79b9_7f4a_7c15

  /// `--keys N`: for `prefix`0 to `prefix`(N − 1); otherwise for the path.
  init(_ options: Options) {
    var targets = [options.path]
    if options.keyCount > 0 { targets = (0..<options.keyCount).map { "\(options.prefix)\($0)" } }
    var text: [UInt8] = []
    var ranges: [Range<Int>] = []
    let field = options.field.map { "\($0)\r\n" } ?? ""
    for target in targets {
      let start = text.count
      let head = "GET \(target) HTTP/1.1\r\nHost: \(options.authority)\r\n\(field)\r\n"
      text.append(contentsOf: head.utf8)
      ranges.append(start..<text.count)
    }
    self.ranges = ranges
    bytes = .allocate(byteCount: text.count, alignment: 16)
    bytes.copyBytes(from: text)
  }

  /// By xorshift, of the same seed each time.
  mutating func next() -> UnsafeRawBufferPointer {
    var index = 0
    if ranges.count > 1 {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      index = Int(truncatingIfNeeded: state >> 32) % ranges.count
    }
    return UnsafeRawBufferPointer(rebasing: bytes[ranges[index]])
  }
}
