@testable import Support

extension Gate {
  /// Waits here until the gate is open: for origins that a test writes out.
  func waitUntilOpen() { pass() }
}

extension ClientConnection {
  /// Has the answer to a request that goes out with others read as its method wants.
  func noteMethod(of request: String) {
    send(raw: "", method: String(request.prefix { $0 != " " }))
  }
}

/// A value that an origin's thread leaves for the test.
final class Left<Value: Sendable>: Sendable {
  private let value = Monitored<Value?>(nil)

  func leave(_ left: Value) { value.update { $0 = left } }

  /// Waits until it is there; nil: it took far too long.
  func wait() -> Value? { value.wait { $0 != nil } ? value.read { $0 } : nil }
}

extension TestProxy {
  /// Asks for the counts until so many clients' connections are open; false: asked far too often.
  func hasOpenConnections(_ count: Int) throws -> Bool {
    for _ in 0..<20_000 where try statistics().connections.open == count { return true }
    return false
  }
}
