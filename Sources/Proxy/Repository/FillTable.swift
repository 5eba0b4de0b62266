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
    var limits: Limits
    /// Those that may be joined, by the key that joiners look for.
    var fills: [StoreKey: Fill] = [:]
    /// The others that may land, by the key they land under: nobody joins them, or under another key.
    var landing: [StoreKey: [Fill]] = [:]
    /// Until when (wall clock milliseconds) a key is known as not shareable.
    var unshareable: [StoreKey: Int64] = [:]

    /// Takes a fill out of those that may be joined; false: it is none of them.
    mutating func takeOut(_ fill: Fill) -> Bool {
      guard let key = fill.plan.tableKey, let index = fills.index(forKey: key),
        fills.values[index] === fill
      else { return false }
      fills.remove(at: index)
      return true
    }

    /// Nobody joins a fill any more, and it may land still.
    mutating func close(_ fill: Fill) {
      if takeOut(fill), fill.plan.tableKey == fill.plan.storeKey { enter(fill) }
    }

    mutating func enter(_ fill: Fill) { landing[fill.plan.storeKey, default: []].append(fill) }

    /// All that may land under a key.
    func landing(under key: StoreKey) -> [Fill] {
      var all = landing[key] ?? []
      if let joinable = fills[key], joinable.plan.storeKey == key { all.append(joinable) }
      return all
    }
  }

  private let state: Mutex<State>

  init(limits: Limits) { state = Mutex(State(limits: limits)) }

  /// Limits that hold from now on.
  func use(_ limits: Limits) { state.withLock { $0.limits = limits } }

  /// Joins the key's fill, or enters the one that `make` gives; where it gives none, nothing begins.
  /// `isAuthorized`: the request carries Authorization.
  func joinOrStart(
    _ key: StoreKey, isAuthorized: Bool, nowMilliseconds now: Int64, make: () -> Fill?
  ) -> (Outcome, Fill?) {
    state.withLock { state in
      if let running = state.fills[key] { return (.join(running), running) }
      let marked = isAuthorized ? [key, FillTable.authorized(key)] : [key]
      for key in marked where !state.unshareable.isEmpty {
        guard let until = state.unshareable[key] else { continue }
        if until > now { return (.alone, nil) }
        state.unshareable[key] = nil
      }
      guard state.fills.count < state.limits.fills else { return (.alone, nil) }
      guard let fill = make() else { return (.alone, nil) }
      state.fills[key] = fill
      if fill.plan.storeKey != key { state.enter(fill) }
      return (.start, fill)
    }
  }

  /// A fill that may land begins, and nobody joins it.
  func enter(_ fill: Fill) { state.withLock { $0.enter(fill) } }

  /// Nobody joins this fill any more; those who have, stay.
  func close(_ fill: Fill) { state.withLock { $0.close(fill) } }

  /// A fill has ended.
  func leave(_ fill: Fill) {
    let plan = fill.plan
    guard plan.mayLand else { return }
    state.withLock { state in
      if state.takeOut(fill), plan.tableKey == plan.storeKey { return }
      guard !state.landing.isEmpty, var landing = state.landing[plan.storeKey] else { return }
      landing.removeAll { $0 === fill }
      state.landing[plan.storeKey] = landing.isEmpty ? nil : landing
    }
  }

  /// Fills of this key that run now must not land: what they bring may be older than the change
  /// that invalidated it. Requests from now on begin a new one. `change`: the one that invalidates.
  func invalidate(_ key: StoreKey, by change: Fill? = nil) {
    let running = state.withLock { state in
      let running = state.landing(under: key).filter { $0 !== change }
      for fill in running { state.close(fill) }
      return running
    }
    for fill in running { fill.invalidate() }
  }

  /// The same for every fill of which this is so.
  func invalidate(by change: Fill? = nil, where isCovered: (Fill) -> Bool) {
    let keys = state.withLock { state in
      let landing = state.landing.filter { $0.value.contains(where: isCovered) }.map(\.key)
      return Set(landing).union(state.fills.values.filter(isCovered).map(\.plan.storeKey))
    }
    for key in keys { invalidate(key, by: change) }
  }

  /// Nobody joins the fills of which this is so any more; they may land.
  func close(where mayBeCovered: (Fill) -> Bool) {
    state.withLock { state in
      for fill in state.fills.values.filter(mayBeCovered) { state.close(fill) }
    }
  }

  /// Where it is kept that a key's answers to requests with Authorization are not for sharing.
  private static func authorized(_ key: StoreKey) -> StoreKey {
    StoreKey(high: ~key.high, low: key.low)
  }

  /// Remembers that this key's answers are not for sharing; where that was for the request's
  /// Authorization, only with regard to such requests: one user must not take coalescing from all
  /// others. Bounded: when full, it begins anew.
  func rememberUnshareable(
    _ key: StoreKey, because reason: NotStoredReason, nowMilliseconds now: Int64
  ) {
    let key = reason == .authorization ? FillTable.authorized(key) : key
    state.withLock { state in
      let entriesMax = state.limits.hitForPassEntries
      if state.unshareable.count >= entriesMax {
        state.unshareable = state.unshareable.filter { $0.value > now }
        if state.unshareable.count >= entriesMax { state.unshareable = [:] }
      }
      state.unshareable[key] = now + state.limits.hitForPassMilliseconds
    }
  }

  func forgetUnshareable(_ key: StoreKey) {
    state.withLock { state in
      guard !state.unshareable.isEmpty else { return }
      state.unshareable[key] = nil
      state.unshareable[FillTable.authorized(key)] = nil
    }
  }
}
