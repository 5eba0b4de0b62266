/// The remote data source of one loop: what goes in clear text goes by our own HTTP/1.1, the rest
/// (TLS and with it HTTP/2, proxies) by libcurl.
///
/// It decides which of the two, and nothing else. Made and used on its loop.
public final class OriginClient: RemoteDataSource {
  private let curl: CurlClient
  let http1: HTTP1Client

  /// `connectionsMax` bounds the connections to one origin, `idleConnectionsMax` those that are kept
  /// for reuse, to all.
  public convenience init(
    loop: EventLoop, endpoints: [OriginEndpoint], connectionsMax: Int, idleConnectionsMax: Int
  ) {
    self.init(
      loop: loop, endpoints: endpoints, connectionsMax: connectionsMax,
      idleConnectionsMax: idleConnectionsMax, connector: nil)
  }

  /// `connector`: who makes the connections in clear text; nil: libcurl.
  init(
    loop: EventLoop, endpoints: [OriginEndpoint], connectionsMax: Int, idleConnectionsMax: Int,
    connector: (any OriginConnector)?
  ) {
    curl = CurlClient(loop: loop)
    http1 = HTTP1Client(loop: loop, connector: connector ?? curl)
    use(
      endpoints: endpoints, connectionsMax: connectionsMax, idleConnectionsMax: idleConnectionsMax)
  }

  /// Sets what requests from now on go to, and the limits. Transfers that run to an endpoint which
  /// is no longer among these end as they began; connections to the others are kept.
  public func use(endpoints: [OriginEndpoint], connectionsMax: Int, idleConnectionsMax: Int) {
    curl.use(
      endpoints: endpoints, connectionsMax: connectionsMax, idleConnectionsMax: idleConnectionsMax)
    http1.use(
      endpoints: endpoints, connectionsMax: connectionsMax, idleConnectionsMax: idleConnectionsMax)
  }

  /// Sets libcurl up; once a process, before any client is made and while there is one thread.
  public static func prepareProcess() { CurlClient.prepareProcess() }

  /// What was done since it was made.
  public var counters: OriginCounters {
    var sum = curl.counters
    sum.add(http1.counters)
    return sum
  }

  public func start(
    _ request: OriginRequest, receiver: any OriginResponseReceiver
  ) -> any OriginTransfer {
    request.endpoint.isSpokenToByHTTP1Client
      ? http1.start(request, receiver: receiver) : curl.start(request, receiver: receiver)
  }

  public func afterCallbacks(_ work: @escaping () -> Void) {
    if !http1.deferring(work) { curl.afterCallbacks(work) }
  }

  /// Fails the transfers whose patience has ended; called by the loop's tick.
  public func tick() {
    http1.tick()
    curl.tick()
  }

  /// Gives everything back; transfers that still run fail.
  public func close() {
    http1.close()
    curl.close()
  }
}

/// Makes connections that others speak on. `CurlClient` is the real one.
protocol OriginConnector: AnyObject {
  /// Connects to an endpoint, and tells the end of it, perhaps from within. The descriptor is the
  /// caller's.
  func connect(
    to endpoint: OriginEndpoint,
    _ completion: @escaping (_ descriptor: Result<Int32, OriginError>) -> Void)
}
