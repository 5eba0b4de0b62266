import Testing

@testable import Proxy

/// Pairs of a file and exactly what is said of it. A row's text stands between a first line that
/// gives what every file needs, and the brace that closes it, so that line 2 is the row's first.
@Suite struct ConfigurationDiagnosticsTests {
  struct Row: Sendable, CustomTestStringConvertible {
    var name: String
    var text: String
    var expected: [String]
    var testDescription: String { name }

    /// A row in the frame.
    init(_ name: String, _ text: String, _ expected: String...) {
      self.init(
        whole: name,
        "{\"version\":1,\"upstreams\":{\"api\":{\"url\":\"http://api\"}},"
          + "\"defaults\":{\"upstream\":\"api\"},\n\(text)\n}", expected)
    }

    /// A row that is the whole file.
    init(whole name: String, _ text: String, _ expected: [String]) {
      self.name = name
      self.text = text
      self.expected = expected
    }

    /// A row whose text is the members of one route beside name and match.
    static func route(_ name: String, _ text: String, _ expected: String...) -> Row {
      var row = Row(name, "\"routes\":[{\"name\":\"r\",\"match\":\"/r\",\n\(text)\n}]")
      row.expected = expected
      return row
    }
  }

  @Test func whatIsWrongAThousandTimesOverIsCounted() {
    let routes = Array(repeating: "1", count: 1_500).joined(separator: ",\n")
    let text = "{ version: 1, upstreams: { a: { url: 'http://a' } }, routes: [\n\(routes)] }"
    guard
      case .refused(let found) = ConfigurationLoader.load(
        text: text, file: "p.json", environment: [:])
    else {
      Issue.record("loaded")
      return
    }
    #expect(found.count == Limits().diagnostics + 1)
    #expect(found.last?.message.hasSuffix(" more from here on") == true)
  }

  @Test(arguments: syntaxRows + topRows + upstreamRows + routeRows + policyRows)
  func fileIsDiagnosedExactly(row: Row) {
    let environment = ["PORT": "8081", "EMPTY": "", "WORD": "cache-first"]
    let result = ConfigurationLoader.load(text: row.text, file: "p.json", environment: environment)
    let diagnostics: [Diagnostic] =
      switch result {
      case .loaded(_, let warnings): warnings
      case .refused(let all): all
      }
    #expect(diagnostics.map(\.description) == row.expected)
    // Refused exactly where there is an error.
    if case .refused = result {
      #expect(diagnostics.contains { $0.severity == .error })
    } else {
      #expect(diagnostics.allSatisfy { $0.severity == .warning })
    }
  }

  /// A file that was cut off, by a full disk or a careless copy, is never taken for a whole one.
  @Test func fileThatIsCutOffIsRefused() {
    let whole =
      "{version: 1, /* c */ upstreams: {'a': {\"url\": \"http:\\u002f/a\",},}, routes: []}"
    for count in 0..<whole.count {
      let result = ConfigurationLoader.load(
        text: String(whole.prefix(count)), file: "p.json", environment: [:])
      guard case .refused(let diagnostics) = result else {
        Issue.record("loaded the first \(count) characters")
        continue
      }
      #expect(diagnostics.contains { $0.severity == .error })
    }
    guard case .loaded = ConfigurationLoader.load(text: whole, file: "p.json", environment: [:])
    else {
      Issue.record("refused the whole file")
      return
    }
  }

  /// Whatever stands in the place of a character, there is an answer, and places lie in the file.
  @Test(arguments: [
    "{version:1,//c\nupstreams:{a:{url:'http://a'}},routes:[{name:\"r\"}]}",
    "{version:1,upstreams:{a:{url:'http://a'}},defaults:{upstream:'a'},\n"
      + "routes:[{name:'r',match:'/{x}',strategy:'cache-first',key:{query:['a']},tags:['t:{x}'],"
      + "invalidates:['/{x}'],perUser:'cookie:s',warm:['/1']}],\n"
      + "tests:[{request:'GET /1',headers:{A:'b'},given:{status:200},expect:{ttl:'1m'}}]}",
  ])
  func anyCharacterAnywhereGetsAnAnswer(text: String) {
    let whole = Array(text)
    for index in whole.indices {
      for other in "{}[]:,'\"\\/*\n0-.xé\u{0}\u{1F600}$" {
        var text = whole
        text[index] = other
        let result = ConfigurationLoader.load(
          text: String(text), file: "p.json", environment: [:])
        guard case .refused(let diagnostics) = result else { continue }
        #expect(!diagnostics.isEmpty)
        #expect(
          diagnostics.allSatisfy {
            (1...4).contains($0.place.line) && (1...text.count + 1).contains($0.place.column)
          }, "\(String(text))")
      }
    }
  }

  static let syntaxRows: [Row] = [
    Row(whole: "empty file", "", ["p.json:1:1: the text ends where a value should stand"]),
    Row(whole: "no object", "[]", ["p.json:1:1: expected an object, got a list"]),
    Row(
      whole: "empty object", "{}",
      ["p.json:1:1: \"version\" is missing", "p.json:1:1: \"upstreams\" is missing"]),
    Row("comments and trailing commas", "// x\n/* y\n */ 'loops': 1, // z\n"),
    Row("unquoted keys", "loops: 1, admin: { listen: '127.0.0.1:1', },"),
    Row(
      whole: "byte order mark is passed over", "\u{FEFF}{}",
      ["p.json:1:1: \"version\" is missing", "p.json:1:1: \"upstreams\" is missing"]),
    Row(
      whole: "text behind the end", "{} x",
      [
        "p.json:1:1: \"version\" is missing", "p.json:1:1: \"upstreams\" is missing",
        "p.json:1:4: nothing may follow the end of the configuration",
      ]),
    Row(
      "missing comma", "\"loops\": 1\n\"listen\": \"127.0.0.1:1\"",
      "p.json:2:11: a comma is missing here"),
    Row(
      "two missing commas and a wrong value", "\"loops\": x\n\"limits\": {} \"routes\": []",
      "p.json:2:10: loops: \"x\" is no value; strings stand in quotes",
      "p.json:2:11: a comma is missing here", "p.json:3:13: a comma is missing here"),
    Row("missing colon", "\"loops\" 1", "p.json:2:9: loops: expected \":\" behind a key"),
    Row("missing value", "\"loops\": ,", "p.json:2:10: loops: expected a value, got \",\""),
    Row(
      "wrong bracket", "\"routes\": [}",
      "p.json:2:12: routes[0]: expected a value, got \"}\""),
    Row(
      "wrong closing bracket", "\"admin\": {\"token\": \"x\"]",
      "p.json:2:23: admin: expected \",\" or \"}\", got \"]\""),
    Row(
      whole: "object that is not closed", "{\n\"admin\": {",
      ["p.json:2:11: admin: the object that opens at line 2 is not closed"]),
    Row(
      whole: "list that is not closed", "{\"routes\": [",
      ["p.json:1:13: routes: the list that opens at line 1 is not closed"]),
    Row(
      "string that is not closed on its line", "\"listen\": \"127\n\"",
      "p.json:2:11: listen: the string is not closed on its line"),
    Row(whole: "string that is not closed", "{\"a", ["p.json:1:2: the string is not closed"]),
    Row("comment that is not closed", "/* x", "p.json:2:1: the comment is not closed"),
    Row("half a comment", "/ x", "p.json:2:1: \"/\" opens a comment only as \"//\" or \"/*\""),
    Row(
      "unknown escape", "\"$schema\": \"a\\q\"",
      "p.json:2:14: $schema: unknown escape \"\\q\""),
    Row(
      "half a surrogate pair", "\"$schema\": \"\\ud800\"",
      "p.json:2:13: $schema: half of a surrogate pair is no character"),
    Row(
      "short unicode escape", "\"$schema\": \"\\u12\"",
      "p.json:2:13: $schema: \"\\u\" needs four hex digits"),
    Row(
      "control in a string", "\"$schema\": \"a\u{1}\"",
      "p.json:2:14: $schema: a control character in a string must be escaped"),
    Row(
      "unit without quotes", "\"limits\": {\"idle\": 30s}",
      "p.json:2:20: limits.idle: \"30s\" is no number; durations and sizes stand in quotes, as in "
        + "\"15m\""),
    Row(
      "number with a leading zero", "\"loops\": 02",
      "p.json:2:10: loops: \"02\" is no number; durations and sizes stand in quotes, as in "
        + "\"15m\""),
    Row(
      "duplicate key", "\"loops\": 1,\n  \"loops\": 2",
      "p.json:3:3: loops: given twice, first at line 2, column 1"),
    Row(
      "duplicate key in another spelling", "loops: 1, 'l\\u006fops': 2",
      "p.json:2:11: loops: given twice, first at line 2, column 1"),
    Row(
      "columns count characters, not bytes", "/* äöü€😀 */ \"lops\": 1",
      "p.json:2:13: lops: unknown key, did you mean \"loops\"?"),
    Row(
      "nested too deep", "\"x\": " + String(repeating: "[", count: 70),
      "p.json:2:69: x" + String(repeating: "[0]", count: 63) + ": nested deeper than 64 levels"),
    Row(
      "line ends of both kinds", "\r\n\r\n\"lops\": 1",
      "p.json:4:1: lops: unknown key, did you mean \"loops\"?"),
    Row(
      "control in a key is printed escaped", "\"a\\u001bb\": 1",
      "p.json:2:1: a\\u{1b}b: unknown key; one of $schema, version, listen, loops, publicUrl, "
        + "admin, store, upstreams, limits, defaults, routes, tests"),
  ]

  static let topRows: [Row] = [
    Row("nothing wrong", "\"loops\": 2"),
    Row(
      "unknown key without a near one", "\"webscale\": true",
      "p.json:2:1: webscale: unknown key; one of $schema, version, listen, loops, publicUrl, "
        + "admin, store, upstreams, limits, defaults, routes, tests"),
    Row(
      whole: "other version", "{\"version\":2,\"upstreams\":{\"a\":{\"url\":\"http://a\"}}}",
      ["p.json:1:12: version: 2: only 1 is known"]),
    Row(
      "number as text", "\"loops\": \"2\"", "p.json:2:10: loops: expected a number, got a string"),
    Row(
      "number with a fraction", "\"loops\": 1.5",
      "p.json:2:10: loops: 1.5: a whole number from 0 to 1024"),
    Row(
      "number out of bounds", "\"loops\": -1",
      "p.json:2:10: loops: -1: a whole number from 0 to 1024"),
    Row("null", "\"loops\": null", "p.json:2:10: loops: expected a number, got null"),
    Row(
      "listen without a port", "\"listen\": \"127.0.0.1\"",
      "p.json:2:11: listen: \"127.0.0.1\": an address and a port, as in \"127.0.0.1:8080\" or "
        + "\"[::1]:8080\""),
    Row(
      "listen without an address", "\"listen\": \":8080\"",
      "p.json:2:11: listen: \":8080\": which address? \"0.0.0.0:8080\" listens on all of IPv4, "
        + "\"127.0.0.1:8080\" on this machine alone"),
    Row(
      "listen on a name", "\"listen\": [\"localhost:1\", \"example.com:80\"]",
      "p.json:2:27: listen[1]: \"example.com:80\": listens on an address, not on a name"),
    Row(
      "listen on no port", "\"listen\": [\"127.0.0.1:65536\", \"127.0.0.1:\"]",
      "p.json:2:12: listen[0]: \"127.0.0.1:65536\": a port is a number from 0 to 65535",
      "p.json:2:31: listen[1]: \"127.0.0.1:\": a port is a number from 0 to 65535"),
    Row(
      "listen twice on one", "\"listen\": [\"[::1]:1\", \"[::1]:1\"]",
      "p.json:2:23: listen[1]: \"[::1]:1\" is given twice, first at line 2, column 12"),
    Row("listen nowhere", "\"listen\": []", "p.json:2:11: listen: at least one address"),
    Row(
      "listen on a number", "\"listen\": 8080",
      "p.json:2:11: listen: expected an address such as \"127.0.0.1:8080\", got a number"),
    Row(
      "admin on the public address", "\"admin\": {\"listen\": \"127.0.0.1:8080\"}",
      "p.json:2:21: admin.listen: \"127.0.0.1:8080\" is given in \"listen\" already"),
    Row(
      "admin open to others", "\"admin\": {\"listen\": \"0.0.0.0:8081\"}",
      "p.json:2:21: admin.listen: warning: \"0.0.0.0:8081\" is open to other machines, and there "
        + "is "
        + "no admin.token"),
    Row(
      "admin open to others with an empty token",
      "\"admin\": {\"listen\": \"0.0.0.0:8081\", \"token\": \"${EMPTY}\"}",
      "p.json:2:21: admin.listen: warning: \"0.0.0.0:8081\" is open to other machines, and there "
        + "is "
        + "no admin.token"),
    Row(
      "size without a unit", "\"store\": {\"maxSize\": 1024, \"maxEntrySize\": \"64\"}",
      "p.json:2:22: store.maxSize: 1024: a size has a unit (B, KB, KiB, MB, MiB, GB, GiB, TB, "
        + "TiB), "
        + "as in \"64MiB\"",
      "p.json:2:44: store.maxEntrySize: \"64\": a size has a unit (B, KB, KiB, MB, MiB, GB, GiB, "
        + "TB, "
        + "TiB), as in \"64MiB\""),
    Row(
      "size in a wrong unit", "\"store\": {\"maxSize\": \"64mb\"}",
      "p.json:2:22: store.maxSize: \"64mb\": no unit \"mb\", did you mean \"MB\"?; a size has a "
        + "unit "
        + "(B, KB, KiB, MB, MiB, GB, GiB, TB, TiB), as in \"64MiB\""),
    Row(
      "size out of bounds", "\"store\": {\"maxSize\": \"1KiB\"}",
      "p.json:2:22: store.maxSize: \"1KiB\": from 1MiB to 16TiB"),
    Row(
      "entry larger than the store", "\"store\": {\"maxSize\": \"32MiB\"}",
      "p.json:2:22: store.maxSize: store.maxEntrySize (64MiB) must not be larger than "
        + "store.maxSize (32MiB)"),
    Row(
      "store without a path", "\"store\": {\"path\": \"\"}",
      "p.json:2:19: store.path: must not be empty"),
    Row("limits that fit", "\"limits\": {\"idle\": \"1m30s\", \"headerBytes\": \"32KiB\"}"),
    Row(
      "limits that contradict each other",
      "\"limits\": {\"idle\": \"5s\", \"requestLineBytes\": \"8KiB\", \"headerBytes\": \"4KiB\"}",
      "p.json:2:20: limits.idle: limits.headerTimeout must not be longer than limits.idle",
      "p.json:2:46: limits.requestLineBytes: limits.requestLineBytes must not be larger than "
        + "limits.headerBytes"),
    Row(
      "environment",
      "\"admin\": {\"listen\": \"127.0.0.1:${PORT}\", \"token\": \"${NOPE}\"}, "
        + "\"store\": {\"path\": \"${NOPE:-x}${\"}",
      "p.json:2:51: admin.token: the environment has no NOPE, and \"${NOPE}\" has no default",
      "p.json:2:81: store.path: \"${\" is not closed by \"}\""),
    Row(
      "no name in the environment", "\"store\": {\"path\": \"${a b}\"}",
      "p.json:2:19: store.path: \"${a b}\" is neither \"${NAME}\" nor \"${NAME:-default}\""),
  ]
}
