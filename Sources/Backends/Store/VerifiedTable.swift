/// What a reader verified lately, so that a hot entry is not summed up again at each hit: a
/// direct-mapped table, in which a newcomer takes its place from whoever has it. Of one StoreReader.
final class VerifiedTable {
  struct Identity: Equatable {
    var entryID: UInt64
    /// The checksum as stored, with the index mixed in: a refreshed record has another one.
    var tag: UInt64

    init(_ entryID: UInt64, _ index: UInt32, _ storedChecksum: UInt64) {
      self.entryID = entryID
      tag = storedChecksum ^ (UInt64(index) &* 0x9e37_79b9_7f4a_7c15)
    }

    var slot: Int {
      Int(truncatingIfNeeded: ((entryID ^ tag) &* 0xd6e8_feb8_6659_fd93) >> 52)
    }
  }

  private static let count = 4096
  private let slots: UnsafeMutablePointer<Identity>

  init() {
    slots = .allocate(capacity: Self.count)
    // Entry 0 does not exist: IDs start above the first epoch.
    slots.initialize(repeating: Identity(0, 0, 0), count: Self.count)
  }

  deinit { slots.deallocate() }

  // SAFETY: a slot is 12 bits, and there are 4096.
  func contains(_ identity: Identity) -> Bool { slots[identity.slot] == identity }
  func insert(_ identity: Identity) { slots[identity.slot] = identity }
}
