internal import Backends
internal import CachePolicy

/// What the head of a fill's answer means, before anybody sees it: for copies that are stored, and for
/// later GETs where it answers a POST. On the owner loop; called by `originSentHead` alone.
extension Fill {
  /// What the answer makes of copies that are stored, before anybody sees it.
  func bearOnCopies(_ answer: OriginResponseHead, _ fields: Fields) {
    if let change = plan.change {
      repository.invalidate(change, status: answer.status, fields, by: self)
    } else if plan.notStored == nil, Invalidation.meansGone(status: answer.status) {
      repository.answeredGone(self, fields)
    } else if plan.notStored == .method, plan.method == .head, answer.status == 200 {
      repository.headAnswered(self, answer, fields)
    }
  }

  /// The words of a POST's answer that may answer later GETs (RFC 9110 §9.3.3); nil: it may not, or a
  /// change that came meanwhile forbids it.
  func wordsForLaterGets(
    _ answer: OriginResponseHead, _ fields: Fields, _ now: Int64
  ) -> AnswerWords? {
    guard plan.mayLand, let change = plan.change else { return nil }
    let words = words(fields, status: answer.status, now)
    guard
      Storability.answersLaterGets(
        status: answer.status, metadata: words.metadata,
        namesItsTarget: repository.namesItsTarget(change, fields)),
      words.notStored == nil, notStoredReason(answer) == nil
    else { return nil }
    return words
  }

  func words(_ fields: Fields, status: UInt16, _ now: Int64) -> AnswerWords {
    AnswerWords(
      // A POST's answer gets here as one to GET.
      status: status, fields, on: plan.route, method: plan.method == .post ? .get : plan.method,
      request: plan.request, requestDirectives: plan.directives, ownTags: plan.tags,
      requestTimeMilliseconds: plan.requestTimeMilliseconds, responseTimeMilliseconds: now
    ) { response, ignoresVary in
      repository.selectingBlock(response: response, request: plan.request, ignore: ignoresVary)
    }
  }

  func publishUnstored(
    _ answer: OriginResponseHead, _ fields: Fields, because reason: NotStoredReason
  ) {
    publish(
      Head(
        status: answer.status, fields: fields,
        encoded: Fill.encode(status: answer.status, fields), ownFields: Fields(),
        contentLength: answer.contentLength, version: answer.version, notStored: reason,
        varyBlock: [], isShareable: false, tags: [], ageMilliseconds: nil))
  }
}
