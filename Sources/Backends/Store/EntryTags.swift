/// The tags of entries: rows by which all entries with a tag are found.
///
/// A row is the tag's keyed hash and the entry, and nothing else: whoever finds one looks at the
/// entry itself. The hashes stand in the entry's order row too, so that the rows go with the entry
/// whatever has become of its record. Used by EntryTransaction alone.
internal import CLMDB

extension EntryTransaction {
  /// The hashes of a record's tags, each once.
  func tagHashes(of record: RecordView) -> [UInt64] {
    var hashes: [UInt64] = []
    for tag in record.tags { hashes.append(StoreKeyHash.tagHash(context.secret, tag)) }
    return hashes.count < 2 ? hashes : Set(hashes).sorted()
  }

  func putTags(_ hashes: [UInt64], _ entryID: UInt64) throws(LMDBError) {
    for hash in hashes {
      try transaction.put(
        tables.tags, TagKey(hash, entryID), UnsafeRawBufferPointer(start: nil, count: 0))
    }
  }

  func deleteTags(_ hashes: [UInt64], _ entryID: UInt64) throws(LMDBError) {
    for hash in hashes { try transaction.delete(tables.tags, TagKey(hash, entryID)) }
  }
}
