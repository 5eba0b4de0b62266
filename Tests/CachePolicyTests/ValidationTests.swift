import CachePolicy
import Testing

struct ClientConditionTests {
  private static let copy = [
    ("ETag", "W/\"a\""), ("Last-Modified", date(noonSeconds - 100)), ("Date", date(noonSeconds)),
  ]

  @Test(
    arguments: [
      ("no condition", [], 200, copy, false),
      ("the same tag", [("If-None-Match", "W/\"a\"")], 200, copy, true),
      ("weakly the same", [("If-None-Match", "\"a\"")], 200, copy, true),
      ("in a list", [("If-None-Match", "\"x\", \"a\"")], 200, copy, true),
      (
        "on a second line", [("If-None-Match", "\"x\""), ("If-None-Match", "\"a\"")], 200, copy,
        true
      ),
      ("another", [("If-None-Match", "\"b\"")], 200, copy, false),
      ("any", [("If-None-Match", "*")], 200, copy, true),
      ("any, where there is no tag", [("If-None-Match", "*")], 200, [], true),
      ("no tag to compare", [("If-None-Match", "\"a\"")], 200, [], false),
      ("an error", [("If-None-Match", "\"a\"")], 404, copy, false),
      ("not modified since", [("If-Modified-Since", date(noonSeconds - 100))], 200, copy, true),
      ("since later", [("If-Modified-Since", date(noonSeconds))], 200, copy, true),
      ("modified since", [("If-Modified-Since", date(noonSeconds - 101))], 200, copy, false),
      (
        "since two dates",
        [("If-Modified-Since", date(noonSeconds)), ("If-Modified-Since", date(noonSeconds))], 200,
        copy, false
      ),
      (
        "since, in the form of RFC 850", [("If-Modified-Since", "Sunday, 09-Sep-01 01:46:40 GMT")],
        200, copy, true
      ),
      (
        "a date that holds beside tags that do not",
        [("If-Modified-Since", date(noonSeconds)), ("If-None-Match", "\"x\", \"y\"")], 200, copy,
        false
      ),
      (
        "a tag that holds beside a date that does not",
        [("If-None-Match", "\"a\""), ("If-Modified-Since", date(0))], 200, copy, true
      ),
      ("a tag without quotes", [("If-None-Match", "a")], 200, copy, false),
      ("case of a tag", [("If-None-Match", "\"A\"")], 200, copy, false),
      ("a small w", [("If-None-Match", "w/\"a\"")], 200, copy, false),
      ("the last of a list", [("If-None-Match", "\"x\" , W/\"y\",\"a\"")], 200, copy, true),
      ("a comma within a tag", [("If-None-Match", "\"x,\"")], 200, copy, false),
      ("any, in quotes", [("If-None-Match", "\"*\"")], 200, copy, false),
      ("an empty list", [("If-None-Match", "")], 200, copy, false),
      ("since what is no date", [("If-Modified-Since", "x")], 200, copy, false),
      (
        "the date does not count beside a tag",
        [("If-None-Match", "\"b\""), ("If-Modified-Since", date(noonSeconds))], 200, copy, false
      ),
      (
        "Date stands for Last-Modified", [("If-Modified-Since", date(noonSeconds))], 200,
        [("Date", date(noonSeconds))], true
      ),
      (
        "later than Date", [("If-Modified-Since", date(noonSeconds - 1))], 200,
        [("Date", date(noonSeconds))], false
      ),
      ("nothing to compare", [("If-Modified-Since", date(noonSeconds))], 200, [], false),
    ] as [(String, [(String, String)], UInt16, [(String, String)], Bool)])
  func aCopyAnswersAClientsCondition(
    _ name: String, _ request: [(String, String)], _ status: UInt16, _ stored: [(String, String)],
    _ holds: Bool
  ) {
    let found = Validation.notModified(
      request: Fields(request), status: status, stored: Fields(stored), nowSeconds: noonSeconds)
    #expect(found == holds)
  }

  @Test(
    arguments: [
      ("none", nil, "\"a\"", true), ("the same", "\"a\"", "\"a\"", true),
      ("another", "\"b\"", "\"a\"", false), ("weak", "W/\"a\"", "W/\"a\"", false),
      ("no tag", "\"a\"", nil, false), ("the date", date(noonSeconds - 100), nil, true),
      ("a later date", date(noonSeconds - 99), nil, false),
      ("an earlier date", date(noonSeconds - 101), nil, false), ("neither", "a", "a", false),
    ] as [(String, String?, String?, Bool)])
  func aRangeNeedsTheVeryCopy(_ name: String, _ ifRange: String?, _ tag: String?, _ holds: Bool) {
    let request = Fields(ifRange.map { [("If-Range", $0)] } ?? [])
    var stored = Fields([
      ("Last-Modified", date(noonSeconds - 100)), ("Date", date(noonSeconds)),
    ])
    if let tag { stored.append("ETag", tag) }
    let found = Validation.ifRangeHolds(request: request, stored: stored, nowSeconds: noonSeconds)
    #expect(found == holds)
  }

  @Test func aDateOfTheSameSecondIsTooWeakForARange() {
    let stored = Fields([("Last-Modified", date(noonSeconds)), ("Date", date(noonSeconds))])
    let request = Fields([("If-Range", date(noonSeconds))])
    #expect(
      !Validation.ifRangeHolds(request: request, stored: stored, nowSeconds: noonSeconds + 900))
  }

  @Test func twoLinesOfIfRangeAreNone() {
    let stored = Fields([("ETag", "\"a\"")])
    let request = Fields([("If-Range", "\"a\""), ("If-Range", "\"a\"")])
    #expect(!Validation.ifRangeHolds(request: request, stored: stored, nowSeconds: noonSeconds))
  }

  @Test func aNotModifiedCarriesWhatGuidesTheClientsCopy() {
    let stored = Fields([
      ("Content-Type", "x"), ("Cache-Control", "max-age=1"), ("ETag", "\"a\""),
      ("Last-Modified", "x"), ("Vary", "accept"), ("Date", "d"), ("Expires", "e"),
      ("Content-Location", "/x"), ("Set-Cookie", "a=b"), ("Content-Length", "5"), ("X-A", "1"),
    ])
    #expect(
      Validation.notModifiedFields(of: stored)
        == Fields([
          ("Cache-Control", "max-age=1"), ("ETag", "\"a\""), ("Vary", "accept"), ("Date", "d"),
          ("Expires", "e"), ("Content-Location", "/x"),
        ]))
    let untagged = Fields([("Last-Modified", "x"), ("X-A", "1")])
    #expect(Validation.notModifiedFields(of: untagged) == Fields([("Last-Modified", "x")]))
  }
}

struct CopyUpdateTests {
  @Test func aMissGoesOutWithoutTheClientsConditions() {
    var request = Fields([("If-None-Match", "x"), ("If-Modified-Since", "y"), ("If-Match", "z")])
    Validation.removeClientConditions(&request)
    #expect(request == Fields([("If-Match", "z")]))
    #expect(Validation.hasOriginConditions(request))
    #expect(Validation.hasOriginConditions(Fields([("If-Unmodified-Since", "x")])))
    #expect(!Validation.hasOriginConditions(Fields([("If-None-Match", "x")])))
  }

  @Test(
    arguments: [
      (
        "its own words", [("Cache-Control", "max-age=5")],
        [("Cache-Control", "private=\"x-me\""), ("X-Me", "1"), ("X-All", "1")]
      ),
      (
        "the stored words", [("Cache-Control", "no-cache=\"x-me\"")],
        [("X-Me", "1"), ("X-All", "1")]
      ),
      (
        "a targeted field", [("X-Me", "0")],
        [("CDN-Cache-Control", "private=\"x-me\""), ("X-Me", "1"), ("X-All", "1")]
      ),
    ] as [(String, [(String, String)], [(String, String)])])
  func aNotModifiedBringsNothingThatMustNotBeStored(
    _ name: String, _ stored: [(String, String)], _ notModified: [(String, String)]
  ) {
    let merged = Validation.merge(
      stored: Fields(stored), answer: Fields(notModified), targeted: ["CDN-Cache-Control"])
    #expect(merged["X-Me"] == nil)
    #expect(merged["X-All"] == "1")
  }

  /// What a 304 or HEAD does to one stored line: the decision for each field that is not like others.
  @Test(
    arguments: [
      ("any field", "X-A", "1", "2", "2"), ("case of a name", "x-a", "1", "2", "2"),
      ("Cache-Control", "Cache-Control", "max-age=1", "max-age=2", "max-age=2"),
      ("Expires", "Expires", "a", "b", "b"), ("Date", "Date", "a", "b", "b"),
      ("Last-Modified", "Last-Modified", "a", "b", "b"),
      ("Vary that shrinks", "Vary", "a, B", "b", "a, B"),
      ("Vary that grows", "Vary", "a", "b, A", "b, A"),
      ("Vary that differs", "Vary", "a, B", "C, b", "a, B, c"),
      ("Vary where there was none", "Vary", nil, "b", "b"), ("Vary: *", "Vary", "a", "*", "*"),
      ("Content-Type", "Content-Type", "text/a", "text/b", "text/b"),
      ("Content-Language", "Content-Language", "en", "de", "de"),
      ("Content-Location", "Content-Location", "/a", "/b", "/b"),
      ("Content-MD5", "Content-MD5", "a", "b", "b"), ("Content-Foo", "Content-Foo", "a", "b", "b"),
      ("Content-Length", "Content-Length", "5", "6", "5"),
      ("Content-Encoding", "Content-Encoding", "gzip", "br", "gzip"),
      ("Content-Range", "Content-Range", "a", "b", "a"),
      ("ETag", "ETag", "W/\"a\"", "\"a\"", "W/\"a\""),
      ("an ETag of a copy without", "ETag", nil, "\"a\"", "\"a\""),
      ("Content-Encoding of a copy without", "Content-Encoding", nil, "br", nil),
      ("Age", "Age", nil, "7", nil), ("Set-Cookie", "Set-Cookie", nil, "a=b", nil),
      ("Set-Cookie beside a stored one", "Set-Cookie", "a=a", "a=b", "a=a"),
      ("Connection", "Connection", nil, "x", nil), ("Keep-Alive", "Keep-Alive", nil, "x", nil),
      ("Transfer-Encoding", "Transfer-Encoding", nil, "chunked", nil),
      ("Trailer", "Trailer", nil, "x", nil), ("Upgrade", "Upgrade", nil, "x", nil),
      ("TE", "TE", nil, "x", nil), ("Proxy-Authenticate", "Proxy-Authenticate", nil, "x", nil),
    ] as [(String, String, String?, String, String?)])
  func eachFieldOfAnUpdateIsTakenOverOrNot(
    _ case: String, _ name: String, _ old: String?, _ new: String, _ merged: String?
  ) {
    let stored = Fields((old.map { [(name, $0)] } ?? []) + [("X-Kept", "k")])
    let found = Validation.merge(stored: stored, answer: Fields([(name, new)]))
    #expect(found[name] == merged)
    #expect(found["X-Kept"] == "k")
  }

  @Test func aRouteThatKeepsCookiesTakesThemOverToo() {
    let found = Validation.merge(
      stored: Fields([("Set-Cookie", "a=a"), ("Set-Cookie", "b=b")]),
      answer: Fields([("Set-Cookie", "a=c")]), keepsSetCookie: true)
    #expect(found == Fields([("Set-Cookie", "a=c")]))
  }

  @Test func aNotModifiedUpdatesEveryFieldButThoseOfTheBody() {
    let stored = Fields([
      ("Content-Type", "a"), ("Content-Length", "5"), ("Content-Encoding", "gzip"),
      ("Cache-Control", "max-age=1"), ("x-two", "1"), ("X-Two", "2"), ("X-Kept", "k"),
      ("Content-Range", "r"),
    ])
    let notModified = Fields([
      ("cache-control", "max-age=9"), ("Content-Length", "0"), ("Content-Encoding", "br"),
      ("Content-Range", "s"), ("X-TWO", "3"), ("X-New", "n"), ("X-New", "m"), ("Age", "7"),
      ("Set-Cookie", "a=b"), ("Connection", "x-hop"), ("X-Hop", "1"),
      ("Transfer-Encoding", "chunked"), ("Content-Type", "b"),
    ])
    #expect(
      Validation.merge(stored: stored, answer: notModified)
        == Fields([
          ("Content-Length", "5"), ("Content-Encoding", "gzip"), ("X-Kept", "k"),
          ("Content-Range", "r"), ("cache-control", "max-age=9"), ("X-TWO", "3"), ("X-New", "n"),
          ("X-New", "m"), ("Content-Type", "b"),
        ]))
  }
}
