internal import Backends
internal import CachePolicy

/// What an origin's answer says of itself, and whether it may be stored on a route by its words.
///
/// One way for the fill, for `explain` and for the tests in policies.json. It says nothing of the
/// body, nor of what else happens meanwhile.
struct AnswerWords {
  let directives: ResponseDirectives
  let metadata: StoredMetadata
  /// nil: it varies by what no request shows.
  let varyBlock: [UInt8]?
  /// The route's and the origin's; nil: they cannot all be kept.
  let tags: [[UInt8]]?
  /// nil: it may be stored.
  let notStored: NotStoredReason?

  /// `request`: the fields that the origin gets. `ownTags`: the route's, for the request's path.
  /// `selectingBlock` makes the Vary block of the answer to that request, or of one whose Vary is
  /// ignored.
  init(
    status: UInt16, _ fields: Fields, on route: RouteContext, method: Method, request: Fields,
    requestDirectives: RequestDirectives, ownTags: [[UInt8]]?, requestTimeMilliseconds: Int64,
    responseTimeMilliseconds: Int64,
    selectingBlock: (_ response: Fields, _ ignoresVary: Bool) -> [UInt8]?
  ) {
    directives = ResponseDirectives(fields, targeted: route.targetedCacheControl)
    metadata = Freshness.originWords(
      status: status, fields, directives, requestTimeMilliseconds: requestTimeMilliseconds,
      responseTimeMilliseconds: responseTimeMilliseconds)
    let ignoresVary = route.policy.ignoreOrigin.contains(.vary)
    varyBlock =
      !ignoresVary && OriginRequestBuilder.variesByAddress(fields)
      ? nil
      : selectingBlock(fields, ignoresVary)
    tags = CopyTags.adding(originTagsOf: fields, to: ownTags)
    let refused = Storability.decide(
      method: method, request: request, requestDirectives: requestDirectives, status: status,
      response: fields, responseDirectives: directives, policy: route.policy, metadata: metadata,
      identity: route.keyedIdentity)
    notStored =
      refused ?? (varyBlock == nil ? .varyAny : nil) ?? (tags == nil ? .unusableTags : nil)
  }
}
