internal import Foundation

/// The built `larder` executable as a process of its own, for what only a process can show: signals,
/// exit status, and a death in the middle of writing.
public final class LarderProcess {
  public struct CannotRun: Error, CustomStringConvertible {
    public let description: String
  }

  private let process = Process()
  private let output = Pipe()
  private let errors: FileHandle
  private let errorsPath: String
  /// The line by which it says that it serves.
  public let readyLine: String
  public let port: UInt16
  public let adminPort: UInt16

  /// Where the executable is, beside the tests'; nil: it is not built.
  public static var executablePath: String? {
    // The tests' own executable, or a folder within it, lies in the build's folder.
    var folder = Bundle.main.executableURL?.deletingLastPathComponent()
    for _ in 0..<4 {
      guard let current = folder else { return nil }
      let candidate = current.appendingPathComponent("larder").path
      if FileManager.default.isExecutableFile(atPath: candidate) { return candidate }
      folder = current.deletingLastPathComponent()
    }
    return nil
  }

  /// Starts `larder serve` and waits until it is ready. `policies`: as for `TestProxy`, with its
  /// listeners and store as they are to be; `{FOLDER}` stands for the folder. `environment` goes
  /// beside the test's own.
  public init(
    policies: String, origin: ScriptedOrigin, folder: TemporaryFolder,
    environment: [String: String] = [:]
  ) throws {
    guard let executable = LarderProcess.executablePath else {
      throw CannotRun(description: "the larder executable is not built")
    }
    let file = try LarderProcess.write(policies, origin, folder)
    errorsPath = folder.path + "/errors"
    _ = FileManager.default.createFile(atPath: errorsPath, contents: nil)
    errors = try FileHandle(forWritingTo: URL(fileURLWithPath: errorsPath))
    process.executableURL = URL(fileURLWithPath: executable)
    process.arguments = ["serve", "--config", file]
    process.environment = ProcessInfo.processInfo.environment
      .merging(environment) { _, given in given }
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    readyLine = LarderProcess.readLine(output.fileHandleForReading)
    let ports = readyLine.split(separator: " ").filter { $0.hasPrefix("http://") }
      .compactMap { $0.split(separator: ":").last.flatMap { UInt16($0) } }
    guard ports.count == 2 else {
      process.terminate()
      process.waitUntilExit()
      // The message is for whoever reads the failure; without it there is still the line.
      let said = (try? String(contentsOfFile: errorsPath, encoding: .utf8)) ?? ""
      throw CannotRun(description: "larder did not become ready: \"\(readyLine)\" \(said)")
    }
    (port, adminPort) = (ports[0], ports[1])
  }

  deinit {
    if process.isRunning { kill() }
  }

  private static func write(
    _ policies: String, _ origin: ScriptedOrigin, _ folder: TemporaryFolder
  ) throws -> String {
    let text =
      policies
      .replacingOccurrences(of: "{ORIGIN}", with: "127.0.0.1:\(origin.port)")
      .replacingOccurrences(of: "{FOLDER}", with: folder.path)
    let file = folder.path + "/policies.json"
    try Data(text.utf8).write(to: URL(fileURLWithPath: file), options: .atomic)
    return file
  }

  /// Puts new text into its file.
  public func rewrite(policies: String, origin: ScriptedOrigin, folder: TemporaryFolder) throws {
    _ = try LarderProcess.write(policies, origin, folder)
  }

  /// Asks `/stats` until a configuration of at least this number is in force; false: the bound
  /// passed. Signals have nobody to tell when they have been dealt with.
  public func waitForGeneration(_ generation: Int) throws -> Bool {
    let end = Date(timeIntervalSinceNow: TimeInterval(waitBoundSeconds))
    while Date() < end {
      if try statistics().config.generation >= generation { return true }
    }
    return false
  }

  /// Asks `/stats` until it is as wanted; nil: the bound passed. For what the process does by itself
  /// and tells nobody.
  public func waitForStatistics(
    _ isWanted: (ProxyStatistics) -> Bool
  ) throws -> ProxyStatistics? {
    let end = Date(timeIntervalSinceNow: TimeInterval(waitBoundSeconds))
    while Date() < end {
      let found = try statistics()
      if isWanted(found) { return found }
    }
    return nil
  }

  /// The text of `/healthz`.
  public func healthText() throws -> String {
    let connection = try ClientConnection(
      port: adminPort, authority: ClientConnection.adminAuthority)
    defer { connection.close() }
    return try connection.get("/healthz").text
  }

  private static func readLine(_ handle: FileHandle) -> String {
    var line: [UInt8] = []
    while true {
      let byte = handle.readData(ofLength: 1)
      if byte.isEmpty || byte[0] == 0x0A { return String(decoding: line, as: UTF8.self) }
      line.append(byte[0])
    }
  }

  /// What it wrote to standard error so far.
  public func errorText() throws -> String {
    try String(contentsOfFile: errorsPath, encoding: .utf8)
  }

  /// SIGKILL: returns when the process is gone.
  public func kill() {
    _ = sendSignal(SIGKILL)
    process.waitUntilExit()
  }

  /// SIGTERM: returns at once.
  public func terminate() { _ = sendSignal(SIGTERM) }

  /// SIGHUP: has it read its file anew.
  public func hangUp() { _ = sendSignal(SIGHUP) }

  /// Waits for its end; the exit status.
  public func waitForExit() -> Int32 {
    process.waitUntilExit()
    return process.terminationStatus
  }

  private func sendSignal(_ signal: Int32) -> Int32 {
    systemKill(process.processIdentifier, signal)
  }

  public func connect() throws -> ClientConnection { try ClientConnection(port: port) }

  public func statistics() throws -> ProxyStatistics {
    let connection = try ClientConnection(
      port: adminPort, authority: ClientConnection.adminAuthority)
    defer { connection.close() }
    return try JSONDecoder().decode(
      ProxyStatistics.self, from: Data(try connection.get("/stats").body))
  }
}

/// The type's own function has the name of the system's.
private func systemKill(_ process: Int32, _ signal: Int32) -> Int32 { kill(process, signal) }
