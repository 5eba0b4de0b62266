public import Backends
internal import Foundation
public import Proxy

/// A whole Larder inside the test's process: configuration text in, real sockets, a store in a
/// folder of its own, a clock that the test moves.
///
/// One loop, unless the text says otherwise: then a request that follows an answer finds everything
/// that the answer left behind.
public final class TestProxy {
  public struct Refused: Error, CustomStringConvertible {
    public let description: String
  }

  public let clock = Clock()
  public private(set) var configuration: Configuration
  /// nil while it is stopped: the store's folder is free once the last reference is gone.
  public private(set) var server: Server?
  private let folder: TemporaryFolder
  /// Where its policies.json is.
  private let file: String
  private let log: Log
  /// Whether a change of the file is noticed without an order.
  private let watchesFile: Bool
  private var admin: ClientConnection?

  /// `policies`: the text of a policies.json in which `{ORIGIN}` stands for the origin's authority.
  /// What it says of listeners and of the store's folder does not count.
  public init(
    policies: String, origin: ScriptedOrigin, folder: TemporaryFolder? = nil,
    watchesFile: Bool = false, log: Log = .silent
  ) throws {
    _ = ignoringBrokenPipes
    let folder = try folder ?? TemporaryFolder()
    self.folder = folder
    file = folder.path + "/policies.json"
    self.log = log
    self.watchesFile = watchesFile
    try TestProxy.write(policies, origin, self.folder)
    configuration = try TestProxy.configuration(file, folder)
    server = try start()
  }

  /// One whose file is there already, and is watched.
  public init(file: String, folder: TemporaryFolder, log: Log) throws {
    _ = ignoringBrokenPipes
    self.folder = folder
    self.file = file
    self.log = log
    watchesFile = true
    configuration = try TestProxy.configuration(file, folder)
    server = try start()
  }

  private func start() throws -> Server {
    let (file, folder) = (self.file, self.folder)
    let source = Reloader.Source(path: watchesFile ? file : nil) { TestProxy.load(file, folder) }
    return try Server.start(configuration, source: source, clock: clock, log: log)
  }

  private static func write(
    _ policies: String, _ origin: ScriptedOrigin, _ folder: TemporaryFolder
  ) throws {
    let text = policies.replacingOccurrences(
      of: "{ORIGIN}", with: "127.0.0.1:\(origin.port)")
    try text.write(toFile: folder.path + "/policies.json", atomically: true, encoding: .utf8)
  }

  private static func load(
    _ file: String, _ folder: TemporaryFolder
  ) -> ConfigurationLoader.LoadResult {
    let result = TestedConfiguration.load(
      path: file, environment: [:]
    ).loadResult
    guard case .loaded(var configuration, let warnings) = result else { return result }
    let anyPort = Configuration.ListenAddress(host: "127.0.0.1", port: 0)
    configuration.listen = [anyPort]
    configuration.admin.listen = [anyPort]
    configuration.store.path = folder.path + "/store"
    if configuration.loops == 0 { configuration.loops = 1 }
    return .loaded(configuration, warnings: warnings)
  }

  private static func configuration(
    _ file: String, _ folder: TemporaryFolder
  ) throws -> Configuration {
    switch load(file, folder) {
    case .refused(let diagnostics):
      throw Refused(description: diagnostics.map(\.description).joined(separator: "\n"))
    case .loaded(let configuration, _): return configuration
    }
  }

  // MARK: The configuration

  /// Puts new text into the file, and has it read anew where `POST /reload` is not left out: the
  /// answer to that. It also waits until every loop uses what was read.
  @discardableResult
  public func rewrite(
    policies: String, origin: ScriptedOrigin, reloading: Bool = true
  ) throws -> Answer? {
    try TestProxy.write(policies, origin, folder)
    return reloading ? try administer("POST", "/reload") : nil
  }

  /// One request to the admin listener.
  public func administer(_ method: String, _ path: String, _ fields: [String] = []) throws -> Answer
  {
    let connection = try ClientConnection(
      port: server!.adminAddresses[0].port, authority: ClientConnection.adminAuthority)
    defer { connection.close() }
    let hasHost = fields.contains { $0.lowercased().hasPrefix("host:") }
    connection.send(method, path, hasHost ? fields : ["Host: 127.0.0.1"] + fields)
    return try connection.readAnswer()
  }

  public var storePath: String { configuration.store.path }
  public var port: UInt16 { server!.publicAddresses[0].port }

  // MARK: Clients

  public func connect(receiveBufferBytes: Int32? = nil) throws -> ClientConnection {
    try ClientConnection(port: port, receiveBufferBytes: receiveBufferBytes)
  }

  /// One request on a connection of its own. Fields as "Name: value".
  public func send(
    _ method: String, _ path: String, _ fields: [String] = [], body: [UInt8]? = nil
  ) throws -> Answer {
    let connection = try connect()
    defer { connection.close() }
    connection.send(method, path, fields, body: body)
    return try connection.readAnswer()
  }

  public func get(_ path: String, _ fields: String...) throws -> Answer {
    try send("GET", path, fields)
  }

  // MARK: Counts

  /// `GET /stats` of the admin listener.
  ///
  /// It also settles things: the answer is made once every loop has taken in all that was sent to
  /// it before this call. It asks three times, because a loop may look at the question before
  /// sockets that became ready in the same turn, and what those led to may be put off by a turn.
  public func statistics() throws -> ProxyStatistics {
    let connection: ClientConnection
    if let admin {
      connection = admin
    } else {
      connection = try ClientConnection(
        port: server!.adminAddresses[0].port, authority: ClientConnection.adminAuthority)
      admin = connection
    }
    for _ in 0..<2 { _ = try connection.get("/stats") }
    let answer = try connection.get("/stats")
    guard answer.status == 200 else { throw Refused(description: "/stats: \(answer.text)") }
    return try JSONDecoder().decode(ProxyStatistics.self, from: Data(answer.body))
  }

  /// What was counted for a route.
  public func counts(_ route: String) throws -> ProxyStatistics.Counts {
    let statistics = try statistics()
    guard let found = statistics.routes[route] else {
      throw Refused(description: "/stats has no route \(route)")
    }
    return found.counts
  }

  /// Waits until what was sent to the proxy before this call has been taken in, by every loop.
  public func settle() throws { _ = try statistics() }

  /// Waits until an origin's answer is out and the proxy has taken it in.
  public func settle(after origin: ScriptedOrigin, _ path: String, answers: Int) throws {
    guard origin.waitForAnswers(path, answers) else {
      throw Refused(
        description: "\(path): \(origin.requestCount(path)) requests, \(answers) answers awaited")
    }
    try settle()
  }

  // MARK: Time and the end

  public func advance(seconds: Int64) { clock.advance(byMilliseconds: seconds * 1000) }
  public func advance(milliseconds: Int64) { clock.advance(byMilliseconds: milliseconds) }

  /// Drains, and starts anew on the same store, with new ports; `policies` replace the old ones.
  public func restart(policies: String? = nil, origin: ScriptedOrigin? = nil) throws {
    stop()
    if let policies, let origin {
      try TestProxy.write(policies, origin, folder)
      configuration = try TestProxy.configuration(file, folder)
    }
    server = try start()
  }

  /// Drains. The store stays until this object goes.
  public func stop() {
    admin?.close()
    admin = nil
    server?.drain()
    server = nil
  }

  deinit { stop() }
}

/// A folder for one test, removed with this object.
public final class TemporaryFolder: Sendable {
  public let path: String

  public init() throws {
    let url = FileManager.default.temporaryDirectory
      .appendingPathComponent("larder-test-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    path = url.path
  }

  // A folder that cannot be removed is left to the system: no test is about it.
  deinit { try? FileManager.default.removeItem(atPath: path) }
}
