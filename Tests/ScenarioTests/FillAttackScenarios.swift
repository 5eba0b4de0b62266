internal import Foundation
import Support
import Testing

/// Everything at once: clients that leave at any byte, purges, refreshes and reloads while fetches
/// run. What must hold is that nobody gets a wrong byte, and that nothing is left over.
@Suite(.serialized)
struct FillAttackScenarios {
  private func isQuiet(_ proxy: TestProxy) throws -> Bool {
    for _ in 0..<20_000 {
      let statistics = try proxy.statistics()
      if statistics.connections.open == 0, statistics.upstreams["origin"]?.active == 0,
        statistics.upstreams["origin"]?.queued == 0
      {
        return true
      }
    }
    return false
  }

  static let rules = [
    "\"finish\"", "\"stop\"", "{ \"finishBelow\": \"100KiB\", \"finishFromPercent\": 30 }",
  ]

  @Test(arguments: rules, [1, 3])
  func clientsThatLeaveAtAnyByteLeaveNothingWrong(_ rule: String, _ loops: Int) throws {
    let route = windowedRoute(
      "cache-first", "\"whenAbandoned\": \(rule), \"maxEntrySize\": \"2MiB\"")
    try scenario(
      route,
      upstream: "\"retries\": 0, \"maxConcurrent\": 6, \"queueTimeout\": \"1m\"",
      top: "\"loops\": \(loops),"
    ) { origin, proxy in
      let sizes = [0, 10, 30_000, 200_000, 700_000, 3_000_000]
      let bodies = sizes.enumerated().map { testBytes($1, seed: UInt64($0 + 1)) }
      for (index, body) in bodies.enumerated() {
        origin.on("/\(index)/length", .bytes(body))
        origin.on("/\(index)/chunked", OriginAnswer.bytes(body).framed(.chunked))
        origin.on("/\(index)/own", .bytes(body, "Cache-Control: no-store"))
      }
      var dice = Dice(seed: 42)
      for round in 0..<40 {
        let index = dice.below(sizes.count)
        let path = "/\(index)/" + ["length", "chunked", "own"][dice.below(3)]
        var clients: [ClientConnection] = []
        for _ in 0..<dice.below(5) + 1 {
          let client = try proxy.connect(receiveBufferBytes: dice.below(2) == 0 ? 4096 : nil)
          client.send("GET", path)
          clients.append(client)
        }
        let stayer = dice.below(2) == 0 ? try proxy.connect() : nil
        stayer?.send("GET", path)
        for client in clients {
          switch dice.below(3) {
          case 0: client.reset()
          case 1:
            try client.readHead()
            try client.readBody(atLeast: dice.below(sizes[index] + 1))
            client.reset()
          default:
            try client.readHead()
            client.close()
          }
        }
        if let stayer {
          let answer = try stayer.readAnswer()
          #expect(answer.status == 200 && !answer.isCut && answer.body == bodies[index])
          stayer.close()
        }
        // Copies would make the rest of it dull.
        if round % 3 == 0 { _ = try proxy.send("POST", path) }
      }
      let becameQuiet = try isQuiet(proxy)
      #expect(becameQuiet)
      for (index, body) in bodies.enumerated() {
        for kind in ["length", "chunked", "own"] {
          let answer = try proxy.get("/\(index)/\(kind)")
          #expect(answer.body == body && !answer.isCut, "/\(index)/\(kind)")
        }
      }
      #expect(try proxy.statistics().upstreams["origin"]?.refused == 0)
    }
  }

  /// Readers of one key, a writer that changes it, and reloads: nobody sees a version older than the
  /// one that was there when the last change went through.
  @Test(arguments: [1, 3]) func refreshesAgainstPurgesAndReloads(_ loops: Int) throws {
    func policies(_ number: Int) -> String {
      scenarioPolicies(
        windowedRoute("stale-while-revalidate", "\"maxVariants\": \(number % 7 + 1)"),
        upstream: "\"retries\": 0, \"maxConcurrent\": \(number % 3 + 1), "
          + "\"queueTimeout\": \"1m\"",
        top: "\"loops\": \(loops),")
    }
    let origin = try ScriptedOrigin()
    let version = Monitored(1)
    origin.on("/a") { request in
      if request.method == "POST" {
        version.update { $0 += 1 }
        return .empty(status: 204)
      }
      return .text("\(version.read { $0 })")
    }
    let proxy = try TestProxy(policies: policies(0), origin: origin)
    defer {
      origin.stop()
      proxy.stop()
    }
    _ = try proxy.get("/a")
    let isOver = Monitored(false)
    let running = Monitored(0)
    let faults = Monitored<[String]>([])
    let port = proxy.port
    for _ in 0..<3 {
      running.update { $0 += 1 }
      Thread.detachNewThread {
        while !isOver.read({ $0 }), let client = try? ClientConnection(port: port) {
          for _ in 0..<20 {
            let answer = try? client.get("/a")
            if answer?.status != 200 { faults.update { $0.append("\(answer?.status ?? 0)") } }
          }
          client.reset()
        }
        running.update { $0 -= 1 }
      }
    }
    for round in 1...25 {
      _ = try proxy.send("POST", "/a")
      let due = version.read { $0 }
      let answer = try proxy.get("/a")
      #expect((Int(answer.text) ?? 0) >= due, "round \(round): \(answer.text) for \(due)")
      if round % 5 == 0 {
        #expect(try proxy.rewrite(policies: policies(round), origin: origin)?.status == 200)
      }
      proxy.advance(seconds: 3_700)
    }
    isOver.update { $0 = true }
    #expect(running.wait { $0 == 0 })
    #expect(faults.read { $0 } == [])
    let becameQuiet = try isQuiet(proxy)
    #expect(becameQuiet)
  }
}
