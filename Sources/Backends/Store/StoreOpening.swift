/// The way to an open data file: looked at, mapped, its tables opened, and set aside where it is
/// damaged or somebody else's.
///
/// At the start, and again while the store is in use, where its file was deleted, cut short or
/// failed (`StoreWriter`): then the new one goes on as the same store, with its secret. Costs the
/// same whatever is in the store: what a dead process left is the writer's to clear up.
internal import Synchronization

/// The environment that the store works on now; nil once the store is closed.
final class CurrentEnvironment: Sendable {
  private let held: Mutex<LMDBEnvironment?>

  init(_ environment: LMDBEnvironment) { held = Mutex(environment) }

  var environment: LMDBEnvironment? { held.withLock { $0 } }

  /// The old one is closed once the last reader has left it.
  func replace(by environment: LMDBEnvironment?) { held.withLock { $0 = environment } }
}

enum StoreOpening {
  struct Opened {
    var environment: LMDBEnvironment
    var identity: StoreIdentity
  }

  static func open(
    _ configuration: StoreConfiguration, _ folder: StoreFolder, log: (String) -> Void
  ) throws(StoreError) -> Opened {
    try open(configuration, folder, keeping: nil, log: log)
  }

  /// Opens the file in the place of `previous`, which nobody reads or writes any more: the same one
  /// where it is there and whole, or else a new one. Another one that lies there, an earlier copy of
  /// ours even, is set aside: what was purged since could come back with it.
  static func reopen(
    _ configuration: StoreConfiguration, _ previous: LMDBEnvironment,
    keeping kept: StoreIdentity, log: (String) -> Void
  ) throws(StoreError) -> Opened {
    let folder =
      previous.folder.isInPlace ? previous.folder : try StoreFolder(path: configuration.path)
    if folder.hasDataFile, !previous.isFileInPlace {
      try folder.setAside(because: "its file is not the one that was in use", log: log)
    }
    // LMDB must not open a lock file twice in one process.
    folder.removeReaderTable()
    return try open(configuration, folder, keeping: kept, log: log)
  }

  private static func open(
    _ configuration: StoreConfiguration, _ folder: StoreFolder, keeping kept: StoreIdentity?,
    log: (String) -> Void
  ) throws(StoreError) -> Opened {
    // The second round opens an empty file: what fails then is no damage.
    for _ in 0..<2 {
      if let opened = try openFile(configuration, folder, kept, log) { return opened }
    }
    throw .cannotOpen(path: configuration.path, reason: "an empty store is refused as damaged")
  }

  /// Nil: the file was set aside.
  private static func openFile(
    _ configuration: StoreConfiguration, _ folder: StoreFolder, _ kept: StoreIdentity?,
    _ log: (String) -> Void
  ) throws(StoreError) -> Opened? {
    var mapSizeBytes =
      configuration.mapSizeBytesForTests
      ?? StoreConfiguration.mapSizeBytes(maxSizeBytes: configuration.maxSizeBytes)
    switch try folder.inspect() {
    case .absent: break
    case .usable(let endBytes):
      if configuration.mapSizeBytesForTests == nil {
        mapSizeBytes = max(mapSizeBytes, endBytes + StoreConfiguration.mapHeadroomBytes)
      }
    case .damaged(let reason):
      try folder.setAside(because: reason, log: log)
    }
    let damage: String
    do {
      let environment = try LMDBEnvironment(
        folder: folder, mapSizeBytes: mapSizeBytes / 65_536 * 65_536,
        readersMax: configuration.readersMax)
      let identity = try StoreSchema.open(environment, keeping: kept)
      try environment.guardMap()
      environment.keepFileLongEnough()
      return Opened(environment: environment, identity: identity)
    } catch StoreSchema.Failure.notOurs(let reason) {
      damage = reason
    } catch StoreSchema.Failure.lmdb(let error) {
      throw .cannotOpen(path: configuration.path, reason: error.text)
    } catch let error as LMDBError {
      guard error.isDamage else {
        throw .cannotOpen(path: configuration.path, reason: error.text)
      }
      damage = "LMDB says: \(error.text)"
    } catch {
      fatalError("store: an error of a third kind: \(error)")
    }
    try folder.setAside(because: damage, log: log)
    return nil
  }
}
