/// The hash of a whole cache key under a secret of the store's: where its records lie.
///
/// 128 bits are not trusted to be unique: the store compares the whole key when it reads.
public struct StoreKey: Sendable, Hashable {
  public var high: UInt64
  public var low: UInt64

  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// By the half that no two whole keys share but by chance: it is a keyed hash already.
  public func hash(into hasher: inout Hasher) { hasher.combine(low) }
}
