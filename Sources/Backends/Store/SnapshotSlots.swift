/// Which snapshots the readers are in, and the gate that holds them out of the map for a moment.
///
/// A reader publishes the generation of its snapshot in its slot before it takes it, and looks at
/// the gate behind that; the writer closes the gate and then looks at the slots. Whichever comes
/// second sees the other, so that behind a closed gate with all slots idle nobody reads the map,
/// and it may be moved. A turn costs one load for it. Owned by LMDBStore; used by StoreReader, by
/// WriteQueue for what may be forgotten, and by StoreWriter.
internal import Synchronization

/// When a reader's snapshot began: `idle`, or the generation of the last commit before it.
final class SnapshotSlot: Sendable {
  static let idle = UInt64.max
  let generation = Atomic<UInt64>(SnapshotSlot.idle)
}

final class SnapshotSlots: @unchecked Sendable {
  // @unchecked Sendable: `slots` is touched only between `monitor.lock()` and `unlock()`.
  private let monitor = MonitorLock()
  private var slots: [SnapshotSlot] = []
  private let gate = Atomic<UInt8>(Gate.open.rawValue)

  enum Gate: UInt8 {
    case open, closed
    /// There is no map any more: everything is a miss.
    case lost
  }

  func register(_ slot: SnapshotSlot) {
    monitor.lock()
    slots.append(slot)
    monitor.unlock()
  }

  func unregister(_ slot: SnapshotSlot) {
    monitor.lock()
    slots.removeAll { $0 === slot }
    monitor.unlock()
  }

  // MARK: For the readers

  /// Publishes the generation in the slot, once the gate is open. False: there is no map.
  @inline(__always)
  func enter(_ slot: SnapshotSlot, _ generation: borrowing Atomic<UInt64>) -> Bool {
    // The slot is published before the snapshot is taken: from then on the overlay keeps what this
    // generation lacks (`oldestGeneration` has the other half). A snapshot that is newer than the
    // slot says does no harm: pending writes are replayed to the same result.
    slot.generation.store(
      generation.load(ordering: .sequentiallyConsistent), ordering: .sequentiallyConsistent)
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    if gate.load(ordering: .sequentiallyConsistent) == Gate.open.rawValue { return true }
    return enterLate(slot, generation)
  }

  @inline(never)
  private func enterLate(_ slot: SnapshotSlot, _ generation: borrowing Atomic<UInt64>) -> Bool {
    while true {
      leave(slot)
      monitor.lock()
      while gate.load(ordering: .sequentiallyConsistent) == Gate.closed.rawValue { monitor.wait() }
      monitor.unlock()
      slot.generation.store(
        generation.load(ordering: .sequentiallyConsistent), ordering: .sequentiallyConsistent)
      atomicMemoryFence(ordering: .sequentiallyConsistent)
      switch Gate(rawValue: gate.load(ordering: .sequentiallyConsistent)) {
      case .open: return true
      case .closed: continue
      case .lost, nil:
        leave(slot)
        return false
      }
    }
  }

  @inline(__always)
  func leave(_ slot: SnapshotSlot) {
    slot.generation.store(SnapshotSlot.idle, ordering: .sequentiallyConsistent)
  }

  // MARK: For the writer

  /// The oldest generation a reader may be in.
  var oldestGeneration: UInt64 {
    // The other half of `enter`: the commit is done and its generation published before this
    // fence; a reader whose slot still reads idle behind it renews its snapshot later.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    monitor.lock()
    defer { monitor.unlock() }
    return slots.reduce(SnapshotSlot.idle) {
      min($0, $1.generation.load(ordering: .sequentiallyConsistent))
    }
  }

  /// From now on everything is a miss, until `reopen`: turns that have begun end as they began.
  func loseMap() {
    monitor.lock()
    gate.store(Gate.lost.rawValue, ordering: .sequentiallyConsistent)
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    monitor.wakeAll()
    monitor.unlock()
  }

  /// Runs `body`, which is to find another map, once no reader is within a turn that began before
  /// `loseMap`; true lets readers in again. False: there is none yet.
  func reopen(waitMilliseconds: Int64, _ body: () -> Bool) -> Bool {
    monitor.lock()
    let isIdle = waitUntilIdle(waitMilliseconds)
    monitor.unlock()
    // Unlocked: opening a file takes its time, and who looks something up meanwhile shall not wait.
    guard isIdle, body() else { return false }
    gate.store(Gate.open.rawValue, ordering: .sequentiallyConsistent)
    return true
  }

  /// False: some reader did not end its turn in time.
  private func waitUntilIdle(_ waitMilliseconds: Int64) -> Bool {
    let end = MonitorLock.monotonicMilliseconds + waitMilliseconds
    while slots.contains(where: {
      $0.generation.load(ordering: .sequentiallyConsistent) != SnapshotSlot.idle
    }) {
      if MonitorLock.monotonicMilliseconds >= end { return false }
      // No turn tells that it has ended: hits are many and this is seldom.
      monitor.wait(milliseconds: 1)
    }
    return true
  }

  /// Runs `body` while no reader is within a turn; what it returns is the gate's next state. False:
  /// some reader did not end its turn in time, and nothing was done. Readers that begin meanwhile
  /// wait.
  func withReadersOut(waitMilliseconds: Int64, _ body: () -> Gate) -> Bool {
    monitor.lock()
    defer {
      monitor.wakeAll()
      monitor.unlock()
    }
    gate.store(Gate.closed.rawValue, ordering: .sequentiallyConsistent)
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    guard waitUntilIdle(waitMilliseconds) else {
      gate.store(Gate.open.rawValue, ordering: .sequentiallyConsistent)
      return false
    }
    gate.store(body().rawValue, ordering: .sequentiallyConsistent)
    return true
  }
}
