internal import CCurl
internal import CUV
internal import CachePolicy

/// libcurl's multi interface, driven by one event loop: it carries out what goes through TLS, HTTP/2 or
/// a proxy, and makes the connections that `HTTP1Client` speaks on.
///
/// Caveats of libcurl that shape this file: it may not be entered from its own callbacks, so
/// whatever a callback leads to waits in `deferred` until libcurl has returned; its timer may ask
/// for "at once"; it stops watching a connection between transfers, which would cost two system
/// calls a transfer, so that an idle connection's watcher stays registered until the socket closes.
final class CurlClient: OriginConnector {
  /// libcurl allocates it anew for each transfer; above 64 KiB that would cost the heap a trim.
  static let receiveBufferBytes = 32 * 1024
  /// Easy handles that are kept for reuse, an endpoint.
  static let pooledHandlesMax = 256

  let loop: EventLoop
  private(set) var counters = OriginCounters()

  let multi: UnsafeMutableRawPointer
  /// Handles that wait for their next transfer, of the endpoints in use.
  private var pools: [ObjectIdentifier: [CurlHandle]] = [:]
  /// Those that make connections, likewise.
  var connectors: [ObjectIdentifier: [CurlHandle]] = [:]
  private var running = RunningTransfers<CurlTransfer>()
  /// Handles that are making connections for others.
  var connecting: [ObjectIdentifier: CurlHandle] = [:]
  /// Transfers whose receivers have not got them yet.
  private var unstarted: [CurlTransfer] = []
  private var deferred: [() -> Void] = []
  var depth = 0
  private var watchers: [Int32: SocketWatcher] = [:]
  private var idle = IdleConnections()
  private var curlTimer: UnsafeMutablePointer<uv_timer_t>
  private var wantedTimerMilliseconds = -1
  private(set) var isClosed = false

  init(loop: EventLoop) {
    self.loop = loop
    multi = curl_multi_init()!
    curlTimer = .allocate(capacity: 1)
    uv_timer_init(loop.handle, curlTimer)
    let this = Unmanaged.passUnretained(self).toOpaque()
    curlTimer.pointee.data = this
    larder_curl_multi_set_socket_callback(multi) { easy, descriptor, what, client, _ in
      CurlClient.of(client).libcurlWants(what, on: descriptor, for: easy)
      return 0
    }
    larder_curl_multi_set_pointer(multi, CURLMOPT_SOCKETDATA, this)
    larder_curl_multi_set_timer_callback(multi) { _, milliseconds, client in
      CurlClient.of(client).wantedTimerMilliseconds = milliseconds
      return 0
    }
    larder_curl_multi_set_pointer(multi, CURLMOPT_TIMERDATA, this)
    loop.atTurnEnd { [weak self] in self?.startAll() }
  }

  /// As `OriginClient.use`.
  func use(endpoints: [OriginEndpoint], connectionsMax: Int, idleConnectionsMax: Int) {
    larder_curl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, idleConnectionsMax)
    larder_curl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, connectionsMax)
    let (poolsBefore, connectorsBefore) = (pools, connectors)
    pools = [:]
    connectors = [:]
    for endpoint in endpoints {
      let identity = ObjectIdentifier(endpoint)
      if endpoint.isSpokenToByHTTP1Client {
        connectors[identity] = connectorsBefore[identity] ?? []
      } else {
        pools[identity] = poolsBefore[identity] ?? []
      }
    }
  }

  /// As `OriginClient.prepareProcess`.
  static func prepareProcess() { curl_global_init(Int(CURL_GLOBAL_DEFAULT)) }

  private static func of(_ context: UnsafeMutableRawPointer?) -> CurlClient {
    // SAFETY: the context is the client that set it; it closes what calls back before it goes.
    Unmanaged<CurlClient>.fromOpaque(context!).takeUnretainedValue()
  }

  // MARK: Transfers

  /// As `RemoteDataSource.start`.
  func start(
    _ request: OriginRequest, receiver: any OriginResponseReceiver
  ) -> any OriginTransfer {
    request.makeList()
    let transfer = CurlTransfer(request: request, client: self, receiver: receiver)
    unstarted.append(transfer)
    return transfer
  }

  /// Begins what was started in this turn. Not before: libcurl sends, and may call back, from within;
  /// the receiver would hear of a transfer that it does not know yet.
  private func startAll() {
    var rounds = 0
    while !unstarted.isEmpty {
      // What fails at once may be started over, and the others of the loop want their turn.
      guard rounds < 4 else { return loop.later {} }
      rounds += 1
      let transfers = unstarted
      unstarted = []
      for transfer in transfers { attempt(transfer) }
    }
  }

  private func attempt(_ transfer: CurlTransfer) {
    guard !transfer.isCancelled else { return }
    if !transfer.metDeadConnection { counters.requests += 1 }
    guard !isClosed, let handle = takeHandle(transfer.request.endpoint) else {
      counters.failures += 1
      transfer.finish(.unreachable("the proxy is stopping"))
      return
    }
    transfer.beginAttempt(with: handle)
    running.insert(transfer)
    entered {
      curl_multi_add_handle(multi, handle.easy)
    }
  }

  private func takeHandle(_ endpoint: OriginEndpoint) -> CurlHandle? {
    pools[ObjectIdentifier(endpoint)]?.popLast() ?? CurlHandle(endpoint: endpoint, client: self)
  }

  private func release(_ transfer: CurlTransfer) {
    guard let handle = transfer.handle else { return }
    transfer.handle = nil
    running.remove(transfer)
    curl_multi_remove_handle(multi, handle.easy)
    handle.use = .none
    let identity = ObjectIdentifier(handle.endpoint)
    if let count = pools[identity]?.count, count < CurlClient.pooledHandlesMax {
      pools[identity]?.append(handle)
    }
  }

  func cancelled(_ transfer: CurlTransfer) {
    afterCallbacks { [self] in entered { release(transfer) } }
  }

  /// Ends a transfer whose failure is already known (it ran out of time).
  func abort(_ transfer: CurlTransfer) {
    afterCallbacks { [self] in
      guard transfer.handle != nil else { return }
      entered { release(transfer) }
      conclude(transfer, transfer.outcome(of: CURLE_OPERATION_TIMEDOUT))
    }
  }

  private func conclude(_ transfer: CurlTransfer, _ error: OriginError?) {
    if let error {
      if transfer.metDeadConnection || transfer.mayRetry(after: error) {
        attempt(transfer)
        return
      }
      if !transfer.isCancelled { counters.failures += 1 }
    }
    transfer.finish(error)
  }

  // MARK: Time, and the end

  /// libcurl's failure as ours.
  static func error(of code: CURLcode) -> OriginError {
    switch code {
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT,
      CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION:
      .unreachable(String(cString: curl_easy_strerror(code)))
    case CURLE_OPERATION_TIMEDOUT: .noConnectionInTime
    case CURLE_OK: .unreachable("no connection")
    default: .broken(String(cString: curl_easy_strerror(code)))
    }
  }

  /// Fails the transfers whose patience has ended; called by the loop's tick.
  func tick() {
    for transfer in running.late(loop.monotonicMilliseconds) { transfer.timeOut() }
  }

  /// Gives everything back; transfers that still run fail.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    for transfer in running.all {
      entered { release(transfer) }
      transfer.finish(.unreachable("the proxy is stopping"))
    }
    for handle in connecting.values {
      entered { curl_multi_remove_handle(multi, handle.easy) }
      guard case .connecting(let completion) = handle.use else { continue }
      completion(.failure(.unreachable("the proxy is stopping")))
    }
    connecting = [:]
    connectors = [:]
    pools = [:]
    curl_multi_cleanup(multi)
    for watcher in watchers.values { watcher.close() }
    watchers = [:]
    // SAFETY: a uv_timer_t begins with the fields of a uv_handle_t.
    curlTimer.withMemoryRebound(to: uv_handle_t.self, capacity: 1) { handle in
      uv_close(handle) { UnsafeMutableRawPointer($0!).deallocate() }
    }
  }

  // MARK: Entering libcurl

  /// Runs work now, or once libcurl's callbacks have returned.
  func afterCallbacks(_ work: @escaping () -> Void) {
    if depth == 0 { work() } else { deferred.append(work) }
  }

  /// Calls into libcurl, then does what its callbacks left to do.
  func entered(_ call: () -> Void) {
    depth += 1
    call()
    depth -= 1
    if depth == 0 { settle() }
  }

  private func settle() {
    var turns = 0
    while wantedTimerMilliseconds == 0, turns < 4, !isClosed {
      wantedTimerMilliseconds = -1
      turns += 1
      depth += 1
      var count: Int32 = 0
      curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &count)
      depth -= 1
    }
    collectFinished()
    while !deferred.isEmpty {
      let work = deferred
      deferred = []
      for item in work { item() }
    }
    armTimer()
  }

  private func collectFinished() {
    var remaining: Int32 = 0
    while !isClosed, let message = curl_multi_info_read(multi, &remaining) {
      guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else {
        continue
      }
      let code = message.pointee.data.result
      var context: UnsafeMutableRawPointer?
      larder_curl_get_pointer(easy, CURLINFO_PRIVATE, &context)
      let handle = CurlHandle.of(context)
      if case .connecting(let completion) = handle.use {
        connected(handle, code, completion)
        continue
      }
      guard case .transfer(let transfer) = handle.use else { continue }
      if !transfer.metDeadConnection { countConnections(easy, isAnswered: transfer.headIsComplete) }
      if transfer.isMultiplexed { noteMultiplexed(easy) }
      depth += 1
      release(transfer)
      depth -= 1
      conclude(transfer, transfer.outcome(of: code))
    }
  }

  private func countConnections(_ easy: UnsafeMutableRawPointer, isAnswered: Bool) {
    var opened = 0
    larder_curl_get_long(easy, CURLINFO_NUM_CONNECTS, &opened)
    counters.connectionsOpened += UInt64(opened)
    // None was opened, and one was there: an answer came by it.
    if opened == 0, isAnswered { counters.connectionsReused += 1 }
  }

  private func noteMultiplexed(_ easy: UnsafeMutableRawPointer) {
    var (local, remote) = (0, 0)
    larder_curl_get_long(easy, CURLINFO_LOCAL_PORT, &local)
    larder_curl_get_long(easy, CURLINFO_PRIMARY_PORT, &remote)
    idle.noteMultiplexed(localPort: local, remotePort: remote)
  }

  /// Asked by libcurl before each request goes out.
  func mayCarryRequest(localPort: Int32, remotePort: Int32) -> Bool {
    idle.mayCarryRequest(localPort: localPort, remotePort: remotePort)
  }

  private func armTimer() {
    guard !isClosed else { return }
    if wantedTimerMilliseconds < 0 {
      uv_timer_stop(curlTimer)
      return
    }
    uv_timer_start(
      curlTimer,
      { timer in
        let client = CurlClient.of(timer!.pointee.data)
        client.wantedTimerMilliseconds = -1
        client.entered {
          var count: Int32 = 0
          curl_multi_socket_action(client.multi, CURL_SOCKET_TIMEOUT, 0, &count)
        }
      }, UInt64(wantedTimerMilliseconds), 0)
  }

  // MARK: Sockets

  private func libcurlWants(
    _ what: Int32, on descriptor: Int32, for easy: UnsafeMutableRawPointer?
  ) {
    if what == CURL_POLL_REMOVE {
      guard let watcher = watchers[descriptor] else { return }
      let transfer = transfer(of: easy)
      if let transfer, !transfer.isWaitingForOrigin {
        // Paused in the middle of an answer: what waits to be read is this transfer's.
        watcher.watch([])
      } else if transfer?.headIsComplete == true {
        // Between transfers the watcher stays as it is, since the next one wants the same.
        idle.insert(descriptor)
      } else {
        // It may be closed already: of a socket whose connection was not set up, and of those that
        // it resolves names by, libcurl tells no more than this, and only afterwards. A closed
        // descriptor must not be watched: libuv ends the process over it.
        watchers[descriptor] = nil
        watcher.close()
        idle.close(descriptor)
      }
      return
    }
    let watcher: SocketWatcher
    if let known = watchers[descriptor] {
      watcher = known
    } else {
      watcher = SocketWatcher(loop: loop, descriptor: descriptor) { [unowned self] ready, failed in
        socketIsReady(descriptor, ready, failed)
      }
      watchers[descriptor] = watcher
    }
    var readiness: SocketWatcher.Readiness = []
    if what & CURL_POLL_IN != 0 { readiness.insert(.readable) }
    if what & CURL_POLL_OUT != 0 { readiness.insert(.writable) }
    idle.remove(descriptor)
    idle.open(descriptor)
    watcher.watch(readiness)
  }

  private func transfer(of easy: UnsafeMutableRawPointer?) -> CurlTransfer? {
    guard let easy else { return nil }
    var context: UnsafeMutableRawPointer?
    larder_curl_get_pointer(easy, CURLINFO_PRIVATE, &context)
    // libcurl has a handle of its own for closing connections.
    guard context != nil, case .transfer(let transfer) = CurlHandle.of(context).use else {
      return nil
    }
    return transfer
  }

  private func socketIsReady(
    _ descriptor: Int32, _ ready: SocketWatcher.Readiness, _ failed: Bool
  ) {
    if idle.contains(descriptor) {
      // The origin closed an idle connection, or spoke out of turn. libcurl closes it when it next
      // looks at it; until then nothing is to be watched. A reset it would take for life, and send
      // the next request into it: the error is taken off, and what is left is an end.
      if failed { takeSocketError(descriptor) }
      idle.discard(descriptor)
      watchers[descriptor]?.watch([])
      return
    }
    var events: Int32 = 0
    if ready.contains(.readable) { events |= CURL_CSELECT_IN }
    if ready.contains(.writable) { events |= CURL_CSELECT_OUT }
    if failed { events |= CURL_CSELECT_ERR }
    entered {
      var count: Int32 = 0
      curl_multi_socket_action(multi, descriptor, events, &count)
    }
  }

  /// Has this client told when libcurl closes a socket, so that its watcher goes first.
  func observeSockets(of handle: CurlHandle) {
    larder_curl_set_close_socket(handle.easy) { client, descriptor in
      CurlClient.of(client).closeSocket(descriptor)
      return 0
    }
    larder_curl_set_pointer(
      handle.easy, CURLOPT_CLOSESOCKETDATA, Unmanaged.passUnretained(self).toOpaque())
  }

  private func closeSocket(_ descriptor: Int32) {
    watchers.removeValue(forKey: descriptor)?.close()
    idle.close(descriptor)
    closeDescriptor(descriptor)
  }
}
