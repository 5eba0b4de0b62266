/// Load that wrk cannot make: idle crowds, herds, slow readers, millions of keys.
///
/// Owns the command line; each subcommand has its own file. Everything is bounded in count and
/// time, and it talks to 127.0.0.1 alone: it is a tool of script/bench, not a weapon.
/// Exit status: 0 as expected, 1 something failed, 2 usage.
#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

@main
enum LoadTool {
  static let usage = """
    usage: LoadTool COMMAND [--option value]...

      ports --count N                      print N free ports of 127.0.0.1
      first --port P [--path X] [--seconds S]
                                           ask until the first 200, print its milliseconds
      idle  --port P --count N [--path X] [--seconds S]
                                           N keep-alive connections, one request each, then held
      herd  --port P --path X [--count N] [--seconds S]
                                           N requests at once; all bodies must be whole and equal
      slow  --port P --path X --bytes-per-second R [--count N] [--seconds S]
                                           N clients that read R bytes a second each
      pace  --port P --path X --rate R [--connections C] [--seconds S]
                                           R requests a second for S seconds, and their latencies
      keys  --port P --count N [--prefix X] [--connections C] [--pipeline D] [--seconds S]
                                           N requests for X0, X1, X2, ...

    Every command but `ports` also takes --authority, the Host field (127.0.0.1:P by default).
    """

  static func main() {
    exit(run(Array(CommandLine.arguments.dropFirst())))
  }

  nonisolated static func run(_ words: [String]) -> Int32 {
    guard let command = words.first, command != "--help" else {
      print(usage)
      return words.isEmpty ? 2 : 0
    }
    // A peer that closes early is an outcome to count, not a reason to die.
    signal(SIGPIPE, SIG_IGN)
    do throws(UsageError) {
      let options = try Options(words.dropFirst())
      switch command {
      case "ports": return try printFreePorts(options)
      case "first": return try waitForFirstAnswer(options)
      case "idle": return try holdIdleConnections(options)
      case "herd": return try sendHerd(options)
      case "slow": return try readSlowly(options)
      case "pace": return try keepPace(options)
      case "keys": return try requestKeys(options)
      default: throw UsageError(reason: "no command \(command)")
      }
    } catch {
      complain("LoadTool: \(error.reason)\n\(usage)")
      return 2
    }
  }
}

/// Writes a line to standard error, which is a shared variable in C and so out of Swift's reach.
func complain(_ text: String) {
  let line = text + "\n"
  _ = write(2, line, line.utf8.count)
}

/// Prints at once, so that a script that waits for the line sees it.
func report(_ text: String) {
  print(text)
  fflush(nil)
}

/// Milliseconds of the monotonic clock.
func monotonicMilliseconds() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
}
