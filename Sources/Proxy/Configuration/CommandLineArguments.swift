/// What the command line asks for, and the texts of its help.
///
/// Parsing is a pure function from arguments to a `Command` or a `UsageError`; it reads no file and
/// prints nothing. Unknown commands, flags and arguments are errors with a suggestion, never passed
/// over: exit status 2. Called by the executable's main.
public enum CommandLineArguments {
  public enum Command: Sendable, Equatable {
    /// Serves until it is told to stop; with the sample origin beside it where asked.
    case serve(configurationPath: String, sampleOrigin: Bool)
    case check(file: String, verbose: Bool)
    /// Prints the configuration with every default filled in.
    case config(file: String)
    /// Says what would become of a request.
    case explain(configurationPath: String, request: ExplainedRequest, isJSON: Bool)
    /// Prints the JSON Schema, or the reference's table of fields.
    case schema(reference: Bool)
    case version
    case help(HelpTopic)
  }

  public enum HelpTopic: String, Sendable, CaseIterable {
    case larder, serve, check, config, explain, schema, version, help
  }

  /// A command line that cannot be understood. `exitStatus` is what the process ends with.
  public struct UsageError: Error, Sendable, Equatable, CustomStringConvertible {
    public static let exitStatus: Int32 = 2
    public var message: String
    /// Whose help says more.
    public var topic: HelpTopic

    /// Two lines for standard error, without a line end behind them.
    public var description: String {
      let help = topic == .larder ? "larder --help" : "larder \(topic.rawValue) --help"
      return "larder: \(message)\nSee \"\(help)\"."
    }
  }

  public static let defaultConfigurationPath = "policies.json"

  /// Parses the arguments behind the program's name.
  public static func parse(_ arguments: [String]) throws(UsageError) -> Command {
    guard let first = arguments.first else {
      throw UsageError(
        message: "a command is needed: \(commands.joined(separator: ", "))", topic: .larder)
    }
    var words = Words(rest: arguments.dropFirst())
    switch first {
    case "-h", "--help": return .help(.larder)
    case "--version":
      try words.finish(.version)
      return .version
    case "serve": return try parseServe(&words)
    case "check": return try parseCheck(&words)
    case "config": return try parseConfig(&words)
    case "explain": return try parseExplain(&words)
    case "schema": return try parseSchema(&words)
    case "version":
      while let word = try words.next(.version, flags: []) {
        if case .help = word { return .help(.version) }
        throw words.unexpected(word, .version)
      }
      return .version
    case "help": return try parseHelp(&words)
    default:
      let isFlag = first.hasPrefix("-")
      let known = isFlag ? ["--help", "--version"] : commands
      throw UsageError(
        message: "unknown \(isFlag ? "flag" : "command") \"\(first)\""
          + Suggestion.sentence(for: first, among: known), topic: .larder)
    }
  }

  private static let commands = [
    "serve", "check", "config", "explain", "schema", "version", "help",
  ]

  private static func parseServe(_ words: inout Words) throws(UsageError) -> Command {
    var path: String?
    var sampleOrigin = false
    while let word = try words.next(.serve, flags: ["--config=", "--sample-origin"]) {
      switch word {
      case .help: return .help(.serve)
      case .flag("--config", let value?):
        if path != nil { throw UsageError(message: "--config is given twice", topic: .serve) }
        path = value
      case .flag("--sample-origin", _): sampleOrigin = true
      default: throw words.unexpected(word, .serve)
      }
    }
    return .serve(configurationPath: path ?? defaultConfigurationPath, sampleOrigin: sampleOrigin)
  }

  private static func parseCheck(_ words: inout Words) throws(UsageError) -> Command {
    var file: String?
    var verbose = false
    while let word = try words.next(.check, flags: ["--verbose"]) {
      switch word {
      case .help: return .help(.check)
      case .flag("--verbose", _): verbose = true
      case .argument(let text) where file == nil: file = text
      default: throw words.unexpected(word, .check)
      }
    }
    return .check(file: file ?? defaultConfigurationPath, verbose: verbose)
  }

  private static func parseConfig(_ words: inout Words) throws(UsageError) -> Command {
    var file: String?
    while let word = try words.next(.config, flags: []) {
      switch word {
      case .help: return .help(.config)
      case .argument(let text) where file == nil: file = text
      default: throw words.unexpected(word, .config)
      }
    }
    return .config(file: file ?? defaultConfigurationPath)
  }

  private static func parseExplain(_ words: inout Words) throws(UsageError) -> Command {
    var (path, isJSON): (String?, Bool) = (nil, false)
    var (arguments, headers): ([String], [String]) = ([], [])
    while let word = try words.next(.explain, flags: ["--config=", "--header=", "--json"]) {
      switch word {
      case .help: return .help(.explain)
      case .flag("--config", let value?):
        if path != nil { throw UsageError(message: "--config is given twice", topic: .explain) }
        path = value
      case .flag("--header", let value?): headers.append(value)
      case .flag("--json", _): isJSON = true
      case .argument(let text) where arguments.count < 2: arguments.append(text)
      default: throw words.unexpected(word, .explain)
      }
    }
    guard let target = arguments.last else {
      throw UsageError(message: "a URL is needed, as in \"/articles/7\"", topic: .explain)
    }
    do throws(ValueError) {
      let request = try ExplainedRequest(
        method: arguments.count > 1 ? arguments[0] : "GET", target: target, headers: headers)
      return .explain(
        configurationPath: path ?? defaultConfigurationPath, request: request, isJSON: isJSON)
    } catch {
      throw UsageError(message: error.message, topic: .explain)
    }
  }

  private static func parseSchema(_ words: inout Words) throws(UsageError) -> Command {
    var reference = false
    while let word = try words.next(.schema, flags: ["--reference"]) {
      switch word {
      case .help: return .help(.schema)
      case .flag("--reference", _): reference = true
      default: throw words.unexpected(word, .schema)
      }
    }
    return .schema(reference: reference)
  }

  private static func parseHelp(_ words: inout Words) throws(UsageError) -> Command {
    var topic: HelpTopic?
    while let word = try words.next(.help, flags: []) {
      switch word {
      case .help: return .help(.help)
      case .argument(let text) where topic == nil:
        guard let found = HelpTopic(rawValue: text) else {
          throw UsageError(
            message: "no help for \"\(text)\"\(Suggestion.sentence(for: text, among: commands))",
            topic: .larder)
        }
        topic = found
      default: throw words.unexpected(word, .help)
      }
    }
    return .help(topic ?? .larder)
  }

  // MARK: Words

  fileprivate enum Word: Equatable {
    case help
    case flag(String, value: String?)
    case argument(String)
  }

  /// The arguments behind the command, one at a time.
  private struct Words {
    var rest: ArraySlice<String>
    /// Behind `--` nothing is a flag.
    private var onlyArguments = false

    init(rest: ArraySlice<String>) { self.rest = rest }

    /// The next word; a flag whose name ends with `=` in `flags` takes a value, behind `=` or as
    /// the next argument.
    mutating func next(_ topic: HelpTopic, flags: [String]) throws(UsageError) -> Word? {
      guard var text = rest.popFirst() else { return nil }
      if text == "--", !onlyArguments {
        onlyArguments = true
        guard let following = rest.popFirst() else { return nil }
        text = following
      }
      if onlyArguments || !text.hasPrefix("-") || text == "-" { return .argument(text) }
      if text == "--help" || text == "-h" { return .help }
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = String(parts[0])
      let given = parts.count > 1 ? String(parts[1]) : nil
      if flags.contains(name) {
        guard given == nil else {
          throw UsageError(message: "\(name) takes no value", topic: topic)
        }
        return .flag(name, value: nil)
      }
      guard flags.contains(name + "=") else {
        let known = flags.map { $0.hasSuffix("=") ? String($0.dropLast()) : $0 } + ["--help"]
        throw UsageError(
          message: "unknown flag \"\(name)\"\(Suggestion.sentence(for: name, among: known))",
          topic: topic)
      }
      guard let value = given ?? rest.popFirst(), !value.isEmpty else {
        throw UsageError(message: "\(name) needs a value", topic: topic)
      }
      return .flag(name, value: value)
    }

    func unexpected(_ word: Word, _ topic: HelpTopic) -> UsageError {
      switch word {
      case .argument(let text):
        UsageError(
          message: "unexpected argument \"\(text)\""
            + (topic == .serve ? "; a file is named by --config" : ""), topic: topic)
      case .flag(let name, _): UsageError(message: "unexpected flag \"\(name)\"", topic: topic)
      case .help: UsageError(message: "unexpected flag \"--help\"", topic: topic)
      }
    }

    mutating func finish(_ topic: HelpTopic) throws(UsageError) {
      if let text = rest.first { throw unexpected(.argument(text), topic) }
    }
  }
}
