import CachePolicy
import Testing

/// Stands for an HMAC: tells inputs apart, and holds no byte of them as it was.
func toyDigest(_ bytes: Span<UInt8>) -> [UInt8] {
  bytes.indices.map { bytes[$0] ^ 0xA5 }
}

struct UserIdentityTests {
  @Test(
    arguments: [
      ("header:Authorization", .header("authorization"), "header:authorization"),
      ("header:X-User", .header("x-user"), "header:x-user"),
      ("cookie:Session", .cookie("Session"), "cookie:Session"),
      ("cookie:Forwarded", .cookie("Forwarded"), "cookie:Forwarded"),
    ] as [(String, UserIdentity, String)])
  func identitiesAreRead(_ source: String, _ expected: UserIdentity, _ shown: String) throws {
    let found = try UserIdentity(parsing: source)
    #expect(found == expected)
    #expect(found.description == shown)
  }

  @Test(
    arguments: [
      ("", .unknownKind("")), ("Authorization", .unknownKind("Authorization")),
      ("Header:A", .unknownKind("Header:A")), ("query:a", .unknownKind("query:a")),
      ("header:", .badName("")), ("header:a b", .badName("a b")), ("cookie:a=b", .badName("a=b")),
      ("cookie:é", .badName("é")), ("header: A", .badName(" A")),
      ("header:X-Forwarded-For", .address("X-Forwarded-For")),
      ("header:X_Forwarded_For", .address("X_Forwarded_For")),
      ("header:Forwarded", .address("Forwarded")), ("header:x-real-ip", .address("x-real-ip")),
      ("header:CF-Connecting-IP", .address("CF-Connecting-IP")),
      ("header:Remote-Addr", .address("Remote-Addr")),
      ("header:X-Forwarded-Host", .fieldOfTheProxy("X-Forwarded-Host")),
      ("header:x-forwarded-user", .fieldOfTheProxy("x-forwarded-user")),
      ("header:X-Original-URL", .fieldOfTheProxy("X-Original-URL")),
      ("header:X-HTTP-Method-Override", .fieldOfTheProxy("X-HTTP-Method-Override")),
      ("header:Via", .fieldOfTheProxy("Via")), ("header:host", .fieldOfTheProxy("host")),
      ("header:Connection", .fieldOfTheProxy("Connection")), ("header:TE", .fieldOfTheProxy("TE")),
      ("header:Proxy-Authorization", .fieldOfTheProxy("Proxy-Authorization")),
      ("header:If-None-Match", .fieldOfTheProxy("If-None-Match")),
    ] as [(String, UserIdentityError)])
  func whatIdentifiesNobodyIsRefused(_ source: String, _ error: UserIdentityError) {
    #expect(throws: error) { try UserIdentity(parsing: source) }
    #expect(!error.message.isEmpty)
  }

  private func key(_ source: String, _ lines: [(String, String)]) throws -> [UInt8]? {
    var key: [UInt8] = []
    let identity = try UserIdentity(parsing: source)
    let found = identity.append(identityOf: Fields(lines), to: &key, digest: toyDigest)
    #expect(found != key.isEmpty)
    return found ? key : nil
  }

  @Test(
    arguments: [
      ("absent", "header:X-User", [("Accept", "a")]),
      ("empty", "header:X-User", [("X-User", "")]),
      ("quotes around nothing", "header:X-User", [("X-User", "\"\"")]),
      ("empty on each line", "header:X-User", [("X-User", ""), ("x-user", "")]),
      ("named by Connection", "header:X-User", [("X-User", "a"), ("Connection", "x-user")]),
      ("a name of CGI's alone", "header:X-User", [("X_User", "a")]),
      ("no cookie", "cookie:s", [("Cookie", "t=1")]),
      ("an empty cookie", "cookie:s", [("Cookie", "s=; t=1")]),
      ("a quoted empty cookie", "cookie:s", [("Cookie", "s=\"\"")]),
      ("letters of another case", "cookie:s", [("Cookie", "S=1")]),
    ] as [(String, String, [(String, String)])])
  func aRequestWithoutTheIdentityHasNone(
    _ name: String, _ source: String, _ lines: [(String, String)]
  ) throws {
    #expect(try key(source, lines) == nil, "\(name)")
  }

  /// All rows of one table are different users.
  @Test(
    arguments: [
      (
        "header:X-User",
        [
          [("X-User", "a")], [("X-User", "b")], [("X-User", "a"), ("X-User", "")],
          [("X-User", "a"), ("X-User", "b")], [("X-User", "b"), ("X-User", "a")],
          [("X-User", "a, b")], [("X-User", "ab")], [("X-User", "A")],
          [("X-User", "a"), ("X_User", "b")],
        ]
      ),
      (
        "cookie:s",
        [
          [("Cookie", "s=a")], [("Cookie", "s=b")], [("Cookie", "s=\"a\"")],
          [("Cookie", "s=a; s=b")], [("Cookie", "s=b; s=a")], [("Cookie", "s=a; S=b")],
          [("Cookie", "s=\"a;t=1\"")], [("Cookie", "s=\"a;t=2\"")], [("Cookie", "t=\"; s=a; u=\"")],
        ]
      ),
    ] as [(String, [[(String, String)]])])
  func differentUsersHaveDifferentKeys(
    _ source: String, _ requests: [[(String, String)]]
  ) throws {
    let keys = try requests.map { try key(source, $0) }
    #expect(!keys.contains(nil))
    #expect(Set(keys).count == requests.count)
  }

  @Test func whatElseTheRequestSaysIsNoPartOfTheIdentity() throws {
    let one = try key("cookie:s", [("Cookie", "a=1; s=x"), ("Accept", "y")])
    let other = try key("cookie:s", [("Cookie", "b=2"), ("cookie", "s=x;c=3")])
    #expect(one == other)
    #expect(try key("header:x-user", [("X-User", "x")]) == key("header:X-User", [("x-user", "x")]))
  }

  @Test func kindsAndNamesAreToldApart() throws {
    let lines = [("s", "x"), ("t", "x"), ("Cookie", "s=x")]
    let keys = try ["header:s", "header:t", "cookie:s"].map { try key($0, lines) }
    #expect(Set(keys).count == 3)
  }
}

struct KeyedHeadersTests {
  private func key(_ recipe: KeyRecipe, _ lines: [(String, String)]) -> [UInt8] {
    var key: [UInt8] = []
    recipe.append(headersOf: Fields(lines), to: &key, digest: toyDigest)
    return key
  }

  /// All rows of one table have different keys.
  @Test(
    arguments: [
      (
        KeyRecipe(headers: ["x-a", "x-b"]),
        [
          [], [("X-A", "")], [("X-B", "")], [("X-A", ""), ("X-B", "")], [("X-A", "1")],
          [("X-B", "1")], [("X-A", "1"), ("X-A", "2")], [("X-A", "1, 2")], [("X-A", "12")],
          [("X-A", "1"), ("X-B", "2")], [("X-A", "1"), ("X_A", "2")], [("X_A", "1")],
        ]
      ),
      (
        KeyRecipe(cookies: ["a", "b"]),
        [
          [], [("Cookie", "a=")], [("Cookie", "b=")], [("Cookie", "a=1")], [("Cookie", "a=1;b=1")],
          [("Cookie", "a=1;a=2")], [("Cookie", "A=1")], [("Cookie", "x=\"; a=1; y=\"")],
        ]
      ),
    ] as [(KeyRecipe, [[(String, String)]])])
  func requestsThatDifferHaveDifferentKeys(
    _ recipe: KeyRecipe, _ requests: [[(String, String)]]
  ) {
    #expect(Set(requests.map { key(recipe, $0) }).count == requests.count)
  }

  @Test func otherFieldsDoNotCount() {
    let recipe = KeyRecipe(headers: ["x-a"], cookies: ["a"])
    let one = key(recipe, [("X-A", "1"), ("Cookie", "a=1"), ("Accept", "x")])
    let other = key(recipe, [("Cookie", "b=2; a=1"), ("x-a", "1"), ("X-B", "y")])
    #expect(one == other)
    // The origin does not see what Connection names.
    #expect(key(recipe, [("X-A", "1"), ("Connection", "X-A")]) == key(recipe, []))
    #expect(key(KeyRecipe(), [("X-A", "1")]).isEmpty)
  }

  @Test func recipesOfOtherNamesHaveOtherKeys() {
    let lines = [("X-A", "1"), ("X-B", "1")]
    let (one, other) = (KeyRecipe(headers: ["x-a"]), KeyRecipe(headers: ["x-b"]))
    #expect(key(one, lines) != key(other, lines))
  }

  @Test(arguments: [
    (KeyRecipe(headers: ["authorization"]), true), (KeyRecipe(headers: ["x-api-key"]), true),
    (KeyRecipe(headers: ["cookie"]), true), (KeyRecipe(cookies: ["s"]), true),
    (KeyRecipe(headers: ["accept-language"]), false),
  ])
  func credentialsAreNotInTheKeyInClear(_ recipe: KeyRecipe, _ isHidden: Bool) {
    let secret = "s3cr3t"
    let lines = [
      ("Authorization", secret), ("X-Api-Key", secret), ("Cookie", "s=" + secret),
      ("Accept-Language", secret),
    ]
    let shown = String(decoding: key(recipe, lines), as: UTF8.self)
    #expect(shown.contains(secret) != isHidden)
    #expect(key(recipe, lines) != key(recipe, lines.map { ($0.0, $0.1 + "x") }))
  }
}
