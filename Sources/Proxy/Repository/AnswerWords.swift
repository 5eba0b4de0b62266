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

  /// `request`: the fields that the origin gets. `selecting`: the same, without credentials.
  /// `ownTags`: the route's, for the request's path.
  init(
    status: UInt16, _ fields: Fields, on route: RouteContext, method: Method, request: Fields,
    selecting: Fields, requestDirectives: RequestDirectives, ownTags: [[UInt8]]?,
    requestTimeMilliseconds: Int64, responseTimeMilliseconds: Int64
  ) {
    directives = ResponseDirectives(fields, targeted: route.targetedCacheControl)
    metadata = Freshness.originWords(
      status: status, fields, directives, requestTimeMilliseconds: requestTimeMilliseconds,
      responseTimeMilliseconds: responseTimeMilliseconds)
    let ignoresVary = route.policy.ignoreOrigin.contains(.vary)
    varyBlock =
      !ignoresVary && OriginRequestBuilder.variesByAddress(fields)
      ? nil
      : Vary.selectingBlock(response: fields, request: selecting, ignore: ignoresVary)
    tags = CopyTags.adding(originTagsOf: fields, to: ownTags)
    let refused = Storability.decide(
      method: method, request: request, requestDirectives: requestDirectives, status: status,
      response: fields, responseDirectives: directives, policy: route.policy, metadata: metadata,
      identity: route.keyedIdentity)
    notStored =
      refused ?? (varyBlock == nil ? .varyAny : nil) ?? (tags == nil ? .unusableTags : nil)
  }
}
