public import Backends
internal import CachePolicy
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
  public let configuration: Configuration
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
  private let parts: LoopParts
  private let hasStopped = Mutex(false)

  /// What belongs to loops: touched there alone once the server runs.
  private final class LoopParts: @unchecked Sendable {
    // @unchecked Sendable: filled before the loops start, then used on their own loops.
    var listeners: [Listener] = []
    var repositories: [Repository] = []
    var clients: [CurlClient] = []
    var admins: [AdminHandler] = []
  }

  /// Opens the store, binds the addresses, and serves.
  public static func start(
    _ configuration: Configuration, clock: Clock = Clock(), log: Log = .standardError
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
    CurlClient.prepareProcess()
    do throws(StoreError) {
      return try Server(
        configuration, store: store, chunkBytes: storeConfiguration.chunkBytes, publicSockets,
        adminSockets, clock, log)
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
    _ configuration: Configuration, store: LMDBStore, chunkBytes: Int,
    _ publicSockets: [ListeningSocket], _ adminSockets: [ListeningSocket], _ clock: Clock,
    _ log: Log
  ) throws(StoreError) {
    self.configuration = configuration
    services = Services(
      configuration: configuration, store: store, chunkBytes: chunkBytes, clock: clock, log: log)
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
    let endpoints = configuration.upstreams.map(Server.endpoint)
    for worker in workers {
      let client = CurlClient(
        loop: worker.loop, endpoints: endpoints,
        connectionsMax: configuration.limits.upstreamConnections,
        idleConnectionsMax: configuration.limits.upstreamIdleConnections)
      let reader = try store.makeReader()
      parts.clients.append(client)
      parts.repositories.append(
        Repository(worker: worker, services: services, remote: client, reader: reader))
      worker.onTick { client.tick() }
      worker.onClose { client.close() }
    }
    parts.admins = workers.map { AdminHandler(server: self, worker: $0) }
    listen(publicSockets, parts.repositories, gate)
    listen(adminSockets, parts.admins, adminGate)
    for worker in workers { worker.start() }
  }

  private static func endpoint(_ upstream: Upstream) -> OriginEndpoint {
    OriginEndpoint(
      url: "\(upstream.scheme.rawValue)://\(upstream.authority)",
      connectTimeoutMilliseconds: upstream.connectTimeoutMilliseconds,
      firstByteTimeoutMilliseconds: upstream.firstByteTimeoutMilliseconds,
      stallTimeoutMilliseconds: upstream.totalTimeoutMilliseconds,
      retriesMax: upstream.retries, proxy: upstream.proxy)
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

  // MARK: Counts

  /// Adds up what every loop has counted, and calls back on one of them.
  func collectCounts(_ finished: @escaping @Sendable (Counters, CurlClient.Counters) -> Void) {
    let count = workers.count
    let parts = self.parts
    let sum = Mutex((Counters(routeCount: services.countedNames.count), CurlClient.Counters(), 0))
    let box = CountBox(sum: sum)
    for index in 0..<count {
      workers[index].loop.post {
        let own = parts.repositories[index].counters
        let origin = parts.clients[index].counters
        let total = box.sum.withLock { sum -> (Counters, CurlClient.Counters)? in
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
    let sum: Mutex<(Counters, CurlClient.Counters, Int)>
    init(sum: consuming sending Mutex<(Counters, CurlClient.Counters, Int)>) { self.sum = sum }
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
