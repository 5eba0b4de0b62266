internal import CachePolicy
internal import Synchronization

/// The running fills of the process by key, and the keys whose answers turned out not to be
/// shareable.
///
/// The one place where loops meet: a lock held for a dictionary's look-up, taken on misses only.
/// A fill leaves the table after its record is in the store, so that whoever finds neither fill nor
/// record may begin a fill of their own (and looks once more at the store, see `Exchange`).
final class FillTable: Sendable {
  enum Outcome {
    /// Somebody fetches this already.
    case join(Fill)
    /// Nobody does: the caller's fill is in the table now.
    case start
    /// The key's answers are not shareable, or the table is full: fetch alone.
    case alone
  }

  private struct State {
    var fills: [StoreKey: Fill] = [:]
    /// Until when (wall clock milliseconds) a key is known as not shareable.
    var unshareable: [StoreKey: Int64] = [:]
  }

  private let limits: Limits
  private let state = Mutex(State())

  init(limits: Limits) { self.limits = limits }

  /// Joins the key's fill, or enters the one that `make` gives.
  func joinOrStart(_ key: StoreKey, nowMilliseconds now: Int64, make: () -> Fill) -> (
    Outcome, Fill?
  ) {
    state.withLock { state in
      if let running = state.fills[key] { return (.join(running), running) }
      if let until = state.unshareable[key] {
        if until > now { return (.alone, nil) }
        state.unshareable[key] = nil
      }
      guard state.fills.count < limits.fills else { return (.alone, nil) }
      let fill = make()
      state.fills[key] = fill
      return (.start, fill)
    }
  }

  /// Takes a fill out, if it is the one in the table.
  func leave(_ key: StoreKey, _ fill: Fill) {
    state.withLock { state in
      if state.fills[key] === fill { state.fills[key] = nil }
    }
  }

  /// Whether a fill of this key runs.
  func isRunning(_ key: StoreKey) -> Bool {
    state.withLock { $0.fills[key] != nil }
  }

  /// A fill of this key that runs now must not land: what it brings may be older than the change
  /// that invalidated it. Requests from now on begin a new one.
  func invalidate(_ key: StoreKey) {
    let running = state.withLock { $0.fills.removeValue(forKey: key) }
    running?.invalidate()
  }

  /// Remembers that this key's answers are not for sharing. Bounded: when full, it begins anew.
  func rememberUnshareable(_ key: StoreKey, nowMilliseconds now: Int64) {
    state.withLock { state in
      if state.unshareable.count >= limits.hitForPassEntries {
        state.unshareable = state.unshareable.filter { $0.value > now }
        if state.unshareable.count >= limits.hitForPassEntries { state.unshareable = [:] }
      }
      state.unshareable[key] = now + limits.hitForPassMilliseconds
    }
  }

  func forgetUnshareable(_ key: StoreKey) {
    state.withLock { state in
      if !state.unshareable.isEmpty { state.unshareable[key] = nil }
    }
  }
}
