/// The store's purges, and the fills that they have to hold for.
///
/// A purge is a generation: what was stored or being filled before it, and is in its scope, is not
/// served any more when `purge` returns, and cannot land later; over a restart too, once it is
/// committed (`flush`). Removing what it covers is the writer's work in the background. Called by
/// the repository and by Admin, on any thread.
internal import Synchronization

extension LMDBStore {
  /// Begins a fill: takes its ID, and has purges wait for its end. Whoever puts under an ID that
  /// has no ticket may see the entry land behind a purge that it should have been covered by.
  public func beginFill() -> FillTicket { shared.fills.begin(nextEntryID) }

  /// Purges all entries in the scope whose ID was given before now: visible at once to all readers,
  /// and for fills that run, whose records are refused as `invalidated`. The space comes back in
  /// the background. Never refused: where there are too many purges at once, more than the scope
  /// goes (`PurgeRules`).
  @discardableResult
  public func purge(_ scope: PurgeScope) -> PurgeReceipt {
    let floor = shared.floorOfNow
    guard let target = PurgeTarget(scope, secret: shared.secret) else {
      return purgeEverything(floor: floor)
    }
    switch shared.purges.register(target, floor: floor) {
    case .everything: return purgeEverything(floor: floor)
    case .rules(let written, let forgotten):
      for purge in written { queue.append(.purgeRule(purge)) }
      for target in forgotten {
        queue.append(.forgetRule(PurgeRules.Purge(target: target, floor: floor)))
      }
      return PurgeReceipt(floor: floor)
    }
  }

  /// Removes all entries whose ID was given before now: `purge(.everything)`.
  public func removeEverything() { purge(.everything) }

  private func purgeEverything(floor: UInt64) -> PurgeReceipt {
    queue.append(.purge(floor: shared.raisePurgeFloor(to: floor)))
    return PurgeReceipt(floor: floor)
  }
}
