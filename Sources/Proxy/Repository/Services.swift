internal import Backends
internal import CachePolicy

/// What all loops of the process share, whatever the configuration. Safe from any thread.
final class Services: Sendable {
  let store: LMDBStore
  /// Of a body in the store and in memory.
  let chunkBytes: Int
  let fillTable: FillTable
  let counterSlots = CounterSlots()
  let clock: Clock
  let log: Log

  init(store: LMDBStore, chunkBytes: Int, limits: Limits, clock: Clock, log: Log) {
    self.store = store
    self.chunkBytes = chunkBytes
    self.clock = clock
    self.log = log
    fillTable = FillTable(limits: limits)
  }

  /// The keyed hash that takes the place of credentials in keys.
  func digest(_ bytes: Span<UInt8>) -> [UInt8] {
    var copy: [UInt8] = []
    for index in bytes.indices { copy.append(bytes[index]) }
    let hash = copy.withUnsafeBytes { StoreKeyHash.hash(store.keySecret, $0) }
    return withUnsafeBytes(of: hash.high.littleEndian) { Array($0) }
      + withUnsafeBytes(of: hash.low.littleEndian) { Array($0) }
  }
}
