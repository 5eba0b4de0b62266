@testable import Backends
@testable import Support

/// Makes the connections of a client when the test says so, and in the state that it wants them.
final class ScriptedConnector: OriginConnector, @unchecked Sendable {
  // @unchecked Sendable: touched on the client's loop alone, but for the count.
  private var pending: [(Result<Int32, OriginError>) -> Void] = []
  private let asked = Monitored(0)
  /// All fail from within the call.
  var failsAtOnce = false

  func connect(
    to endpoint: OriginEndpoint,
    _ completion: @escaping (_ descriptor: Result<Int32, OriginError>) -> Void
  ) {
    asked.update { $0 += 1 }
    if failsAtOnce {
      completion(.failure(.unreachable("nobody there")))
    } else {
      pending.append(completion)
    }
  }

  /// How many connections were asked for.
  var askedCount: Int { asked.read { $0 } }

  func waitForAsked(_ count: Int) -> Bool { asked.wait { $0 >= count } }

  /// On the loop.
  func completeNext(_ result: Result<Int32, OriginError>) { pending.removeFirst()(result) }

  /// A connection that is made already, for `completeNext`.
  static func descriptor(_ fixture: OriginFixture) throws -> Int32 {
    try StreamSocket.connected(port: fixture.port, receiveBufferBytes: nil).takeDescriptor()
  }
}
