/// The options of a LoadTool command, each with its bounds.
///
/// Refuses unknown names, missing values and numbers out of bounds. There is no option for an
/// address: the tool only ever connects to 127.0.0.1.
struct Options {
  private(set) var port: UInt16 = 0
  private(set) var path = "/"
  private(set) var prefix = "/k/"
  private(set) var count = 1
  /// 0: one path.
  private(set) var keyCount = 0
  /// Keys have at least so many digits, so that all are of one length.
  private(set) var digitsMin = 1
  private(set) var connectionCount = 32
  private(set) var expectedStatus = 200
  /// A field line of every request.
  private(set) var field: String?
  /// Whether `--prefix` was given.
  private(set) var hasPrefix = false
  private(set) var pipelineDepth = 1
  private(set) var rate = 1000
  private(set) var bytesPerSecond = 65_536
  private(set) var timeLimitMilliseconds: Int64 = 60_000
  private var givenAuthority: String?

  /// The value of the Host field.
  var authority: String { givenAuthority ?? "127.0.0.1:\(port)" }

  init(_ words: ArraySlice<String>) throws(UsageError) {
    var rest = words
    while let name = rest.popFirst() {
      guard let value = rest.popFirst() else { throw UsageError(reason: "\(name) needs a value") }
      try set(name, value)
    }
  }

  /// The port, which every command that connects must be given.
  func requiredPort() throws(UsageError) -> UInt16 {
    guard port != 0 else { throw UsageError(reason: "--port is needed") }
    return port
  }

  private mutating func set(_ name: String, _ value: String) throws(UsageError) {
    switch name {
    case "--port": port = UInt16(try number(name, value, 1...65_535))
    case "--count": count = try number(name, value, 1...10_000_000)
    case "--keys": keyCount = try number(name, value, 1...10_000_000)
    case "--digits": digitsMin = try number(name, value, 1...10)
    case "--status": expectedStatus = try number(name, value, 200...599)
    case "--field":
      guard value.utf8.allSatisfy({ (0x20...0x7E).contains($0) }), value.contains(":") else {
        throw UsageError(reason: "--field takes NAME: VALUE")
      }
      field = value
    case "--connections": connectionCount = try number(name, value, 1...20_000)
    case "--pipeline": pipelineDepth = try number(name, value, 1...64)
    case "--rate": rate = try number(name, value, 1...1_000_000)
    case "--bytes-per-second": bytesPerSecond = try number(name, value, 1...(1 << 30))
    case "--seconds": timeLimitMilliseconds = Int64(try number(name, value, 1...3600)) * 1000
    case "--path": path = try visible(name, value)
    case "--prefix":
      prefix = try visible(name, value)
      hasPrefix = true
    case "--authority": givenAuthority = try visible(name, value)
    default: throw UsageError(reason: "no option \(name)")
    }
  }

  private func number(
    _ name: String, _ value: String, _ bounds: ClosedRange<Int>
  ) throws(UsageError) -> Int {
    guard let number = Int(value), bounds.contains(number) else {
      throw UsageError(
        reason: "\(name) takes \(bounds.lowerBound) to \(bounds.upperBound), not \(value)")
    }
    return number
  }

  private func visible(_ name: String, _ value: String) throws(UsageError) -> String {
    guard !value.isEmpty, value.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw UsageError(reason: "\(name) takes visible ASCII without spaces")
    }
    return value
  }
}

/// The command line is not understood.
struct UsageError: Error {
  let reason: String
}
