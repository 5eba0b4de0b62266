import Testing

@testable import CachePolicy

/// Where a copy stands when the request comes: the columns of the strategies' table.
enum CopyCase: String, CaseIterable, Sendable {
  case none
  case fresh
  /// Stale, within staleWhileRevalidate only.
  case refreshable
  /// Stale, within staleIfError only.
  case standIn = "stand-in"
  /// Beyond every window.
  case old
  /// Stale, and must-revalidate or its like.
  case forbidden
  case freshError = "fresh error"
  case staleError = "stale error"
  /// Fresh, but past the route's `keep`.
  case unkept

  var state: CopyState? {
    guard self != .none else { return nil }
    let isFresh = self == .fresh || self == .freshError
    return CopyState(
      ageMilliseconds: 1000, lifetimeMilliseconds: 2000,
      timeToLiveMilliseconds: isFresh ? 1000 : -1000, isFresh: isFresh, isFreshForRoute: isFresh,
      maxStaleAllows: false, isInStaleWhileRevalidate: self == .refreshable,
      mayServeOnFailure: isFresh || self == .standIn, isStaleForbidden: self == .forbidden,
      isError: self == .freshError || self == .staleError, hasValidator: true,
      isPastKeep: self == .unkept)
  }
}

/// An action in a few words, for tables that can be read.
func words(_ action: StrategyMachine.Action) -> String {
  switch action {
  case .serve(let use): "serve \(use)"
  case .serveThenRefresh(let use): "serve \(use), refresh"
  case .fetch(let fetch):
    "fetch \(fetch.reason.rawValue)" + (fetch.isShared ? " shared" : "")
      + (fetch.isConditional ? " conditional" : "") + (fetch.holdsBack ? " held" : "")
      + (fetch.deadlineMilliseconds.map { " within \($0)" } ?? "")
  case .pass(let reason): "pass \(reason.rawValue)"
  case .relay: "relay"
  case .wait: "wait"
  case .fail(let failure): "fail \(failure.rawValue)"
  }
}

struct StrategyMachineTests {
  /// What happens in one cell: on arrival; then, where the network is asked, when it answers 200,
  /// when it answers 503, when it fails, and when its time is over.
  struct Cell: Sendable, CustomTestStringConvertible {
    var strategy: Strategy
    var copy: CopyCase
    var arrival: String
    var onSuccess = "-"
    var onServerError = "-"
    var onFailure = "-"
    var onDeadline = "-"

    init(
      _ strategy: Strategy, _ copy: CopyCase, _ arrival: String, _ outcomes: String...
    ) {
      self.strategy = strategy
      self.copy = copy
      self.arrival = arrival
      guard outcomes.count == 4 else { return }
      onSuccess = outcomes[0]
      onServerError = outcomes[1]
      onFailure = outcomes[2]
      onDeadline = outcomes[3]
    }

    var testDescription: String { "\(strategy.name), \(copy.rawValue)" }
  }

  static let cells: [Cell] =
    [
      Cell(.cacheFirst, .none, "fetch uri-miss shared", "relay", "relay", "fail network", "wait"),
      Cell(.cacheFirst, .fresh, "serve fresh"),
      Cell(.cacheFirst, .refreshable, "serve stale, refresh"),
      Cell(
        .cacheFirst, .standIn, "fetch stale shared conditional held", "relay",
        "serve networkFailed",
        "serve networkFailed", "serve deadline"),
      Cell(
        .cacheFirst, .old, "fetch stale shared conditional", "relay", "relay", "fail network",
        "wait"),
      Cell(
        .cacheFirst, .forbidden, "fetch stale shared conditional", "relay", "relay",
        "fail stale-forbidden", "wait"),
      Cell(.cacheFirst, .freshError, "serve fresh"),
      Cell(
        .cacheFirst, .staleError, "fetch stale shared conditional", "relay", "relay",
        "fail network",
        "wait"),
      Cell(.cacheFirst, .unkept, "fetch uri-miss shared", "relay", "relay", "fail network", "wait"),

      Cell(
        .staleWhileRevalidate, .none, "fetch uri-miss shared", "relay", "relay", "fail network",
        "wait"),
      Cell(.staleWhileRevalidate, .fresh, "serve fresh, refresh"),
      Cell(.staleWhileRevalidate, .refreshable, "serve stale, refresh"),
      Cell(.staleWhileRevalidate, .standIn, "serve stale, refresh"),
      Cell(.staleWhileRevalidate, .old, "serve stale, refresh"),
      Cell(
        .staleWhileRevalidate, .forbidden, "fetch stale shared conditional", "relay", "relay",
        "fail stale-forbidden", "wait"),
      Cell(.staleWhileRevalidate, .freshError, "serve fresh, refresh"),
      Cell(
        .staleWhileRevalidate, .staleError, "fetch stale shared conditional", "relay", "relay",
        "fail network", "wait"),
      Cell(
        .staleWhileRevalidate, .unkept, "fetch uri-miss shared", "relay", "relay", "fail network",
        "wait"),

      Cell(.networkFirst, .none, "fetch uri-miss shared", "relay", "relay", "fail network", "wait"),
      Cell(
        .networkFirst, .fresh, "fetch bypass shared conditional held within 800", "relay",
        "serve networkFailed", "serve networkFailed", "serve deadline"),
      Cell(
        .networkFirst, .refreshable, "fetch stale shared conditional", "relay", "relay",
        "fail network", "wait"),
      Cell(
        .networkFirst, .standIn, "fetch stale shared conditional held within 800", "relay",
        "serve networkFailed", "serve networkFailed", "serve deadline"),
      Cell(
        .networkFirst, .old, "fetch stale shared conditional", "relay", "relay", "fail network",
        "wait"),
      Cell(
        .networkFirst, .forbidden, "fetch stale shared conditional", "relay", "relay",
        "fail stale-forbidden", "wait"),
      Cell(
        .networkFirst, .freshError, "fetch bypass shared conditional held within 800", "relay",
        "serve networkFailed", "serve networkFailed", "serve deadline"),
      Cell(
        .networkFirst, .staleError, "fetch stale shared conditional", "relay", "relay",
        "fail network", "wait"),
      Cell(
        .networkFirst, .unkept, "fetch uri-miss shared", "relay", "relay", "fail network", "wait"),

      Cell(.cacheOnly, .none, "fail not-stored"),
      Cell(.cacheOnly, .fresh, "serve fresh"),
      Cell(.cacheOnly, .refreshable, "serve stale"),
      Cell(.cacheOnly, .standIn, "serve stale"),
      Cell(.cacheOnly, .old, "fail not-stored"),
      Cell(.cacheOnly, .forbidden, "fail not-stored"),
      Cell(.cacheOnly, .freshError, "serve fresh"),
      Cell(.cacheOnly, .staleError, "fail not-stored"),
      Cell(.cacheOnly, .unkept, "fail not-stored"),
    ]
    // The store is out of these two, whatever it holds.
    + CopyCase.allCases.map {
      Cell(.networkOnly, $0, "pass bypass", "relay", "relay", "fail network", "wait")
    }
    + CopyCase.allCases.map {
      Cell(.networkAndStore, $0, "fetch bypass", "relay", "relay", "fail network", "wait")
    }

  private static func machine(
    _ strategy: Strategy, _ request: StrategyMachine.Request = .init(method: .get)
  ) -> StrategyMachine {
    StrategyMachine(policy: Policy(strategy: strategy, deadlineMilliseconds: 800), request: request)
  }

  @Test func everyStrategyHasACellForEveryCopy() {
    for strategy in Strategy.allCases {
      for copy in CopyCase.allCases {
        let count = Self.cells.count { $0.strategy == strategy && $0.copy == copy }
        #expect(count == 1, "\(strategy.name), \(copy.rawValue)")
      }
    }
  }

  @Test(arguments: cells)
  func aCellOfTheTableHolds(_ cell: Cell) {
    /// The machine as it stands when the network has been asked. network-only never reads.
    func arrived(_ arrival: inout StrategyMachine.Action?) -> StrategyMachine {
      var machine = Self.machine(cell.strategy)
      arrival = machine.requestArrived(copy: cell.strategy == .networkOnly ? nil : cell.copy.state)
      return machine
    }
    var arrival: StrategyMachine.Action?
    var machine = arrived(&arrival)
    #expect(arrival.map(words) == cell.arrival)
    guard cell.onSuccess != "-" else { return }
    #expect(words(machine.originAnswered(status: 200, confirmsCopy: false)) == cell.onSuccess)
    machine = arrived(&arrival)
    #expect(words(machine.originAnswered(status: 503, confirmsCopy: false)) == cell.onServerError)
    machine = arrived(&arrival)
    #expect(words(machine.originFailed()) == cell.onFailure)
    machine = arrived(&arrival)
    #expect(words(machine.deadlinePassed()) == cell.onDeadline)
  }

  @Test(arguments: [Strategy.cacheFirst, .networkFirst, .staleWhileRevalidate])
  func aConfirmedCopyServes(_ strategy: Strategy) {
    var machine = Self.machine(strategy)
    _ = machine.requestArrived(copy: CopyCase.forbidden.state)
    #expect(machine.originAnswered(status: 304, confirmsCopy: true) == .serve(.confirmed))
  }

  @Test(arguments: [UInt16(200), 204, 301, 304, 400, 404, 429, 499])
  func noCopyStandsInForAnAnswerThatIsNoServerError(_ status: UInt16) {
    for strategy in [Strategy.cacheFirst, .networkFirst] {
      var machine = Self.machine(strategy)
      _ = machine.requestArrived(copy: CopyCase.standIn.state)
      #expect(machine.originAnswered(status: status, confirmsCopy: false) == .relay)
    }
  }

  /// RFC 5861 §4 rescues from failures, and these are none: not even their own bodies are rescued.
  @Test(arguments: [(UInt16(404), false), (410, false), (403, true), (200, true)])
  func whatTheOriginSaysIsGoneStandsInForNothing(_ status: UInt16, _ standsIn: Bool) {
    for strategy in [Strategy.cacheFirst, .networkFirst] {
      var machine = Self.machine(strategy)
      _ = machine.requestArrived(copy: CopyCase.standIn.state)
      #expect(machine.originAnswered(status: status, confirmsCopy: false) == .relay)
      #expect(machine.mayStandIn == standsIn)
      let failed: StrategyMachine.Action = standsIn ? .serve(.networkFailed) : .fail(.network)
      #expect(machine.originFailed() == failed)
      // The head and the end may come in one go.
      machine = Self.machine(strategy)
      _ = machine.requestArrived(copy: CopyCase.standIn.state)
      #expect(machine.originFailed(afterStatus: status) == failed)
    }
  }

  @Test(arguments: [UInt16(500), 502, 503, 504, 599])
  func aCopyStandsInForEveryServerError(_ status: UInt16) {
    var machine = Self.machine(.cacheFirst)
    _ = machine.requestArrived(copy: CopyCase.standIn.state)
    #expect(machine.originAnswered(status: status, confirmsCopy: false) == .serve(.networkFailed))
  }

  @Test func anAnswerThatIsHeldBackMayStillBeReplaced() {
    var machine = Self.machine(.networkFirst)
    _ = machine.requestArrived(copy: CopyCase.standIn.state)
    #expect(machine.originAnswered(status: 200, confirmsCopy: false) == .relay)
    #expect(machine.mayStandIn)
    #expect(machine.originFailed() == .serve(.networkFailed))
  }

  @Test func theCopyIsOutOnceTheNetworksAnswerGoesOut() {
    var machine = Self.machine(.networkFirst)
    _ = machine.requestArrived(copy: CopyCase.standIn.state)
    #expect(machine.originAnswered(status: 200, confirmsCopy: false) == .relay)
    machine.answerBegan()
    #expect(machine.originFailed() == .wait)
    #expect(machine.deadlinePassed() == .wait)
  }

  @Test func nothingIsDecidedTwice() {
    var machine = Self.machine(.networkFirst)
    _ = machine.requestArrived(copy: CopyCase.standIn.state)
    #expect(machine.deadlinePassed() == .serve(.deadline))
    #expect(machine.originAnswered(status: 200, confirmsCopy: false) == .wait)
    #expect(machine.originAnswered(status: 304, confirmsCopy: true) == .wait)
    #expect(machine.originAnswered(status: 503, confirmsCopy: false) == .wait)
    #expect(machine.originFailed() == .wait)
    #expect(machine.deadlinePassed() == .wait)
  }

  @Test func aDeadlineWithoutACopyGoesOnWaiting() {
    var machine = Self.machine(.networkFirst)
    _ = machine.requestArrived(copy: nil)
    #expect(machine.deadlinePassed() == .wait)
    #expect(machine.originAnswered(status: 200, confirmsCopy: false) == .relay)
  }

  @Test func aRouteWithoutADeadlineSetsNone() {
    var machine = StrategyMachine(
      policy: Policy(strategy: .networkFirst), request: .init(method: .get))
    let arrival = machine.requestArrived(copy: CopyCase.standIn.state)
    #expect(words(arrival) == "fetch stale shared conditional held")
  }

  @Test func aCopyWithoutValidatorIsFetchedWhole() {
    var copy = CopyCase.standIn.state
    copy?.hasValidator = false
    var machine = Self.machine(.cacheFirst)
    #expect(words(machine.requestArrived(copy: copy)) == "fetch stale shared held")
  }
}
