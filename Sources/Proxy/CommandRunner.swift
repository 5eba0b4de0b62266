/// Carries out a command line: the whole program but for the process's own entry and exit.
public enum CommandRunner {
  /// `arguments` are those behind the program's name. Returns the exit status: 0, 1 for a failure,
  /// 2 for a wrong command line or configuration.
  public static func run(arguments: [String], environment: [String: String]) -> Int32 {
    let command: CommandLineArguments.Command
    do throws(CommandLineArguments.UsageError) {
      command = try CommandLineArguments.parse(arguments)
    } catch {
      printError(error.description)
      return CommandLineArguments.UsageError.exitStatus
    }
    switch command {
    case .serve(let path, let sampleOrigin):
      return ServeCommand.run(
        configurationPath: path, sampleOrigin: sampleOrigin, environment: environment)
    case .check(let file, let verbose):
      return CheckCommand.run(
        file: file, verbose: verbose, environment: environment, print: printLine)
    case .config(let file):
      return ConfigCommand.run(
        file: file, environment: environment, print: printLine, printError: printError)
    case .explain(let path, let request, let isJSON):
      return ExplainCommand.run(
        file: path, request: request, isJSON: isJSON, environment: environment, print: printLine,
        printError: printError)
    case .schema(let reference):
      return SchemaCommand.run(reference: reference, print: printLine)
    case .version: return VersionCommand.run(print: printLine)
    case .help(let topic):
      printLine(String(CommandLineArguments.helpText(topic).dropLast()))
      return 0
    }
  }
}
