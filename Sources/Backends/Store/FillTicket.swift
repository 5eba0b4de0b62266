/// Which fills are running: as long as one is that began before a purge, the purge's rule stays, and
/// keeps it from landing.
///
/// A ticket is taken where a fetch begins whose answer may be stored, and ends once nothing of it
/// will be put any more. Made by `LMDBStore.beginFill`; asked for the oldest by StoreWriter.
internal import Synchronization

/// A running fill's place in time. Ends with `end()`, or when nobody holds it any more.
public final class FillTicket: Sendable {
  /// The ID under which the fill puts its chunks and its record.
  public let entryID: UInt64
  private let fills: RunningFills

  fileprivate init(_ entryID: UInt64, _ fills: RunningFills) {
    self.entryID = entryID
    self.fills = fills
  }

  deinit { end() }

  /// The fill has landed or been given up: it puts nothing more. Idempotent.
  public func end() { fills.end(entryID) }
}

final class RunningFills: Sendable {
  private let entryIDs = Mutex<Set<UInt64>>([])

  /// `nextEntryID` is called under the lock: whoever asks for the oldest sees this fill, or its ID
  /// is given later.
  func begin(_ nextEntryID: () -> UInt64) -> FillTicket {
    let entryID = entryIDs.withLock { entryIDs in
      let entryID = nextEntryID()
      entryIDs.insert(entryID)
      return entryID
    }
    return FillTicket(entryID, self)
  }

  fileprivate func end(_ entryID: UInt64) {
    entryIDs.withLock { _ = $0.remove(entryID) }
  }

  /// The lowest ID of a running fill; nil: there is none.
  var lowest: UInt64? { entryIDs.withLock { $0.min() } }
}
