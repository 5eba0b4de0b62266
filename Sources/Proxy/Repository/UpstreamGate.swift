internal import Backends
internal import CachePolicy
internal import Synchronization

/// How busy one upstream is, for the whole process: who asks it, who waits for a place, and whether
/// it is known to be down.
///
/// `UpstreamLimits` and `OriginHealth` decide; here it is counted. Those who wait, on whatever loop,
/// stand in one line: a place that becomes free goes to the one who has waited longest, so that no
/// loop starves. A lock is taken twice a fetch, never on a hit. It belongs to the upstream's name
/// and outlives reloads; what a reload changes holds at once for those who wait.
final class UpstreamGate: Sendable {
  enum Entry: Sendable {
    case admitted
    /// `placeIsFree` will follow, unless `giveUp` comes before.
    case waits(ticket: UInt64, timeoutMilliseconds: Int64)
    case refused
  }

  struct Counts: Sendable, Equatable {
    var active = 0
    var queued = 0
    var refused: UInt64 = 0
    var isDown = false
  }

  private struct State: Sendable {
    var limits: UpstreamLimits
    var baseURL: String
    var active = 0
    var refused: UInt64 = 0
    var health = OriginHealth()
    /// Those who wait, oldest first; nil: gave up. The first has the ticket `firstTicket`.
    var line: ArraySlice<Fill?> = []
    var firstTicket: UInt64 = 0
    var queued = 0
  }

  private let state: Mutex<State>
  /// Whether the last thing heard of the origin was that no connection came about.
  private let isTroubled = Atomic<Bool>(false)

  init(_ upstream: Upstream) {
    state = Mutex(State(limits: upstream.limits, baseURL: upstream.baseURL))
  }

  var counts: Counts {
    state.withLock {
      Counts(
        active: $0.active, queued: $0.queued, refused: $0.refused, isDown: $0.health.isDown)
    }
  }

  /// Whether nobody asks or waits.
  var isIdle: Bool { state.withLock { $0.active == 0 && $0.queued == 0 } }

  /// What a client that was refused is told to wait.
  var retryAfterSeconds: Int64 { state.withLock { $0.limits.retryAfterSeconds } }

  // MARK: Coming and going

  /// A fill wants to ask, and a client waits for it.
  func enter(_ fill: Fill) -> Entry {
    state.withLock { state in
      switch state.limits.admission(
        isBackground: false, active: state.active, queued: state.queued)
      {
      case .admit:
        state.active += 1
        return .admitted
      case .wait:
        let ticket = state.firstTicket + UInt64(state.line.count)
        state.line.append(fill)
        state.queued += 1
        return .waits(
          ticket: ticket, timeoutMilliseconds: state.limits.queueTimeoutMilliseconds)
      case .refuse:
        state.refused += 1
        return .refused
      }
    }
  }

  /// A fill that no client waits for wants to ask: whether it is admitted.
  func enterInBackground() -> Bool {
    state.withLock { state in
      let admission = state.limits.admission(
        isBackground: true, active: state.active, queued: state.queued)
      guard admission == .admit else { return false }
      state.active += 1
      return true
    }
  }

  /// Who was admitted is done; the next in line has the place.
  func leave() {
    let next = state.withLock { state in
      state.active -= 1
      return UpstreamGate.admitNext(&state)
    }
    UpstreamGate.tell(next)
  }

  /// Who waited does not any more. `isRefused`: it was for too long.
  /// False: it has been admitted meanwhile, and will hear of it.
  func giveUp(ticket: UInt64, isRefused: Bool) -> Bool {
    state.withLock { state in
      guard ticket >= state.firstTicket else { return false }
      let index = state.line.startIndex + Int(ticket - state.firstTicket)
      guard state.line[index] != nil else { return false }
      state.line[index] = nil
      state.queued -= 1
      if isRefused { state.refused += 1 }
      UpstreamGate.dropGaps(&state)
      return true
    }
  }

  /// Limits that hold from now on. Another address of the origin is another origin's health.
  func use(_ upstream: Upstream) {
    let next = state.withLock { state in
      state.limits = upstream.limits
      if state.baseURL != upstream.baseURL {
        state.baseURL = upstream.baseURL
        state.health.answered()
        isTroubled.store(false, ordering: .relaxed)
      }
      return UpstreamGate.admitNext(&state)
    }
    UpstreamGate.tell(next)
  }

  /// Takes those out of the line whose places are free.
  private static func admitNext(_ state: inout State) -> [Fill] {
    var admitted: [Fill] = []
    while state.queued > 0, state.limits.admitsNext(active: state.active) {
      dropGaps(&state)
      guard let fill = state.line.removeFirst() else { break }
      admitted.append(fill)
      state.firstTicket += 1
      state.queued -= 1
      state.active += 1
    }
    return admitted
  }

  private static func dropGaps(_ state: inout State) {
    while let first = state.line.first, first == nil {
      state.line.removeFirst()
      state.firstTicket += 1
    }
    // A slice keeps the memory before it.
    if state.line.isEmpty { state.line = [] }
  }

  private static func tell(_ admitted: [Fill]) {
    for fill in admitted { fill.owner.loop.post { fill.placeIsFree() } }
  }

  // MARK: Health

  /// The origin answered, whatever it said.
  func originAnswered() {
    guard isTroubled.load(ordering: .relaxed) else { return }
    isTroubled.store(false, ordering: .relaxed)
    state.withLock { $0.health.answered() }
  }

  func connectionFailed(nowMilliseconds now: Int64) {
    state.withLock { $0.health.connectionFailed(nowMilliseconds: now) }
    isTroubled.store(true, ordering: .relaxed)
  }

  /// Whether a request that need not ask the origin is to ask it.
  func mayAsk(nowMilliseconds now: Int64) -> Bool {
    guard isTroubled.load(ordering: .relaxed) else { return true }
    return state.withLock { $0.health.mayAsk(nowMilliseconds: now) }
  }
}

/// The gates of all upstreams, by name.
final class UpstreamGates: Sendable {
  private let gates = Mutex<[String: UpstreamGate]>([:])

  /// The gate of an upstream's name; made where the name is new.
  func gate(of upstream: Upstream) -> UpstreamGate {
    gates.withLock { gates in
      if let known = gates[upstream.name] { return known }
      let gate = UpstreamGate(upstream)
      gates[upstream.name] = gate
      return gate
    }
  }

  /// Puts the limits of a configuration into force. Names that it does not have are forgotten once
  /// nobody asks or waits there.
  func use(_ upstreams: [Upstream]) {
    let names = Set(upstreams.map(\.name))
    gates.withLock { gates in
      gates = gates.filter { names.contains($0.key) || !$0.value.isIdle }
    }
    for upstream in upstreams { gate(of: upstream).use(upstream) }
  }
}

extension Upstream {
  fileprivate var limits: UpstreamLimits {
    UpstreamLimits(
      concurrentMax: maxConcurrent, queuedMax: maxQueue,
      queueTimeoutMilliseconds: queueTimeoutMilliseconds)
  }
}
