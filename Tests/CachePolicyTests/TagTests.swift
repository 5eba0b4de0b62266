import CachePolicy
import Testing

struct TagTemplateTests {
  @Test(
    arguments: [
      ("no name", "reference", [], "reference"),
      ("a name at the end", "article:{id}", ["id"], "article:7"),
      ("a name alone", "{id}", ["id"], "7"),
      ("two names", "{kind}-{id}!", ["kind", "id"], "b%2Fc-7!"),
      ("a name twice", "{id}/{id}", ["id"], "7/7"),
      ("braces in a value are no names", "{odd}", ["odd"], "{id}*"),
      ("a comma and quotes are encoded", "x{list}", ["list"], "xa%2Cb%22%27"),
      ("a star is a star", "a*", [], "a*"),
    ] as [(String, String, [String], String)])
  func templatesAreFilledFromThePath(
    _ name: String, _ source: String, _ names: [String], _ expected: String
  ) throws {
    let captures = [
      (name: "id", value: "7"), (name: "kind", value: "b%2Fc"), (name: "odd", value: "{id}*"),
      (name: "list", value: "a,b\"'"),
    ]
    let template = try TagTemplate(parsing: source)
    #expect(template.names == names, "\(name)")
    #expect(template.filled(with: captures) == Array(expected.utf8), "\(name)")
  }

  @Test func aTagThatCannotBeMadeIsNone() throws {
    let template = try TagTemplate(parsing: "a{id}")
    #expect(template.filled(with: []) == nil)
    let longest = String(repeating: "x", count: TagTemplate.bytesMax - 1)
    #expect(template.filled(with: [(name: "id", value: longest)])?.count == TagTemplate.bytesMax)
    #expect(template.filled(with: [(name: "id", value: longest + "x")]) == nil)
  }

  @Test(
    arguments: [
      ("", .badLength), (String(repeating: "x", count: 257), .badLength), ("a b", .forbiddenByte),
      ("a,b", .forbiddenByte), ("a\"", .forbiddenByte), ("a'", .forbiddenByte),
      ("é", .forbiddenByte), ("a\tb", .forbiddenByte), ("{", .badName("{")),
      ("a{id", .badName("{id")), ("{}", .badName("{}")), ("{a-b}", .badName("{a-b}")),
      ("a}", .badName("}")), ("{a}}", .badName("}")), ("{{a}}", .badName("{{a}")),
    ] as [(String, TagTemplateError)])
  func templateIsRefused(_ source: String, _ error: TagTemplateError) {
    #expect(throws: error) { try TagTemplate(parsing: source) }
    #expect(!error.message.isEmpty)
  }
}

struct InvalidationTargetTests {
  private static let captures = [
    (name: "id", value: "7"), (name: "star", value: "a*b"), (name: "all", value: "**"),
    (name: "brace", value: "{id}"),
  ]

  @Test func aTagIsFilled() throws {
    let target = try InvalidationTarget(parsing: "tag:article:{id}")
    #expect(target.names == ["id"])
    #expect(target.filled(with: Self.captures) == .tag(Array("article:7".utf8)))
    #expect(target.filled(with: []) == nil)
  }

  struct Row: Sendable, CustomTestStringConvertible {
    var target: String
    var names: [String]
    var takes: [String]
    var leaves: [String]
    var testDescription: String { target }
  }

  @Test(arguments: [
    Row(target: "/articles", names: [], takes: ["/articles"], leaves: ["/articles/7"]),
    Row(
      target: "/articles/{id}/**", names: ["id"], takes: ["/articles/7", "/articles/7/thumbs"],
      leaves: ["/articles/8", "/articles", "/articles/77"]),
    Row(target: "/a/{star}", names: ["star"], takes: ["/a/a*b"], leaves: ["/a/ab", "/a/axb"]),
    Row(target: "/a/{all}", names: ["all"], takes: ["/a/**"], leaves: ["/a/x", "/a", "/a/x/y"]),
    Row(target: "/a/{brace}", names: ["brace"], takes: ["/a/{id}"], leaves: ["/a/7"]),
    Row(
      target: "/a/*/{id}", names: ["id"], takes: ["/a/x/7", "/a/y/7"], leaves: ["/a/x/8", "/a/7"]),
    Row(
      target: "//x/{id}/{star}/*.png", names: ["id", "star"], takes: ["/7/a*b/c.png"],
      leaves: ["/7/aab/c.png", "/7/a*b/c.jpg"]),
  ])
  func whatThePathBringsStandsForItself(_ row: Row) throws {
    let target = try InvalidationTarget(parsing: row.target)
    #expect(target.names == row.names)
    guard case .path(let pattern) = target.filled(with: Self.captures) else {
      Issue.record("no path")
      return
    }
    let table = RouteTable(patterns: [pattern])
    let (method, host) = (Array("GET".utf8), Array("x".utf8))
    for path in row.takes + row.leaves {
      let bytes = Array(path.utf8)
      let found = table.match(method: method.span, host: host.span, path: bytes.span)
      #expect((found != nil) == row.takes.contains(path), "\(path)")
    }
  }

  @Test func aFilledPathShowsItsValues() throws {
    let target = try InvalidationTarget(parsing: "//x/{id}/{brace}/{all}")
    guard case .path(let pattern) = target.filled(with: Self.captures) else {
      Issue.record("no path")
      return
    }
    #expect(pattern.source == "//x/7/{id}/**")
    #expect(pattern.host?.name == "x")
    #expect(pattern.names.isEmpty)
  }

  @Test(
    arguments: [
      [], [(name: "id", value: "")], [(name: "id", value: "a/b")], [(name: "other", value: "7")],
    ] as [[(name: String, value: String)]])
  func aPathWithoutAValueForItsNameIsNone(_ captures: [(name: String, value: String)]) throws {
    #expect(try InvalidationTarget(parsing: "/a/{id}").filled(with: captures) == nil)
  }

  @Test(
    arguments: [
      ("", .neither("")), ("articles", .neither("articles")), ("tag", .neither("tag")),
      ("POST /a", .neither("POST /a")), ("Tag:a", .neither("Tag:a")),
      ("/a b", .path(.forbiddenByte)), ("/a?b", .path(.queryOrFragment)),
      ("//x", .path(.hostWithoutPath("//x"))), ("/a/../b", .path(.dotSegment(".."))),
      ("tag:", .tag(.badLength)), ("tag:a b", .tag(.forbiddenByte)),
      ("tag:{", .tag(.badName("{"))),
    ] as [(String, InvalidationTargetError)])
  func targetIsRefused(_ source: String, _ error: InvalidationTargetError) {
    #expect(throws: error) { try InvalidationTarget(parsing: source) }
    #expect(!error.message.isEmpty)
  }
}

struct OriginTagsTests {
  private static let longest = String(repeating: "x", count: 256)

  @Test(
    arguments: [
      ("none", [("Content-Type", "a b")], []),
      ("empty lines", [("Surrogate-Key", ""), ("Cache-Tag", " , ,")], []),
      ("parted by spaces", [("Surrogate-Key", "a b  c\td")], ["a", "b", "c", "d"]),
      ("a comma is a part of a surrogate key", [("Surrogate-Key", "a,b c")], ["a,b", "c"]),
      ("parted by commas", [("Cache-Tag", "a,b , c,,d")], ["a", "b", "c", "d"]),
      (
        "on several lines, each once",
        [("Surrogate-Key", "a b"), ("cache-tag", "b,c"), ("surrogate-key", "c d")],
        ["a", "b", "c", "d"]
      ),
      ("case counts", [("Cache-Tag", "a,A")], ["a", "A"]),
      ("quotes and braces are printable", [("Cache-Tag", "\"a\",{b}")], ["\"a\"", "{b}"]),
      ("the longest", [("Cache-Tag", longest)], [longest]),
    ] as [(String, [(String, String)], [String])])
  func tagsOfBothFieldsAreRead(
    _ name: String, _ lines: [(String, String)], _ expected: [String]
  ) {
    #expect(OriginTags.read(Fields(lines)) == .tags(expected.map { Array($0.utf8) }), "\(name)")
  }

  @Test(
    arguments: [
      ("too long", [("Cache-Tag", "a," + longest + "x")], .tooLong),
      ("beyond ASCII", [("Surrogate-Key", "a é")], .forbiddenByte),
      ("a control", [("Surrogate-Key", "a\u{1}")], .forbiddenByte),
      ("a space within", [("Cache-Tag", "a b, c")], .forbiddenByte),
      ("in the second field", [("Surrogate-Key", "a"), ("Cache-Tag", "\u{7F}")], .forbiddenByte),
      (
        "too many", [("Surrogate-Key", (0...1000).map { "t\($0)" }.joined(separator: " "))],
        .tooMany
      ),
    ] as [(String, [(String, String)], OriginTags.Refusal)])
  func anAnswerWhoseTagsCannotBeKeptIsUnusable(
    _ name: String, _ lines: [(String, String)], _ expected: OriginTags.Refusal
  ) {
    #expect(OriginTags.read(Fields(lines)) == .unusable(expected), "\(name)")
  }

  @Test func repeatedTagsDoNotMakeTooMany() {
    let line = (0..<3000).map { "t\($0 % 1000)" }.joined(separator: " ")
    guard case .tags(let tags) = OriginTags.read(Fields([("Surrogate-Key", line)])) else {
      Issue.record("unusable")
      return
    }
    #expect(tags.count == 1000)
  }
}
