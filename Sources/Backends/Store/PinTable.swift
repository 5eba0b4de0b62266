/// Which entries are being served from their chunks, and which lost theirs a moment ago.
///
/// A pin is taken within the turn that found the record. The writer may have deleted the chunks in
/// a commit that this turn's snapshot does not hold yet; so deletions stay noted until every
/// snapshot holds them, and a pin that comes too late is refused: the copy is a miss then, before
/// a byte of it was sent. Deleting chunks that are pinned waits for the last unpin.
internal import Synchronization

final class PinTable: Sendable {
  private struct State {
    var pins: [UInt64: Int] = [:]
    /// Their chunks are in `pending` as orphans: the last unpin has them deleted.
    var deferred: Set<UInt64> = []
    /// Claimed for deletion; `generation` says from which snapshots on that is seen, nil while
    /// the transaction is open.
    var claimed: [UInt64: UInt64?] = [:]
  }
  private let state = Mutex(State())

  /// False: the chunks are gone, or about to.
  func pin(_ entryID: UInt64) -> Bool {
    state.withLock { state in
      if state.claimed[entryID] != nil { return false }
      state.pins[entryID, default: 0] += 1
      return true
    }
  }

  /// True: this was the last pin and the chunks wait for their deletion.
  func unpin(_ entryID: UInt64) -> Bool {
    state.withLock { state in
      guard let count = state.pins[entryID] else {
        fatalError("store: unpin of an entry that is not pinned")
      }
      if count > 1 {
        state.pins[entryID] = count - 1
        return false
      }
      state.pins[entryID] = nil
      return state.deferred.remove(entryID) != nil
    }
  }

  func isPinned(_ entryID: UInt64) -> Bool { state.withLock { $0.pins[entryID] != nil } }

  /// The writer wants to delete the chunks: false while they are pinned, and then `unpin` tells.
  func claimForDeletion(_ entryID: UInt64) -> Bool {
    state.withLock { state in
      if state.pins[entryID] != nil {
        state.deferred.insert(entryID)
        return false
      }
      state.claimed[entryID] = .some(nil)
      return true
    }
  }

  /// The transaction that claimed them was committed as `generation`.
  func commit(_ entryIDs: [UInt64], generation: UInt64) {
    guard !entryIDs.isEmpty else { return }
    state.withLock { state in
      for entryID in entryIDs { state.claimed[entryID] = .some(generation) }
    }
  }

  /// The transaction that claimed them changed nothing.
  func rollBack(_ entryIDs: [UInt64]) {
    guard !entryIDs.isEmpty else { return }
    state.withLock { state in
      for entryID in entryIDs { state.claimed[entryID] = nil }
    }
  }

  /// Forgets deletions that every snapshot from `oldestGeneration` on holds.
  func prune(oldestGeneration: UInt64) {
    state.withLock { state in
      guard !state.claimed.isEmpty else { return }
      state.claimed = state.claimed.filter { _, generation in
        generation.map { $0 > oldestGeneration } ?? true
      }
    }
  }
}
