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
      load  --port P [--path X | --prefix X --keys N] [--connections C] [--seconds S]
            [--digits D] [--status 200] [--field "NAME: VALUE"]
                                           as many requests as are answered; N: at random among
                                           X0 ... X(N-1), of at least D digits
      transfers --port P --path X | --prefix X [--connections C] [--seconds S]
                                           libcurl's multi interface alone, C transfers at once; with
                                           --prefix each for another URL
      pace  --port P --path X --rate R [--connections C] [--seconds S]
                                           R requests a second for S seconds, and their latencies
      keys  --port P --count N [--prefix X] [--digits D] [--connections C] [--pipeline D]
            [--seconds S]
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
      case "load": return try makeLoad(options)
      case "transfers": return try makeTransfers(options)
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

/// One line a figure: its name and its value.
func printFigures(_ figures: [(String, String)]) {
  for (name, value) in figures { report("\(name) \(value)") }
}

/// Of the monotonic clock.
func monotonicMilliseconds() -> Int64 { Int64(monotonicNanoseconds() / 1_000_000) }
func monotonicNanoseconds() -> UInt64 { nanoseconds(CLOCK_MONOTONIC) }
/// Processor time of this process.
func processorNanoseconds() -> UInt64 { nanoseconds(CLOCK_PROCESS_CPUTIME_ID) }

private func nanoseconds(_ clock: clockid_t) -> UInt64 {
  var time = timespec()
  clock_gettime(clock, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Takes as many descriptors as the hard limit allows.
func raiseDescriptorLimit() {
  var limit = rlimit()
  #if canImport(Glibc)
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  #else
    let resource = RLIMIT_NOFILE
  #endif
  guard getrlimit(resource, &limit) == 0 else { return }
  limit.rlim_cur = min(limit.rlim_max, 65_536)
  setrlimit(resource, &limit)
}
