#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Lines for whoever runs the process, on standard error: a time, a level, a sentence.
public struct Log: Sendable {
  public enum Level: String, Sendable {
    case info, warning, error
  }

  private let write: @Sendable (Level, String) -> Void

  public init(_ write: @escaping @Sendable (Level, String) -> Void) { self.write = write }

  public func info(_ text: String) { write(.info, text) }
  public func warning(_ text: String) { write(.warning, text) }
  public func error(_ text: String) { write(.error, text) }

  /// Nothing is written; for tests.
  public static let silent = Log { _, _ in }

  /// One line each on standard error, by one write, so that lines of threads do not mix.
  public static let standardError = Log { level, text in
    var now = time(nil)
    var parts = tm()
    gmtime_r(&now, &parts)
    func two(_ value: Int32) -> String { value < 10 ? "0\(value)" : "\(value)" }
    let day = "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
    let hour = "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
    let clean = text.unicodeScalars.map { $0.value < 0x20 ? " " : Character($0) }
    var line = "\(day)T\(hour)Z \(level.rawValue): \(String(clean))\n"
    line.withUTF8 { _ = Glibc.write(2, $0.baseAddress, $0.count) }
  }
}
