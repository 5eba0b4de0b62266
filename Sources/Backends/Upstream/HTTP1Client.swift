internal import CachePolicy

/// Speaks HTTP/1.1 with the origins that are reached in clear text and without a proxy, by our own
/// codec, on connections that libcurl has made.
///
/// It owns one loop's connections to them: who rides on which, how many there are, how long they are
/// kept. A connection that carries a transfer is held by it, an idle one by its pool.
final class HTTP1Client {
  /// A connection that has been idle for longer is closed.
  static let idleMilliseconds: UInt64 = 60_000
  /// What is read of a request's body at a time.
  static let bodyBufferBytes = 32 * 1024

  let loop: EventLoop
  /// A request that must not be sent twice rides on a connection only if it was in use so lately that
  /// the origin can hardly be closing it.
  var recentMilliseconds: UInt64 = 2_000
  private(set) var counters = OriginCounters()
  /// Bodies of requests pass through here.
  let bodyBuffer = UnsafeMutableRawBufferPointer.allocate(
    byteCount: HTTP1Client.bodyBufferBytes, alignment: 16)

  private let connector: any OriginConnector
  private var pools: [ObjectIdentifier: OriginPool] = [:]
  private var connectionsMax = 0
  private var idleConnectionsMax = 0
  private var idleCount = 0
  /// Transfers that have a connection or wait for one.
  private var running = RunningTransfers<HTTP1Transfer>()
  /// Transfers whose receivers have not got them yet.
  private var unstarted: [HTTP1Transfer] = []
  /// Those that are being started; empty otherwise.
  private var starting: [HTTP1Transfer] = []
  private var deferred: [() -> Void] = []
  /// What was deferred and is being done; empty otherwise.
  private var doing: [() -> Void] = []
  private var depth = 0
  private var isClosed = false

  init(loop: EventLoop, connector: any OriginConnector) {
    self.loop = loop
    self.connector = connector
    loop.atTurnEnd { [weak self] in self?.startAll() }
  }

  deinit { bodyBuffer.deallocate() }

  /// As `OriginClient.use`.
  func use(endpoints: [OriginEndpoint], connectionsMax: Int, idleConnectionsMax: Int) {
    self.connectionsMax = connectionsMax
    self.idleConnectionsMax = idleConnectionsMax
    let before = pools
    pools = [:]
    for endpoint in endpoints where endpoint.isSpokenToByHTTP1Client {
      let identity = ObjectIdentifier(endpoint)
      pools[identity] = before[identity] ?? OriginPool(endpoint: endpoint)
    }
    for (identity, pool) in before where pools[identity] == nil { retire(pool) }
    while idleCount > idleConnectionsMax, closeOldest() {}
    for pool in pools.values { connectAsNeeded(pool) }
  }

  // MARK: Transfers

  /// As `RemoteDataSource.start`.
  func start(
    _ request: OriginRequest, receiver: any OriginResponseReceiver
  ) -> any OriginTransfer {
    let transfer = HTTP1Transfer(request: request, client: self, receiver: receiver)
    unstarted.append(transfer)
    return transfer
  }

  /// Begins what was started in this turn: its receivers know their transfers by now.
  private func startAll() {
    var rounds = 0
    while !unstarted.isEmpty {
      // What fails at once may be started over, and the others of the loop want their turn.
      guard rounds < 4 else { return loop.later {} }
      rounds += 1
      swap(&unstarted, &starting)
      for transfer in starting { attempt(transfer) }
      starting.removeAll(keepingCapacity: true)
    }
  }

  private func attempt(_ transfer: HTTP1Transfer) {
    guard !transfer.isCancelled else { return }
    guard !isClosed else {
      counters.failures += 1
      return transfer.finish(.unreachable("the proxy is stopping"))
    }
    if !transfer.isRenewed { counters.requests += 1 }
    transfer.noteAttempt(isRenewed: transfer.isRenewed)
    running.insert(transfer)
    let pool = pool(of: transfer.request.endpoint)
    if let connection = takeIdle(pool, for: transfer) {
      connection.send(transfer)
    } else {
      pool.enqueue(transfer)
      connectAsNeeded(pool)
    }
  }

  private func pool(of endpoint: OriginEndpoint) -> OriginPool {
    if let pool = pools[ObjectIdentifier(endpoint)] { return pool }
    // A reload has taken it away, and this request was begun before.
    let pool = OriginPool(endpoint: endpoint)
    pool.isRetired = true
    return pool
  }

  /// The connection that was idle for the shortest time; those that the origin has closed meanwhile
  /// go. nil: the transfer is to have a new one, and there is room for it.
  private func takeIdle(_ pool: OriginPool, for transfer: HTTP1Transfer) -> HTTP1Connection? {
    while let connection = pool.idle.last {
      let isRecent =
        loop.monotonicMilliseconds - connection.idleSinceMilliseconds
        <= recentMilliseconds
      let mayRide = !transfer.isRenewed && (isRecent || !transfer.needsRecentConnection)
      guard mayRide else {
        if pool.connectionCount >= connectionsMax { closeOldest(of: pool) }
        return nil
      }
      pool.idle.removeLast()
      idleCount -= 1
      if connection.isUsable { return connection }
      close(connection)
    }
    return nil
  }

  /// A transfer is over, on a connection that has let go of it; `isFree`: another may have it.
  func finished(_ transfer: HTTP1Transfer, _ connection: HTTP1Connection, isFree: Bool) {
    noteReuse(transfer, connection)
    running.remove(transfer)
    if isFree, !connection.pool.isRetired { offer(connection) } else { close(connection) }
    transfer.finish(nil)
  }

  func failed(_ transfer: HTTP1Transfer, _ connection: HTTP1Connection, _ error: OriginError) {
    noteReuse(transfer, connection)
    running.remove(transfer)
    close(connection)
    // The origin may have closed the connection before the request came: then it is not the one who
    // fails, and the request goes out once more as if that connection had not been there
    // (RFC 9112 §9.3.1).
    if case .broken = error, connection.hasCarried, !transfer.answerHasBegun,
      transfer.isRepeatable, !transfer.isRenewed
    {
      transfer.isRenewed = true
      attempt(transfer)
      return
    }
    conclude(transfer, error)
  }

  private func noteReuse(_ transfer: HTTP1Transfer, _ connection: HTTP1Connection) {
    if transfer.answerHasBegun {
      if connection.hasCarried { counters.connectionsReused += 1 }
      connection.hasCarried = true
    }
  }

  private func conclude(_ transfer: HTTP1Transfer, _ error: OriginError) {
    if transfer.mayRetry(after: error) {
      transfer.isRenewed = false
      attempt(transfer)
      return
    }
    if !transfer.isCancelled { counters.failures += 1 }
    transfer.finish(error)
  }

  func cancelled(_ transfer: HTTP1Transfer) { takeOut(transfer) }

  /// Ends what a transfer has of us; nothing where it has not begun, or is over.
  private func takeOut(_ transfer: HTTP1Transfer) {
    guard transfer.slot >= 0 else { return }
    running.remove(transfer)
    if let connection = transfer.connection {
      connection.detach()
      close(connection)
    } else {
      transfer.waitsIn?.leave(transfer)
    }
  }

  // MARK: Connections

  private func connectAsNeeded(_ pool: OriginPool) {
    // What fails at once comes back here from within: it is this loop that goes on, and the stack
    // does not grow with the line.
    guard !pool.isConnecting else { return }
    pool.isConnecting = true
    defer { pool.isConnecting = false }
    while pool.connectingCount < pool.waitingCount, pool.connectionCount < connectionsMax, !isClosed
    {
      pool.connectingCount += 1
      pool.connectionCount += 1
      connector.connect(to: pool.endpoint) { [weak self] result in
        guard let self else {
          if case .success(let descriptor) = result { closeDescriptor(descriptor) }
          return
        }
        connected(pool, result)
      }
    }
  }

  private func connected(_ pool: OriginPool, _ result: Result<Int32, OriginError>) {
    pool.connectingCount -= 1
    var failure = OriginError.unreachable("the connection cannot be used")
    switch result {
    case .success(let descriptor):
      guard let connection = HTTP1Connection(client: self, pool: pool, descriptor: descriptor)
      else { break }
      counters.connectionsOpened += 1
      if pool.waitingCount == 0 || connection.isUsable { return place(connection) }
      // Another one would hardly fare better: who waits is told, or would wait for as long as
      // connections can be made and lost.
      _ = connection.close()
      failure = .unreachable("the connection ended, or was spoken on, before the request")
    case .failure(let error): failure = error
    }
    pool.connectionCount -= 1
    // Where as many are being made as are waited for, somebody has got another one meanwhile.
    if pool.waitingCount > pool.connectingCount, let transfer = pool.next(isNew: true) {
      running.remove(transfer)
      conclude(transfer, failure)
    }
    connectAsNeeded(pool)
  }

  /// A connection that has carried a transfer may have another.
  private func offer(_ connection: HTTP1Connection) {
    if connection.pool.waitingCount > 0, !connection.isUsable { return close(connection) }
    place(connection)
  }

  /// Gives a connection to whoever has waited longest, or keeps it for who comes.
  private func place(_ connection: HTTP1Connection) {
    let pool = connection.pool
    guard !isClosed else { return close(connection) }
    if let transfer = pool.next(isNew: !connection.hasCarried) { return connection.send(transfer) }
    // It makes room for a new one where that is waited for.
    guard !pool.isRetired, pool.waitingCount <= pool.connectingCount else {
      return close(connection)
    }
    pool.idle.append(connection)
    idleCount += 1
    if idleCount > idleConnectionsMax { _ = closeOldest() }
  }

  /// Closes the connection that has been idle for longest, whoever's it is. False: none is idle.
  private func closeOldest() -> Bool {
    var oldest: (pool: OriginPool, sinceMilliseconds: UInt64)?
    for pool in pools.values {
      guard let since = pool.idle.first?.idleSinceMilliseconds else { continue }
      if since < oldest?.sinceMilliseconds ?? .max { oldest = (pool, since) }
    }
    guard let oldest else { return false }
    closeOldest(of: oldest.pool)
    return true
  }

  private func closeOldest(of pool: OriginPool) {
    idleCount -= 1
    close(pool.idle.removeFirst())
  }

  /// An idle connection has ended, or has said what nobody asked for.
  func discard(_ connection: HTTP1Connection) {
    if let index = connection.pool.idle.firstIndex(where: { $0 === connection }) {
      connection.pool.idle.remove(at: index)
      idleCount -= 1
    }
    close(connection)
  }

  private func close(_ connection: HTTP1Connection) {
    guard connection.close() else { return }
    connection.pool.connectionCount -= 1
    connectAsNeeded(connection.pool)
  }

  private func retire(_ pool: OriginPool) {
    pool.isRetired = true
    while !pool.idle.isEmpty { closeOldest(of: pool) }
  }

  // MARK: Turns, time, and the end

  /// Calls receivers, then does what they left to do once all that has come is passed on.
  func passingOn(_ call: () -> Void) {
    depth += 1
    call()
    depth -= 1
    guard depth == 0, doing.isEmpty else { return }
    while !deferred.isEmpty {
      swap(&deferred, &doing)
      for item in doing { item() }
      doing.removeAll(keepingCapacity: true)
    }
  }

  /// As `RemoteDataSource.afterCallbacks`; false: no callback of ours is running.
  func deferring(_ work: @escaping () -> Void) -> Bool {
    guard depth > 0 else { return false }
    deferred.append(work)
    return true
  }

  /// Fails the transfers whose patience has ended, and closes what was idle too long; called by the
  /// loop's tick.
  func tick() {
    let now = loop.monotonicMilliseconds
    for transfer in running.late(now) {
      let error = transfer.timeOutError
      takeOut(transfer)
      conclude(transfer, error)
    }
    for pool in pools.values {
      while let oldest = pool.idle.first,
        now - oldest.idleSinceMilliseconds > HTTP1Client.idleMilliseconds
      { closeOldest(of: pool) }
    }
  }

  /// Gives everything back; transfers that still run fail.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    for transfer in running.all {
      takeOut(transfer)
      transfer.finish(.unreachable("the proxy is stopping"))
    }
    for pool in pools.values { retire(pool) }
  }
}
