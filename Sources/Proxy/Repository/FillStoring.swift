internal import Backends
internal import CachePolicy
internal import Synchronization

/// The fill's side towards origin and store: takes the answer in on the owner loop, decides once
/// whether it is stored, and lands the record when the body is whole.
extension Fill: OriginResponseReceiver {
  func originSentInterim(status: UInt16, fields: Fields, version: ReceivedVersion) {
    // The answer that it would go before is on its way already.
    guard resumption == nil else { return }
    var fields = fields
    fields.removeHopByHop()
    fields.remove(.contentLength)
    var text = Fill.encode(status: status, fields)
    text.append(contentsOf: "Via: \(version.text) larder\r\n\r\n".utf8)
    passOn(interim: text, status: status)
  }

  func originSentHead(_ answer: OriginResponseHead) {
    plan.route.gate.originAnswered()
    if let resumption {
      continueBody(resumption, answer)
      return
    }
    if answer.status == 304, plan.question != nil {
      confirm(answer)
      return
    }
    if let unasked = unasked(answer) {
      transfer?.cancel()
      stopStoring(.incomplete)
      end(.failed(.broken(unasked)))
      return
    }
    let now = owner.clock.nowMilliseconds
    let fields = Fill.dated(answer.fields, now)
    bearOnCopies(answer, fields)
    if let reason = plan.notStored {
      guard let words = wordsForLaterGets(answer, fields, now), beginAnew() else {
        publishUnstored(answer, fields, because: reason)
        return
      }
      publish(answer, fields, words, notStored: nil)
      return
    }
    let words = words(fields, status: answer.status, now)
    publish(answer, fields, words, notStored: words.notStored ?? notStoredReason(answer))
  }

  /// Publishes an answer as its words will have it. `reason`: why it is not stored; nil: it is.
  private func publish(
    _ answer: OriginResponseHead, _ all: Fields, _ words: AnswerWords,
    notStored reason: NotStoredReason?
  ) {
    var fields = all
    let directives = words.directives
    var ownFields = Fields()
    if reason == nil {
      metadata = words.metadata
      metadata?.flags.receivedVersion = answer.version
      for line in fields.lines where !directives.fieldsNotStored.isEmpty {
        let name = fields.bytes[line.name].map(ASCII.lowercased)
        if directives.fieldsNotStored.contains(name) { ownFields.append(line: line, of: fields) }
      }
      fields = Storability.storedFields(of: fields, directives: directives)
    }
    publish(
      Head(
        status: answer.status, fields: fields,
        encoded: Fill.encode(status: answer.status, fields), ownFields: ownFields,
        contentLength: answer.contentLength, version: answer.version, notStored: reason,
        varyBlock: words.varyBlock,
        isShareable: reason == nil
          || words.varyBlock != nil && mayShareError(answer.status, fields, directives),
        tags: words.tags,
        ageMilliseconds: reason == nil && answer.fields.contains(.age)
          ? words.metadata.initialAgeMilliseconds : nil))
  }

  /// A 304 to a request without conditions, and a 206 that has nothing of what was asked for, answer
  /// nothing.
  private func unasked(_ answer: OriginResponseHead) -> String? {
    let request = plan.request
    switch answer.status {
    case 304 where !request.contains(.ifNoneMatch) && !request.contains(.ifModifiedSince):
      return "304 to a request without conditions"
    case 206:
      return PartialAnswer.fault(
        method: plan.method, request: request, response: answer.fields,
        contentLength: answer.contentLength)?.rawValue
    default: return nil
    }
  }

  /// Shows the head to the readers.
  func publish(_ head: Head) {
    repository.fillAnswered(self, head)
    shared.withLock { shared in
      shared.head = head
      shared.isStoring = head.notStored == nil
    }
    if head.notStored != nil {
      repository.services.fillTable.leave(self)
    }
    giveUpIfAbandoned()
    wakeSoon()
  }

  /// One wake for all that libcurl has to say in this turn: a short answer goes out by one write.
  private func wakeSoon() {
    guard !isWakeScheduled else { return }
    isWakeScheduled = true
    repository.remote.afterCallbacks { [self] in
      isWakeScheduled = false
      wakeWaiters()
    }
  }

  /// An origin without a clock sends no Date; the time of the receipt takes its place
  /// (RFC 9110 §6.6.1). In a 304 too: the copy's own Date would make the confirmed copy old.
  private static func dated(_ fields: Fields, _ nowMilliseconds: Int64) -> Fields {
    guard !fields.contains(.date) else { return fields }
    var result = fields
    var text: [UInt8] = []
    HTTPDate.format(nowMilliseconds / 1000, into: &text)
    result.appendKnown(.date, value: text.span)
    return result
  }

  /// What keeps an answer out of the store that its words would let in.
  func notStoredReason(_ answer: OriginResponseHead) -> NotStoredReason? {
    // What the origin says is gone stands in for nothing.
    if answer.status >= 400, plan.copyMayStandIn, !Invalidation.meansGone(status: answer.status) {
      return .status
    }
    guard answer.endIsKnown else { return .endUnknown }
    if let length = answer.contentLength, length > plan.route.maxEntrySizeBytes {
      return .tooLarge
    }
    return shared.withLock { $0.isInvalidated } ? .invalidated : nil
  }

  /// An origin that fails is not asked once more by everyone who waits, unless its words make the
  /// answer somebody's own.
  private func mayShareError(
    _ status: UInt16, _ fields: Fields, _ directives: ResponseDirectives
  ) -> Bool {
    status >= 500 && !directives.isPrivate && !directives.noStore
      && !fields.contains(.setCookie) && !plan.request.contains(.authorization)
  }

  /// The status line and the field lines but Content-Length, which the sender of a body adds.
  static func encode(status: UInt16, _ fields: Fields) -> [UInt8] {
    var encoded: [UInt8] = []
    encoded.reserveCapacity(fields.bytes.count + 4 * fields.count + 64)
    StatusText.appendLine(status, to: &encoded)
    fields.encode(into: &encoded, without: .contentLength)
    return encoded
  }

  // MARK: Body

  func originSentBody(_ bytes: UnsafeRawBufferPointer) {
    guard !isEnded else { return }
    repository.count(bytesFromOrigin: bytes.count, route: plan.route)
    guard isWithinResumedBody(bytes.count) else { return }
    var rest = bytes
    while !rest.isEmpty {
      // SAFETY: the bytes are libcurl's and stay for this call; the lock's closure ends within it.
      nonisolated(unsafe) let arrived = rest
      let (taken, full) = shared.withLock { shared in append(arrived, &shared) }
      rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
      if let full { hand(full.chunk, number: full.number) }
    }
    if let length = metadata == nil ? nil : progress.receivedBytes,
      UInt64(length) > plan.route.maxEntrySizeBytes
    {
      stopStoring(.tooLarge)
    }
    let (mustPause, isUnread) = shared.withLock { shared -> (Bool, Bool) in
      guard !shared.isPaused, isOverfull(shared) else { return (false, shared.readers.isEmpty) }
      shared.isPaused = true
      return (true, shared.readers.isEmpty)
    }
    if mustPause { transfer?.pause() }
    if isUnread { giveUpIfAbandoned() }
    wakeSoon()
  }

  /// Appends to the last chunk; gives it back when that fills it and it is to be stored.
  private func append(
    _ bytes: UnsafeRawBufferPointer, _ shared: inout Shared
  ) -> (taken: Int, full: (chunk: BodyChunk, number: Int)?) {
    if shared.chunks.last?.isFull ?? true {
      shared.chunks.append(BodyChunk(capacity: nextCapacity(shared, bytes.count)))
    }
    let chunk = shared.chunks[shared.chunks.count - 1]
    let taken = chunk.append(bytes)
    shared.received += taken
    // Whoever waits for a part far behind reads nothing before it, and so would release nothing.
    releaseReadChunks(&shared)
    guard shared.isStoring, chunk.isFull, chunk.capacity == chunkBytes else { return (taken, nil) }
    return (taken, (chunk, shared.firstChunk + shared.chunks.count - 1))
  }

  /// A chunk's whole size, but where the body is known to be shorter.
  private func nextCapacity(_ shared: Shared, _ arrived: Int) -> Int {
    guard let length = shared.head?.contentLength, shared.received < Int(clamping: length) else {
      return chunkBytes
    }
    return min(chunkBytes, max(Int(clamping: length) - shared.received, 1))
  }

  /// Gives a full chunk to the store, which shows it to readers from now on.
  private func hand(_ chunk: BodyChunk, number: Int) {
    let store = repository.services.store
    if !hasStoredChunks {
      hasStoredChunks = true
      isPinned = store.pin(entryID: entryID)
    }
    shared.withLock { $0.uncommittedBytes += chunk.count }
    let refused = store.putChunk(entryID: entryID, index: UInt32(number), chunk: chunk) {
      [weak self] isCommitted in
      self?.onOwner { $0.chunkWasWritten(chunk.count, isCommitted: isCommitted) }
    }
    if let refused {
      shared.withLock { $0.uncommittedBytes -= chunk.count }
      stopStoring(refused, isCounted: true)
      return
    }
    shared.withLock { shared in
      shared.chunks.removeFirst()
      shared.firstChunk += 1
    }
  }

  private func chunkWasWritten(_ byteCount: Int, isCommitted: Bool) {
    shared.withLock { $0.uncommittedBytes -= byteCount }
    if !isCommitted {
      stopStoring(.storeFailed, isCounted: true)
      // Who waits for a part far behind now has to read on, or the origin stays paused.
      wakeSoon()
    }
    resumeIfDrained()
  }

  /// Goes on without landing: what it has of the body stays readable for those who read it now.
  ///
  /// Where several read a body that turned out too large, its chunks go on to the store for the
  /// time of the fill, so that the slowest reader holds up nobody; else the memory's window does.
  /// `isCounted`: the store has counted the reason.
  func stopStoring(_ reason: NotStoredReason, isCounted: Bool = false) {
    guard metadata != nil else {
      stopSpilling()
      return
    }
    metadata = nil
    isSpilling = shared.withLock { shared in
      shared.isStoring = reason == .tooLarge && !isCounted && shared.readers.count > 1
      return shared.isStoring
    }
    // Who comes from now on would miss the beginning.
    repository.services.fillTable.close(self)
    if !isCounted { repository.countNotStored(reason) }
    if reason == .tooLarge, plan.tableKey != nil {
      repository.fillIsNotShareable(self, because: reason)
    }
    if hasStoredChunks, !isSpilling { repository.services.store.abandon(entryID: entryID) }
  }

  private func stopSpilling() {
    guard isSpilling else { return }
    isSpilling = false
    shared.withLock { $0.isStoring = false }
    repository.services.store.abandon(entryID: entryID)
  }

  // MARK: The end

  func originFinished() {
    if let resumption, UInt64(progress.receivedBytes) != resumption.completeLength {
      originFailed(.broken("the rest of the body is not all of it"))
      return
    }
    land()
    end(.whole)
  }

  func originFailed(_ error: OriginError) {
    if error.isWithoutConnection {
      plan.route.gate.connectionFailed(nowMilliseconds: owner.clock.nowMilliseconds)
    }
    if resume(after: error) { return }
    stopStoring(.incomplete)
    end(.failed(error))
  }

  func end(_ ending: Ending) {
    guard !isEnded else { return }
    isEnded = true
    ticket?.end()
    transfer = nil
    source = nil
    leaveUpstream()
    stopSpilling()
    shared.withLock { $0.ending = ending }
    repository.services.fillTable.leave(self)
    repository.fillEnded(self, ending)
    if case .copyLost = ending { whenCopyIsLost?() }
    whenCopyIsLost = nil
    wakeSoon()
  }

  /// Puts the record in: from here on the copy is there for everyone.
  private func land() {
    guard var metadata else { return }
    let (chunks, firstChunk, received) = shared.withLock {
      ($0.chunks, $0.firstChunk, $0.received)
    }
    metadata.entryID = entryID
    metadata.bodyLength = UInt64(received)
    let isInline = firstChunk == 0 && received <= owner.limits.inlineBodyBytes
    var chunkCount = firstChunk
    if !isInline, let last = chunks.last, last.count > 0 {
      hand(last, number: firstChunk)
      chunkCount += 1
      guard self.metadata != nil else { return }
    }
    let record = makeRecord(
      metadata, inlineBody: isInline ? chunks.map(\.bytes) : nil,
      chunkCount: isInline ? 0 : UInt32(chunkCount))
    let refused = withExtendedLifetime(chunks) { put(record) }
    if let refused {
      stopStoring(refused.reason, isCounted: refused.isCounted)
    } else {
      hasLanded = true
      repository.fillLanded(self)
    }
  }

  /// Puts a record in under the fill's entry; nil: it is in. `isCounted`: the store has counted why
  /// not.
  ///
  /// Under the lock that `invalidate` takes: an invalidation on another loop comes before, and the
  /// record is not put, or behind, and then its removal follows the record.
  func put(_ record: RecordBuffer) -> (reason: NotStoredReason, isCounted: Bool)? {
    shared.withLock { shared -> (NotStoredReason, Bool)? in
      if shared.isInvalidated { return (.invalidated, false) }
      let refused = repository.services.store.put(
        record, key: plan.storeKey, mode: .insert, variantsMax: plan.route.policy.maxVariants)
      return refused.map { ($0, true) }
    }
  }

  private func makeRecord(
    _ metadata: StoredMetadata, inlineBody: [UnsafeRawBufferPointer]?, chunkCount: UInt32
  ) -> RecordBuffer {
    let head = progress.head!
    return RecordWriter.make(
      metadata: metadata, route: plan.route, wholeKey: plan.wholeKey,
      varyBlock: head.varyBlock ?? [], tags: head.tags ?? [], fields: head.fields,
      encodedHead: head.encoded,
      inlineBody: inlineBody, chunkCount: chunkCount)
  }

  var isInvalidated: Bool { shared.withLock { $0.isInvalidated } }

  /// What invalidates the key happened while this fill ran: it must not land.
  func invalidate() {
    shared.withLock { $0.isInvalidated = true }
  }

  // MARK: 304

  /// The origin confirms a copy: its head is brought up to date (RFC 9111 §4.3.4).
  private func confirm(_ answer: OriginResponseHead) {
    let now = owner.clock.nowMilliseconds
    let confirmation = repository.confirm(
      self, with: Fill.dated(answer.fields, now), version: answer.version, nowMilliseconds: now)
    // The transfer is left to end by itself: to cut it would cost its connection.
    end(confirmation.map { .confirmed($0) } ?? .copyLost)
  }
}
