internal import Foundation
import Support
import Testing

/// Hundreds of clients for one key at the moment it is due: one request to the origin, and nobody
/// waits for anybody else.
@Suite(.serialized)
struct HerdScenarios {
  static let clientCount = 300

  /// What the herd meets.
  enum Key: String, CaseIterable, CustomTestStringConvertible {
    case cold, expired, expiredAndConfirmed, staleWithinTheWindow
    var testDescription: String { rawValue }
  }

  private func herd(_ proxy: TestProxy) throws -> [ClientConnection] {
    try (0..<HerdScenarios.clientCount).map { _ in
      let connection = try proxy.connect()
      connection.send("OPTIONS", "*")
      _ = try connection.readAnswer()
      return connection
    }
  }

  @Test(arguments: Key.allCases, [1, 3])
  func aHerdCausesOneRequest(_ key: Key, _ loops: Int) throws {
    let route =
      key == .staleWithinTheWindow
      ? windowedRoute("cache-first")
      : #"{ "name": "r", "match": "/**", "strategy": "cache-first", "ttl": "1h" }"#
    try scenario(route, top: "\"loops\": \(loops),") { origin, proxy in
      let gate = Gate()
      let old = testBytes(50_000, seed: 1)
      let new = testBytes(50_000, seed: 2)
      let late =
        key == .expiredAndConfirmed
        ? OriginAnswer.empty(status: 304, "ETag: \"one\"") : .bytes(new, "ETag: \"two\"")
      origin.on("/a", inTurn: [.bytes(old, "ETag: \"one\""), late.waiting(for: gate)])
      if key == .cold {
        origin.on("/a", OriginAnswer.bytes(new).waiting(for: gate))
      } else {
        _ = try proxy.get("/a")
        proxy.advance(seconds: 3_700)
      }
      let before = origin.requestCount("/a")
      let clients = try herd(proxy)
      for client in clients { client.send("GET", "/a") }
      #expect(gate.waitUntilReached())
      if key == .staleWithinTheWindow {
        // Nobody waits for the refresh.
        for client in clients {
          let answer = try client.readAnswer()
          #expect(answer.body == old)
        }
      }
      try proxy.settle()
      // A client that takes nothing, and one that leaves, hold up nobody.
      clients[0].reset()
      gate.open()
      if key != .staleWithinTheWindow {
        let due = key == .expiredAndConfirmed ? old : new
        for client in clients.dropFirst() {
          let answer = try client.readAnswer()
          #expect(answer.status == 200 && answer.body == due)
        }
      }
      try proxy.settle(after: origin, "/a", answers: before + 1)
      #expect(origin.requestCount("/a") == before + 1)
      #expect(try proxy.get("/a").cacheStatus.isHit)
    }
  }

  /// Clients that ask without a pause, on threads of their own, until they are stopped.
  private final class Load: Sendable {
    private let isStopped = Monitored(false)
    private let running = Monitored(0)
    private let counts = Monitored((answers: 0, wrong: 0))

    /// `isRight` looks at each answer.
    func begin(
      _ proxy: TestProxy, threads: Int, clientsEach: Int, path: String,
      isRight: @escaping @Sendable (Answer) -> Bool
    ) throws {
      let port = proxy.port
      for _ in 0..<threads {
        running.update { $0 += 1 }
        Thread.detachNewThread { [self] in
          let clients = (0..<clientsEach).compactMap { _ in try? ClientConnection(port: port) }
          while !isStopped.read({ $0 }) {
            for client in clients { client.send("GET", path) }
            for client in clients {
              // Whatever is no answer is a wrong one.
              let answer = try? client.readAnswer()
              let isWrong = answer.map { !isRight($0) } ?? true
              counts.update { counts in
                counts.answers += 1
                counts.wrong += isWrong ? 1 : 0
              }
            }
          }
          running.update { $0 -= 1 }
        }
      }
    }

    /// Waits for so many answers from now on.
    func waitForAnswers(_ count: Int) -> Bool {
      let before = counts.read { $0.answers }
      return counts.wait { $0.answers >= before + count }
    }

    /// The answers that were wrong; nil: somebody hangs.
    func stop() -> Int? {
      isStopped.update { $0 = true }
      return running.wait { $0 == 0 } ? counts.read { $0.wrong } : nil
    }
  }

  /// The origin gives a second, and the clock goes on beside the load. How often it is due is the
  /// clock's to say: between two requests lies the lifetime, whatever the load.
  @Test(arguments: [1, 3], ["\"0s\"", "\"1h\""])
  func aKeyThatLivesASecondIsFetchedWhenItIsDueUnderConstantLoad(
    _ loops: Int, _ window: String
  ) throws {
    let route = """
      { "name": "r", "match": "/**", "strategy": "cache-first", "ttl": "1s",
        "staleWhileRevalidate": \(window) }
      """
    try scenario(route, top: "\"loops\": \(loops),") { origin, proxy in
      let clock = proxy.clock
      let times = Monitored<[Int64]>([])
      origin.on("/a") { request in
        times.update { $0.append(clock.nowMilliseconds) }
        return .text("v\(request.number)", "Cache-Control: max-age=1")
      }
      _ = try proxy.get("/a")
      let load = Load()
      try load.begin(proxy, threads: 4, clientsEach: 40, path: "/a") {
        $0.status == 200 && $0.text.hasPrefix("v")
      }
      for _ in 0..<60 {
        #expect(load.waitForAnswers(50))
        proxy.advance(milliseconds: 250)
      }
      #expect(load.stop() == 0)
      let seen = times.read { $0 }
      #expect(seen.count >= 4, "\(seen)")
      // An answer is received after it was asked for: no two can be closer.
      #expect(zip(seen, seen.dropFirst()).allSatisfy { $1 - $0 >= 1_000 }, "\(seen)")
      let statistics = try proxy.statistics()
      #expect(statistics.counts.errors == 0)
      #expect(statistics.upstreams["origin"] == .init())
    }
  }

  /// With the clock standing still but for the test, each step is exactly one request.
  @Test(arguments: [1, 3], ["\"0s\"", "\"365d\""])
  func eachTimeItIsDueThereIsExactlyOneRequest(_ loops: Int, _ window: String) throws {
    let route = """
      { "name": "r", "match": "/**", "strategy": "cache-first", "ttl": "1d",
        "staleWhileRevalidate": \(window) }
      """
    try scenario(route, top: "\"loops\": \(loops),") { origin, proxy in
      origin.on("/a") { .text("v\($0.number)") }
      _ = try proxy.get("/a")
      let load = Load()
      try load.begin(proxy, threads: 4, clientsEach: 40, path: "/a") {
        $0.status == 200 && $0.text.hasPrefix("v")
      }
      for step in 1...10 {
        proxy.advance(seconds: 86_401)
        try proxy.settle(after: origin, "/a", answers: step + 1)
        #expect(load.waitForAnswers(200))
        try proxy.settle()
        #expect(origin.requestCount("/a") == step + 1)
      }
      #expect(load.stop() == 0)
      #expect(origin.requestCount("/a") == 11)
    }
  }
}
