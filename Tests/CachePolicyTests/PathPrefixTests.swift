import CachePolicy
import Testing

struct PathPrefixTests {
  private func originPath(_ path: String, strip: String?, add: String?) throws -> String {
    let bytes = Array(path.utf8)
    var output: [UInt8] = []
    try PathPrefix.appendOriginPath(
      bytes.span, stripping: strip.map { try PathPrefix(parsing: $0) },
      adding: add.map { try PathPrefix(parsing: $0) }, to: &output)
    return text(output)
  }

  @Test(
    arguments: [
      ("/api/users", "/api", nil, "/users"),
      ("/api", "/api", nil, "/"),
      ("/api/", "/api", nil, "/"),
      ("/apix", "/api", nil, "/apix"),
      ("/apix/api", "/api", nil, "/apix/api"),
      ("/ap", "/api", nil, "/ap"),
      ("/", "/api", nil, "/"),
      ("/API/users", "/api", nil, "/API/users"),
      ("/v1/api/users", "/api", nil, "/v1/api/users"),
      ("/api/api/users", "/api", nil, "/api/users"),
      ("/api%2Fusers", "/api", nil, "/api%2Fusers"),
      ("//api/users", "/api", nil, "/users"),
      ("/api//users", "/api", nil, "//users"),
      ("//a///b/c//d/", "/a/b", nil, "/c//d/"),
      ("/a/b", "/a/b/c", nil, "/a/b"),
      ("/caf%C3%A9/x", "/caf%c3%a9", nil, "/x"),
      ("/api/x", "/%61pi", nil, "/x"),
      ("/users", nil, "/v2", "/v2/users"),
      ("/", nil, "/v2", "/v2/"),
      ("//x", nil, "/v2", "/v2//x"),
      ("/api/users", "/api", "/v2/x", "/v2/x/users"),
      ("/api", "/api", "/v2", "/v2/"),
      ("/other", "/api", "/v2", "/v2/other"),
      ("/a/b", nil, nil, "/a/b"),
    ] as [(String, String?, String?, String)])
  func prefixesAreTakenOffAndPutBefore(
    _ path: String, _ strip: String?, _ add: String?, _ expected: String
  ) throws {
    #expect(try originPath(path, strip: strip, add: add) == expected)
  }

  @Test func aPrefixIsInNormalForm() throws {
    #expect(try PathPrefix(parsing: "/%61pi/caf%c3%a9").text == "/api/caf%C3%A9")
    #expect(try PathPrefix(parsing: "/%61") == PathPrefix(parsing: "/a"))
  }

  @Test(
    arguments: [
      ("", .notAbsolute), ("api", .notAbsolute), ("http://x/a", .notAbsolute), ("/", .empty),
      ("/a/", .trailingSlash), ("//", .trailingSlash), ("//a", .emptySegment),
      ("/a//b", .emptySegment), ("/a?b", .queryOrFragment), ("/a#b", .queryOrFragment),
      ("/a b", .forbiddenByte), ("/é", .forbiddenByte), ("/a%", .malformedPercent("a%")),
      ("/a%zz/b", .malformedPercent("a%zz")), ("/a/../b", .dotSegment("..")),
      ("/.", .dotSegment(".")), ("/%2e%2E", .dotSegment("%2e%2E")),
      ("/..%2fb", .dotSegment("..%2fb")),
    ] as [(String, PathPrefixError)])
  func prefixIsRefused(_ source: String, _ error: PathPrefixError) {
    #expect(throws: error) { try PathPrefix(parsing: source) }
    #expect(!error.message.isEmpty)
  }
}

struct ClientStrategyTests {
  @Test(
    arguments: [
      ("none", [], .absent),
      ("one that is listed", ["network-first"], .strategy(.networkFirst)),
      ("in other letters", ["Cache-ONLY"], .strategy(.cacheOnly)),
      ("with spaces around", [" cache-only\t"], .strategy(.cacheOnly)),
      ("one that is not listed", ["cache-first"], .ignored(.notAllowed)),
      ("an unknown one", ["cache"], .ignored(.unknown)),
      ("an empty one", [""], .ignored(.unknown)),
      ("with parameters", ["cache-only;x"], .ignored(.unknown)),
      ("a list", ["cache-only, network-first"], .ignored(.several)),
      ("two words", ["cache-only network-first"], .ignored(.several)),
      ("two lines", ["cache-only", "cache-only"], .ignored(.several)),
    ] as [(String, [String], ClientStrategy.Choice)])
  func aClientHasItsChoiceAmongTheListed(
    _ name: String, _ lines: [String], _ expected: ClientStrategy.Choice
  ) {
    let fields = Fields(lines.map { ("larder-strategy", $0) })
    let found = ClientStrategy.read(fields, allowed: [.networkFirst, .cacheOnly])
    #expect(found == expected, "\(name)")
    if case .strategy(let strategy) = expected {
      #expect(found.strategy == strategy)
    } else {
      #expect(found.strategy == nil)
    }
  }

  @Test(arguments: Strategy.allCases)
  func everyStrategyCanBeListedAndWithoutAListNoneIsTaken(_ strategy: Strategy) {
    let fields = Fields([("Larder-Strategy", strategy.name)])
    #expect(ClientStrategy.read(fields, allowed: [strategy]) == .strategy(strategy))
    #expect(ClientStrategy.read(fields, allowed: []) == .ignored(.notAllowed))
  }
}
