import CachePolicy
import Testing

/// What the origin said of a response that came at noon, one second after it was asked for where
/// `delayMilliseconds` says so.
func metadata(
  _ status: UInt16, _ pairs: [(String, String)], delayMilliseconds: Int64 = 0
) -> StoredMetadata {
  let fields = Fields(pairs)
  return Freshness.originWords(
    status: status, fields, ResponseDirectives(fields),
    requestTimeMilliseconds: noonMilliseconds - delayMilliseconds,
    responseTimeMilliseconds: noonMilliseconds)
}

struct OriginLifetimeTests {
  @Test(
    arguments: [
      ("nothing", 200, [], -1),
      ("max-age", 200, [("Cache-Control", "max-age=60")], 60_000),
      ("s-maxage before max-age", 200, [("Cache-Control", "max-age=0, s-maxage=15")], 15_000),
      ("s-maxage of 0 before max-age", 200, [("Cache-Control", "s-maxage=0, max-age=60")], 0),
      (
        "max-age before Expires", 200,
        [("Cache-Control", "max-age=60"), ("Expires", date(noonSeconds + 90))], 60_000
      ),
      (
        "Expires less Date", 200,
        [("Date", date(noonSeconds - 10)), ("Expires", date(noonSeconds + 90))], 100_000
      ),
      ("Expires without Date", 200, [("Expires", date(noonSeconds + 90))], 90_000),
      ("Expires in the past", 200, [("Expires", date(noonSeconds - 90))], 0),
      ("Expires that is no date", 200, [("Expires", "0")], 0),
      (
        "two Expires are none", 200,
        [("Expires", date(noonSeconds + 90)), ("Expires", date(noonSeconds + 9))], 0
      ),
      (
        "the same Expires twice", 200,
        [("Expires", date(noonSeconds + 90)), ("Expires", date(noonSeconds + 90))], 0
      ),
      (
        "two Expires in one line", 200,
        [("Expires", date(noonSeconds + 90) + ", " + date(noonSeconds + 90))], 0
      ),
      (
        "a date that is none beside a good one", 200,
        [("Expires", date(noonSeconds + 90)), ("Expires", "x")], 0
      ),
      (
        "Expires less a Date that is none", 200,
        [("Date", "x"), ("Expires", date(noonSeconds + 90))], 90_000
      ),
      (
        "Expires less two Dates", 200,
        [
          ("Date", date(noonSeconds - 9)), ("Date", date(noonSeconds - 9)),
          ("Expires", date(noonSeconds + 90)),
        ], 90_000
      ),
      ("Expires that is Date", 200, [("Expires", date(noonSeconds))], 0),
      ("Expires past 2038", 200, [("Expires", date(2_544_315_678))], 1_544_315_678_000),
      (
        "max-age beside an Expires that is none", 200,
        [("Cache-Control", "max-age=60"), ("Expires", "0")], 60_000
      ),
      ("the largest max-age", 200, [("Cache-Control", "max-age=2147483647")], 2_147_483_647_000),
      (
        "a larger max-age", 200, [("Cache-Control", "max-age=9999999999999999999999")],
        2_147_483_648_000
      ),
      ("immutable alone", 200, [("Cache-Control", "immutable")], -1),
      ("public alone", 200, [("Cache-Control", "public")], -1),
      ("unreadable max-age", 200, [("Cache-Control", "max-age=1x")], 0),
      ("a tenth of the time since", 200, [("Last-Modified", date(noonSeconds - 1000))], 100_000),
      (
        "from Date, not from the receipt", 200,
        [("Date", date(noonSeconds - 500)), ("Last-Modified", date(noonSeconds - 1000))], 50_000
      ),
      ("at most a day", 200, [("Last-Modified", date(0))], 86_400_000),
      ("modified just now", 200, [("Last-Modified", date(noonSeconds))], 0),
      ("modified in the future", 200, [("Last-Modified", date(noonSeconds + 1))], -1),
      ("modified when it is no date", 200, [("Last-Modified", "x")], -1),
      ("302 is not guessed", 302, [("Last-Modified", date(noonSeconds - 1000))], -1),
      (
        "302 is guessed with public", 302,
        [("Last-Modified", date(noonSeconds - 1000)), ("Cache-Control", "public")], 100_000
      ),
      (
        "modified at two times", 200,
        [("Last-Modified", date(noonSeconds - 9)), ("Last-Modified", date(noonSeconds - 9))], -1
      ),
      ("201 is not guessed", 201, [("Last-Modified", date(noonSeconds - 1000))], -1),
      ("503 is not guessed", 503, [("Last-Modified", date(noonSeconds - 1000))], -1),
      ("an unknown one is not guessed", 299, [("Last-Modified", date(noonSeconds - 1000))], -1),
      (
        "an unknown one is guessed with public", 299,
        [("Last-Modified", date(noonSeconds - 1000)), ("Cache-Control", "Public")], 100_000
      ),
      ("404 is guessed", 404, [("Last-Modified", date(noonSeconds - 500))], 50_000),
      ("404 is guessed a minute at most", 404, [("Last-Modified", date(0))], 60_000),
      (
        "503 is guessed with public, a minute at most", 503,
        [("Last-Modified", date(0)), ("Cache-Control", "public")], 60_000
      ),
    ] as [(String, UInt16, [(String, String)], Int64)])
  func theOriginGivesALifetime(
    _ name: String, _ status: UInt16, _ pairs: [(String, String)], _ milliseconds: Int64
  ) {
    let found = metadata(status, pairs)
    #expect(found.originLifetimeMilliseconds == milliseconds)
    let isGuess = pairs.contains { $0.0 == "Last-Modified" } && milliseconds >= 0
    #expect(found.flags.contains(.heuristic) == isGuess)
    #expect(found.flags.contains(.explicitLifetime) == (milliseconds >= 0 && !isGuess))
  }

  @Test(
    arguments: [
      ("none", [], 0, 0), ("delay", [], 1500, 1500),
      ("Age", [("Age", "7")], 0, 7000), ("Age and delay", [("Age", "7")], 1500, 8500),
      ("Date", [("Date", date(noonSeconds - 20))], 0, 20_000),
      ("the greater of both", [("Date", date(noonSeconds - 20)), ("Age", "7")], 1500, 20_000),
      ("the greater of both, reversed", [("Date", date(noonSeconds - 5)), ("Age", "7")], 0, 7000),
      ("Date in the future", [("Date", date(noonSeconds + 20))], 0, 0),
      ("Date that is none", [("Date", "yesterday")], 0, 0),
      ("first member of Age", [("Age", "7, 9")], 0, 7000),
      ("first line of Age", [("Age", "7"), ("Age", "9")], 0, 7000),
      ("0 before another member", [("Age", "0, 9")], 0, 0),
      ("first member of Age that is none", [("Age", "x, 9")], 0, 0),
      ("Age with a parameter", [("Age", "7;a=b")], 0, 0),
      ("quoted Age", [("Age", "\"7\"")], 0, 0), ("Age with letters", [("Age", "7s")], 0, 0),
      ("empty Age", [("Age", "")], 0, 0), ("leading zeros of Age", [("Age", "007")], 0, 7000),
      ("huge Age", [("Age", "99999999999999999999")], 0, 2_147_483_648_000),
      ("two Dates", [("Date", date(noonSeconds - 5)), ("Date", date(noonSeconds - 5))], 0, 0),
      ("negative Age", [("Age", "-7")], 0, 0), ("decimal Age", [("Age", "7.0")], 0, 0),
      ("clock that went back", [], -5000, 0),
    ] as [(String, [(String, String)], Int64, Int64)])
  func aResponseHasAnAgeWhenItComes(
    _ name: String, _ pairs: [(String, String)], _ delay: Int64, _ milliseconds: Int64
  ) {
    let found = metadata(200, pairs, delayMilliseconds: delay)
    #expect(found.initialAgeMilliseconds == milliseconds)
  }

  @Test func wordsAndValidatorsBecomeFlags() {
    let all = metadata(
      200,
      [
        (
          "Cache-Control",
          "no-cache, must-revalidate, proxy-revalidate, s-maxage=1, immutable, "
            + "stale-while-revalidate=2, stale-if-error=3"
        ), ("ETag", "\"x\""),
      ])
    #expect(
      all.flags == [
        .noCache, .mustRevalidate, .proxyRevalidate, .sharedMaxAge, .immutable, .hasValidator,
        .explicitLifetime,
      ])
    #expect(all.originStaleWhileRevalidateMilliseconds == 2000)
    #expect(all.originStaleIfErrorMilliseconds == 3000)
    let none = metadata(200, [("Last-Modified", "x"), ("ETag", "")])
    #expect(none.flags == [])
    #expect(none.originStaleWhileRevalidateMilliseconds == -1)
    #expect(none.originStaleIfErrorMilliseconds == -1)
    #expect(metadata(200, [("Last-Modified", date(0))]).flags == [.heuristic, .hasValidator])
  }

  @Test func expiresDoesNotCountBesideATargetedField() {
    let fields = Fields([("CDN-Cache-Control", "public"), ("Expires", date(noonSeconds + 9))])
    let found = Freshness.originWords(
      status: 200, fields, ResponseDirectives(fields, targeted: ["CDN-Cache-Control"]),
      requestTimeMilliseconds: noonMilliseconds, responseTimeMilliseconds: noonMilliseconds)
    #expect(found.originLifetimeMilliseconds == -1)
  }
}
