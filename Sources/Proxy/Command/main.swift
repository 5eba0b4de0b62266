import Proxy

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The process's entry: hands the command line and the environment to the library, and exits with
/// what it returns. Everything else lives in the library, off the main actor.
exit(
  CommandRunner.run(
    arguments: Array(CommandLine.arguments.dropFirst()), environment: Environment.all))
