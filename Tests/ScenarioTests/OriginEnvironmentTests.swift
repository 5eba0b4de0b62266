internal import Foundation
import Support
import Testing

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// What only another process can show: certificates, and proxies that the environment names.
struct OriginEnvironmentTests {
  /// A program that this machine may have.
  private static func program(_ name: String) -> String? {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    return folders.map { "\($0)/\(name)" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// The built command, beside the tests.
  static let command: String? = {
    let own = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    let path = own.deletingLastPathComponent().appendingPathComponent("larder").path
    return FileManager.default.isExecutableFile(atPath: path) ? path : nil
  }()

  /// By SIGKILL: a child inherits what signals its parent's threads block.
  private static func end(_ process: Process) {
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// Runs a program to its end; its status.
  private static func run(_ program: String, _ arguments: [String]) throws -> Int32 {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    return process.terminationStatus
  }

  /// Reads a program's output until a line holds the text; that line.
  private static func line(with text: String, from pipe: Pipe) -> String? {
    var received = ""
    while true {
      let piece = pipe.fileHandleForReading.availableData
      if piece.isEmpty { return nil }
      received += String(decoding: piece, as: UTF8.self)
      let lines = received.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      if let line = lines.first(where: { $0.contains(text) }) { return String(line) }
    }
  }

  @Test(.enabled(if: program("openssl") != nil, "openssl is not installed"))
  func anOriginWithACertificateThatNobodyVouchesForIsRefused() throws {
    let openssl = try #require(Self.program("openssl"))
    let folder = try TemporaryFolder()
    let (key, certificate) = (folder.path + "/key.pem", folder.path + "/certificate.pem")
    let made = try Self.run(
      openssl,
      [
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", certificate,
      ])
    try #require(made == 0)
    let server = Process()
    server.executableURL = URL(fileURLWithPath: openssl)
    server.arguments = [
      "s_server", "-accept", "127.0.0.1:0", "-www", "-key", key, "-cert", certificate,
    ]
    let output = Pipe()
    server.standardOutput = output
    server.standardError = FileHandle.nullDevice
    server.standardInput = FileHandle.nullDevice
    try server.run()
    defer { Self.end(server) }
    let accept = try #require(Self.line(with: "ACCEPT", from: output))
    let port = try #require(accept.split(separator: ":").last)

    let unused = try ScriptedOrigin()
    defer { unused.stop() }
    let proxy = try TestProxy(
      policies: scenarioPolicies("").replacingOccurrences(
        of: "http://{ORIGIN}", with: "https://127.0.0.1:\(port)"),
      origin: unused)
    let answer = try proxy.get("/a")
    #expect(answer.status == 502)
    #expect(answer.text.contains("certificate"))
    #expect(try proxy.statistics().origin.failures == 1)
  }

  @Test(.enabled(if: command != nil, "the larder command is not built"))
  func proxiesThatTheEnvironmentNamesAreNotUsed() throws {
    let command = try #require(Self.command)
    let origin = try ScriptedOrigin()
    let evil = try ScriptedOrigin()
    defer {
      origin.stop()
      evil.stop()
    }
    origin.on("/a", .text("from the origin"))
    let folder = try TemporaryFolder()
    let file = folder.path + "/policies.json"
    let policies = scenarioPolicies(
      "",
      top: #"""
        "listen": "127.0.0.1:0", "loops": 1, "store": { "path": "\#(folder.path)/store" },
        """#
    ).replacingOccurrences(of: "{ORIGIN}", with: "127.0.0.1:\(origin.port)")
    try policies.write(toFile: file, atomically: true, encoding: .utf8)
    let server = Process()
    server.executableURL = URL(fileURLWithPath: command)
    server.arguments = ["serve", "--config", file]
    var environment = ProcessInfo.processInfo.environment
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"] {
      environment[name] = "http://127.0.0.1:\(evil.port)"
    }
    environment["no_proxy"] = nil
    environment["NO_PROXY"] = nil
    server.environment = environment
    let output = Pipe()
    server.standardOutput = output
    server.standardError = FileHandle.nullDevice
    try server.run()
    defer { Self.end(server) }
    let ready = try #require(Self.line(with: "ready: http://127.0.0.1:", from: output))
    let port = try #require(
      ready.split(separator: " ").first { $0.hasPrefix("http://") }?.split(separator: ":").last
        .flatMap { UInt16($0) })
    let connection = try ClientConnection(port: port)
    #expect(try connection.get("/a").text == "from the origin")
    #expect(evil.connectionCount == 0)
  }
}
