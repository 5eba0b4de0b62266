/// One chunk of a response body: raw memory of a fixed capacity that one owner fills and many read.
///
/// The owner appends; whoever reads is told a count that was published under a lock (the fill's),
/// and bytes below that count never change again. Handed to the store once it is full or last.
public final class BodyChunk: @unchecked Sendable {
  // @unchecked Sendable: bytes below a published count are immutable, and `count` is written by the
  // owning loop only, before it publishes.
  public let capacity: Int
  public let base: UnsafeMutableRawPointer
  public private(set) var count = 0

  public init(capacity: Int) {
    self.capacity = capacity
    base = .allocate(byteCount: capacity, alignment: 16)
  }

  deinit { base.deallocate() }

  /// Appends as much as fits and returns how many bytes that was.
  public func append(_ bytes: UnsafeRawBufferPointer) -> Int {
    let taken = min(bytes.count, capacity - count)
    guard taken > 0, let source = bytes.baseAddress else { return 0 }
    // SAFETY: `taken` bytes fit behind `count`, and the source outlives the call.
    base.advanced(by: count).copyMemory(from: source, byteCount: taken)
    count += taken
    return taken
  }

  public var isFull: Bool { count == capacity }
  /// The first bytes, up to a count that was published.
  public func bytes(upTo published: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: base, count: published)
  }
  public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }
}
