/// Keys and records as the repository would write them: what all of StoreStress puts.
import Backends
import CachePolicy

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The whole key of `/key/N`.
func makeWholeKey(_ number: UInt64) -> [UInt8] {
  var key: [UInt8] = []
  for part in ["api", "example.com", "/key/\(number)"] {
    let bytes = Array(part.utf8)
    CacheKey.append(part: bytes.span, to: &key)
  }
  return key
}

func makeKey(_ store: LMDBStore, _ wholeKey: [UInt8]) -> StoreKey {
  let parts = CacheKey.Parts(wholeKey.span)
  guard let parts else { exit(4) }
  return wholeKey.withUnsafeBytes { bytes in
    wholeKey[parts.path].withUnsafeBytes {
      StoreKeyHash.key(store.keySecret, wholeKey: bytes, path: $0)
    }
  }
}

func makeRecord(
  _ entryID: UInt64, _ name: [UInt8], bodyLength: UInt64, inlineBody: [UnsafeRawBufferPointer]?,
  chunkCount: UInt32, evictAfter: Int64 = .max, keepUntil: Int64? = nil, isTagged: Bool = true
) -> RecordBuffer {
  let metadata = StoredMetadata(
    entryID: entryID, status: 200, flags: [], requestTimeMilliseconds: 0,
    responseTimeMilliseconds: 0, initialAgeMilliseconds: 0, originLifetimeMilliseconds: -1,
    originStaleWhileRevalidateMilliseconds: -1, originStaleIfErrorMilliseconds: -1,
    bodyLength: bodyLength)
  let empty = UnsafeRawBufferPointer(start: nil, count: 0)
  return name.withUnsafeBytes { wholeKey in
    RecordBuffer.make(
      metadata: metadata, routeID: entryID % 3, wholeKey: wholeKey, varyBlock: empty,
      variantHash: entryID % 2, head: wholeKey, entityTag: empty, lastModified: empty,
      tags: isTagged ? [Array("tag-\(entryID % 5)".utf8), Array("all".utf8)] : [],
      evictAfterMilliseconds: evictAfter, keepUntilMilliseconds: keepUntil, inlineBody: inlineBody,
      chunkCount: chunkCount)
  }
}
