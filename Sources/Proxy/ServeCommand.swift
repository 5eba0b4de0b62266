internal import Backends
internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// `larder serve`: loads the file, starts the server, says that it is ready, and serves until
/// SIGTERM or SIGINT. SIGHUP has the file read anew.
public enum ServeCommand {
  /// The upstream that `--sample-origin` serves.
  static let sampleUpstreamName = "sample"

  /// Returns the process's exit status: 0 after an orderly end, 1 where it could not start, 2 where
  /// the configuration is wrong or fails its own tests.
  public static func run(
    configurationPath: String, sampleOrigin: Bool, environment: [String: String],
    log: Log = .standardError
  ) -> Int32 {
    let source = Reloader.Source(path: configurationPath) {
      TestedConfiguration.load(path: configurationPath, environment: environment).loadResult
    }
    let configuration: Configuration
    switch source.load() {
    case .refused(let diagnostics):
      for diagnostic in diagnostics { printError(diagnostic.description) }
      return 2
    case .loaded(let loaded, let warnings):
      for warning in warnings { printError(warning.description) }
      configuration = loaded
    }
    // Signals wait for `nextSignal` below; threads inherit the mask, so it is set before any starts.
    let signals = blockSignals()
    limitArenas(configuration)
    checkDescriptors(configuration, log)
    do throws(ServerError) {
      let origin = sampleOrigin ? try startSampleOrigin(configuration) : nil
      defer { origin?.stop() }
      let server = try Server.start(configuration, source: source, log: log)
      announce(server)
      waitForEnd(signals, server, log)
      server.drain()
      log.info("stopped")
      return 0
    } catch {
      printError("larder: \(error.description)")
      return 1
    }
  }

  private static func startSampleOrigin(
    _ configuration: Configuration
  ) throws(ServerError) -> SampleOrigin {
    guard
      let upstream = configuration.upstreams.first(where: { $0.name == sampleUpstreamName })
    else {
      throw ServerError(
        description: "--sample-origin serves the upstream named \"\(sampleUpstreamName)\", "
          + "and the configuration has none of that name")
    }
    return try SampleOrigin.start(host: upstream.host, port: upstream.port)
  }

  /// The one line on standard output.
  private static func announce(_ server: Server) {
    let addresses = server.publicAddresses.map { "http://\($0)" }.joined(separator: ",")
    let admin = server.adminAddresses.map { "http://\($0)" }.joined(separator: ",")
    let suffix = admin.isEmpty ? "" : " admin \(admin)"
    printLine("larder \(VersionCommand.version) ready: \(addresses)\(suffix)")
  }

  private static func checkDescriptors(_ configuration: Configuration, _ log: Log) {
    let descriptors = ProcessFacts.raiseDescriptorLimit()
    let wanted = configuration.limits.connections + 1024
    if descriptors < wanted {
      log.warning(
        "limits.connections is \(configuration.limits.connections), but the system allows this "
          + "process \(descriptors) open files; raise it with \"ulimit -n \(wanted)\"")
    }
  }

  /// The loops, the store's writer and the main thread have an arena each. Threads that come and go,
  /// as those that look names up, share the rest: each arena keeps what it once had.
  private static func limitArenas(_ configuration: Configuration) {
    let loops = configuration.loops == 0 ? EventLoop.coreCount : configuration.loops
    HeapMemory.limitArenas(to: loops + 4)
  }

  // MARK: Signals

  private static func blockSignals() -> sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGTERM)
    sigaddset(&set, SIGINT)
    sigaddset(&set, SIGHUP)
    pthread_sigmask(SIG_BLOCK, &set, nil)
    signal(SIGPIPE, SIG_IGN)
    return set
  }

  private static func waitForEnd(_ signals: sigset_t, _ server: Server, _ log: Log) {
    var signals = signals
    var memory = MemoryReturn()
    var received = nextSignal(&signals, &memory)
    while received == SIGHUP {
      server.reload()
      received = nextSignal(&signals, &memory)
    }
    log.info(
      "\(received == SIGINT ? "SIGINT" : "SIGTERM"): draining, running exchanges finish first")
    // A second signal ends the process at once; an order to reload does not, and comes too late.
    signal(SIGHUP, SIG_IGN)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    signal(SIGTERM, SIG_DFL)
    signal(SIGINT, SIG_DFL)
  }

  /// Waits for one of the signals; on Linux with a look at the memory now and then.
  private static func nextSignal(_ signals: inout sigset_t, _ memory: inout MemoryReturn) -> Int32 {
    var received: Int32 = 0
    #if os(Linux)
      while received <= 0 {
        var interval = timespec(tv_sec: Int(MemoryReturn.intervalMilliseconds / 1000), tv_nsec: 0)
        received = sigtimedwait(&signals, nil, &interval)
        if received < 0, errno == EAGAIN { memory.look() }
      }
    #else
      while sigwait(&signals, &received) != 0 {}
    #endif
    return received
  }
}
