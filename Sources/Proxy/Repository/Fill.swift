internal import Backends
internal import CachePolicy
internal import Synchronization

/// One fetch from an origin: takes the answer in, puts it into the store where that is allowed, and
/// lets any number of readers on any loop follow it as it grows.
///
/// It belongs to no client: readers come and go. The loop that began it feeds it; readers read
/// under its lock and are woken by message. Bytes that the store has taken are read from there, so
/// that memory holds at most the chunk being filled and what waits for the writer; where nothing is
/// stored, memory holds a window that the slowest reader moves, and the origin is paused when the
/// window is full.
final class Fill: @unchecked Sendable {
  // @unchecked Sendable: `shared` is behind its lock; the other variables belong to the owner loop.

  enum Ending: Equatable, Sendable {
    case whole
    /// The origin confirmed a copy that the fill asked about.
    case confirmed(Confirmation)
    case failed(OriginError)
    /// The origin confirmed a copy that is no longer there: the whole answer is needed.
    case copyLost
  }

  /// What there is to read at an offset.
  enum Reading: Sendable {
    /// Bytes of a chunk in memory, valid while the chunk is held.
    case bytes(BodyChunk, Range<Int>)
    /// The chunk is with the store.
    case stored(index: UInt32, from: Int)
    case wait
    case end
    case failed
  }

  struct Progress: Sendable {
    var head: Head?
    var ending: Ending?
    var receivedBytes: Int
    /// Whether what comes goes to the store, so that a reader may stay behind.
    var isStoring: Bool
  }

  struct Shared: Sendable {
    var head: Head?
    var ending: Ending?
    var received = 0
    /// The chunks in memory; the first has the number `firstChunk`, those before it are with the
    /// store (or, where nothing is stored, read by everyone).
    var chunks: [BodyChunk] = []
    var firstChunk = 0
    /// Whether full chunks go to the store; else they stay until every reader has passed them.
    var isStoring = false
    var waiters: [Waiter] = []
    /// Where each reader is.
    var readers = ReaderOffsets()
    var isPaused = false
    var isInvalidated = false
    /// A reader got what it wanted without waiting for the rest: what its route stores goes on.
    var hasSatisfied = false
    /// Given up for want of readers: nobody joins any more.
    var isAbandoned = false
    var uncommittedBytes = 0
  }

  struct Waiter: Sendable {
    let worker: Worker
    let reader: any FillReader
  }

  /// Bodies on their way to the writer, a fill: beyond this the origin is paused.
  static let uncommittedBytesMax = 4 * 1024 * 1024

  let plan: FillPlan
  /// The ID that what is stored of it gets. Fixed before the head is out.
  private(set) var entryID: UInt64
  /// As long as it runs, purges that came after its begin are kept for it; nil: nothing may be
  /// stored of it.
  private(set) var ticket: FillTicket?
  let chunkBytes: Int
  /// The limits of its begin: readers on other loops look at them.
  private let readersMax: Int
  private let windowBytes: Int
  let repository: Repository
  let shared = Mutex(Shared())

  /// What is done where the origin confirmed a copy that is not there; readers see to that
  /// themselves.
  var whenCopyIsLost: (() -> Void)?

  // Of the owner loop.
  var transfer: (any OriginTransfer)?
  var metadata: StoredMetadata?
  /// Full chunks have gone to the store, and are kept there while anybody holds this fill.
  var hasStoredChunks = false
  var isPinned = false
  /// Chunks go to the store for running readers alone; nothing will land.
  var isSpilling = false
  var isEnded = false
  var isWakeScheduled = false
  /// Its client has left, and the origin may be carrying its change out.
  var isChangeUnderWay = false
  /// The purges that followed from this fill's own answer.
  var ownPurges = 0
  /// What it was begun for, so that the rest of a body that breaks off can be asked for.
  var source: FetchSource?
  /// The running transfer brings the rest of a body, not an answer of its own.
  var resumption: Resumption?
  var resumptionsLeft: Int
  /// It is one of those that its upstream is asked by now.
  var hasPlace = false
  /// It waits for that.
  var queued: QueuedFill?
  /// A copy of what it brought is in the store.
  var hasLanded = false
  var patience: LoopTimer?

  init(plan: FillPlan, repository: Repository) {
    self.plan = plan
    self.repository = repository
    let store = repository.services.store
    ticket = plan.notStored == nil ? store.beginFill() : nil
    entryID = ticket?.entryID ?? store.nextEntryID()
    chunkBytes = repository.services.chunkBytes
    readersMax = repository.worker.limits.fillWaiters
    windowBytes = repository.worker.limits.responseBufferBytes
    resumptionsLeft =
      plan.method == .get
      ? min(plan.route.endpoint.retriesMax, repository.worker.limits.bodyResumptions) : 0
  }

  /// What is stored of the fill gets a new ID, behind all purges until now. False: one of them was
  /// not its own, and may mean what it brings.
  func beginAnew() -> Bool {
    ticket = repository.services.store.beginFill()
    entryID = ticket!.entryID
    // Behind the new ID: a purge that is not counted yet has a later one.
    let purgeCount = repository.services.purgeCount.load(ordering: .sequentiallyConsistent)
    if purgeCount == plan.purgeCount + ownPurges { return true }
    ticket = nil
    return false
  }

  deinit {
    if isPinned { repository.services.store.unpin(entryID: entryID) }
  }

  var owner: Worker { repository.worker }

  /// Sends the request; on the owner loop, once.
  func start(_ request: OriginRequest, _ source: FetchSource) {
    if resumptionsLeft > 0 { self.source = source }
    enterUpstream(request)
  }

  /// The client's body has bytes again, or has ended.
  func requestBodyBecameAvailable() { transfer?.bodyBecameAvailable() }

  // MARK: Readers

  var progress: Progress {
    shared.withLock {
      Progress(
        head: $0.head, ending: $0.ending, receivedBytes: $0.received, isStoring: $0.isStoring)
    }
  }

  enum Joining: Sendable {
    case joined
    /// It has as many readers as it may, or what came first is not to be had here any more, because
    /// it is not stored and its readers have passed it.
    case refused
    /// It was given up a moment ago.
    case isAbandoned
  }

  /// Enters a reader at offset 0.
  @discardableResult
  func join(_ reader: any FillReader) -> Joining {
    shared.withLock { shared in
      if shared.isAbandoned { return .isAbandoned }
      guard shared.readers.count < readersMax,
        shared.isStoring || shared.firstChunk == 0
      else { return .refused }
      shared.readers.set(reader, to: 0)
      return .joined
    }
  }

  /// A reader goes. `isSatisfied`: its client has been answered, and does not miss the rest.
  /// A fill that nobody reads any more may be given up.
  func leave(_ reader: any FillReader, isSatisfied: Bool) {
    let isLast = shared.withLock { shared in
      shared.readers.remove(reader)
      if !shared.waiters.isEmpty { shared.waiters.removeAll { $0.reader === reader } }
      if isSatisfied { shared.hasSatisfied = true }
      return shared.readers.isEmpty && shared.ending == nil
    }
    if isLast { onOwner { $0.giveUpIfAbandoned() } }
    resumeIfDrained()
  }

  /// Has the reader told, once, of the next progress.
  func wait(_ reader: any FillReader, on worker: Worker) {
    shared.withLock { $0.waiters.append(Waiter(worker: worker, reader: reader)) }
  }

  /// What lies at an offset; where there is nothing yet, the reader is told of the next progress.
  func read(at offset: Int, for reader: any FillReader, on worker: Worker) -> Reading {
    shared.withLock { shared in
      if offset < shared.received {
        let number = offset / chunkBytes
        let start = offset - number * chunkBytes
        if number < shared.firstChunk { return .stored(index: UInt32(number), from: start) }
        let chunk = shared.chunks[number - shared.firstChunk]
        return .bytes(chunk, start..<min(shared.received - number * chunkBytes, chunkBytes))
      }
      switch shared.ending {
      case .whole: return .end
      case .failed, .confirmed, .copyLost: return .failed
      case nil:
        shared.waiters.append(Waiter(worker: worker, reader: reader))
        return .wait
      }
    }
  }

  /// The reader is done with everything before an offset.
  func advance(_ reader: any FillReader, to offset: Int) {
    shared.withLock { $0.readers.set(reader, to: offset) }
    resumeIfDrained()
  }

  func resumeIfDrained() {
    let mayResume = shared.withLock { shared in
      releaseReadChunks(&shared)
      guard shared.isPaused, !isOverfull(shared) else { return false }
      shared.isPaused = false
      return true
    }
    if mayResume { onOwner { $0.transfer?.resume() } }
  }

  /// Where nothing is stored, lets go of the chunks that every reader has passed. A reader may wait
  /// far behind what has come (for a part of the body): the chunk that still grows stays.
  func releaseReadChunks(_ shared: inout Shared) {
    guard !shared.isStoring else { return }
    let passed = min(shared.readers.slowest ?? shared.received, shared.received)
    while !shared.chunks.isEmpty, (shared.firstChunk + 1) * chunkBytes <= passed {
      shared.chunks.removeFirst()
      shared.firstChunk += 1
    }
  }

  func isOverfull(_ shared: Shared) -> Bool {
    if shared.isStoring { return shared.uncommittedBytes > Fill.uncommittedBytesMax }
    let slowest = shared.readers.slowest ?? shared.received
    return shared.received - slowest > windowBytes
  }

  func onOwner(_ work: @escaping @Sendable (Fill) -> Void) {
    if owner.loop.isCurrent {
      work(self)
    } else {
      owner.loop.post { work(self) }
    }
  }

  /// Gives an interim answer (RFC 9110 §15.2) to everyone who waits for the final one, each on their
  /// own loop. It is nobody else's: who comes later does not get it, and nothing of it is stored.
  func passOn(interim text: [UInt8], status: UInt16) {
    for waiter in shared.withLock({ $0.waiters }) {
      if waiter.worker === owner {
        waiter.reader.fillSentInterim(text, status: status)
      } else {
        waiter.worker.loop.post { waiter.reader.fillSentInterim(text, status: status) }
      }
    }
  }

  /// Tells everyone who waits, each on their own loop: one message a loop, not one a reader.
  func wakeWaiters() {
    let waiters = shared.withLock { shared in
      let taken = shared.waiters
      shared.waiters.removeAll()
      return taken
    }
    var elsewhere: [Int: WaiterGroup] = [:]
    for waiter in waiters {
      if waiter.worker === owner {
        waiter.reader.fillProgressed()
      } else {
        elsewhere[waiter.worker.index, default: WaiterGroup(worker: waiter.worker)].readers
          .append(waiter.reader)
      }
    }
    for group in elsewhere.values {
      group.worker.loop.post { for reader in group.readers { reader.fillProgressed() } }
    }
  }
}

/// Readers of one loop, on their way to it.
private struct WaiterGroup: Sendable {
  let worker: Worker
  var readers: [any FillReader] = []

  init(worker: Worker) { self.worker = worker }
}

/// Who follows a fill. All calls come on the reader's own loop, where alone it is touched: a fill
/// on another loop only carries the reference.
protocol FillReader: AnyObject, Sendable {
  func fillProgressed()
  /// An interim answer, whole as it goes out.
  func fillSentInterim(_ text: [UInt8], status: UInt16)
}

/// What a fill is for: fixed before it starts. A reference, so that handing it on costs nothing.
final class FillPlan: Sendable {
  /// Its key in the table; nil: it is nobody's to join.
  let tableKey: StoreKey?
  /// The request that it is made for.
  let source: FetchSource
  let storeKey: StoreKey
  /// The client's fields that the origin was sent: Vary selects by them.
  let request: Fields
  let directives: RequestDirectives
  /// Why its answer is not to be stored, whatever it says; nil: it may be.
  let notStored: NotStoredReason?
  /// What the origin is asked about stored copies; nil: nothing, the whole answer is wanted.
  let question: ValidationQuestion?
  /// A good copy is there that may stand in for a failing network: no error takes its place.
  let copyMayStandIn: Bool
  /// The route's own tags for the request's path; nil: they cannot be made.
  let tags: [[UInt8]]?
  let requestTimeMilliseconds: Int64
  /// No client began it: a refresh, or `warm`.
  let isBackground: Bool
  /// The purges of the process before it began.
  let purgeCount: Int

  init(
    _ source: FetchSource, tableKey: StoreKey?, request: Fields, notStored: NotStoredReason?,
    question: ValidationQuestion?, copyMayStandIn: Bool, requestTimeMilliseconds: Int64,
    isBackground: Bool, purgeCount: Int
  ) {
    self.source = source
    self.tableKey = tableKey
    let storeKey = source.key ?? source.postKey
    self.storeKey = storeKey ?? StoreKey(high: 0, low: 0)
    self.request = request
    directives = source.route.directives(of: source.head.fields)
    self.notStored = notStored
    self.question = question
    self.copyMayStandIn = copyMayStandIn
    tags = storeKey != nil ? CopyTags.tags(of: source.route, path: source.path) : []
    self.requestTimeMilliseconds = requestTimeMilliseconds
    self.isBackground = isBackground
    self.purgeCount = purgeCount
  }

  var wholeKey: [UInt8] { source.wholeKey }
  var route: RouteContext { source.route }
  var method: Method { source.head.method }
  /// The request whose success makes copies void; nil: it changes nothing.
  var change: FetchSource? { method.isSafe ? nil : source }

  /// Whether anything of the answer may land: also that of a POST which has a place among the
  /// answers to GET.
  var mayLand: Bool { notStored == nil || change?.postKey != nil }
}
