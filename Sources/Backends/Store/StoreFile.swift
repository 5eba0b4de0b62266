/// The data file that the writer works on, as a thing that can be lost: deleted or cut short by
/// somebody else, damaged, or refused by LMDB for good.
///
/// What is lost serves nobody from then on, and another file is opened in its place, the same one
/// where it is whole, or else an empty one: the store goes on, its readers follow at their next
/// turn. Moves the map, too, where the store's size asks for a longer one. Owned by StoreWriter,
/// whose thread alone calls it.
internal import Synchronization

final class StoreFile {
  private(set) var environment: LMDBEnvironment
  private let current: CurrentEnvironment
  private let shared: StoreShared
  private let configuration: StoreConfiguration
  private let epoch: UInt64
  private let log: (String) -> Void
  /// The size asks for a longer map, and readers were in the way.
  private(set) var awaitsMap = false
  /// Why there is no file; nil: there is one.
  private(set) var lossReason: String?
  /// Transactions that failed one after the other, since one was committed.
  private var failedTransactionCount = 0
  private static let failedTransactionsMax = 3
  /// How long new turns may have to wait for those that run, where the map is to be moved.
  private static let readersOutMilliseconds: Int64 = 20

  init(
    _ opened: StoreOpening.Opened, _ current: CurrentEnvironment, _ shared: StoreShared,
    _ configuration: StoreConfiguration, log: @escaping (String) -> Void
  ) {
    environment = opened.environment
    epoch = opened.identity.epoch
    self.current = current
    self.shared = shared
    self.configuration = configuration
    self.log = log
  }

  /// Looks whether the file is still there, as long as it was, and could be read. Called before each
  /// transaction and once a second. Until then the map's guard stands in: a read of what was cut off
  /// finds nothing.
  func look() {
    if lossReason == nil, let loss = environment.findLoss() {
      lose(because: loss.text, isDamaged: loss != .deleted)
    }
  }

  /// Takes an error of LMDB's that will not go away as the file's loss.
  func note(_ error: LMDBError) {
    // What is behind it tells more.
    look()
    if error.isPanic || error.isTreeDamage {
      lose(because: error.text, isDamaged: error.isTreeDamage)
    }
    // Each transaction ends at what cannot be read, and LMDB does not say what that is.
    failedTransactionCount = error.isFailedTransaction ? failedTransactionCount + 1 : 0
    if failedTransactionCount >= Self.failedTransactionsMax {
      lose(because: error.text, isDamaged: true)
    }
  }

  /// A transaction has been committed.
  func noteSuccess() { failedTransactionCount = 0 }

  private func lose(because reason: String, isDamaged: Bool) {
    guard lossReason == nil else { return }
    lossReason = reason
    shared.slots.loseMap()
    environment.isRetired.store(true, ordering: .sequentiallyConsistent)
    if isDamaged { environment.markForSettingAside() }
    log("store \(configuration.path): \(reason): nothing is served from it any more")
  }

  /// Opens a file in the place of the one that is lost. Nil: there is none lost, or none could be
  /// opened, which is tried again.
  func reopen() -> StoreIdentity? {
    guard let reason = lossReason else { return nil }
    var opened: StoreOpening.Opened?
    var failure: StoreError?
    let isOpen = shared.slots.reopen(waitMilliseconds: Self.readersOutMilliseconds) {
      do throws(StoreError) {
        let next = try StoreOpening.reopen(
          configurationOfNow, environment, keeping: identityToKeep, log: log)
        environment = next.environment
        current.replace(by: next.environment)
        // A snapshot of the new file is newer than any of the old one.
        shared.generation.add(1, ordering: .sequentiallyConsistent)
        opened = next
        return true
      } catch {
        failure = error
        return false
      }
    }
    if isOpen {
      lossReason = nil
      failedTransactionCount = 0
    }
    if let failure {
      // The first reason stays in front; each attempt would add another.
      let text = reason.split(separator: ";", maxSplits: 1).first.map(String.init) ?? reason
      lossReason = "\(text); \(failure)"
    }
    return opened?.identity
  }

  private var configurationOfNow: StoreConfiguration {
    var configuration = self.configuration
    configuration.maxSizeBytes = shared.maxSizeBytes.load(ordering: .sequentiallyConsistent)
    return configuration
  }

  private var identityToKeep: StoreIdentity {
    StoreIdentity(
      secretFirst: shared.secret.0, secretSecond: shared.secret.1, epoch: epoch,
      purgeFloor: shared.purgeFloor.load(ordering: .sequentiallyConsistent), purges: [],
      routes: [:])
  }

  /// Maps the file with as much room as the store's size asks for.
  func growMap() {
    let wanted = StoreConfiguration.mapSizeBytes(
      maxSizeBytes: shared.maxSizeBytes.load(ordering: .sequentiallyConsistent))
    guard lossReason == nil, wanted > environment.mapSizeBytes else {
      awaitsMap = false
      return
    }
    var isLost = false
    let wasMoved = shared.slots.withReadersOut(
      waitMilliseconds: Self.readersOutMilliseconds
    ) {
      switch environment.growMap(toBytes: wanted) {
      case .grown: return .open
      case .kept:
        log("store \(configuration.path): no address space for a larger size")
        return .open
      case .lost:
        isLost = true
        return .lost
      }
    }
    awaitsMap = !wasMoved
    if isLost { lose(because: "its map is lost", isDamaged: false) }
  }
}
