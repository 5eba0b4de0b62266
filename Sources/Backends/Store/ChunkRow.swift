/// A body chunk's row in the store, and what rows cost in pages.
///
/// The row is a checksum, bound to the entry and the chunk's number, and the bytes. Written by
/// EntryTransaction, read in place by StoreReader.

/// A chunk's row: its checksum, then its bytes.
enum ChunkRow {
  static let headerBytes = 8

  static func write(
    _ body: UnsafeRawBufferPointer, _ key: ChunkKey, into row: UnsafeMutableRawBufferPointer
  ) {
    let checksum = StoreChecksum.ofChunk(body, entryID: key.entryID, index: key.index)
    // SAFETY: the row was reserved with the header's bytes and the body's.
    row.storeBytes(of: checksum.littleEndian, as: UInt64.self)
    UnsafeMutableRawBufferPointer(rebasing: row[headerBytes...]).copyMemory(from: body)
  }

  static func storedChecksum(_ row: UnsafeRawBufferPointer) -> UInt64? {
    guard row.count >= headerBytes else { return nil }
    return UInt64(littleEndian: row.loadUnaligned(as: UInt64.self))
  }

  /// The bytes, if they are those that were written.
  static func body(_ row: UnsafeRawBufferPointer, _ key: ChunkKey) -> UnsafeRawBufferPointer? {
    guard let stored = storedChecksum(row) else { return nil }
    let body = UnsafeRawBufferPointer(rebasing: row[headerBytes...])
    let computed = StoreChecksum.ofChunk(body, entryID: key.entryID, index: key.index)
    return computed == stored ? body : nil
  }
}

/// What rows cost in pages: estimates, for making room before a write.
enum StoreSizes {
  private static let pageBytes = 4096

  static func recordBytes(_ count: Int, tagCount: Int) -> UInt64 {
    // Longer values have pages of their own; shorter ones share, and pages are not quite full. The
    // other rows of an entry are some 200 bytes, and a tag's some 40.
    let shared = count > 1900 ? wholePages(count) : count * 3 / 2
    return UInt64(shared + 300 + 60 * tagCount)
  }

  static func chunkBytes(_ count: Int) -> UInt64 {
    UInt64(wholePages(count + ChunkRow.headerBytes) + 64)
  }

  private static func wholePages(_ count: Int) -> Int {
    (count + 16 + pageBytes - 1) / pageBytes * pageBytes
  }
}
