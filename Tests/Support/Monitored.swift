internal import Foundation

/// A value behind a lock that threads can wait on: what the scripted origin and its gates are
/// made of.
///
/// Every wait has a bound, far beyond what a loaded machine needs: a test that would hang fails
/// instead. Nobody looks again and again; whoever changes the value wakes those who wait.
public final class Monitored<State>: @unchecked Sendable {
  // @unchecked Sendable: `state` is touched under `condition` alone.
  private let condition = NSCondition()
  private var state: State

  public init(_ state: sending State) { self.state = state }

  /// Changes the value, and wakes everyone who waits for it.
  @discardableResult
  public func update<Result>(_ change: (inout State) -> Result) -> Result {
    condition.lock()
    defer {
      condition.broadcast()
      condition.unlock()
    }
    return change(&state)
  }

  public func read<Result>(_ look: (State) -> Result) -> Result {
    condition.lock()
    defer { condition.unlock() }
    return look(state)
  }

  /// Waits until the value is as wanted; false: the bound passed.
  public func wait(until isWanted: (State) -> Bool) -> Bool {
    let end = Date(timeIntervalSinceNow: TimeInterval(waitBoundSeconds))
    condition.lock()
    defer { condition.unlock() }
    while !isWanted(state) {
      if !condition.wait(until: end) { return isWanted(state) }
    }
    return true
  }
}

/// How long anything in a test may wait for anything else.
let waitBoundSeconds = 60
