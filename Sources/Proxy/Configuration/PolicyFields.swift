internal import CachePolicy

/// The rows of what a route says about caching, shared by `routes` and `defaults`, and the reading
/// of the values that only they have: `ttl`, `negative`, `ignoreOrigin`, `forwardHeaders`.
///
/// A draft keeps apart what was said from what was not, because a route takes from `defaults` what
/// it does not say itself. `ConfigurationLoader` makes a `Policy` of it.
struct PolicyDraft: Sendable {
  var upstreamName: String?
  var strategy: Strategy?
  var timeToLive: TimeToLive?
  var staleWhileRevalidateMilliseconds: Int64?
  var staleIfErrorMilliseconds: Int64?
  var ignoreOrigin: OriginWords?
  var negative: [NegativeLifetime]?
  var deadlineMilliseconds: Int64?
  var keepMilliseconds: Int64?
  var maxEntrySizeBytes: UInt64?
  var forwardHeaders: [String]?

  static let minute: Int64 = 60_000
  static let day: Int64 = 24 * 60 * minute
  /// Ten years: what is longer is a slip of the pen.
  static let lifetimeRange = 0...3_650 * day

  static let fields: [Field<PolicyDraft>] = [
    .custom(
      "upstream", \.upstreamName, .upstreamName, example: "\"api\"",
      "The upstream that is asked; absent: that of `defaults`."
    ) { decoder, node, path in decoder.text(node, path, expected: "an upstream's name") },
    .custom(
      "strategy", \.strategy, .choice(Strategy.allCases.map(\.name)),
      defaultText: "\"\(Strategy.networkOnly.name)\"", example: "\"cache-first\"",
      "Where the answer comes from; see [Strategies](#strategies). Never taken from `defaults`."
    ) { decoder, node, path in
      decoder.choice(node, path, among: Strategy.allCases.map(\.name)).flatMap(Strategy.init(name:))
    },
    .custom(
      "ttl", \.timeToLive, .timeToLive(lifetimeRange), example: "\"15m\"",
      "How long an answer is fresh; see [ttl](#ttl). Absent: RFC 9111 alone."
    ) { decoder, node, path in decoder.timeToLive(node, path, lifetimeRange) },
    .optionalDuration(
      "staleWhileRevalidate", \.staleWhileRevalidateMilliseconds, lifetimeRange,
      example: "\"1d\"",
      "How long after freshness ends a copy serves while one refresh runs. "
        + "Absent: the origin's own directive."),
    .optionalDuration(
      "staleIfError", \.staleIfErrorMilliseconds, lifetimeRange, example: "\"1h\"",
      "How long after freshness ends a copy serves when the network fails. "
        + "Absent: the origin's own directive (network-first: any age)."),
    .custom(
      "ignoreOrigin", \.ignoreOrigin, .words(OriginWords.named.map(\.name)),
      defaultText: "[]", example: "[\"no-store\"]",
      "The origin's words that this route overrules, each by name."
    ) { decoder, node, path in decoder.originWords(node, path) },
    .custom(
      "negative", \.negative, .negative(lifetimeRange), defaultText: "{}",
      example: "{ \"404\": \"30s\", \"5xx\": \"2s\" }",
      "Lifetimes of error statuses, in place of the origin's own."
    ) { decoder, node, path in decoder.negative(node, path, lifetimeRange) },
    .optionalDuration(
      "deadline", \.deadlineMilliseconds, 1...10 * minute, example: "\"800ms\"",
      "network-first: how long the network has, to the end of the body, before the copy serves."),
    .optionalDuration(
      "keep", \.keepMilliseconds, 1_000...3_650 * day, example: "\"90d\"",
      "How long a copy is kept after its receipt. Absent: until space is needed."),
    .custom(
      "maxEntrySize", \.maxEntrySizeBytes, .size(entrySizeRange), example: "\"8MiB\"",
      "The largest body that is stored. Absent: `store.maxEntrySize`."
    ) { decoder, node, path in decoder.bytes(node, path, entrySizeRange) },
    .custom(
      "forwardHeaders", \.forwardHeaders, .headerNames, defaultText: "[]",
      example: "[\"X-Original-Host\"]",
      "Request fields that reach the origin although Larder drops their kind "
        + "(`X-Forwarded-*`, `X-Original-*`, `X-Rewrite-*`, method overrides)."
    ) { decoder, node, path in decoder.headerNames(node, path) },
  ]

  static let entrySizeRange: ClosedRange<UInt64> = 1...1 << 40

  /// Fields of a route that this version refuses.
  static let unsupportedFields: [Field<PolicyDraft>] = [
    .unsupported("key", "What of the request tells copies apart."),
    .unsupported("perUser", "Copies of each user's own."),
    .unsupported("tags", "Names for purges."),
    .unsupported("invalidates", "What a successful unsafe request removes."),
    .unsupported("notify", "Changes on the event feed."),
    .unsupported("clientMay", "Which request directives count."),
    .unsupported("clientStrategies", "Strategies that a client may ask for."),
    .unsupported("maxVariants", "How many variants one URL may have."),
    .unsupported("range", "What a range does that misses."),
    .unsupported("warm", "What is fetched at start."),
    .unsupported("stripPrefix", "A prefix taken off the path."),
    .unsupported("addPrefix", "A prefix put before the path."),
  ]
}

extension FieldDecoder {
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

  mutating func originWords(_ node: JSONNode, _ path: String) -> OriginWords? {
    let names = OriginWords.named.map(\.name)
    guard let elements = list(node, path, of: "the origin's words") else { return nil }
    var words: OriginWords = []
    for (index, element) in elements.enumerated() {
      if let name = choice(element, "\(path)[\(index)]", among: names),
        let entry = OriginWords.named.first(where: { $0.name == name })
      {
        words.insert(entry.word)
      }
    }
    return words
  }

  mutating func headerNames(_ node: JSONNode, _ path: String) -> [String]? {
    guard let elements = list(node, path, of: "field names") else { return nil }
    var names: [String] = []
    for (index, element) in elements.enumerated() {
      let elementPath = "\(path)[\(index)]"
      guard let text = text(element, elementPath, expected: "a field name") else { continue }
      let name = text.lowercased()
      if let message = Self.refusalToForward(name, as: text) {
        report(at: element.place, elementPath, message)
      } else if !names.contains(name) {
        names.append(name)
      }
    }
    return names
  }

  /// Fields that Larder makes itself, or that belong to one connection (RFC 9110 §7.6.1).
  private static func refusalToForward(_ name: String, as text: String) -> String? {
    let isToken =
      !name.isEmpty
      && name.utf8.allSatisfy { byte in
        (byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z"))
          || (byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9"))
          || "!#$%&'*+-.^_`|~".utf8.contains(byte)
      }
    if !isToken { return "\"\(text)\" is no field name" }
    let made = ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "host"]
    if made.contains(name) { return "\"\(text)\" is made by Larder, the client's is not forwarded" }
    let hopByHop = [
      "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization",
      "te", "trailer", "transfer-encoding", "upgrade", "content-length",
    ]
    if hopByHop.contains(name) { return "\"\(text)\" belongs to one connection" }
    return nil
  }
}
