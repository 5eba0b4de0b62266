internal import CachePolicy

/// Reads the values that only a route or `defaults` have: `ttl`, `negative`, words, identities,
/// tags, targets, prefixes and names of fields.
extension FieldDecoder {
  // MARK: Lifetimes

  mutating func timeToLive(
    _ node: JSONNode, _ path: String, _ range: ClosedRange<Int64>
  ) -> TimeToLive? {
    guard case .object(let members) = node.value else {
      return milliseconds(node, path, range).map { .fixed(milliseconds: $0) }
    }
    let names = ["default", "min", "max"]
    var values: [String: Int64] = [:]
    var isSound = true
    for member in members {
      let memberPath = Self.join(path, member.key)
      guard names.contains(member.key) else {
        report(
          at: member.keyPlace, memberPath,
          "unknown key\(Suggestion.sentence(for: member.key, among: names))")
        isSound = false
        continue
      }
      values[member.key] = milliseconds(member.value, memberPath, range)
      if values[member.key] == nil { isSound = false }
    }
    guard isSound else { return nil }
    if values.isEmpty {
      report(at: node.place, path, "names at least one of default, min and max")
      return nil
    }
    let low = values["min"] ?? 0
    let high = values["max"] ?? .max
    guard low <= high, values["default"].map({ $0 >= low && $0 <= high }) ?? true else {
      report(at: node.place, path, "needs min <= default <= max")
      return nil
    }
    return .clamped(
      defaultMilliseconds: values["default"], minMilliseconds: values["min"],
      maxMilliseconds: values["max"])
  }

  mutating func negative(
    _ node: JSONNode, _ path: String, _ range: ClosedRange<Int64>
  ) -> [NegativeLifetime]? {
    guard let members = object(node, path) else { return nil }
    var found: [NegativeLifetime] = []
    for member in members {
      let memberPath = Self.join(path, member.key)
      guard let match = Self.errorStatus(member.key) else {
        report(
          at: member.keyPlace, memberPath, "an error status, \"400\" to \"599\", \"4xx\" or \"5xx\""
        )
        continue
      }
      if let lifetime = milliseconds(member.value, memberPath, range) {
        found.append(NegativeLifetime(match: match, lifetimeMilliseconds: lifetime))
      }
    }
    return found
  }

  private static func errorStatus(_ text: String) -> NegativeLifetime.Match? {
    switch text {
    case "4xx": return .statusClass(4)
    case "5xx": return .statusClass(5)
    default:
      guard text.utf8.count == 3, let status = UInt16(text), (400...599).contains(status) else {
        return nil
      }
      return .status(status)
    }
  }

  // MARK: Abandoned fetches

  /// A condition that is not given is the default's.
  mutating func abandoned(_ node: JSONNode, _ path: String) -> AbandonedFill? {
    guard case .object(let members) = node.value else {
      if case .text = node.value {
      } else {
        reportKind(
          node, path,
          expected: "\"finish\", \"stop\" or an object of finishBelow and finishFromPercent")
        return nil
      }
      switch choice(node, path, among: ["finish", "stop"]) {
      case "finish": return .finish
      case "stop": return .stop
      default: return nil
      }
    }
    let names = ["finishBelow", "finishFromPercent"]
    var belowBytes: UInt64? = AbandonedFill.standardBelowBytes
    var fromPercent: Int? = AbandonedFill.standardFromPercent
    var isSound = true
    for member in members {
      let memberPath = Self.join(path, member.key)
      switch member.key {
      case "finishBelow": belowBytes = bytes(member.value, memberPath, 0...1 << 40)
      case "finishFromPercent": fromPercent = integer(member.value, memberPath, 1...100)
      default:
        report(
          at: member.keyPlace, memberPath,
          "unknown key\(Suggestion.sentence(for: member.key, among: names))")
        isSound = false
      }
    }
    if members.isEmpty {
      report(at: node.place, path, "names at least one of finishBelow and finishFromPercent")
      return nil
    }
    guard isSound, let belowBytes, let fromPercent else { return nil }
    return .finishWhere(belowBytes: belowBytes, fromPercent: fromPercent)
  }

  // MARK: Words

  /// A list out of known words, in the file's order.
  mutating func words(
    _ node: JSONNode, _ path: String, of what: String, among known: [String]
  ) -> [String]? {
    elements(
      node, path, of: what, expected: "one of \(known.joined(separator: ", "))", identity: \.self
    ) { decoder, text, element, elementPath in
      decoder.known(text, element, elementPath, among: known)
    }?.map(\.value)
  }

  mutating func originWords(_ node: JSONNode, _ path: String) -> OriginWords? {
    words(node, path, of: "the origin's words", among: OriginWords.named.map(\.name)).map { found in
      OriginWords(OriginWords.named.filter { found.contains($0.name) }.map(\.word))
    }
  }

  mutating func clientWords(_ node: JSONNode, _ path: String) -> ClientWords? {
    words(node, path, of: "request directives", among: ClientWords.named.map(\.name)).map { found in
      ClientWords(ClientWords.named.filter { found.contains($0.name) }.map(\.word))
    }
  }

  mutating func strategies(
    _ node: JSONNode, _ path: String, among known: [String]
  ) -> [Strategy]? {
    let before = findings.count
    let found = words(node, path, of: "strategies", among: known)?.compactMap(Strategy.init(name:))
    // Half a list would give other fields a meaning, or none, that nobody wrote.
    return findings[before...].contains { $0.severity == .error } ? nil : found
  }

  // MARK: Keys and users

  mutating func keyQuery(_ node: JSONNode, _ path: String) -> KeyRecipe.Query? {
    if case .text = node.value {
      switch choice(node, path, among: ["all", "none"]) {
      case "all": return .all
      case "none": return KeyRecipe.Query.none
      default: return nil
      }
    }
    guard case .list(let elements) = node.value else {
      reportKind(node, path, expected: "\"all\", \"none\" or a list of parameter names")
      return nil
    }
    if elements.isEmpty {
      report(at: node.place, path, "names no parameter: \"none\" says that no parameter counts")
      return nil
    }
    return names(node, path, of: "parameter names", expected: "a parameter's name")
      .map(KeyRecipe.Query.names)
  }

  mutating func names(
    _ node: JSONNode, _ path: String, of what: String, expected: String
  ) -> [String]? {
    elements(
      node, path, of: what, expected: expected, identity: \.self
    ) { decoder, text, element, elementPath in
      guard text.isEmpty else { return text }
      decoder.report(at: element.place, elementPath, "must not be empty")
      return nil
    }?.map(\.value)
  }

  mutating func cookieNames(_ node: JSONNode, _ path: String) -> [String]? {
    elements(
      node, path, of: "cookie names", expected: "a cookie's name", identity: \.self
    ) { decoder, text, element, elementPath in
      if FieldNameRules.isToken(text) { return text }
      decoder.report(at: element.place, elementPath, "\"\(text)\" is no cookie's name")
      return nil
    }?.map(\.value)
  }

  mutating func userIdentity(_ node: JSONNode, _ path: String) -> UserIdentity? {
    guard let text = text(node, path, expected: "\"header:NAME\" or \"cookie:NAME\"") else {
      return nil
    }
    do {
      return try UserIdentity(parsing: text)
    } catch {
      report(at: node.place, path, error.message)
      return nil
    }
  }

  /// Names of request fields that may reach the origin, in lower case.
  mutating func requestFieldNames(_ node: JSONNode, _ path: String) -> [String]? {
    elements(
      node, path, of: "field names", expected: "a field name", identity: \.self
    ) { decoder, text, element, elementPath in
      if let message = FieldNameRules.refusal(ofRequestField: text) {
        decoder.report(at: element.place, elementPath, message)
        return nil
      }
      return text.lowercased()
    }?.map(\.value)
  }

  mutating func targetedFields(_ node: JSONNode, _ path: String) -> [String]? {
    elements(
      node, path, of: "field names", expected: "a field name", identity: { $0.lowercased() },
      read: { decoder, text, element, elementPath in
        guard let message = FieldNameRules.refusal(ofTargetedField: text) else { return text }
        decoder.report(at: element.place, elementPath, message)
        return nil
      }
    )?.map(\.value)
  }

  // MARK: Tags and targets

  mutating func tags(_ node: JSONNode, _ path: String) -> [Located<TagTemplate>]? {
    elements(
      node, path, of: "tags", expected: "a tag such as \"article:{id}\"", identity: \.source
    ) { decoder, text, element, elementPath in
      do throws(TagTemplateError) {
        return try TagTemplate(parsing: text)
      } catch {
        decoder.report(at: element.place, elementPath, error.message)
        return nil
      }
    }
  }

  mutating func invalidationTargets(
    _ node: JSONNode, _ path: String
  ) -> [Located<InvalidationTarget>]? {
    elements(
      node, path, of: "targets", expected: "a path or \"tag:…\"", identity: \.source
    ) { decoder, text, element, elementPath in
      do throws(InvalidationTargetError) {
        return try InvalidationTarget(parsing: text)
      } catch {
        decoder.report(at: element.place, elementPath, error.message)
        return nil
      }
    }
  }

  mutating func warmTargets(_ node: JSONNode, _ path: String) -> [Located<String>]? {
    elements(
      node, path, of: "paths or URLs", expected: "a path or a URL", identity: \.self
    ) { decoder, text, element, elementPath in
      decoder.checked(element, elementPath) { () throws(ValueError) in
        _ = try RequestTarget(parsing: text)
        return text
      }
    }
  }

  /// The prefix in the normal form of paths.
  mutating func pathPrefix(_ node: JSONNode, _ path: String) -> String? {
    guard let text = text(node, path, expected: "a path such as \"/api\"") else { return nil }
    do {
      return try PathPrefix(parsing: text).text
    } catch {
      report(at: node.place, path, error.message)
      return nil
    }
  }
}

extension InvalidationTarget {
  /// As policies.json has it.
  var source: String {
    switch self {
    case .tag(let template): "tag:\(template.source)"
    case .path(let pattern): pattern.source
    }
  }
}

/// Which names a list of fields may hold.
enum FieldNameRules {
  static func isToken(_ name: String) -> Bool {
    !name.isEmpty
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"):
          true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
      }
  }

  /// Fields that Larder makes itself, or that belong to one connection (RFC 9110 §7.6.1).
  static func refusal(ofRequestField text: String) -> String? {
    let name = text.lowercased()
    if !isToken(name) { return "\"\(text)\" is no field name" }
    let made = ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "host"]
    if made.contains(name) { return "\"\(text)\" is made by Larder, the client's is not forwarded" }
    let hopByHop = [
      "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization",
      "te", "trailer", "transfer-encoding", "upgrade", "content-length",
    ]
    if hopByHop.contains(name) { return "\"\(text)\" belongs to one connection" }
    return nil
  }

  static func refusal(ofTargetedField text: String) -> String? {
    let name = text.lowercased()
    if !isToken(name) { return "\"\(text)\" is no field name" }
    if name == "cache-control" {
      return "\"\(text)\" is what counts where none of the list is there: it is no part of it"
    }
    return nil
  }
}
