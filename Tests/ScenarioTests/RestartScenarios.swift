import Foundation
import Proxy
import Support
import Synchronization
import Testing

/// What a store is worth after the process's end, orderly or not, and who may open it.
struct RestartScenarios {
  @Test func aStoreIsWarmAfterARestart() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      for index in 0..<50 {
        origin.on("/\(index)", .text("body \(index)", "ETag: \"\(index)\"", "X-Field: \(index)"))
        _ = try proxy.get("/\(index)")
      }
      proxy.advance(seconds: 1800)
      try proxy.restart()
      origin.stop()
      for index in 0..<50 {
        let answer = try proxy.get("/\(index)")
        expect(answer, "body \(index)", .hit)
        #expect(answer.first("X-Field") == "\(index)")
        #expect((1800...1900).contains(answer.ageSeconds ?? 0))
      }
      let statistics = try proxy.statistics()
      #expect(statistics.counts == .init(hits: 50))
      #expect(statistics.store.entries == 50)
    }
  }

  @Test func whatWasRemovedStaysRemovedAfterARestart() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      _ = try proxy.get("/a")
      _ = try proxy.send("POST", "/a", body: [1])
      try proxy.restart()
      expect(try proxy.get("/a"), "v3", .stored("uri-miss"))
    }
  }

  @Test(arguments: [
    ("garbage", Data(repeating: 0x5A, count: 100_000)), ("a few bytes", Data([1, 2, 3])),
  ])
  func aDamagedStoreIsSetAsideAndTheProxyStartsEmpty(_ name: String, _ content: Data) throws {
    let origin = try ScriptedOrigin()
    origin.on("/a") { .text("v\($0.number)") }
    let folder = try TemporaryFolder()
    let policies = scenarioPolicies(windowedRoute("cache-first"))
    let before = try TestProxy(policies: policies, origin: origin, folder: folder)
    _ = try before.get("/a")
    let file = before.storePath + "/data.mdb"
    before.stop()
    #expect(FileManager.default.fileExists(atPath: file))
    try content.write(to: URL(fileURLWithPath: file))
    let lines = Lines()
    let after = try TestProxy(policies: policies, origin: origin, folder: folder, log: lines.log)
    defer { after.stop() }
    #expect(lines.all.contains { $0.contains("set aside") && $0.contains(file) })
    expect(try after.get("/a"), "v2", .stored("uri-miss"))
    expect(try after.get("/a"), "v2", .hit)
  }

  @Test func aTruncatedStoreIsSetAsideAndTheProxyStartsEmpty() throws {
    let origin = try ScriptedOrigin()
    origin.on("/a") { .bytes(testBytes(300_000, seed: UInt64($0.number))) }
    let folder = try TemporaryFolder()
    let policies = scenarioPolicies(windowedRoute("cache-first"))
    let before = try TestProxy(policies: policies, origin: origin, folder: folder)
    _ = try before.get("/a")
    let file = before.storePath + "/data.mdb"
    before.stop()
    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
    try handle.truncate(atOffset: 16_384)
    try handle.close()
    let lines = Lines()
    let after = try TestProxy(policies: policies, origin: origin, folder: folder, log: lines.log)
    defer { after.stop() }
    #expect(lines.all.contains { $0.contains("set aside") })
    #expect(try after.get("/a").body == testBytes(300_000, seed: 2))
  }

  // MARK: Who may open it

  @Test func aSecondServerOnTheSameStoreIsRefused() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("v1"))
      var second = proxy.configuration
      second.listen = [.init(host: "127.0.0.1", port: 0)]
      let error = #expect(throws: ServerError.self) {
        _ = try Server.start(second, log: .silent)
      }
      #expect(error?.description.contains("in use") == true)
      #expect(error?.description.contains(proxy.storePath) == true)
      expect(try proxy.get("/a"), "v1", .stored("uri-miss"))
    }
  }

  @Test func aSecondServerOnTheSamePortIsRefusedAndLeavesNothingBehind() throws {
    try scenario(windowedRoute("cache-first")) { origin, proxy in
      origin.on("/a", .text("v1"))
      let folder = try TemporaryFolder()
      var second = proxy.configuration
      second.store.path = folder.path + "/store"
      second.listen = [.init(host: "127.0.0.1", port: proxy.port)]
      let error = #expect(throws: ServerError.self) {
        _ = try Server.start(second, log: .silent)
      }
      #expect(error?.description.contains("\(proxy.port)") == true)
      expect(try proxy.get("/a"), "v1", .stored("uri-miss"))
      // The port freed, the same store opens: nothing held it.
      second.listen = [.init(host: "127.0.0.1", port: 0)]
      let third = try Server.start(second, log: .silent)
      #expect(third.publicAddresses[0].port != 0)
      third.drain()
    }
  }
}

/// What a server wrote to its log.
final class Lines: Sendable {
  private let lines = Mutex<[String]>([])

  var all: [String] { lines.withLock { $0 } }

  var log: Log { Log { _, text in self.lines.withLock { $0.append(text) } } }
}
