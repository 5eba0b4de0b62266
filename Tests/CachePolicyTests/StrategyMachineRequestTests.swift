import Testing

@testable import CachePolicy

/// What of a request changes a strategy's decision: its method, a range, conditions, directives.
struct StrategyMachineRequestTests {
  private static func arrival(
    _ strategy: Strategy, _ copy: CopyState?, method: Method = .get, cacheControl: String = "",
    hasRange: Bool = false, hasOriginPrecondition: Bool = false
  ) -> String {
    let fields = Fields(cacheControl.isEmpty ? [] : [("Cache-Control", cacheControl)])
    var machine = StrategyMachine(
      policy: Policy(strategy: strategy),
      request: StrategyMachine.Request(
        method: method, directives: RequestDirectives(fields), hasRange: hasRange,
        hasOriginPrecondition: hasOriginPrecondition))
    return words(machine.requestArrived(copy: copy))
  }

  @Test(
    arguments: [Method.post, .put, .patch, .delete, .options, .other],
    Strategy.allCases)
  func otherMethodsNeverTouchACopy(_ method: Method, _ strategy: Strategy) {
    for copy in CopyCase.allCases {
      #expect(Self.arrival(strategy, copy.state, method: method) == "pass method")
    }
    #expect(
      Self.arrival(strategy, nil, method: method, cacheControl: "only-if-cached") == "pass method")
  }

  @Test(
    arguments: [
      (.cacheFirst, .none, "fetch uri-miss"), (.cacheFirst, .fresh, "serve fresh"),
      (.cacheFirst, .standIn, "fetch stale held"),
      (.staleWhileRevalidate, .old, "serve stale, refresh"),
      (.networkFirst, .fresh, "fetch bypass held"), (.networkOnly, .none, "pass bypass"),
      (.networkAndStore, .fresh, "fetch bypass"), (.cacheOnly, .none, "fail not-stored"),
    ] as [(Strategy, CopyCase, String)])
  func whatBringsNoWholeBodyIsSharedWithNobody(
    _ strategy: Strategy, _ copy: CopyCase, _ expected: String
  ) {
    #expect(Self.arrival(strategy, copy.state, method: .head) == expected)
    #expect(Self.arrival(strategy, copy.state, hasRange: true) == expected)
  }

  /// RFC 9211 §2.2.
  @Test(
    arguments: [
      (.cacheFirst, "vary-miss"), (.staleWhileRevalidate, "vary-miss"),
      (.networkFirst, "vary-miss"), (.networkAndStore, "bypass"),
    ] as [(Strategy, String)])
  func aMissAmongOtherVariantsSaysSo(_ strategy: Strategy, _ reason: String) {
    var machine = StrategyMachine(
      policy: Policy(strategy: strategy), request: StrategyMachine.Request(method: .get))
    machine.onlyOtherVariantsAreStored()
    guard case .fetch(let fetch) = machine.requestArrived(copy: nil) else {
      Issue.record("the network has to be asked")
      return
    }
    #expect(fetch.reason.rawValue == reason)
  }

  @Test(arguments: [Strategy.cacheFirst, .staleWhileRevalidate, .networkFirst, .networkAndStore])
  func conditionsForTheOriginAreLeftToIt(_ strategy: Strategy) {
    #expect(
      Self.arrival(strategy, CopyCase.fresh.state, hasOriginPrecondition: true) == "pass request")
  }

  @Test(arguments: [Strategy.cacheFirst, .staleWhileRevalidate, .networkFirst, .networkAndStore])
  func aRequestThatForbidsToStorePasses(_ strategy: Strategy) {
    #expect(
      Self.arrival(strategy, CopyCase.fresh.state, cacheControl: "no-store") == "pass request")
  }

  /// A fresh copy that does not meet the client's own directives.
  private static var unwanted: CopyState? {
    var copy = CopyCase.fresh.state
    copy?.isFresh = false
    return copy
  }

  @Test(
    arguments: ["no-cache", "max-age=0", "min-fresh=3600"],
    [
      (.cacheFirst, "fetch request shared conditional held"),
      (.staleWhileRevalidate, "fetch request shared conditional held"),
      (.networkFirst, "fetch bypass shared conditional held"),
      (.networkOnly, "pass bypass"), (.networkAndStore, "fetch bypass"),
      (.cacheOnly, "serve stale"),
    ] as [(Strategy, String)])
  func aClientMayAskForMoreThanTheRoutesFreshness(
    _ cacheControl: String, _ expected: (strategy: Strategy, action: String)
  ) {
    #expect(
      Self.arrival(expected.strategy, Self.unwanted, cacheControl: cacheControl)
        == expected.action)
  }

  @Test(arguments: ["no-cache", "max-age=60", "min-fresh=1"])
  func aClientThatInsistsGetsNoStaleCopyAtOnce(_ cacheControl: String) {
    for strategy in [Strategy.cacheFirst, .staleWhileRevalidate] {
      #expect(
        Self.arrival(strategy, CopyCase.refreshable.state, cacheControl: cacheControl)
          == "fetch stale shared conditional")
    }
  }

  @Test(
    arguments: [
      (.cacheFirst, "serve stale"), (.staleWhileRevalidate, "serve stale, refresh"),
      (.networkFirst, "fetch stale shared conditional"), (.networkAndStore, "fetch bypass"),
      (.networkOnly, "pass bypass"), (.cacheOnly, "serve stale"),
    ] as [(Strategy, String)])
  func aClientMayTakeAStaleCopy(_ strategy: Strategy, _ expected: String) {
    var copy = CopyCase.old.state
    copy?.maxStaleAllows = true
    #expect(Self.arrival(strategy, copy, cacheControl: "max-stale=100") == expected)
  }

  @Test(
    arguments: [
      (.none, "fail not-stored"), (.fresh, "serve fresh"), (.refreshable, "serve stale"),
      (.old, "fail not-stored"), (.forbidden, "fail not-stored"), (.unkept, "fail not-stored"),
      (.staleError, "fail not-stored"),
    ] as [(CopyCase, String)],
    [Strategy.cacheFirst, .staleWhileRevalidate, .networkFirst, .cacheOnly])
  func onlyIfCachedNeverAsksTheNetwork(
    _ expected: (copy: CopyCase, action: String), _ strategy: Strategy
  ) {
    #expect(
      Self.arrival(strategy, expected.copy.state, cacheControl: "only-if-cached")
        == expected.action)
  }

  /// RFC 9111 §5.2.1.7: a stored answer or 504. A route that stores nothing has none, and a client
  /// that also forbids storing, or sets conditions for the origin, still asks for no network.
  @Test func onlyIfCachedFailsWhereNoCopyCouldServe() {
    #expect(
      Self.arrival(.networkOnly, nil, cacheControl: "only-if-cached") == "fail not-stored")
    #expect(
      Self.arrival(.cacheFirst, nil, cacheControl: "only-if-cached, no-store")
        == "fail not-stored")
    #expect(
      Self.arrival(
        .cacheFirst, CopyCase.fresh.state, cacheControl: "only-if-cached",
        hasOriginPrecondition: true) == "fail not-stored")
  }

  @Test(
    arguments: [
      ("only-if-cached, max-stale=9", true, "serve stale"),
      ("only-if-cached, max-stale=9", false, "fail not-stored"),
      ("only-if-cached, max-age=99, max-stale=9", true, "serve stale"),
      ("only-if-cached, max-age=9, max-stale=9", false, "fail not-stored"),
    ])
  func onlyIfCachedMayBeMetByAStaleCopy(
    _ cacheControl: String, _ allows: Bool, _ expected: String
  ) {
    var copy = CopyCase.old.state
    copy?.maxStaleAllows = allows
    #expect(Self.arrival(.cacheFirst, copy, cacheControl: cacheControl) == expected)
  }
}
