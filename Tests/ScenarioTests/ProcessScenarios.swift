import Foundation
import Support
import Testing

/// The executable itself: its one line, its signals, and its death under writes.
@Suite(.serialized, .enabled(if: LarderProcess.executablePath != nil, "larder is not built"))
struct ProcessScenarios {
  static func policies(_ strategy: String) -> String {
    """
    { "version": 1, "listen": "127.0.0.1:0", "loops": 2, "admin": { "listen": "127.0.0.1:0" },
      "store": { "path": "{FOLDER}/store" },
      "upstreams": { "origin": { "url": "http://{ORIGIN}" } },
      "defaults": { "upstream": "origin" },
      "routes": [
        { "name": "r", "match": "/**", "strategy": "\(strategy)", "ttl": "1d" } ] }
    """
  }

  @Test func oneLineSaysWhereItServes() throws {
    let origin = try ScriptedOrigin()
    origin.on("/a", .text("v1"))
    let larder = try LarderProcess(
      policies: ProcessScenarios.policies("cache-first"), origin: origin, folder: TemporaryFolder())
    #expect(larder.readyLine.hasPrefix("larder "))
    #expect(
      larder.readyLine.hasSuffix(
        " ready: http://127.0.0.1:\(larder.port) admin http://127.0.0.1:\(larder.adminPort)"))
    expect(try larder.connect().get("/a"), "v1", .stored("uri-miss"))
    larder.terminate()
    #expect(larder.waitForExit() == 0)
  }

  @Test func sighupHasTheFileReadAnewAndSaysSo() throws {
    let origin = try ScriptedOrigin()
    let folder = try TemporaryFolder()
    origin.on("/a") { .text("v\($0.number)") }
    let larder = try LarderProcess(
      policies: ProcessScenarios.policies("cache-first"), origin: origin, folder: folder)
    expect(try larder.connect().get("/a"), "v1", .stored("uri-miss"))
    try larder.rewrite(
      policies: ProcessScenarios.policies("network-and-store"), origin: origin, folder: folder)
    larder.hangUp()
    // The signal and the file's change may come as one order or as two.
    let isReloaded = try larder.waitForGeneration(2)
    let said = try larder.errorText()
    #expect(isReloaded, "\(said)")
    let answer = try larder.connect().get("/a")
    #expect(answer.text == "v2")
    #expect(try larder.errorText().contains("is in force"))
    larder.terminate()
    #expect(larder.waitForExit() == 0)
  }

  @Test func aPipeInTheFilesPlaceHoldsUpNoReload() throws {
    let origin = try ScriptedOrigin()
    let folder = try TemporaryFolder()
    let policies = ProcessScenarios.policies("cache-first")
    let larder = try LarderProcess(policies: policies, origin: origin, folder: folder)
    let admin = try ClientConnection(
      port: larder.adminPort, authority: ClientConnection.adminAuthority)
    let file = folder.path + "/policies.json"
    #expect(unlink(file) == 0 && mkfifo(file, 0o600) == 0)
    admin.send("POST", "/reload")
    let refused = try admin.readAnswer()
    #expect(refused.status == 422 && refused.text.contains("neither a file"))
    try larder.rewrite(policies: policies, origin: origin, folder: folder)
    admin.send("POST", "/reload")
    let applied = try admin.readAnswer()
    #expect(applied.status == 200)
  }

  @Test func sigtermLetsARunningExchangeFinishAndClosesTheStore() throws {
    let origin = try ScriptedOrigin()
    let folder = try TemporaryFolder()
    let gate = Gate()
    origin.on("/a", OriginAnswer.text("version 1").pausing(after: 4, for: gate))
    let larder = try LarderProcess(
      policies: ProcessScenarios.policies("cache-first"), origin: origin, folder: folder)
    let idle = [try larder.connect(), try larder.connect()]
    for connection in idle {
      connection.send("OPTIONS", "*")
      _ = try connection.readAnswer()
    }
    let busy = try larder.connect()
    busy.send("GET", "/a")
    try busy.readHead()
    #expect(gate.waitUntilReached())
    larder.terminate()
    // An idle connection is closed after the listener was.
    for connection in idle { #expect(try connection.isClosedByPeer()) }
    #expect(throws: SocketError.self) { _ = try larder.connect() }
    // Too late, and nothing that may end it.
    larder.hangUp()
    gate.open()
    let answer = try busy.finishAnswer()
    #expect(answer.text == "version 1" && !answer.isCut)
    #expect(larder.waitForExit() == 0)
    let again = try LarderProcess(
      policies: ProcessScenarios.policies("cache-only"), origin: origin, folder: folder)
    expect(try again.connect().get("/a"), "version 1", .hit)
  }

  // MARK: kill -9

  /// Bodies of all kinds of places, told apart by their number.
  static func body(_ number: Int) -> [UInt8] {
    testBytes([300, 20_000, 200_000, 1_000_000][number % 4] + number, seed: UInt64(number))
  }

  /// `entriesAtDeath`: the kill comes once so many are in the store, with a large body on its way.
  @Test(arguments: [1, 7, 30])
  func afterAKillUnderWritesEveryEntryThatIsThereIsWhole(_ entriesAtDeath: Int) throws {
    let origin = try ScriptedOrigin()
    let folder = try TemporaryFolder()
    let gate = Gate()
    defer { gate.open() }
    let large = testBytes(6_000_000, seed: 999)
    origin.on("/large", OriginAnswer.bytes(large).pausing(after: 4_000_000, for: gate))
    var asked = 0
    let larder = try LarderProcess(
      policies: ProcessScenarios.policies("cache-first"), origin: origin, folder: folder)
    let streaming = try larder.connect()
    streaming.send("GET", "/large")
    try streaming.readHead()
    try streaming.readBody(atLeast: 3_000_000)
    let connection = try larder.connect()
    while try larder.statistics().store.entries < entriesAtDeath {
      asked += 1
      guard asked < 5_000 else {
        Issue.record("nothing gets into the store")
        break
      }
      origin.on("/\(asked)", .bytes(ProcessScenarios.body(asked)))
      let answer = try connection.get("/\(asked)")
      #expect(answer.body == ProcessScenarios.body(asked))
    }
    larder.kill()
    let again = try LarderProcess(
      policies: ProcessScenarios.policies("cache-only"), origin: origin, folder: folder)
    let reader = try again.connect()
    var found = 0
    for number in 1...max(1, asked) {
      let answer = try reader.get("/\(number)")
      if answer.status == 200 {
        found += 1
        #expect(answer.body == ProcessScenarios.body(number), "entry \(number)")
        #expect(!answer.isCut)
      } else {
        #expect(answer.status == 504)
      }
    }
    // What was in the store before the kill is in it after.
    #expect(found >= entriesAtDeath)
    #expect(try reader.get("/large").status == 504)
    let statistics = try again.statistics()
    #expect(statistics.store.damaged == 0)
    #expect(statistics.store.entries == found)
    #expect(try !again.errorText().contains("set aside"))
  }
}
