import Testing

@testable import Proxy

@Suite struct CommandLineArgumentsTests {
  typealias Command = CommandLineArguments.Command

  @Test(
    arguments: [
      ("serve", .serve(configurationPath: "policies.json", sampleOrigin: false)),
      ("serve --config a.json", .serve(configurationPath: "a.json", sampleOrigin: false)),
      ("serve --config=a.json", .serve(configurationPath: "a.json", sampleOrigin: false)),
      ("serve --config=a=b", .serve(configurationPath: "a=b", sampleOrigin: false)),
      (
        "serve --sample-origin --config a.json",
        .serve(configurationPath: "a.json", sampleOrigin: true)
      ),
      ("check", .check(file: "policies.json", verbose: false)),
      ("check a.json", .check(file: "a.json", verbose: false)),
      ("check --verbose a.json", .check(file: "a.json", verbose: true)),
      ("check a.json --verbose", .check(file: "a.json", verbose: true)),
      ("check -- --verbose", .check(file: "--verbose", verbose: false)),
      ("config", .config(file: "policies.json")), ("config a.json", .config(file: "a.json")),
      ("config --help", .help(.config)),
      ("schema", .schema(reference: false)),
      ("schema --reference", .schema(reference: true)),
      ("version", .version), ("--version", .version),
      ("--help", .help(.larder)), ("-h", .help(.larder)), ("help", .help(.larder)),
      ("help serve", .help(.serve)), ("help check", .help(.check)), ("help help", .help(.help)),
      ("serve --help", .help(.serve)), ("serve -h", .help(.serve)), ("check --help", .help(.check)),
      ("check a.json --help", .help(.check)), ("schema --help", .help(.schema)),
      ("version --help", .help(.version)),
    ] as [(String, Command)])
  func commandIsUnderstood(line: String, command: Command) throws {
    let arguments = line.split(separator: " ").map(String.init)
    #expect(try CommandLineArguments.parse(arguments) == command)
  }

  @Test func explainedRequestIsUnderstood() throws {
    let request = try ExplainedRequest(
      method: "POST", target: "//admin?x", headers: ["A: b: c", "D:e", "A:"])
    #expect(
      request.headers == [
        .init(name: "A", value: "b: c"), .init(name: "D", value: "e"), .init(name: "A", value: ""),
      ])
    #expect(
      try CommandLineArguments.parse([
        "explain", "--header", "A: b: c", "POST", "--json", "--header=D:e", "--config=c.json",
        "//admin?x", "--header", "A:",
      ]) == .explain(configurationPath: "c.json", request: request, isJSON: true))
    #expect(
      try CommandLineArguments.parse(["explain", "/a"])
        == .explain(
          configurationPath: "policies.json", request: ExplainedRequest(target: "/a"), isJSON: false
        ))
  }

  @Test(
    arguments: [
      ("", "a command is needed: serve, check, config, explain, schema, version, help", .larder),
      ("sevre", "unknown command \"sevre\", did you mean \"serve\"?", .larder),
      ("frobnicate", "unknown command \"frobnicate\"", .larder),
      ("--hepl", "unknown flag \"--hepl\", did you mean \"--help\"?", .larder),
      ("policies.json", "unknown command \"policies.json\"", .larder),
      ("serve --confg a", "unknown flag \"--confg\", did you mean \"--config\"?", .serve),
      ("serve --config", "--config needs a value", .serve),
      ("serve --config=", "--config needs a value", .serve),
      ("serve --config a --config b", "--config is given twice", .serve),
      ("serve --sample-origin=yes", "--sample-origin takes no value", .serve),
      (
        "serve a.json", "unexpected argument \"a.json\"; a file is named by --config", .serve
      ),
      ("serve -v", "unknown flag \"-v\"", .serve),
      ("check a b", "unexpected argument \"b\"", .check),
      ("check --verbos", "unknown flag \"--verbos\", did you mean \"--verbose\"?", .check),
      ("check --config a", "unknown flag \"--config\"", .check),
      ("config a b", "unexpected argument \"b\"", .config),
      ("config --verbose", "unknown flag \"--verbose\"", .config),
      ("confg", "unknown command \"confg\", did you mean \"config\"?", .larder),
      ("explain", "a URL is needed, as in \"/articles/7\"", .explain),
      ("explain GET /a /b", "unexpected argument \"/b\"", .explain),
      ("explain get /a", "methods are upper case, did you mean \"GET\"?", .explain),
      ("explain G(T /a", "\"G(T\" is no method", .explain),
      (
        "explain a.json",
        "\"a.json\": a path, which starts with \"/\", or a URL that starts with "
          + "\"http://\" or \"https://\"", .explain
      ),
      ("explain /a#b", "\"/a#b\": a request has no fragment", .explain),
      ("explain http://u:p@h/", "a URL here has no user and no password", .explain),
      (
        "explain /a --header hunter2",
        "a header is \"Name: value\", and this one has no colon", .explain
      ),
      ("explain /a --header", "--header needs a value", .explain),
      ("explain /a --config a --config b", "--config is given twice", .explain),
      ("explain --jsn /a", "unknown flag \"--jsn\", did you mean \"--json\"?", .explain),
      ("schema x", "unexpected argument \"x\"", .schema),
      ("version x", "unexpected argument \"x\"", .version),
      ("--version x", "unexpected argument \"x\"", .version),
      ("help chek", "no help for \"chek\", did you mean \"check\"?", .larder),
      ("help serve check", "unexpected argument \"check\"", .help),
    ] as [(String, String, CommandLineArguments.HelpTopic)])
  func lineIsRefused(
    line: String, message: String, topic: CommandLineArguments.HelpTopic
  ) {
    let arguments = line.split(separator: " ").map(String.init)
    #expect(throws: CommandLineArguments.UsageError(message: message, topic: topic)) {
      try CommandLineArguments.parse(arguments)
    }
  }

  @Test func usageErrorSaysWhereHelpIs() {
    let error = CommandLineArguments.UsageError(message: "no", topic: .serve)
    #expect(error.description == "larder: no\nSee \"larder serve --help\".")
    #expect(CommandLineArguments.UsageError.exitStatus == 2)
  }

  @Test(arguments: CommandLineArguments.HelpTopic.allCases)
  func helpFitsATerminal(topic: CommandLineArguments.HelpTopic) {
    let text = CommandLineArguments.helpText(topic)
    #expect(text.hasSuffix("\n"))
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= 100 })
    let isWhole = topic == .larder || topic == .help
    #expect(text.contains("Usage: larder \(isWhole ? "COMMAND" : topic.rawValue)"))
  }

  @Test func schemaAndVersionPrintAndSucceed() {
    var lines: [String] = []
    #expect(SchemaCommand.run(reference: false) { lines.append($0) } == 0)
    #expect(SchemaCommand.run(reference: true) { lines.append($0) } == 0)
    #expect(VersionCommand.run { lines.append($0) } == 0)
    #expect(
      lines.map { $0 + "\n" } == [
        ConfigurationSchema.text, ConfigurationReference.text,
        "larder \(VersionCommand.version)\n",
      ])
  }
}
