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
    /// Those that may be joined, by the key that joiners look for.
    var fills: [StoreKey: Fill] = [:]
    /// All that may land, joined or not, by the key they land under.
    var landing: [StoreKey: [Fill]] = [:]
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

  /// A fill that may land begins.
  func enter(_ fill: Fill) {
    state.withLock { $0.landing[fill.plan.storeKey, default: []].append(fill) }
  }

  /// Nobody joins this fill any more; those who have, stay.
  func close(_ fill: Fill) {
    guard let key = fill.plan.tableKey else { return }
    state.withLock { state in
      if state.fills[key] === fill { state.fills[key] = nil }
    }
  }

  /// A fill has ended.
  func leave(_ fill: Fill) {
    let plan = fill.plan
    guard plan.notStored == nil else { return }
    state.withLock { state in
      if let key = plan.tableKey, state.fills[key] === fill { state.fills[key] = nil }
      guard var landing = state.landing[plan.storeKey] else { return }
      landing.removeAll { $0 === fill }
      state.landing[plan.storeKey] = landing.isEmpty ? nil : landing
    }
  }

  /// Fills of this key that run now must not land: what they bring may be older than the change
  /// that invalidated it. Requests from now on begin a new one.
  func invalidate(_ key: StoreKey) {
    let running = state.withLock { state in
      let running = state.landing[key] ?? []
      for fill in running {
        if let joined = fill.plan.tableKey, state.fills[joined] === fill {
          state.fills[joined] = nil
        }
      }
      return running
    }
    for fill in running { fill.invalidate() }
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
