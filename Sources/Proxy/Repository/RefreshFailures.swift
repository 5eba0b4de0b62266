internal import CachePolicy
internal import Synchronization

/// The keys whose refreshes in the background have failed, and when each may be tried again.
///
/// Shared by all loops; asked before a refresh begins, never on a plain hit. Bounded: where it is
/// full, what may be tried again goes, and where that is nothing, it begins anew.
final class RefreshFailures: Sendable {
  private struct State {
    var entriesMax: Int
    var keys: [StoreKey: RefreshBackoff] = [:]
  }

  private let state: Mutex<State>

  init(limits: Limits) { state = Mutex(State(entriesMax: limits.refreshFailureEntries)) }

  func mayTry(_ key: StoreKey, nowMilliseconds now: Int64) -> Bool {
    state.withLock { $0.keys.isEmpty || $0.keys[key]?.mayTry(nowMilliseconds: now) ?? true }
  }

  func failed(_ key: StoreKey, nowMilliseconds now: Int64) {
    state.withLock { state in
      if state.keys[key] == nil, state.keys.count >= state.entriesMax {
        state.keys = state.keys.filter { !$0.value.mayTry(nowMilliseconds: now) }
        if state.keys.count >= state.entriesMax { state.keys = [:] }
      }
      state.keys[key, default: RefreshBackoff()].failed(nowMilliseconds: now)
    }
  }

  /// An answer for the key has come, whoever asked.
  func forget(_ key: StoreKey) {
    state.withLock { if !$0.keys.isEmpty { $0.keys[key] = nil } }
  }
}
