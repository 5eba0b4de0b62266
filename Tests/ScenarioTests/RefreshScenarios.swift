import Support
import Testing

/// Refreshes in the background: they hold up nobody, run once a key at a time, end in their time,
/// and where they fail are tried later and later.
struct RefreshScenarios {
  static let route = windowedRoute("cache-first")

  /// How an origin brings nothing for the store.
  enum Failure: String, CaseIterable, CustomTestStringConvertible {
    case answers503, breaksOff, answersForbidden, isUnavailable
    var testDescription: String { rawValue }

    func answer() -> OriginAnswer {
      switch self {
      case .answers503: .text("down", status: 503)
      case .breaksOff: OriginAnswer.text("half of it").broken(after: 4, by: .close)
      case .answersForbidden: .text("none", status: 403)
      case .isUnavailable: .text("busy", status: 503, "Cache-Control: max-age=60")
      }
    }
  }

  @Test(arguments: Failure.allCases)
  func aRefreshThatFailsIsTriedLaterAndLater(_ failure: Failure) throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", inTurn: [.text("v1"), failure.answer()])
      _ = try proxy.get("/a")
      proxy.advance(seconds: 3_700)
      var requests = 1
      func serve(_ isTried: Bool, _ after: String) throws {
        if isTried { requests += 1 }
        for _ in 0..<3 { expect(try proxy.get("/a"), "v1", .hit) }
        if isTried { try proxy.settle(after: origin, "/a", answers: requests) }
        try proxy.settle()
        #expect(origin.requestCount("/a") == requests, "\(after)")
        // What the origin's connection still had to say has been taken in.
        expect(try proxy.get("/a"), "v1", .hit)
        try proxy.settle()
        #expect(origin.requestCount("/a") == requests, "\(after), again")
      }
      try serve(true, "at first")
      // 403s count as answers that are not for sharing, for two minutes.
      if failure == .answersForbidden {
        proxy.advance(seconds: 119)
        try serve(false, "after two minutes less a second")
        proxy.advance(seconds: 2)
        try serve(true, "after two minutes")
        return
      }
      for wait: Int64 in [1, 2, 4, 8] {
        proxy.advance(milliseconds: wait * 1000 - 900)
        try serve(false, "before \(wait) s")
        proxy.advance(milliseconds: 1000)
        try serve(true, "after \(wait) s")
      }
      origin.on("/a", .text("v2"))
      proxy.advance(seconds: 17)
      expect(try proxy.get("/a"), "v1", .hit)
      try proxy.settle(after: origin, "/a", answers: requests + 1)
      expect(try proxy.get("/a"), "v2", .hit)
      // Forgotten: the next failure waits a second again.
      origin.on("/a", failure.answer())
      proxy.advance(seconds: 3_700)
      requests += 1
      expect(try proxy.get("/a"), "v2", .hit)
      try proxy.settle(after: origin, "/a", answers: requests + 1)
      proxy.advance(milliseconds: 1_100)
      expect(try proxy.get("/a"), "v2", .hit)
      try proxy.settle(after: origin, "/a", answers: requests + 2)
    }
  }

  @Test func aRefreshThatIsPutOffKeepsNobodyFromTheNetwork() throws {
    try scenario(Self.route) { origin, proxy in
      origin.on(
        "/a",
        inTurn: [.text("v1"), .text("down", status: 503), .text("v3"), .text("down", status: 503)])
      _ = try proxy.get("/a")
      proxy.advance(seconds: 3_700)
      expect(try proxy.get("/a"), "v1", .hit)
      try proxy.settle(after: origin, "/a", answers: 2)
      // Who insists asks now, and what that brings ends the wait.
      expect(try proxy.get("/a", "Cache-Control: no-cache"), "v3", .stored("stale"))
      proxy.advance(seconds: 3_700)
      expect(try proxy.get("/a"), "v3", .hit)
      try proxy.settle(after: origin, "/a", answers: 4)
      // Beyond the window everyone asks, in the wait or not.
      origin.on("/a", .text("v5"))
      proxy.advance(seconds: 3_600)
      expect(try proxy.get("/a"), "v5", .stored("stale"))
    }
  }

  @Test func aConfirmationEndsTheWaitToo() throws {
    try scenario(Self.route) { origin, proxy in
      origin.on(
        "/a",
        inTurn: [
          .text("v1", "ETag: \"one\""), .text("down", status: 503),
          .empty(status: 304, "ETag: \"one\""),
          .text("down", status: 503), .text("v5"),
        ])
      _ = try proxy.get("/a")
      for (seconds, answers) in [(Int64(3_700), 2), (2, 3), (3_700, 4), (2, 5)] {
        proxy.advance(seconds: seconds)
        expect(try proxy.get("/a"), "v1", .hit)
        try proxy.settle(after: origin, "/a", answers: answers)
      }
      expect(try proxy.get("/a"), "v5", .hit)
    }
  }

  @Test func oneKeysFailuresAreNotAnothers() throws {
    try scenario(Self.route) { origin, proxy in
      origin.on("/a", inTurn: [.text("a1"), .text("down", status: 503)])
      origin.on("/b", inTurn: [.text("b1"), .text("b2")])
      for path in ["/a", "/b"] { _ = try proxy.get(path) }
      proxy.advance(seconds: 3_700)
      expect(try proxy.get("/a"), "a1", .hit)
      try proxy.settle(after: origin, "/a", answers: 2)
      expect(try proxy.get("/b"), "b1", .hit)
      try proxy.settle(after: origin, "/b", answers: 2)
      expect(try proxy.get("/b"), "b2", .hit)
    }
  }

  @Test func aPurgeWhileARefreshRunsIsNoFailure() throws {
    try scenario(Self.route) { origin, proxy in
      let gate = Gate()
      origin.on("/a") { request in
        if request.method == "POST" { return .empty(status: 204) }
        let answer = OriginAnswer.text("v\(request.number)")
        return request.number == 2 ? answer.waiting(for: gate) : answer
      }
      _ = try proxy.get("/a")
      proxy.advance(seconds: 3_700)
      expect(try proxy.get("/a"), "v1", .hit)
      #expect(gate.waitUntilReached())
      _ = try proxy.send("POST", "/a")
      gate.open()
      try proxy.settle(after: origin, "/a", answers: 3)
      expect(try proxy.get("/a"), "v4", .stored("uri-miss"))
      proxy.advance(seconds: 3_700)
      expect(try proxy.get("/a"), "v4", .hit)
      try proxy.settle(after: origin, "/a", answers: 5)
      expect(try proxy.get("/a"), "v5", .hit)
    }
  }

  /// An origin that keeps a refresh alive by a byte now and then must not keep the key for itself.
  @Test func aRefreshThatTricklesEndsInItsTime() throws {
    let allowed = Monitored(0)
    let hasEnded = Monitored(false)
    try rawScenario(
      Self.route,
      upstream: "\"retries\": 0, \"totalTimeout\": \"300ms\", \"firstByteTimeout\": \"300ms\""
    ) { connection in
      connection.readHead()
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nv1")
      guard connection.number == 1, connection.readHead() != nil else { return }
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
      // Each byte restarts the wait for the next: only the refresh's own time can end it.
      var sent = 0
      while allowed.wait(until: { $0 > sent }), connection.send("x") { sent += 1 }
      hasEnded.update { $0 = true }
    } _: { origin, proxy in
      _ = try proxy.get("/a")
      proxy.advance(seconds: 3_700)
      expect(try proxy.get("/a"), "v1", .hit)
      for _ in 0..<20_000 where !hasEnded.read({ $0 }) {
        allowed.update { $0 += 1 }
        try proxy.settle()
      }
      #expect(hasEnded.read { $0 })
      #expect(try proxy.statistics().upstreams["origin"]?.active == 0)
      proxy.advance(seconds: 2)
      expect(try proxy.get("/a"), "v1", .hit)
      #expect(origin.waitForHeads(3))
    }
  }
}
