#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// The process's environment variables, as `${NAME}` in policies.json sees them.
public enum Environment {
  public static var all: [String: String] {
    var result: [String: String] = [:]
    var entry = environ
    while let text = entry.pointee {
      let pair = String(cString: text)
      if let equals = pair.firstIndex(of: "=") {
        result[String(pair[..<equals])] = String(pair[pair.index(after: equals)...])
      }
      entry += 1
    }
    return result
  }
}
