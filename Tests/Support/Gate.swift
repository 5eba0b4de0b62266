/// A point that a scripted origin waits at until the test lets it pass.
///
/// The test knows that the origin is there (`waitUntilReached`), so that it can act in the middle of
/// an answer without guessing how long things take. Opened once, it stays open.
public final class Gate: Sendable {
  private struct State {
    var isOpen = false
    var arrivals = 0
  }

  private let state = Monitored(State())

  public init() {}

  /// Lets everyone pass who waits here or comes later.
  public func open() { state.update { $0.isOpen = true } }

  /// Waits until `count` passages have come this far; false: it took far too long.
  public func waitUntilReached(_ count: Int = 1) -> Bool {
    state.wait { $0.arrivals >= count }
  }

  /// For the origin: says that it is here, and waits.
  func pass() {
    state.update { $0.arrivals += 1 }
    _ = state.wait { $0.isOpen }
  }
}
