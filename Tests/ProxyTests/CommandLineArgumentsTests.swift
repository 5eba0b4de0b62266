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

  @Test(
    arguments: [
      ("", "a command is needed: serve, check, config, schema, version, help", .larder),
      ("sevre", "unknown command \"sevre\", did you mean \"serve\"?", .larder),
      ("frobnicate", "unknown command \"frobnicate\"", .larder),
      ("--hepl", "unknown flag \"--hepl\", did you mean \"--help\"?", .larder),
      ("policies.json", "unknown command \"policies.json\"", .larder),
      ("serve --confg a", "unknown flag \"--confg\", did you mean \"--config\"?", .serve),
      ("serve --config", "--config needs a value", .serve),
      ("serve --config=", "--config needs a value", .serve),
      ("serve --config a --config b", "--config is given twice", .serve),
      ("serve --sample-origin=yes", "--sample-origin takes no value", .serve),
      ("serve a.json", "unexpected argument \"a.json\"", .serve),
      ("serve -v", "unknown flag \"-v\"", .serve),
      ("check a b", "unexpected argument \"b\"", .check),
      ("check --verbos", "unknown flag \"--verbos\", did you mean \"--verbose\"?", .check),
      ("check --config a", "unknown flag \"--config\"", .check),
      ("config a b", "unexpected argument \"b\"", .config),
      ("config --verbose", "unknown flag \"--verbose\"", .config),
      ("confg", "unknown command \"confg\", did you mean \"config\"?", .larder),
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
