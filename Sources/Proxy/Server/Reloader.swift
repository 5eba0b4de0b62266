internal import Backends
internal import CachePolicy
internal import Dispatch
internal import Synchronization

/// Reads the configuration anew and puts it into force, or says why not and changes nothing.
///
/// Orders come from signals, from the admin listener and from the file's own changes; they are
/// carried out one after the other on a queue of their own, because reading may take longer than a
/// loop may stand still. Orders that come while one waits are carried out together with it. The
/// configuration is read, checked and tested exactly as at the start, before anything is swapped.
public final class Reloader: Sendable {
  /// Where the configuration comes from.
  public struct Source: Sendable {
    /// The file that is watched; nil: none is.
    var path: String?
    /// What the file held just before it was read at the start.
    var loadedBytes: [UInt8]?
    /// Reads and checks the configuration.
    var load: @Sendable () -> ConfigurationLoader.LoadResult

    /// Made before the file is read for the start: a change in between is noticed then.
    public init(path: String?, load: @escaping @Sendable () -> ConfigurationLoader.LoadResult) {
      self.path = path
      self.load = load
      loadedBytes = path.flatMap(ConfigurationLoader.bytes)
    }
  }

  /// Who ordered a reload: the word in the log.
  enum Reason: String, Sendable {
    case signal = "SIGHUP"
    case admin = "POST /reload"
    case file = "the file changed"
  }

  /// What became of an order.
  enum Outcome: Sendable {
    case applied(Status, warnings: [String])
    /// The file reads as before.
    case unchanged
    case refused([String])
  }

  /// What `/stats` says of the configuration.
  struct Status: Sendable {
    /// Counts the configurations put into force, the one of the start included.
    var generation = 1
    var loadedAtMilliseconds: Int64
    /// Why the last order was refused; nil: it was not.
    var lastError: Refusal?
    /// Top-level fields that were changed in the file and hold only after a restart.
    var needsRestart: [String] = []
  }

  struct Refusal: Sendable {
    var atMilliseconds: Int64
    var errors: [String]
  }

  private struct State {
    var status: Status
    var lastGeneration = 1
    /// Who waits for the run that is about to begin; nil: none is.
    var waiting: [@Sendable (Outcome) -> Void]?
    /// Somebody ordered the run who wants it even if the file reads as before.
    var isForced = false
    /// What the file held when it was last looked at; nil: it could not be read, which is said once.
    var lastBytes: [UInt8]?
  }

  let source: Source
  private let started: Configuration
  private let queue = DispatchQueue(label: "larder.reload")
  private let state: Mutex<State>
  private let clock: Clock
  private let log: Log
  /// Puts a configuration into force on every loop, and calls back when it is.
  private let apply: @Sendable (Configuration, Int, @escaping @Sendable () -> Void) -> Void

  /// `started` is the configuration that the process began with.
  init(
    source: Source, started: Configuration, clock: Clock, log: Log,
    apply: @escaping @Sendable (Configuration, Int, @escaping @Sendable () -> Void) -> Void
  ) {
    self.source = source
    self.started = started
    self.clock = clock
    self.log = log
    self.apply = apply
    state = Mutex(
      State(
        status: Status(loadedAtMilliseconds: clock.nowMilliseconds), lastBytes: source.loadedBytes))
  }

  var status: Status { state.withLock { $0.status } }

  /// Orders a reload; `finished` is called on some thread once every loop uses what was read, or
  /// once it is refused.
  func order(_ reason: Reason, then finished: @escaping @Sendable (Outcome) -> Void = { _ in }) {
    let isFirst = state.withLock { state in
      let isFirst = state.waiting == nil
      state.waiting = (state.waiting ?? []) + [finished]
      if reason != .file { state.isForced = true }
      return isFirst
    }
    if isFirst { queue.async { [self] in run(reason) } }
  }

  private func run(_ reason: Reason) {
    // Whoever orders from here on wants what is read after this.
    let bytes = source.path.flatMap(ConfigurationLoader.bytes)
    let (waiting, isNeeded) = state.withLock { state in
      defer { (state.waiting, state.isForced, state.lastBytes) = (nil, false, bytes) }
      return (state.waiting ?? [], state.isForced || bytes != state.lastBytes)
    }
    guard isNeeded else {
      for finished in waiting { finished(.unchanged) }
      return
    }
    if let path = source.path, ConfigurationLoader.isSpecial(path) {
      refuse(["\(path): neither a file nor a link to one: it is not read anew"], reason, waiting)
      return
    }
    switch source.load() {
    case .refused(let diagnostics):
      refuse(diagnostics.map(\.description), reason, waiting)
    case .loaded(let configuration, let warnings):
      put(configuration, warnings.map(\.description), reason, waiting)
    }
  }

  private func refuse(
    _ errors: [String], _ reason: Reason, _ waiting: [@Sendable (Outcome) -> Void]
  ) {
    for error in errors { log.error(error) }
    log.error("\(reason.rawValue): the new configuration is refused, the old one stays in force")
    let now = clock.nowMilliseconds
    state.withLock { $0.status.lastError = Refusal(atMilliseconds: now, errors: errors) }
    for finished in waiting { finished(.refused(errors)) }
  }

  private func put(
    _ configuration: Configuration, _ warnings: [String], _ reason: Reason,
    _ waiting: [@Sendable (Outcome) -> Void]
  ) {
    let generation = state.withLock { state in
      state.lastGeneration += 1
      return state.lastGeneration
    }
    for warning in warnings { log.warning(warning) }
    let status = Status(
      generation: generation, loadedAtMilliseconds: clock.nowMilliseconds,
      needsRestart: configuration.fieldsThatNeedRestart(since: started))
    apply(configuration, generation) { [self] in
      state.withLock { $0.status = status }
      log.info("\(reason.rawValue): configuration \(generation) is in force")
      if !status.needsRestart.isEmpty {
        log.warning(
          "\(status.needsRestart.joined(separator: ", ")): changed, and hold after a restart only")
      }
      for finished in waiting { finished(.applied(status, warnings: warnings)) }
    }
  }
}

extension Configuration {
  /// The fields that differ from those the process was started with and cannot change while it
  /// runs, as the file names them.
  func fieldsThatNeedRestart(since started: Configuration) -> [String] {
    var fields: [String] = []
    if listen != started.listen { fields.append("listen") }
    if admin.listen != started.admin.listen { fields.append("admin.listen") }
    if loops != started.loops { fields.append("loops") }
    if store.path != started.store.path { fields.append("store.path") }
    return fields
  }
}
