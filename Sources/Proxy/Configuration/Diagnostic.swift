/// One thing that is wrong, or doubtful, in policies.json, and where it stands.
///
/// Printed as `policies.json:31:17: routes[2].ttll: unknown key, did you mean "ttl"?`, the form
/// that editors and CI systems turn into a link. Errors refuse the file; warnings do not. Made by
/// the reader, the decoding and the cross-checks; printed by `larder check`, `larder serve` and a
/// reload.
public struct Diagnostic: Sendable, Equatable, CustomStringConvertible {
  public enum Severity: Sendable, Equatable {
    case error
    case warning
  }

  public var severity: Severity
  /// As it was named on the command line.
  public var file: String
  public var place: SourcePlace
  /// `routes[2].ttl`; empty where the error is of the file as a whole.
  public var path: String
  public var message: String

  public init(
    severity: Severity, file: String, place: SourcePlace, path: String, message: String
  ) {
    self.severity = severity
    self.file = file
    self.place = place
    self.path = path
    self.message = message
  }

  public var description: String {
    let subject = path.isEmpty ? "" : "\(path): "
    let kind = severity == .warning ? "warning: " : ""
    return Self.printable("\(file):\(place.line):\(place.column): \(subject)\(kind)\(message)")
  }

  /// Keys and values are quoted from the file: a control among them must not break the line.
  private static func printable(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
      return text
    }
    return text.unicodeScalars.map { scalar in
      scalar.value < 0x20 || scalar.value == 0x7F
        ? "\\u{\(String(scalar.value, radix: 16))}" : String(scalar)
    }.joined()
  }
}

/// A place in a text: lines and columns count from 1, a column is one Unicode scalar.
public struct SourcePlace: Sendable, Equatable, Comparable {
  public var line: Int
  public var column: Int

  public init(line: Int, column: Int) {
    self.line = line
    self.column = column
  }

  public static func < (left: SourcePlace, right: SourcePlace) -> Bool {
    (left.line, left.column) < (right.line, right.column)
  }
}

/// A finding before it knows its file's name.
struct Finding: Equatable {
  var severity = Diagnostic.Severity.error
  var place: SourcePlace
  var path: String
  var message: String
}

/// Why one value is refused, as the rest of the sentence behind its path.
struct ValueError: Error, Equatable {
  var message: String
}
