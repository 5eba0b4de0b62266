internal import Backends
internal import CachePolicy

/// What an origin's word does to copies that are stored: a 304 that confirms one, a 200 to HEAD that
/// freshens or contradicts it, a 404 or 410 that says it is gone (RFC 9111 §4.3.4, §4.3.5, §3.2).
///
/// Which copies are meant, `ValidationQuestion` says. All of it happens on the loop of the fetch that
/// brings the word, and counts only against copies of which no later fetch has spoken.
extension Repository {
  /// A copy of a key, as a fetch for one request sees it.
  struct StoredVariant {
    let record: RecordView
    let candidate: ValidationQuestion.Candidate
  }

  /// The copies that may be asked about for a request, or that a 304 to it may mean, the most recent
  /// first. Within the reader's begin and end.
  private func variants(
    _ key: StoreKey, wholeKey: [UInt8], request: Fields, policy: Policy, notEntry: UInt64? = nil
  ) -> [StoredVariant] {
    let now = services.clock.nowMilliseconds
    var selecting = SelectingRequest(request, services)
    var found: [StoredVariant] = []
    var next = wholeKey.withUnsafeBytes { reader.firstRecord(key, wholeKey: $0) }
    while let record = next {
      next = reader.nextRecord()
      let metadata = record.metadata
      let isPastKeep =
        policy.keepMilliseconds.map { now - metadata.responseTimeMilliseconds >= $0 } ?? false
      guard !isPastKeep, record.entryID != notEntry else { continue }
      let block = Span<UInt8>(_unsafeBytes: record.varyBlock)
      let isSelectable = selecting.selects(block)
      guard
        isSelectable || metadata.status < 400 && selecting.differsInNegotiationAlone(block)
      else { continue }
      let candidate = ValidationQuestion.Candidate(
        entryID: record.entryID, isSelectable: isSelectable, entityTag: Array(record.entityTag),
        lastModified: Array(record.lastModified))
      found.append(StoredVariant(record: record, candidate: candidate))
    }
    // What was read of a file that is lost by now tells nothing.
    guard reader.isSound else { return [] }
    return found.sorted { $0.record.isMoreRecent(than: $1.record) }
  }

  /// What a fetch for this request may ask the origin; nil: nothing is stored that has a validator.
  /// Within the reader's begin and end. `notEntry`: a copy whose body could not be had.
  func question(
    _ key: StoreKey, wholeKey: [UInt8], request: Fields, policy: Policy, notEntry: UInt64? = nil
  ) -> ValidationQuestion? {
    let variants = variants(
      key, wholeKey: wholeKey, request: request, policy: policy, notEntry: notEntry)
    guard !variants.isEmpty else { return nil }
    return ValidationQuestion(
      about: variants.map(\.candidate), tagsMax: worker.limits.validationTags,
      tagBytesMax: worker.limits.validationTagBytes)
  }

  // MARK: A 304

  /// The copy that the origin confirmed, brought up to date; nil: there is none, or none any more,
  /// and the whole answer is needed.
  func confirm(
    _ fill: Fill, with answer: Fields, version: ReceivedVersion, nowMilliseconds now: Int64
  ) -> Confirmation? {
    let plan = fill.plan
    guard let question = plan.question else { return nil }
    reader.begin()
    defer { reader.end() }
    let variants = variants(
      plan.storeKey, wholeKey: plan.wholeKey, request: plan.request, policy: plan.route.policy)
    guard
      let meant = question.confirmed(by: answer, among: variants.map(\.candidate))
    else { return nil }
    let record = variants[meant.answer].record
    guard record.begunID <= fill.entryID else {
      // A later fetch has spoken of it already: it is what it is by now.
      let copy = RecordBuffer.copy(of: record)
      let block = Array(record.varyBlock)
      guard reader.isSound else { return nil }
      return Confirmation(copy, block: block, isShareable: true, services.store)
    }
    let renewed = renew(
      record, with: answer, version: version, of: plan, nowMilliseconds: now)
    let block = renewed.words.varyBlock ?? Array(record.varyBlock)
    let confirmation = Confirmation(
      renewed.record(plan, varyBlock: block, begunID: fill.entryID), block: block,
      isShareable: renewed.words.notStored == nil, services.store)
    // Its chunks are being removed, or the file was lost while it was copied.
    guard let confirmation, reader.isSound else { return nil }
    let isSelectable = !meant.updated.isEmpty
    if let reason = renewed.words.notStored {
      if isSelectable { drop(plan, because: reason) }
    } else if isSelectable, block.elementsEqual(record.varyBlock) {
      put(confirmation.record, plan)
    } else if store(renewed, under: block, by: fill) {
      // Who was selected by the old Vary alone is asked about anew.
      if isSelectable { mark(record, .contradicted, plan, begunID: fill.entryID) }
    } else if isSelectable {
      return nil
    }
    for index in meant.updated.dropFirst().prefix(worker.limits.confirmedVariants) {
      update(
        variants[index].record, with: answer, version: version, by: fill, nowMilliseconds: now)
    }
    return confirmation
  }

  /// Brings a copy up to date where it lies.
  private func update(
    _ record: RecordView, with answer: Fields, version: ReceivedVersion, by fill: Fill,
    nowMilliseconds now: Int64
  ) {
    let plan = fill.plan
    let renewed = renew(
      record, with: answer, version: version, of: plan, nowMilliseconds: now)
    if let reason = renewed.words.notStored {
      drop(plan, because: reason)
    } else if let block = renewed.words.varyBlock, block.elementsEqual(record.varyBlock) {
      put(renewed.record(plan, varyBlock: block, begunID: fill.entryID), plan)
    } else {
      mark(record, .contradicted, plan, begunID: fill.entryID)
    }
  }

  private func put(_ record: RecordBuffer, _ plan: FillPlan) {
    _ = services.store.put(
      record, key: plan.storeKey, mode: .refresh, variantsMax: plan.route.policy.maxVariants)
  }

  /// The word that freshens a copy forbids to keep it. One that came to somebody's credentials is not
  /// everybody's (RFC 9111 §3.5): the copy stays as it was.
  private func drop(_ plan: FillPlan, because reason: NotStoredReason) {
    countNotStored(reason)
    guard reason != .authorization else { return }
    services.store.remove(key: plan.storeKey)
  }

  /// Puts a confirmed copy in as the request's own variant, under the fill's entry; false: its body
  /// is too long to be copied, or the store does not take it.
  private func store(_ renewed: Renewed, under block: [UInt8], by fill: Fill) -> Bool {
    let (plan, source) = (fill.plan, renewed.source)
    guard source.bodyLength <= UInt64(worker.limits.copiedVariantBytes) else { return false }
    var copied = renewed
    copied.metadata.entryID = fill.entryID
    for index in 0..<source.chunkCount {
      guard let bytes = reader.chunk(entryID: source.entryID, index: index) else { return false }
      let chunk = BodyChunk(capacity: max(bytes.count, 1))
      _ = chunk.append(bytes)
      guard services.store.putChunk(entryID: fill.entryID, index: index, chunk: chunk) == nil else {
        services.store.abandon(entryID: fill.entryID)
        return false
      }
    }
    let record = copied.record(plan, varyBlock: block, begunID: fill.entryID)
    // Sums of what was lost meanwhile would be right.
    guard reader.isSound, fill.put(record) == nil else {
      if source.chunkCount > 0 { services.store.abandon(entryID: fill.entryID) }
      return false
    }
    return true
  }

  // MARK: Other words

  /// A 200 to HEAD: each copy that the request selects is freshened, or has to be validated before it
  /// serves (RFC 9111 §4.3.5). Nothing becomes a copy by it.
  func headAnswered(_ fill: Fill, _ answer: OriginResponseHead, _ fields: Fields) {
    let plan = fill.plan
    guard !plan.wholeKey.isEmpty, plan.route.policy.strategy.writesStore, isForAll(plan),
      // Of a request with fields that a storing fetch leaves out, the answer may be theirs.
      OriginRequestBuilder.forwardedFields(plan.request, route: plan.route, forStore: true)
        == plan.request
    else { return }
    let now = services.clock.nowMilliseconds
    reader.begin()
    defer { reader.end() }
    for record in selectableRecords(plan, before: fill) where record.metadata.status == 200 {
      let verdict = ValidationQuestion.head(
        fields, contentLength: answer.contentLength, stored: StoredHead.fields(of: record.head),
        bodyLength: record.bodyLength)
      switch verdict {
      case .unknown: continue
      case .differs: mark(record, .outdated, plan, begunID: fill.entryID)
      case .same:
        update(record, with: fields, version: answer.version, by: fill, nowMilliseconds: now)
      }
    }
  }

  /// A 404 or 410: what the request selects serves nobody until the origin confirms it.
  ///
  /// One that is somebody's own, or varies by more than a copy does, says nothing of that copy.
  func answeredGone(_ fill: Fill, _ answer: Fields) {
    let directives = ResponseDirectives(answer, targeted: fill.plan.route.targetedCacheControl)
    guard isForAll(fill.plan), !directives.isPrivate, !answer.contains(.setCookie),
      let block = selectingBlock(response: answer, request: fill.plan.request, ignore: false)
    else { return }
    let names = Set(Vary.names(in: block.span))
    reader.begin()
    defer { reader.end() }
    for record in selectableRecords(fill.plan, before: fill)
    where record.metadata.status < 400
      && names.isSubset(of: Vary.names(in: Span(_unsafeBytes: record.varyBlock)))
    {
      mark(record, .contradicted, fill.plan, begunID: fill.entryID)
    }
  }

  /// Whether what the origin says is said to all who share the key, and not to somebody's credentials.
  private func isForAll(_ plan: FillPlan) -> Bool {
    !plan.request.contains(.authorization) || plan.route.keyedIdentity == .authorization
      || plan.route.policy.ignoreOrigin.contains(.authorization)
  }

  private func selectableRecords(_ plan: FillPlan, before fill: Fill) -> [RecordView] {
    variants(
      plan.storeKey, wholeKey: plan.wholeKey, request: plan.request, policy: plan.route.policy
    ).filter { $0.candidate.isSelectable && $0.record.begunID < fill.entryID }.map(\.record)
  }

  /// Marks a copy by what the origin has said of it.
  private func mark(
    _ record: RecordView, _ flag: StoredFlags, _ plan: FillPlan, begunID: UInt64
  ) {
    var metadata = record.metadata
    guard metadata.flags.insert(flag).inserted else { return }
    let marked = RecordWriter.make(
      metadata: metadata, route: plan.route, wholeKey: plan.wholeKey,
      varyBlock: Array(record.varyBlock), tags: record.tags.map { Array($0) },
      fields: StoredHead.fields(of: record.head), encodedHead: Array(record.head),
      inlineBody: record.isInline ? [record.inlineBody] : nil, chunkCount: record.chunkCount,
      begunID: begunID)
    let refused = services.store.put(marked, key: plan.storeKey, mode: .refresh)
    // A queue that is full takes removals all the same.
    if refused != nil { services.store.remove(key: plan.storeKey) }
  }

  // MARK: Heads

  /// A copy with the head that it has from now on.
  private struct Renewed {
    let source: RecordView
    let fields: Fields
    var metadata: StoredMetadata
    let words: AnswerWords

    func record(_ plan: FillPlan, varyBlock: [UInt8], begunID: UInt64) -> RecordBuffer {
      RecordWriter.make(
        metadata: metadata, route: plan.route, wholeKey: plan.wholeKey, varyBlock: varyBlock,
        tags: words.tags ?? [], fields: fields,
        encodedHead: Fill.encode(status: metadata.status, fields),
        inlineBody: source.isInline ? [source.inlineBody] : nil, chunkCount: source.chunkCount,
        begunID: begunID)
    }
  }

  private func renew(
    _ record: RecordView, with answer: Fields, version: ReceivedVersion, of plan: FillPlan,
    nowMilliseconds now: Int64
  ) -> Renewed {
    let policy = plan.route.policy
    let merged = Validation.merge(
      stored: StoredHead.fields(of: record.head), answer: answer,
      targeted: plan.route.targetedCacheControl,
      keepsSetCookie: policy.ignoreOrigin.contains(.setCookie))
    // The answer's own Age counts (a cache before the origin may have given it), but is not kept.
    var spoken = merged
    if let age = answer.first(.age) { spoken.appendKnown(.age, value: age.span) }
    let words = AnswerWords(
      status: record.metadata.status, spoken, on: plan.route, method: .get, request: plan.request,
      requestDirectives: plan.directives, ownTags: plan.tags,
      requestTimeMilliseconds: plan.requestTimeMilliseconds, responseTimeMilliseconds: now
    ) { response, ignoresVary in
      selectingBlock(response: response, request: plan.request, ignore: ignoresVary)
    }
    var metadata = words.metadata
    metadata.entryID = record.entryID
    metadata.bodyLength = record.bodyLength
    metadata.flags.receivedVersion = version
    return Renewed(source: record, fields: merged, metadata: metadata, words: words)
  }
}

/// A copy that the origin has just confirmed, as it reads from now on: whoever waited for that is
/// answered by it, whatever becomes of the store meanwhile.
final class Confirmation: Sendable, Equatable {
  let record: RecordBuffer
  /// What the confirmed answer varies on, of the request that it was confirmed for.
  let varyBlock: [UInt8]
  /// Whether others than the first client may have it.
  let isShareable: Bool
  private let store: LMDBStore
  private let isPinned: Bool

  /// Nil: the body's chunks are being removed.
  init?(_ record: RecordBuffer, block: [UInt8], isShareable: Bool, _ store: LMDBStore) {
    self.record = record
    varyBlock = block
    self.isShareable = isShareable
    self.store = store
    let needsPin = !record.view.isInline
    isPinned = needsPin && store.pin(entryID: record.view.entryID)
    if needsPin, !isPinned { return nil }
  }

  deinit {
    if isPinned { store.unpin(entryID: record.view.entryID) }
  }

  static func == (left: Confirmation, right: Confirmation) -> Bool { left === right }
}
