/// The store's size, changed while it is in use.
///
/// A smaller one is reached by evicting in the background, in the map as it is. A larger one may
/// need a longer map: the writer maps the file anew in a moment in which no reader is within a
/// turn, and tries again later where there is none. Called when policies.json is read again.
internal import Synchronization

extension LMDBStore {
  /// Changes the bytes in use above which entries are evicted, at least 256 KiB; what depends on
  /// it (the longest body, the bytes of one transaction) follows. `configuration` keeps what it was
  /// opened with; `statistics().maxBytes` tells the size of now. Returns at once.
  public func resize(maxSizeBytes: UInt64) {
    storeInvariant(
      maxSizeBytes >= StoreConfiguration.maxSizeBytesMin, "maxSizeBytes is at least 256 KiB")
    shared.maxSizeBytes.store(maxSizeBytes, ordering: .sequentiallyConsistent)
    queue.resize(
      batchBytesMax: StoreConfiguration.transactionBytesMax(maxSizeBytes: maxSizeBytes))
  }
}
