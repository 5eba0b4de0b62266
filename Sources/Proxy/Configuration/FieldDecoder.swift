internal import CachePolicy

/// Takes the file's values apart by the table's rows, and collects what is wrong with them.
///
/// Goes on behind each error, so that one run shows all. Remembers where every field stood, for the
/// checks that look at more than one. It knows the shapes of values, not the fields: those are in
/// `FieldTable`. Used by `ConfigurationLoader`.
struct FieldDecoder {
  struct MemberPlace {
    var key: SourcePlace
    var value: SourcePlace
  }

  let environment: [String: String]
  private(set) var findings: [Finding] = []
  /// By path, `routes[2].ttl`: the fields that the file has.
  private(set) var places: [String: MemberPlace] = [:]

  /// By path, `routes[2]`: where the file's objects open.
  private(set) var elementPlaces: [String: SourcePlace] = [:]

  /// By path: the strings that name variables of the environment.
  private(set) var expanded: [String: ExpandedText] = [:]

  init(environment: [String: String]) { self.environment = environment }

  mutating func report(
    _ severity: Diagnostic.Severity = .error, at place: SourcePlace, _ path: String,
    _ message: String
  ) {
    let shown = expanded[path]?.redacted(message) ?? message
    findings.append(Finding(severity: severity, place: place, path: path, message: shown))
  }

  // MARK: Objects and lists

  mutating func decode<Target>(
    _ node: JSONNode, _ path: String, _ section: Section<Target>, into target: inout Target
  ) {
    guard let members = object(node, path) else { return }
    elementPlaces[path] = node.place
    for member in members {
      let memberPath = Self.join(path, member.key)
      places[memberPath] = MemberPlace(key: member.keyPlace, value: member.value.place)
      guard let field = section.field(named: member.key) else {
        let known = section.fields.map(\.description.name)
        report(
          at: member.keyPlace, memberPath,
          "unknown key\(Suggestion.sentence(for: member.key, among: known, orList: true))")
        continue
      }
      field.assign(member.value, memberPath, &target, &self)
    }
    for field in section.fields
    where field.description.isRequired && places[Self.join(path, field.description.name)] == nil {
      report(at: node.place, path, "\"\(field.description.name)\" is missing")
    }
  }

  /// The members of an object; nil, and a report, for anything else.
  mutating func object(_ node: JSONNode, _ path: String) -> [JSONMember]? {
    if case .object(let members) = node.value { return members }
    reportKind(node, path, expected: "an object")
    return nil
  }

  mutating func list(_ node: JSONNode, _ path: String, of what: String) -> [JSONNode]? {
    if case .list(let elements) = node.value { return elements }
    reportKind(node, path, expected: "a list of \(what)")
    return nil
  }

  static func join(_ path: String, _ name: String) -> String {
    path.isEmpty ? name : "\(path).\(name)"
  }

  // MARK: Values

  /// A string, with the environment's values put in.
  mutating func text(
    _ node: JSONNode, _ path: String, expected: String = "a string"
  ) -> String? {
    guard case .text(let text) = node.value else {
      reportKind(node, path, expected: expected)
      return nil
    }
    guard text.utf8.contains(UInt8(ascii: "$")) else { return text }
    let environment = environment
    let result = checked(node, path) { () throws(ValueError) in
      let parts = try EnvironmentExpansion.parts(text)
      let (value, values) = try EnvironmentExpansion.expand(parts, environment)
      let isPlain = parts.allSatisfy { if case .literal = $0 { true } else { false } }
      return (ExpandedText(source: text, value: value, variableValues: values), isPlain)
    }
    guard let (found, isPlain) = result else { return nil }
    if !isPlain { expanded[path] = found }
    return found.value
  }

  mutating func boolean(_ node: JSONNode, _ path: String) -> Bool? {
    switch node.value {
    case .boolean(let value): return value
    case .text(let text):
      report(
        at: node.place, path,
        "\"\(text)\" is a string, and no boolean: true or false, without quotes")
    default: reportKind(node, path, expected: "true or false")
    }
    return nil
  }

  mutating func integer(_ node: JSONNode, _ path: String, _ range: ClosedRange<Int>) -> Int? {
    guard case .number(let digits) = node.value else {
      reportKind(node, path, expected: "a number")
      return nil
    }
    guard let value = Int(digits), range.contains(value) else {
      report(
        at: node.place, path,
        range.count == 1
          ? "\(digits): only \(range.lowerBound) is known"
          : "\(digits): a whole number from \(range.lowerBound) to \(range.upperBound)")
      return nil
    }
    return value
  }

  /// Longer ones are allowed, and warned of: ten years, a slip of the pen in all likelihood.
  static let doubtfulMilliseconds: Int64 = 3_650 * 86_400_000

  mutating func milliseconds(
    _ node: JSONNode, _ path: String, _ range: ClosedRange<Int64>
  ) -> Int64? {
    if case .number(let digits) = node.value {
      report(at: node.place, path, "\(digits): \(Quantity.durationUnitsMessage)")
      return nil
    }
    guard let text = text(node, path, expected: "a duration such as \"15m\"") else { return nil }
    let value = checked(node, path) { () throws(ValueError) in
      let value = try Quantity.milliseconds(text)
      guard range.contains(value) else {
        throw ValueError(
          message: "\"\(text)\": from \(Quantity.text(milliseconds: range.lowerBound)) to "
            + Quantity.text(milliseconds: range.upperBound))
      }
      return value
    }
    if let value, value > Self.doubtfulMilliseconds {
      report(.warning, at: node.place, path, "\"\(text)\" is longer than ten years")
    }
    return value
  }

  mutating func bytes(
    _ node: JSONNode, _ path: String, _ range: ClosedRange<UInt64>
  ) -> UInt64? {
    if case .number(let digits) = node.value {
      report(at: node.place, path, "\(digits): \(Quantity.sizeUnitsMessage)")
      return nil
    }
    guard let text = text(node, path, expected: "a size such as \"64MiB\"") else { return nil }
    return checked(node, path) { () throws(ValueError) in
      let value = try Quantity.bytes(text)
      guard range.contains(value) else {
        throw ValueError(
          message: "\"\(text)\": from \(Quantity.text(bytes: range.lowerBound)) to "
            + Quantity.text(bytes: range.upperBound))
      }
      return value
    }
  }

  mutating func choice(_ node: JSONNode, _ path: String, among known: [String]) -> String? {
    guard let text = text(node, path, expected: "one of \(known.joined(separator: ", "))") else {
      return nil
    }
    return self.known(text, node, path, among: known)
  }

  mutating func known(
    _ text: String, _ node: JSONNode, _ path: String, among known: [String]
  ) -> String? {
    if known.contains(text) { return text }
    let suggestion = Suggestion.sentence(for: text, among: known)
    report(
      at: node.place, path,
      "unknown value \"\(text)\"\(suggestion.isEmpty ? Self.oneOf(known) : suggestion)")
    return nil
  }

  /// A list of strings, each read by the function, which reports what it refuses. An element that
  /// repeats an earlier one is warned of and left out.
  mutating func elements<Value>(
    _ node: JSONNode, _ path: String, of what: String, expected: String,
    identity: (Value) -> String,
    read: (inout FieldDecoder, String, JSONNode, String) -> Value?
  ) -> [Located<Value>]? {
    guard let nodes = list(node, path, of: what) else { return nil }
    var found: [Located<Value>] = []
    var first: [String: SourcePlace] = [:]
    for (index, element) in nodes.enumerated() {
      let elementPath = "\(path)[\(index)]"
      guard let text = text(element, elementPath, expected: expected),
        let value = read(&self, text, element, elementPath)
      else { continue }
      if let earlier = first.updateValue(element.place, forKey: identity(value)) {
        first[identity(value)] = earlier
        report(
          .warning, at: element.place, elementPath,
          "\"\(text)\" is given twice, \(Self.first(earlier))")
      } else {
        found.append(Located(value: value, place: element.place, path: elementPath))
      }
    }
    return found
  }

  /// The paths of what may be one value or a list of so many.
  func listPaths(_ path: String, count: Int) -> [String] {
    elementPlaces["\(path)[0]"] == nil ? [path] : (0..<count).map { "\(path)[\($0)]" }
  }

  static func first(_ place: SourcePlace) -> String {
    "first at line \(place.line), column \(place.column)"
  }

  mutating func addresses(
    _ node: JSONNode, _ path: String
  ) -> [Configuration.ListenAddress]? {
    var elements = [(node, path)]
    if case .list(let nodes) = node.value {
      elements = nodes.enumerated().map { ($1, "\(path)[\($0)]") }
      if nodes.isEmpty { report(at: node.place, path, "at least one address") }
    }
    var found: [Configuration.ListenAddress] = []
    var first: [Configuration.ListenAddress: SourcePlace] = [:]
    for (element, elementPath) in elements {
      guard
        let text = text(element, elementPath, expected: "an address such as \"127.0.0.1:8080\""),
        let address = checked(
          element, elementPath,
          { () throws(ValueError) in
            try AddressParsing.listenAddress(text)
          })
      else { continue }
      if let earlier = first[address], address.port != 0 {
        report(
          at: element.place, elementPath,
          "\"\(text)\" is given twice, \(Self.first(earlier))")
      }
      first[address] = first[address] ?? element.place
      if elementPath != path { elementPlaces[elementPath] = element.place }
      found.append(address)
    }
    return found
  }

  mutating func pattern(_ node: JSONNode, _ path: String) -> RoutePattern? {
    guard let text = text(node, path, expected: "a pattern such as \"GET /articles/{id}\"") else {
      return nil
    }
    do {
      return try RoutePattern(parsing: text)
    } catch {
      report(at: node.place, path, error.message)
      return nil
    }
  }

  /// A name that labels the stats: letters, digits, `.`, `_` and `-`, at most 64.
  mutating func name(_ node: JSONNode, _ path: String) -> String? {
    guard let text = text(node, path, expected: "a name") else { return nil }
    guard Self.isName(text) else {
      report(at: node.place, path, Self.nameMessage(text))
      return nil
    }
    return text
  }

  static func isName(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= 64
      && text.unicodeScalars.allSatisfy { scalar in
        scalar.isASCII && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil)
          || "._-".unicodeScalars.contains(scalar)
      }
  }

  static func nameMessage(_ text: String) -> String {
    "\"\(text)\": a name is 1 to 64 letters, digits, \".\", \"_\" or \"-\""
  }

  /// Runs what may refuse the value, and reports the refusal at the value's place.
  mutating func checked<Value>(
    _ node: JSONNode, _ path: String, _ body: () throws(ValueError) -> Value
  ) -> Value? {
    do {
      return try body()
    } catch {
      report(at: node.place, path, error.message)
      return nil
    }
  }

  mutating func reportKind(_ node: JSONNode, _ path: String, expected: String) {
    if case .invalid = node.value { return }
    report(at: node.place, path, "expected \(expected), got \(node.value.kind)")
  }

  static func oneOf(_ known: [String]) -> String { "; one of \(known.joined(separator: ", "))" }
}

/// An element of a list, and where it stands.
struct Located<Value> {
  var value: Value
  var place: SourcePlace
  /// `routes[2].tags[0]`.
  var path: String
}

extension Located: Sendable where Value: Sendable {}
