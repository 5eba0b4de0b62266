internal import CachePolicy

/// What the schema, the reference and the checks need of a field: its half of a row that does not
/// depend on where the value goes.
struct FieldDescription: Sendable, Equatable {
  var name: String
  var shape: FieldShape
  /// As text of the file, quotes included; nil: there is none.
  var defaultText: String?
  var isRequired = false
  /// One line.
  var summary: String
  /// As text of the file; nil: the default serves as one, or none is needed.
  var example: String?
  var secrecy = Secrecy.open
  /// Of a route's field: what its strategy must do for the field to have a meaning.
  var need = StrategyNeed.any
  /// Of a route's field: whether routes take it from `defaults`.
  var isInherited = true

  /// Whether the value, or a part of it, is never printed.
  var isSecret: Bool { secrecy != .open }
}

/// How much of a value must not be printed.
enum Secrecy: Sendable, Equatable {
  case open
  /// All of it.
  case whole
  /// A URL's user and password.
  case credentials
  /// What came from the environment.
  case fromEnvironment
}

/// What one of a route's strategies (its own, or one that a client may ask for) must do for a field
/// to have a meaning.
enum StrategyNeed: Sendable, Equatable {
  case any
  /// Store or read copies; where none does, giving the field is an error or a warning.
  case copies(elseError: Bool)
  /// Give the network a deadline.
  case deadline

  func isMet(by strategies: [Strategy]) -> Bool {
    switch self {
    case .any: true
    case .copies: strategies.contains { $0 != .networkOnly }
    case .deadline: strategies.contains(.networkFirst)
    }
  }
}

/// What kind of value a field takes, with its bounds.
enum FieldShape: Sendable, Equatable {
  case text
  case boolean
  case integer(ClosedRange<Int>)
  /// In milliseconds.
  case duration(ClosedRange<Int64>)
  case size(ClosedRange<UInt64>)
  case choice([String])
  /// A list out of these.
  case words([String])
  /// A list of strings, of which this says what they are.
  case list(of: String)
  /// One `address:port`, or a list of them.
  case addresses
  case upstreamURL
  case proxyURL
  case publicURL
  case name
  case upstreamName
  case pattern
  case headerNames
  /// `header:NAME` or `cookie:NAME`.
  case userIdentity
  /// A path's beginning, `/api`.
  case pathPrefix
  /// `all`, `none`, or a list of names.
  case keyQuery
  /// `METHOD target`.
  case request
  /// An object from field names to values.
  case fieldLines
  /// A duration, or an object of `default`, `min` and `max`.
  case timeToLive(ClosedRange<Int64>)
  /// An object from `404` or `5xx` to a duration.
  case negative(ClosedRange<Int64>)
  /// `finish`, `stop`, or an object of `finishBelow` and `finishFromPercent`.
  case abandoned
  /// An object described by the section of this title.
  case section(String)
  /// An object from names to objects of this section.
  case sectionByName(String)
  /// A list of objects of this section.
  case sectionList(String)
}

/// A section without its target, for the schema and the reference.
struct SectionDescription: Sendable {
  var title: String
  var path: String
  var summary: String
  var fields: [FieldDescription]

  init<Target>(_ section: Section<Target>) {
    title = section.title
    path = section.path
    summary = section.summary
    fields = section.fields.map(\.description)
  }
}
