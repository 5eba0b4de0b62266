internal import Backends
internal import CachePolicy

/// Makes records out of heads: what the store keeps beside a body, and until when it is of use.
enum RecordWriter {
  static func make(
    metadata: StoredMetadata, route: RouteContext, wholeKey: [UInt8], varyBlock: [UInt8],
    tags: [[UInt8]], fields: Fields, encodedHead: [UInt8], inlineBody: [UnsafeRawBufferPointer]?,
    chunkCount: UInt32, begunID: UInt64? = nil
  ) -> RecordBuffer {
    let entityTag = fields.first(.eTag) ?? []
    let lastModified = fields.first(.lastModified) ?? []
    return wholeKey.withUnsafeBytes { wholeKey in
      varyBlock.withUnsafeBytes { varyBytes in
        encodedHead.withUnsafeBytes { head in
          entityTag.withUnsafeBytes { entityTag in
            lastModified.withUnsafeBytes { lastModified in
              RecordBuffer.make(
                metadata: metadata, routeID: route.identifier, wholeKey: wholeKey,
                varyBlock: varyBytes, variantHash: Vary.variantHash(varyBlock.span), head: head,
                entityTag: entityTag, lastModified: lastModified, tags: tags,
                evictAfterMilliseconds: usefulUntil(metadata, route.policy),
                keepUntilMilliseconds: route.policy.keepMilliseconds.map {
                  metadata.responseTimeMilliseconds + $0
                },
                inlineBody: inlineBody, chunkCount: chunkCount, begunID: begunID)
            }
          }
        }
      }
    }
  }

  /// When the copy's last window ends by the policy of now, in wall clock milliseconds: from then
  /// on it goes first when space is needed.
  private static func usefulUntil(_ metadata: StoredMetadata, _ policy: Policy) -> Int64 {
    let state = Freshness.copyState(
      of: metadata, policy: policy, request: RequestDirectives(),
      nowMilliseconds: metadata.responseTimeMilliseconds)
    let whileRevalidate =
      policy.staleWhileRevalidateMilliseconds ?? metadata.originStaleWhileRevalidateMilliseconds
    let ifError = policy.staleIfErrorMilliseconds ?? metadata.originStaleIfErrorMilliseconds
    return metadata.responseTimeMilliseconds + max(0, state.timeToLiveMilliseconds)
      + max(whileRevalidate, ifError, 0)
  }
}
