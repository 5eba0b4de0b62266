public import Backends
internal import CachePolicy
internal import Dispatch
internal import Synchronization

/// Why the server cannot start. Source: configuration or environment; nothing was left running.
public struct ServerError: Error, Sendable, CustomStringConvertible {
  public let description: String
}

/// The running proxy: loops, listeners and store, put together and taken apart.
///
/// `start` either brings everything up or throws and leaves nothing behind. `drain` ends it in
/// order: no new connections, running exchanges finish, the store is closed.
public final class Server: Sendable {
  /// Addresses really bound, in the order of the configuration.
  public let publicAddresses: [Configuration.ListenAddress]
  public let adminAddresses: [Configuration.ListenAddress]

  let services: Services
  let workers: [Worker]
  /// Of the public listeners.
  let gate: ConnectionGate
  /// Of the admin listeners: the counts can be read also when the public limit is reached.
  private let adminGate: ConnectionGate
  let startedAtMilliseconds: Int64
  /// What requests are served by from now on.
  private let current: Mutex<PolicySet>
  /// nil: there is nothing to read anew.
  let reloader: Reloader?
  private let parts: LoopParts
  private let hasStopped = Mutex(false)

  /// What belongs to loops: touched there alone once the server runs.
  private final class LoopParts: @unchecked Sendable {
    // @unchecked Sendable: filled before the loops start, then used on their own loops.
    var listeners: [Listener] = []
    var repositories: [Repository] = []
    var clients: [OriginClient] = []
    var admins: [AdminHandler] = []
    /// On the first loop.
    var warmer: Warmer?
  }

  /// Opens the store, binds the addresses, and serves. `source`: where the configuration is read
  /// anew from when that is ordered.
  public static func start(
    _ configuration: Configuration, source: Reloader.Source? = nil, clock: Clock = Clock(),
    log: Log = .standardError
  ) throws(ServerError) -> Server {
    let publicSockets = try bind(configuration.listen)
    let adminSockets: [ListeningSocket]
    let store: LMDBStore
    do throws(ServerError) {
      adminSockets = try bind(configuration.admin.listen)
    } catch {
      for socket in publicSockets { socket.closeSocket() }
      throw error
    }
    let storeConfiguration = StoreConfiguration(
      path: configuration.store.path, maxSizeBytes: configuration.store.maxSizeBytes,
      inlineBodyBytesMax: configuration.limits.inlineBodyBytes,
      queueBytesMax: configuration.limits.writeQueueBytes)
    do throws(StoreError) {
      store = try LMDBStore.open(storeConfiguration, clock: clock) { log.warning($0) }
    } catch {
      for socket in publicSockets + adminSockets { socket.closeSocket() }
      throw ServerError(description: "\(error)")
    }
    OriginClient.prepareProcess()
    do throws(StoreError) {
      return try Server(
        configuration, source, store: store, chunkBytes: storeConfiguration.chunkBytes,
        publicSockets, adminSockets, clock, log)
    } catch {
      for socket in publicSockets + adminSockets { socket.closeSocket() }
      store.close()
      throw ServerError(description: "\(error)")
    }
  }

  private static func bind(
    _ addresses: [Configuration.ListenAddress]
  ) throws(ServerError) -> [ListeningSocket] {
    var sockets: [ListeningSocket] = []
    for address in addresses {
      do throws(ListenError) {
        sockets.append(try ListeningSocket(host: address.host, port: address.port))
      } catch {
        for socket in sockets { socket.closeSocket() }
        throw ServerError(description: error.description)
      }
    }
    return sockets
  }

  private init(
    _ configuration: Configuration, _ source: Reloader.Source?, store: LMDBStore, chunkBytes: Int,
    _ publicSockets: [ListeningSocket], _ adminSockets: [ListeningSocket], _ clock: Clock,
    _ log: Log
  ) throws(StoreError) {
    services = Services(
      store: store, chunkBytes: chunkBytes, limits: configuration.limits, clock: clock, log: log)
    let policies = PolicySet(
      configuration, generation: 1, slots: services.counterSlots,
      gates: services.upstreamGates, previous: nil)
    current = Mutex(policies)
    gate = ConnectionGate(connectionsMax: configuration.limits.connections)
    adminGate = ConnectionGate(connectionsMax: configuration.limits.adminConnections)
    startedAtMilliseconds = clock.nowMilliseconds
    publicAddresses = publicSockets.map { .init(host: $0.host, port: $0.port) }
    adminAddresses = adminSockets.map { .init(host: $0.host, port: $0.port) }
    let loops = configuration.loops == 0 ? EventLoop.coreCount : configuration.loops
    workers = (0..<loops).map {
      Worker(index: $0, limits: configuration.limits, clock: clock)
    }
    parts = LoopParts()
    for worker in workers {
      let client = OriginClient(
        loop: worker.loop, endpoints: policies.endpoints,
        connectionsMax: configuration.limits.upstreamConnections,
        idleConnectionsMax: configuration.limits.upstreamIdleConnections)
      // Behind the client: what it does at a turn's end may read.
      let reader = try store.makeReader(for: worker.loop)
      parts.clients.append(client)
      parts.repositories.append(
        Repository(
          worker: worker, services: services, policies: policies, remote: client, reader: reader))
      worker.onTick { client.tick() }
      worker.onClose { client.close() }
    }
    let applying = ApplyingServer()
    reloader = source.map { source in
      Reloader(source: source, started: configuration, clock: clock, log: log) {
        applying.server?.use($0, generation: $1, then: $2)
      }
    }
    applying.server = self
    parts.admins = workers.map { AdminHandler(server: self, worker: $0) }
    listen(publicSockets, parts.repositories, gate)
    listen(adminSockets, parts.admins, adminGate)
    startWarming()
    watchFile()
    for worker in workers { worker.start() }
  }

  private func listen(
    _ sockets: [ListeningSocket], _ handlers: [any RequestHandler], _ gate: ConnectionGate
  ) {
    for socket in sockets {
      let listener = Listener(socket: socket, workers: workers, handlers: handlers, gate: gate)
      parts.listeners.append(listener)
      listener.start()
      workers[0].onTick { listener.tick() }
    }
  }

  // MARK: The configuration

  var policies: PolicySet { current.withLock { $0 } }
  /// The configuration in force.
  public var configuration: Configuration { policies.configuration }

  /// Has the configuration read anew and put into force; without a source nothing happens.
  public func reload() { reloader?.order(.signal) }

  /// Swaps policies and limits on every loop, between two of its requests; `finished` is called on
  /// one of them once all have. Store, connections and counts stay. What the process was started
  /// with and cannot change (addresses, the store's folder, the number of loops) is left as it is.
  private func use(
    _ configuration: Configuration, generation: Int, then finished: @escaping @Sendable () -> Void
  ) {
    let policies = PolicySet(
      configuration, generation: generation, slots: services.counterSlots,
      gates: services.upstreamGates, previous: self.policies)
    let limits = configuration.limits
    let replaced = Replaced(self.policies)
    current.withLock { $0 = policies }
    services.store.resize(maxSizeBytes: configuration.store.maxSizeBytes)
    services.fillTable.use(limits)
    services.upstreamGates.use(configuration.upstreams)
    gate.connectionsMax.store(limits.connections, ordering: .relaxed)
    adminGate.connectionsMax.store(limits.adminConnections, ordering: .relaxed)
    let remaining = CountDown(workers.count)
    let authority = ownAuthority
    let parts = self.parts
    for (index, worker) in workers.enumerated() {
      worker.loop.post {
        worker.limits = limits
        parts.repositories[index].use(policies)
        parts.clients[index].use(
          endpoints: policies.endpoints, connectionsMax: limits.upstreamConnections,
          idleConnectionsMax: limits.upstreamIdleConnections)
        if index == 0 { parts.warmer?.use(configuration, listeningOn: authority) }
        guard remaining.next() == 0 else { return }
        finished()
        DispatchQueue.global().async { replaced.letGo() }
      }
    }
  }

  /// The authority of targets that are paths: as apps reach the proxy.
  var authorityOfPaths: String { configuration.publicAuthority ?? ownAuthority }

  /// The repository of a loop; on that loop.
  func repository(on worker: Worker) -> Repository { parts.repositories[worker.index] }

  /// What apps may call the proxy, where nothing else is said.
  private var ownAuthority: String { publicAddresses.first?.description ?? "" }

  private func startWarming() {
    let warmer = Warmer(repository: parts.repositories[0])
    warmer.use(configuration, listeningOn: ownAuthority)
    parts.warmer = warmer
    workers[0].onTick { [unowned warmer] in warmer.tick() }
  }

  /// The reloader's way back to the server, which owns it.
  private final class ApplyingServer: @unchecked Sendable {
    // @unchecked Sendable: set once, before anything is ordered.
    weak var server: Server?
  }

  /// Policies that no new request uses: to take thousands of routes apart takes longer than a loop
  /// may stand still, so that it is not a loop that lets go of them last.
  private final class Replaced: Sendable {
    private let policies: Mutex<PolicySet?>
    init(_ policies: PolicySet) { self.policies = Mutex(policies) }
    func letGo() {
      let last = policies.withLock { policies in
        defer { policies = nil }
        return policies
      }
      withExtendedLifetime(last) {}
    }
  }

  private final class CountDown: Sendable {
    private let value: Atomic<Int>
    init(_ value: Int) { self.value = Atomic(value) }
    func next() -> Int { value.subtract(1, ordering: .acquiringAndReleasing).newValue }
  }

  private func watchFile() {
    guard let reloader, let path = reloader.source.path else { return }
    let loop = workers[0].loop
    let changes = FileChanges(path: path, loop: loop) { reloader.order(.file) }
    workers[0].onClose { changes.close() }
    // What changed between the first reading and the watch.
    reloader.order(.file)
  }

  // MARK: Counts

  /// Adds up what every loop has counted, and calls back on one of them.
  func collectCounts(_ finished: @escaping @Sendable (Counters, OriginCounters) -> Void) {
    let count = workers.count
    let parts = self.parts
    let sum = Mutex((Counters(), OriginCounters(), 0))
    let box = CountBox(sum: sum)
    for index in 0..<count {
      workers[index].loop.post {
        let own = parts.repositories[index].counters
        let origin = parts.clients[index].counters
        let total = box.sum.withLock { sum -> (Counters, OriginCounters)? in
          sum.0.add(own)
          sum.1.add(origin)
          sum.2 += 1
          return sum.2 == count ? (sum.0, sum.1) : nil
        }
        if let total { finished(total.0, total.1) }
      }
    }
  }

  private final class CountBox: Sendable {
    let sum: Mutex<(Counters, OriginCounters, Int)>
    init(sum: consuming sending Mutex<(Counters, OriginCounters, Int)>) { self.sum = sum }
  }

  // MARK: The end

  /// Ends the server and returns when all is closed: accepting stops at once, exchanges have
  /// `limits.drain` to finish. Blocks: not for event loops. Idempotent.
  public func drain() {
    let isFirst = hasStopped.withLock { stopped in
      defer { stopped = true }
      return !stopped
    }
    guard isFirst else { return }
    let parts = self.parts
    workers[0].loop.post { for listener in parts.listeners { listener.close() } }
    for worker in workers { worker.loop.post { worker.drain() } }
    waitForConnections()
    for worker in workers { worker.stop() }
    for worker in workers { worker.join() }
    parts.warmer = nil
    parts.repositories = []
    parts.clients = []
    parts.admins = []
    services.store.close()
  }

  /// Looks at the count every few milliseconds: there is nobody to be told by, and it is the end.
  private func waitForConnections() {
    var waited: Int64 = 0
    while gate.open.load(ordering: .relaxed) + adminGate.open.load(ordering: .relaxed) > 0,
      waited < configuration.limits.drainMilliseconds
    {
      ProcessFacts.pause(milliseconds: 5)
      waited += 5
    }
  }
}
