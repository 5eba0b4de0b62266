internal import Backends
internal import CachePolicy
internal import Synchronization

/// What all loops of the process share, whatever the configuration. Safe from any thread.
final class Services: Sendable {
  let store: LMDBStore
  /// Of a body in the store and in memory.
  let chunkBytes: Int
  let fillTable: FillTable
  let refreshFailures: RefreshFailures
  let upstreamGates = UpstreamGates()
  let counterSlots = CounterSlots()
  let clock: Clock
  let log: Log
  let failures: FailureLog
  /// Counts the purges of the process, each before it reaches the store.
  let purgeCount = Atomic<Int>(0)

  init(store: LMDBStore, chunkBytes: Int, limits: Limits, clock: Clock, log: Log) {
    self.store = store
    self.chunkBytes = chunkBytes
    self.clock = clock
    self.log = log
    failures = FailureLog(log)
    fillTable = FillTable(limits: limits)
    refreshFailures = RefreshFailures(limits: limits)
  }

  /// The keyed hash (HMAC) that takes the place of identities and other credentials in keys.
  func digest(_ bytes: Span<UInt8>) -> [UInt8] {
    var digest: [UInt8] = []
    // SAFETY: the span outlives the call.
    bytes.withUnsafeBytes { store.identityDigest($0).append(to: &digest) }
    return digest
  }
}
