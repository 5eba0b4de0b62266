import CachePolicy
import Testing

/// The state of a copy with these fields, `after` milliseconds from its receipt.
private func state(
  _ cacheControl: String, _ policy: Policy = Policy(strategy: .cacheFirst), after: Int64,
  request: String = "", status: UInt16 = 200, age: String? = nil
) -> CopyState {
  var pairs = [("Cache-Control", cacheControl)]
  if let age { pairs.append(("Age", age)) }
  return Freshness.copyState(
    of: metadata(status, pairs), policy: policy,
    request: RequestDirectives(Fields(request.isEmpty ? [] : [("Cache-Control", request)])),
    nowMilliseconds: noonMilliseconds + after)
}

private func policy(_ strategy: Strategy = .cacheFirst, _ change: (inout Policy) -> Void) -> Policy
{
  var result = Policy(strategy: strategy)
  change(&result)
  return result
}

private let minute = TimeToLive.fixed(milliseconds: 60_000)
private func clamped(_ ifAbsent: Int64?, _ low: Int64?, _ high: Int64?) -> Policy {
  Policy(
    strategy: .cacheFirst,
    timeToLive: .clamped(
      defaultMilliseconds: ifAbsent, minMilliseconds: low, maxMilliseconds: high))
}

struct LifetimeOfRouteTests {
  @Test(
    arguments: [
      ("the origin's", "max-age=30", Policy(), nil, 200, 30_000, 30_000),
      ("the origin's, aged", "max-age=30", Policy(), "10", 200, 30_000, 20_000),
      (
        "a huge Age is stale whatever the lifetime", "max-age=9999999999", Policy(), "2147483648",
        200, 2_147_483_648_000, 0
      ),
      ("none", "", Policy(), nil, 200, 0, 0),
      ("none, aged", "", Policy(), "10", 200, 0, -10_000),
      ("fixed beats max-age", "max-age=9999", Policy(timeToLive: minute), nil, 200, 60_000, 60_000),
      ("fixed is not shortened by Age", "", Policy(timeToLive: minute), "50", 200, 60_000, 60_000),
      ("fixed is for redirects too", "", Policy(timeToLive: minute), nil, 302, 60_000, 60_000),
      ("fixed is not for errors", "", Policy(timeToLive: minute), nil, 404, 0, 0),
      ("an error's own words", "max-age=5", Policy(timeToLive: minute), nil, 404, 5000, 5000),
      ("default fills in", "", clamped(7000, nil, nil), "5", 200, 7000, 7000),
      ("default does not replace", "max-age=3", clamped(7000, nil, nil), nil, 200, 3000, 3000),
      ("default does not replace 0", "max-age=0", clamped(7000, nil, nil), nil, 200, 0, 0),
      ("min lifts", "max-age=3", clamped(nil, 7000, nil), nil, 200, 7000, 7000),
      ("min counts from the receipt", "max-age=3", clamped(nil, 7000, nil), "9", 200, 7000, 7000),
      ("max lowers", "max-age=60", clamped(nil, nil, 7000), nil, 200, 7000, 7000),
      ("max counts from the receipt", "max-age=60", clamped(nil, nil, 7000), "55", 200, 7000, 5000),
      ("within both", "max-age=5", clamped(1000, 2000, 7000), nil, 200, 5000, 5000),
      ("a clamp is not for errors", "", clamped(1000, 2000, 7000), nil, 500, 0, 0),
    ] as [(String, String, Policy, String?, UInt16, Int64, Int64)])
  func aRouteDecidesTheLifetime(
    _ name: String, _ cacheControl: String, _ policy: Policy, _ age: String?, _ status: UInt16,
    _ lifetime: Int64, _ left: Int64
  ) {
    let found = state(cacheControl, policy, after: 0, status: status, age: age)
    #expect(found.lifetimeMilliseconds == lifetime)
    #expect(found.timeToLiveMilliseconds == left)
    #expect(found.ageMilliseconds == (age.flatMap { Int64($0) } ?? 0) * 1000)
  }

  @Test(
    arguments: [
      (404, 30_000), (403, 1000), (503, 2000), (500, 5000),
    ] as [(UInt16, Int64)])
  func negativeTakesThePlaceOfAnErrorsOwnWords(_ status: UInt16, _ left: Int64) {
    let negative = policy {
      $0.negative = [
        NegativeLifetime(match: .statusClass(4), lifetimeMilliseconds: 1000),
        NegativeLifetime(match: .status(404), lifetimeMilliseconds: 30_000),
        NegativeLifetime(match: .status(503), lifetimeMilliseconds: 2000),
      ]
    }
    let found = state("max-age=5", negative, after: 0, status: status)
    #expect(found.timeToLiveMilliseconds == left)
    #expect(found.isError && found.isFresh)
  }

  @Test func timeRunsFromTheReceiptAndNeverBackwards() {
    let fixed = Policy(strategy: .cacheFirst, timeToLive: minute)
    let later = state("", fixed, after: 60_000, age: "5")
    #expect(later.timeToLiveMilliseconds == 0 && !later.isFresh && later.ageMilliseconds == 65_000)
    #expect(state("", fixed, after: 59_999, age: "5").isFresh)
    let before = state("", fixed, after: -90_000)
    #expect(before.timeToLiveMilliseconds == 60_000 && before.ageMilliseconds == 0)
  }
}

struct ClientWishTests {
  @Test(
    arguments: [
      ("nothing", "", 10_000, true, true), ("no-cache", "no-cache", 10_000, false, true),
      ("max-age reached", "max-age=10", 10_000, true, true),
      ("max-age passed", "max-age=10", 10_001, false, true),
      ("max-age=0", "max-age=0", 0, false, true),
      ("min-fresh met", "min-fresh=50", 10_000, true, true),
      ("min-fresh missed", "min-fresh=50", 10_001, false, true),
      ("min-fresh has its own value", "min-fresh=55, max-stale=1", 10_000, false, true),
      ("no-store does not stop a read", "no-store", 10_000, true, true),
      ("stale", "", 60_000, false, false),
      ("max-age does not lengthen", "max-age=100", 60_000, false, false),
    ] as [(String, String, Int64, Bool, Bool)])
  func aFreshCopyHasToPleaseTheClient(
    _ name: String, _ request: String, _ after: Int64, _ fresh: Bool, _ forRoute: Bool
  ) {
    let found = state("max-age=60", after: after, request: request)
    #expect(found.isFresh == fresh)
    #expect(found.isFreshForRoute == forRoute)
  }

  @Test(
    arguments: [
      ("covered", "max-age=60", "max-stale=10", 70_000, 200, true),
      ("not covered", "max-age=60", "max-stale=10", 70_001, 200, false),
      ("without a value", "max-age=60", "max-stale", 9_999_999_000, 200, true),
      ("not asked for", "max-age=60", "", 61_000, 200, false),
      ("fresh needs none", "max-age=60", "max-stale=10", 1000, 200, false),
      ("with only-if-cached", "max-age=60", "only-if-cached, max-stale=10", 65_000, 200, true),
      ("too old for max-age", "max-age=60", "max-stale=10, max-age=62", 65_000, 200, false),
      ("young enough for max-age", "max-age=60", "max-stale=10, max-age=70", 65_000, 200, true),
      ("no-cache beside it", "max-age=60", "max-stale=10, no-cache", 65_000, 200, false),
      ("must-revalidate", "max-age=60, must-revalidate", "max-stale", 65_000, 200, false),
      ("proxy-revalidate", "max-age=60, proxy-revalidate", "max-stale", 65_000, 200, false),
      ("s-maxage", "s-maxage=60", "max-stale", 65_000, 200, false),
      ("s-maxage with a window", "s-maxage=60, stale-if-error=9", "max-stale", 65_000, 200, false),
      ("no-cache copy", "max-age=60, no-cache", "max-stale", 65_000, 200, false),
      ("an error", "max-age=60", "max-stale", 65_000, 404, false),
    ] as [(String, String, String, Int64, UInt16, Bool)])
  func maxStaleReachesAsFarAsNothingForbids(
    _ name: String, _ cacheControl: String, _ request: String, _ after: Int64, _ status: UInt16,
    _ allows: Bool
  ) {
    let found = state(cacheControl, after: after, request: request, status: status)
    #expect(found.maxStaleAllows == allows)
  }

  @Test(arguments: [
    ("", true), ("no-cache", false), ("max-age=0", false), ("max-age=100", false),
    ("min-fresh=1", false), ("max-stale=4", false), ("max-stale=5", true),
    ("max-age=100, max-stale=5", true),
  ])
  func aClientMayRefuseTheRoutesWindow(_ request: String, _ serves: Bool) {
    let windows = policy {
      $0.staleWhileRevalidateMilliseconds = 60_000
      $0.staleIfErrorMilliseconds = 60_000
    }
    let found = state("max-age=60", windows, after: 65_000, request: request)
    #expect(found.isInStaleWhileRevalidate == serves)
    // Where the network failed there is nothing better than the copy.
    #expect(found.mayServeOnFailure)
  }
}

struct StaleWindowTests {
  private static let both = policy {
    $0.staleWhileRevalidateMilliseconds = 30_000
    $0.staleIfErrorMilliseconds = 90_000
  }

  @Test(
    arguments: [
      ("fresh", 59_999, false, true), ("just stale", 60_000, true, true),
      ("the refresh window's last", 89_999, true, true), ("after it", 90_000, false, true),
      ("the error window's last", 149_999, false, true), ("after both", 150_000, false, false),
    ] as [(String, Int64, Bool, Bool)])
  func windowsBeginWhereFreshnessEnds(
    _ name: String, _ after: Int64, _ refresh: Bool, _ failure: Bool
  ) {
    let byRoute = state("max-age=60", Self.both, after: after)
    #expect(byRoute.isInStaleWhileRevalidate == refresh)
    #expect(byRoute.mayServeOnFailure == failure)
    let byOrigin = state(
      "max-age=60, stale-while-revalidate=30, stale-if-error=90", after: after)
    #expect(byOrigin.isInStaleWhileRevalidate == refresh)
    #expect(byOrigin.mayServeOnFailure == failure)
  }

  @Test func theRoutesWindowsGoBeforeTheOrigins() {
    let none = policy {
      $0.staleWhileRevalidateMilliseconds = 0
      $0.staleIfErrorMilliseconds = 0
    }
    let found = state(
      "max-age=60, stale-while-revalidate=30, stale-if-error=90", none, after: 60_000)
    #expect(!found.isInStaleWhileRevalidate && !found.mayServeOnFailure)
  }

  @Test func withoutAWindowNothingStaleServes() {
    let found = state("max-age=60", after: 60_000)
    #expect(!found.isInStaleWhileRevalidate && !found.mayServeOnFailure && !found.isFresh)
    #expect(!found.isStaleForbidden)
  }

  @Test(arguments: [
    ("must-revalidate", "max-age=60, must-revalidate", OriginWords.mustRevalidate),
    ("proxy-revalidate", "max-age=60, proxy-revalidate", .proxyRevalidate),
    ("no-cache", "max-age=60, no-cache", .noCache),
    ("a bare s-maxage", "s-maxage=60", .sharedMaxAge),
    (
      "must-revalidate beside windows",
      "max-age=60, must-revalidate, stale-if-error=90, stale-while-revalidate=90", .mustRevalidate
    ),
  ])
  func whatTheOriginForbidsHoldsUnlessOverruledByName(
    _ name: String, _ cacheControl: String, _ word: OriginWords
  ) {
    let found = state(cacheControl, Self.both, after: 65_000)
    #expect(found.isStaleForbidden)
    #expect(!found.isInStaleWhileRevalidate && !found.mayServeOnFailure)
    var others = Self.both
    others.ignoreOrigin = OriginWords(OriginWords.named.map(\.word).filter { $0 != word })
    #expect(state(cacheControl, others, after: 65_000).isStaleForbidden)
    var overruled = Self.both
    overruled.ignoreOrigin = word
    let allowed = state(cacheControl, overruled, after: 65_000)
    #expect(!allowed.isStaleForbidden)
    #expect(allowed.isInStaleWhileRevalidate && allowed.mayServeOnFailure)
  }

  @Test func freshCopiesServeWhateverForbidsStaleOnesButNoCacheForbidsAll() {
    let fresh = state("max-age=60, must-revalidate", Self.both, after: 1000)
    #expect(fresh.isFresh && fresh.mayServeOnFailure)
    let never = state("max-age=60, no-cache", Self.both, after: 1000)
    #expect(!never.isFresh && !never.isFreshForRoute && !never.mayServeOnFailure)
    let byTimeToLive = policy { $0.timeToLive = minute }
    #expect(!state("no-cache", byTimeToLive, after: 1000).isFresh)
    let overruled = policy {
      $0.timeToLive = minute
      $0.ignoreOrigin = .noCache
    }
    #expect(state("no-cache", overruled, after: 1000).isFresh)
  }

  @Test(
    arguments: [
      ("both of the origin's", "stale-while-revalidate=5, stale-if-error=7", 64_999, true, true),
      ("after the first", "stale-while-revalidate=5, stale-if-error=7", 65_000, false, true),
      ("after both", "stale-while-revalidate=5, stale-if-error=7", 67_000, false, false),
      ("only one", "stale-while-revalidate=5", 60_000, true, false),
      ("a window of 0", "stale-if-error=0", 60_000, false, false),
    ] as [(String, String, Int64, Bool, Bool)])
  func besideSharedMaxAgeOnlyTheOriginsWindowsCount(
    _ name: String, _ windows: String, _ after: Int64, _ refresh: Bool, _ failure: Bool
  ) {
    let networkFirst = policy(.networkFirst) { $0.staleWhileRevalidateMilliseconds = 30_000 }
    let found = state("s-maxage=60, " + windows, networkFirst, after: after)
    #expect(found.isInStaleWhileRevalidate == refresh)
    #expect(found.mayServeOnFailure == failure)
  }

  @Test(
    arguments: [
      ("any age", nil, "max-age=60", 9_999_999_000, 200, true),
      ("the route says less", 5000, "max-age=60", 65_000, 200, false),
      ("without a lifetime", nil, "", 9_999_999_000, 200, true),
      (
        "the origin's window does not shorten it", nil, "max-age=60, stale-if-error=5", 90_000, 200,
        true
      ),
      ("forbidden", nil, "max-age=60, must-revalidate", 65_000, 200, false),
      ("an error", nil, "max-age=60", 65_000, 500, false),
      ("a fresh error", nil, "max-age=60", 1000, 500, true),
    ] as [(String, Int64?, String, Int64, UInt16, Bool)])
  func networkFirstFallsBackOnAnyAge(
    _ name: String, _ window: Int64?, _ cacheControl: String, _ after: Int64, _ status: UInt16,
    _ serves: Bool
  ) {
    let networkFirst = policy(.networkFirst) { $0.staleIfErrorMilliseconds = window }
    let found = state(cacheControl, networkFirst, after: after, status: status)
    #expect(found.mayServeOnFailure == serves)
  }

  @Test func errorsNeverServeStale() {
    let found = state("max-age=60", Self.both, after: 60_000, status: 404)
    #expect(found.isError)
    #expect(!found.isInStaleWhileRevalidate && !found.mayServeOnFailure && !found.maxStaleAllows)
    #expect(!state("max-age=60", after: 0, status: 399).isError)
  }

  @Test func keepEndsACopyAltogether() {
    let kept = policy(.networkFirst) {
      $0.timeToLive = .fixed(milliseconds: 600_000)
      $0.keepMilliseconds = 60_000
    }
    let before = state("", kept, after: 59_999)
    #expect(before.isFresh && !before.isPastKeep)
    let after = state("", kept, after: 60_000)
    #expect(after.isPastKeep && !after.isFresh && !after.mayServeOnFailure)
  }

  @Test(arguments: [(0, false), (1000, true)] as [(Int64, Bool)])
  func anOutdatedCopyIsStaleWhateverItsAge(_ windowMilliseconds: Int64, _ serves: Bool) {
    var copy = metadata(200, [("Cache-Control", "max-age=60")])
    copy.flags.insert(.outdated)
    var policy = Policy(strategy: .cacheFirst)
    policy.staleIfErrorMilliseconds = windowMilliseconds
    let state = Freshness.copyState(
      of: copy, policy: policy, request: RequestDirectives(),
      nowMilliseconds: copy.responseTimeMilliseconds)
    #expect(!state.isFresh && !state.isStaleForbidden)
    #expect(state.mayServeOnFailure == serves)
  }
}
