internal import CachePolicy

/// The rows of what a route says about caching, shared by `routes` and `defaults`.
///
/// A draft keeps apart what was said from what was not, because a route takes from `defaults` what
/// it does not say itself. `ConfigurationChecks` makes a `Policy` and `RouteOptions` of it, and the
/// printing a draft of those. How single values are read is in `PolicyValues`.
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
  var maxVariants: Int?
  var key: KeyRecipe?
  var perUser: UserIdentity?
  var tags: [Located<TagTemplate>]?
  var invalidates: [Located<InvalidationTarget>]?
  var notify: Bool?
  var clientMay: ClientWords?
  var clientStrategies: [Strategy]?
  var range: RangeMiss?
  var whenAbandoned: AbandonedFill?
  var warm: [Located<String>]?
  var stripPrefix: String?
  var addPrefix: String?
  var forwardHeaders: [String]?

  static let minute: Int64 = 60_000
  static let day: Int64 = 24 * 60 * minute
  /// A thousand years: whoever wants "for ever" can say so, within what can be counted with.
  static let lifetimeRange = 0...365_000 * day
  static let entrySizeRange: ClosedRange<UInt64> = 1...1 << 40

  static let fields: [Field<PolicyDraft>] =
    sourceFields + lifetimeFields + copyFields + clientFields + originFields

  private static let strategyNames = Strategy.allCases.map(\.name)

  private static let sourceFields: [Field<PolicyDraft>] = [
    .custom(
      "upstream", \.upstreamName, .upstreamName, example: "\"api\"",
      "The upstream that is asked; absent: that of `defaults`.",
      render: { value, _ in value.map(OrderedJSON.text) },
      read: { decoder, node, path in decoder.text(node, path, expected: "an upstream's name") }),
    Field.custom(
      "strategy", \.strategy, .choice(strategyNames),
      defaultText: "\"\(Strategy.networkOnly.name)\"", example: "\"cache-first\"",
      "Where the answer comes from; see [Strategies](#strategies).",
      render: { value, _ in value.map { .text($0.name) } },
      read: { decoder, node, path in
        decoder.choice(node, path, among: strategyNames).flatMap(Strategy.init(name:))
      }
    ).notInherited(),
  ]

  private static let lifetimeFields: [Field<PolicyDraft>] = [
    Field.custom(
      "ttl", \.timeToLive, .timeToLive(lifetimeRange), example: "\"15m\"",
      "How long an answer is fresh; see [ttl](#ttl). Absent: RFC 9111 alone.",
      render: { value, _ in value.flatMap(renderedTimeToLive) },
      read: { decoder, node, path in decoder.timeToLive(node, path, lifetimeRange) }
    ).needing(.copies(elseError: true)),
    Field.optionalDuration(
      "staleWhileRevalidate", \.staleWhileRevalidateMilliseconds, lifetimeRange,
      example: "\"1d\"",
      "How long after freshness ends a copy serves while one refresh runs. "
        + "Absent: the origin's own directive."
    ).needing(.copies(elseError: true)),
    Field.optionalDuration(
      "staleIfError", \.staleIfErrorMilliseconds, lifetimeRange, example: "\"1h\"",
      "How long after freshness ends a copy serves when the network fails. "
        + "Absent: the origin's own directive (network-first: any age)."
    ).needing(.copies(elseError: true)),
    Field.custom(
      "ignoreOrigin", \.ignoreOrigin, .words(OriginWords.named.map(\.name)),
      defaultText: "[]", example: "[\"no-store\"]",
      "The origin's words that this route overrules, each by name.",
      render: { value, _ in
        value.map { words in
          .texts(OriginWords.named.filter { words.contains($0.word) }.map(\.name))
        }
      },
      read: { decoder, node, path in decoder.originWords(node, path) }
    ).needing(.copies(elseError: false)),
    Field.custom(
      "negative", \.negative, .negative(lifetimeRange), defaultText: "{}",
      example: "{ \"404\": \"30s\", \"5xx\": \"2s\" }",
      "Lifetimes of error statuses, in place of the origin's own.",
      render: { value, _ in
        value.map {
          .object($0.map { ($0.match.text, .duration(milliseconds: $0.lifetimeMilliseconds)) })
        }
      },
      read: { decoder, node, path in decoder.negative(node, path, lifetimeRange) }
    ).needing(.copies(elseError: true)),
    Field.optionalDuration(
      "deadline", \.deadlineMilliseconds, 1...10 * minute, example: "\"800ms\"",
      "network-first: how long the network has, to the end of the body, before the copy serves."
    ).needing(.deadline),
    Field.optionalDuration(
      "keep", \.keepMilliseconds, 1_000...lifetimeRange.upperBound, example: "\"90d\"",
      "How long a copy is kept after its receipt. Absent: until space is needed."
    ).needing(.copies(elseError: true)),
  ]

  private static let copyFields: [Field<PolicyDraft>] = [
    Field.custom(
      "maxEntrySize", \.maxEntrySizeBytes, .size(entrySizeRange), example: "\"8MiB\"",
      "The largest body that is stored. Absent: `store.maxEntrySize`.",
      render: { value, _ in value.map(OrderedJSON.size(bytes:)) },
      read: { decoder, node, path in decoder.bytes(node, path, entrySizeRange) }
    ).needing(.copies(elseError: false)),
    Field.optionalInteger(
      "maxVariants", \.maxVariants, 1...4_096, example: "16",
      "How many variants (by the origin's `Vary`) one key may have; the oldest makes room. "
        + "Absent: the store's own limit."
    ).needing(.copies(elseError: false)),
    Field.optionalSection(
      "key", \.key, from: KeyRecipe(),
      example: "{ \"query\": [\"base\", \"symbols\"], \"sortQuery\": true }", KeyFields.section
    ).needing(.copies(elseError: false)),
    Field.custom(
      "perUser", \.perUser, .userIdentity, example: "\"header:Authorization\"",
      "Each user has copies of their own: what of a request says who the user is. A request "
        + "without it is not cached. Absent: copies are everybody's.",
      render: { value, _ in value.map { .text($0.description) } },
      read: { decoder, node, path in decoder.userIdentity(node, path) }
    ).needing(.copies(elseError: true)),
    Field.custom(
      "tags", \.tags, .list(of: "tags"), defaultText: "[]", example: "[\"article:{id}\"]",
      "Names by which copies are purged; `{name}` is filled in from the path. The origin's "
        + "`Surrogate-Key` and `Cache-Tag` add more.",
      render: { value, _ in value.map { .texts($0.map(\.value.source)) } },
      read: { decoder, node, path in decoder.tags(node, path) }
    ).needing(.copies(elseError: false)),
    Field.boolean(
      "notify", \.notify, isInitially: false, example: "true",
      "Marks routes whose changes an event feed will carry; this version has no feed."
    ).needing(.copies(elseError: true)),
    Field.custom(
      "warm", \.warm, .list(of: "paths or URLs"), defaultText: "[]",
      example: "[\"/countries\"]",
      "What is fetched at start and kept warm: absolute URLs as apps ask for them, or paths (then "
        + "with the authority of `publicUrl`).",
      render: { value, _ in value.map { .texts($0.map(\.value)) } },
      read: { decoder, node, path in decoder.warmTargets(node, path) }
    ).needing(.copies(elseError: true)).notInherited(),
    Field.custom(
      "range", \.range, .choice(RangeMiss.allCases.map(\.rawValue)),
      defaultText: "\"\(RangeMiss.pass.rawValue)\"",
      "What a request for a part does that finds no copy: goes to the origin as it is, or has the "
        + "whole fetched and stored.",
      render: { value, _ in value.map { .text($0.rawValue) } },
      read: { decoder, node, path in
        decoder.choice(node, path, among: RangeMiss.allCases.map(\.rawValue))
          .flatMap(RangeMiss.init(rawValue:))
      }
    ).needing(.copies(elseError: false)),
    Field.custom(
      "whenAbandoned", \.whenAbandoned, .abandoned,
      defaultText: renderedAbandoned(.standard).compact, example: "\"finish\"",
      "What becomes of a fetch for the store that all its clients have left; see "
        + "[whenAbandoned](#whenabandoned).",
      render: { value, _ in value.map(renderedAbandoned) },
      read: { decoder, node, path in decoder.abandoned(node, path) }
    ).needing(.copies(elseError: false)),
  ]

  private static let clientFields: [Field<PolicyDraft>] = [
    Field.custom(
      "clientMay", \.clientMay, .words(ClientWords.named.map(\.name)),
      defaultText: OrderedJSON.texts(ClientWords.named.map(\.name)).compact,
      example: "[\"no-cache\"]",
      "Which directives of a request's Cache-Control count.",
      render: { value, _ in
        value.map { words in
          .texts(ClientWords.named.filter { words.contains($0.word) }.map(\.name))
        }
      },
      read: { decoder, node, path in decoder.clientWords(node, path) }
    ).needing(.copies(elseError: false)),
    .custom(
      "clientStrategies", \.clientStrategies, .words(strategyNames), defaultText: "[]",
      example: "[\"network-first\", \"cache-only\"]",
      "Strategies that a client may ask for by the request field `Larder-Strategy`. A network-only "
        + "route does not take them from `defaults`.",
      render: { value, _ in value.map { .texts($0.map(\.name)) } },
      read: { decoder, node, path in decoder.strategies(node, path, among: strategyNames) }),
    .custom(
      "invalidates", \.invalidates, .list(of: "paths and `tag:…`"), defaultText: "[]",
      example: "[\"tag:article:{id}\", \"/articles\"]",
      "What a successful unsafe request removes besides its own URL; `{name}` is filled in from "
        + "the path.",
      render: { value, _ in value.map { .texts($0.map(\.value.source)) } },
      read: { decoder, node, path in decoder.invalidationTargets(node, path) }),
  ]

  private static let originFields: [Field<PolicyDraft>] = [
    .custom(
      "stripPrefix", \.stripPrefix, .pathPrefix, example: "\"/api\"",
      "Taken off the path that goes to the origin.",
      render: { value, _ in value.map(OrderedJSON.text) },
      read: { decoder, node, path in decoder.pathPrefix(node, path) }),
    .custom(
      "addPrefix", \.addPrefix, .pathPrefix, example: "\"/v2\"",
      "Put before the path that goes to the origin, behind the upstream's own.",
      render: { value, _ in value.map(OrderedJSON.text) },
      read: { decoder, node, path in decoder.pathPrefix(node, path) }),
    .custom(
      "forwardHeaders", \.forwardHeaders, .headerNames, defaultText: "[]",
      example: "[\"X-Original-Host\"]",
      "Request fields that reach the origin although Larder drops their kind "
        + "(`X-Forwarded-*`, `X-Original-*`, `X-Rewrite-*`, method overrides, and names with `_` where the answer may be stored).",
      render: { value, _ in value.map(OrderedJSON.texts) },
      read: { decoder, node, path in decoder.requestFieldNames(node, path) }),
  ]

  private static func renderedAbandoned(_ value: AbandonedFill) -> OrderedJSON {
    switch value {
    case .finish: .text("finish")
    case .stop: .text("stop")
    case .finishWhere(let belowBytes, let fromPercent):
      .object([
        ("finishBelow", .size(bytes: belowBytes)), ("finishFromPercent", .integer(fromPercent)),
      ])
    }
  }

  private static func renderedTimeToLive(_ value: TimeToLive) -> OrderedJSON? {
    switch value {
    case .origin: nil
    case .fixed(let milliseconds): .duration(milliseconds: milliseconds)
    case .clamped(let fallback, let low, let high):
      .object(
        [("default", fallback), ("min", low), ("max", high)].compactMap { name, value in
          value.map { (name, .duration(milliseconds: $0)) }
        })
    }
  }
}

extension NegativeLifetime.Match {
  /// `404`, `5xx`.
  var text: String {
    switch self {
    case .status(let status): "\(status)"
    case .statusClass(let digit): "\(digit)xx"
    }
  }
}
