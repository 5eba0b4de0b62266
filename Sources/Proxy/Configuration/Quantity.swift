/// Durations and sizes as policies.json writes them, numbers with units: `15m`, `1h30m`, `64MiB`.
///
/// A bare number is refused, with the units that exist: whoever writes `30` may mean seconds or
/// milliseconds, and a proxy that guesses wrong is out by a thousand. Pure; called by the decoding,
/// and the other way round by the reference and `larder check --verbose`.
enum Quantity {
  /// From large to small, in milliseconds.
  static let durationUnits: [(name: String, milliseconds: Int64)] = [
    ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1),
  ]
  static let sizeUnits: [(name: String, bytes: UInt64)] = [
    ("B", 1), ("KB", 1_000), ("KiB", 1 << 10), ("MB", 1_000_000), ("MiB", 1 << 20),
    ("GB", 1_000_000_000), ("GiB", 1 << 30), ("TB", 1_000_000_000_000), ("TiB", 1 << 40),
  ]
  static let durationUnitsMessage = "a duration has units (ms, s, m, h, d), as in \"15m\""
  static let sizeUnitsMessage =
    "a size has a unit (B, KB, KiB, MB, MiB, GB, GiB, TB, TiB), as in \"64MiB\""

  /// `800ms`, `15m`, `1h30m`, `30d`: units from large to small, each once.
  static func milliseconds(_ text: String) throws(ValueError) -> Int64 {
    var rest = text[...]
    var total: Int64 = 0
    var nextUnit = 0
    repeat {
      let digits = rest.prefix(while: isDigit)
      rest = rest.dropFirst(digits.count)
      let unit = rest.prefix { !isDigit($0) }
      rest = rest.dropFirst(unit.count)
      guard !digits.isEmpty, !unit.isEmpty else {
        throw ValueError(message: "\"\(text)\": \(durationUnitsMessage)")
      }
      guard let index = durationUnits.firstIndex(where: { $0.name == unit }) else {
        throw ValueError(message: "\"\(text)\": no unit \"\(unit)\"; \(durationUnitsMessage)")
      }
      guard index >= nextUnit else {
        throw ValueError(message: "\"\(text)\": units go from large to small, each once")
      }
      nextUnit = index + 1
      guard let amount = Int64(digits),
        case (let product, let overflow) = amount.multipliedReportingOverflow(
          by: durationUnits[index].milliseconds), !overflow,
        case (let sum, let overflowOfSum) = total.addingReportingOverflow(product), !overflowOfSum
      else { throw ValueError(message: "\"\(text)\" is too long") }
      total = sum
    } while !rest.isEmpty
    return total
  }

  /// `64MiB`, `1GB`: one whole number and one unit.
  static func bytes(_ text: String) throws(ValueError) -> UInt64 {
    let digits = text.prefix(while: isDigit)
    let unit = text.dropFirst(digits.count)
    guard !digits.isEmpty, !unit.isEmpty else {
      throw ValueError(message: "\"\(text)\": \(sizeUnitsMessage)")
    }
    guard let found = sizeUnits.first(where: { $0.name == unit }) else {
      // `1G` is a gigabyte to whoever writes it, not a byte.
      let whole = sizeUnits.map(\.name).filter { $0.count > 1 }
      let suggestion =
        whole.first { $0.lowercased() == "\(unit)b".lowercased() }
        .map { ", did you mean \"\($0)\"?" } ?? Suggestion.sentence(for: String(unit), among: whole)
      throw ValueError(
        message: "\"\(text)\": no unit \"\(unit)\"\(suggestion); \(sizeUnitsMessage)")
    }
    guard let amount = UInt64(digits),
      case (let product, let overflow) = amount.multipliedReportingOverflow(by: found.bytes),
      !overflow
    else { throw ValueError(message: "\"\(text)\" is too large") }
    return product
  }

  /// The shortest writing that `milliseconds(_:)` reads back.
  static func text(milliseconds: Int64) -> String {
    var rest = milliseconds
    var parts = ""
    for unit in durationUnits where rest >= unit.milliseconds {
      parts += "\(rest / unit.milliseconds)\(unit.name)"
      rest %= unit.milliseconds
    }
    return parts.isEmpty ? "0s" : parts
  }

  /// In the largest unit that leaves a whole number, binary units first.
  static func text(bytes: UInt64) -> String {
    guard bytes > 0 else { return "0B" }
    let binaryFirst = sizeUnits.filter { $0.name.hasSuffix("iB") }.reversed()
    let decimal = sizeUnits.filter { !$0.name.hasSuffix("iB") }.reversed()
    for unit in Array(binaryFirst) + Array(decimal) where bytes.isMultiple(of: unit.bytes) {
      return "\(bytes / unit.bytes)\(unit.name)"
    }
    return "\(bytes)B"
  }

  private static func isDigit(_ character: Character) -> Bool {
    character.isASCII && character.isNumber
  }
}
