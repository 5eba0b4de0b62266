internal import Backends
internal import CachePolicy

/// What the store and the clock say of a request right now: the copies of its key, which of them it
/// selects, and what would happen.
struct StoredOutlook: Sendable, Equatable {
  struct Copy: Sendable, Equatable {
    var isSelected: Bool
    var status: UInt16
    var bodyBytes: UInt64
    /// When the origin sent or last confirmed it, RFC 3339.
    var storedAt: String
    var ageMilliseconds: Int64
    /// The whole lifetime that the route and the origin's words give it.
    var lifetimeMilliseconds: Int64
    /// What is left of it; 0 or less: stale, by so much.
    var freshMillisecondsLeft: Int64
    /// How much longer it may serve while one refresh runs, and where the network fails;
    /// `Int64.max`: for ever.
    var staleWhileRevalidateMillisecondsLeft: Int64
    var staleIfErrorMillisecondsLeft: Int64
    var entityTag: String?
    var lastModified: String?
    /// The request fields that it was selected by.
    var varies: [String]
    var tags: [String]
  }

  /// The newest first.
  var copies: [Copy]
  /// `Cache-Status`, as far as it is known before the network answers.
  var now: String
  /// What follows, in sentences.
  var then: [String]
}

extension Repository {
  /// Explains a request by what this loop serves by now. On its own loop.
  func explain(_ asked: ExplainedRequest, authority: String) -> Explanation {
    do throws(RequestRefusal) {
      let head = try asked.head(authority: authority)
      let outlook = RequestOutlook(
        head, in: policies, with: &placement, isTraced: true, digest: services.digest)
      var explanation = Explanation(asked, outlook, in: policies, digest: services.digest)
      explanation.stored = outlook.routed.map { stored($0, head) }
      return explanation
    } catch {
      return Explanation(asked, refusedBy: error, digest: services.digest)
    }
  }

  /// `placement` holds the request's key.
  private func stored(_ routed: RequestOutlook.Routed, _ head: RequestHead) -> StoredOutlook {
    var machine = routed.machine
    guard let wholeKey = routed.wholeKey else {
      let action = machine.requestArrived(copy: nil)
      return StoredOutlook(copies: [], action, machine, routed, head, nil)
    }
    let key = storeKey()
    reader.begin()
    defer { reader.end() }
    let selected = selectRecord(key, wholeKey: wholeKey, request: head)
    if foundOtherVariantsOnly { machine.onlyOtherVariantsAreStored() }
    var copies: [(entryID: UInt64, copy: StoredOutlook.Copy)] = []
    var candidate = wholeKey.withUnsafeBytes { reader.firstRecord(key, wholeKey: $0) }
    while let record = candidate {
      let copy = StoredOutlook.Copy(
        record, routed.route.policy, isSelected: record.entryID == selected?.entryID,
        nowMilliseconds: services.clock.nowMilliseconds)
      copies.append((record.entryID, copy))
      candidate = reader.nextRecord()
    }
    copies.sort { $0.entryID > $1.entryID }
    let state = selected.map { record in
      Freshness.copyState(
        of: record.metadata, policy: routed.route.policy, request: machine.request.directives,
        nowMilliseconds: services.clock.nowMilliseconds)
    }
    let action = machine.requestArrived(copy: state)
    let found = selected.flatMap { record in state.map { (record: record, state: $0) } }
    return StoredOutlook(copies: copies.map(\.copy), action, machine, routed, head, found)
  }
}

extension StoredOutlook.Copy {
  fileprivate init(
    _ record: RecordView, _ policy: Policy, isSelected: Bool, nowMilliseconds: Int64
  ) {
    let metadata = record.metadata
    // The copy by itself: what the client asks for is in the decision.
    let state = Freshness.copyState(
      of: metadata, policy: policy, request: RequestDirectives(), nowMilliseconds: nowMilliseconds)
    let windows = Freshness.staleWindows(of: metadata, policy: policy)
    let staleness = max(0, -state.timeToLiveMilliseconds)
    func left(_ window: Int64) -> Int64 { window == .max ? .max : max(0, window - staleness) }
    self.isSelected = isSelected
    status = metadata.status
    bodyBytes = record.bodyLength
    storedAt = Stats.timestamp(metadata.responseTimeMilliseconds)
    ageMilliseconds = state.ageMilliseconds
    lifetimeMilliseconds = state.lifetimeMilliseconds
    freshMillisecondsLeft = state.timeToLiveMilliseconds
    staleWhileRevalidateMillisecondsLeft = left(windows.staleWhileRevalidateMilliseconds)
    staleIfErrorMillisecondsLeft = left(windows.staleIfErrorMilliseconds)
    entityTag = Self.text(record.entityTag)
    lastModified = Self.text(record.lastModified)
    varies = Vary.names(in: Span(_unsafeBytes: record.varyBlock))
    tags = record.tags.map { String(decoding: $0, as: UTF8.self) }
  }

  private static func text(_ bytes: UnsafeRawBufferPointer) -> String? {
    bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
  }
}

extension StoredOutlook {
  /// The decision in the words of `Cache-Status`. Within the turn that `found` was read in.
  fileprivate init(
    copies: [Copy], _ action: StrategyMachine.Action, _ machine: StrategyMachine,
    _ routed: RequestOutlook.Routed, _ head: RequestHead,
    _ found: (record: RecordView, state: CopyState)?
  ) {
    self.copies = copies
    then = []
    let detail = String(decoding: routed.route.detail, as: UTF8.self)
    switch action {
    case .serve(let use), .serveThenRefresh(let use):
      now = found.map { Self.hit($0, use, routed.route) } ?? "larder"
      if case .serveThenRefresh = action { then.append("a refresh in the background replaces it") }
    case .fetch(let fetch):
      let own = routed.route.notStored(fetch, for: head).map { "; detail=\($0.rawValue)" }
      now = "larder; fwd=\(fetch.reason.rawValue)\(own ?? detail)"
      then = Self.sentences(fetch, machine)
      if let flags = found?.record.metadata.flags {
        if flags.contains(.contradicted) {
          then.append("the origin has contradicted the copy: it serves once it is confirmed again")
        } else if flags.contains(.outdated) {
          then.append("a HEAD has shown another answer: the copy is stale, whatever its age")
        }
      }
    case .pass(let reason):
      let own = routed.unkeyed.map { "; detail=\($0.rawValue)" } ?? detail
      now = "larder; fwd=\(reason.rawValue)\(own)"
    case .fail(let failure):
      now = Exchange.cacheStatus(of: failure, forward: nil)
      then.append("504, and the network is not asked")
    case .relay, .wait: now = "larder"
    }
  }

  private static func hit(
    _ found: (record: RecordView, state: CopyState), _ use: StrategyMachine.CopyUse,
    _ route: RouteContext
  ) -> String {
    let output = OutputBuffer(capacity: 256)
    CopyServing.appendAnswerFields(
      CopyAnswer(record: found.record, state: found.state, route: route, use: use, forward: nil),
      to: output)
    let name = "Cache-Status: "
    let lines = String(decoding: output.bytes, as: UTF8.self).split(separator: "\r\n")
    let line = lines.first { $0.hasPrefix(name) } ?? ""
    return String(line.dropFirst(name.count))
  }

  private static func sentences(
    _ fetch: StrategyMachine.Fetch, _ machine: StrategyMachine
  ) -> [String] {
    var sentences: [String] = []
    if fetch.isConditional { sentences.append("the origin is asked whether the copy still holds") }
    if let deadline = fetch.deadlineMilliseconds {
      sentences.append("after \(Quantity.text(milliseconds: deadline)) the copy serves")
    }
    if machine.mayStandIn { sentences.append("the copy stands in where the network fails") }
    return sentences
  }
}
