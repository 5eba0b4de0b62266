internal import CachePolicy

/// All that can be said of one request under one configuration: what `larder explain` and
/// `GET /explain` answer.
///
/// Texts alone, ready to be shown: no credential is among them, only digests, shortened so that
/// they tell users apart and serve for nothing else. `stored` is what the store and the clock add,
/// where there are any. Printed by `ExplanationText` and `ExplanationJSON`.
struct Explanation: Sendable, Equatable {
  struct Line: Sendable, Equatable {
    var name: String
    var value: String
  }

  struct Request: Sendable, Equatable {
    var method: String
    /// As it was asked about.
    var target: String
    /// Without credentials.
    var headers: [Line]
  }

  struct Refusal: Sendable, Equatable {
    var status: UInt16
    var detail: String
  }

  struct Passed: Sendable, Equatable {
    var name: String
    var index: Int
    var mismatches: [RouteTable.Mismatch]
  }

  struct Route: Sendable, Equatable {
    /// `(default)`: no route of the file takes the request.
    var name: String
    var index: Int?
    var match: String?

    /// `routes[2]`, `defaults`.
    var place: String { index.map { "routes[\($0)]" } ?? "defaults" }
  }

  struct ChosenStrategy: Sendable, Equatable {
    var inForce: Strategy
    var ofRoute: Strategy
    var isChosenByClient: Bool
    /// Why the client's choice is ignored; nil: it is not, or there is none.
    var ignored: ClientStrategy.Refusal?
  }

  struct Key: Sendable, Equatable {
    var upstream: String
    var authority: String
    var path: String
    var query: String?
    var headers: [CacheKey.KeyedPart]
    var cookies: [CacheKey.KeyedPart]
  }

  enum Identity: Sendable, Equatable {
    /// Copies are everybody's.
    case none
    /// The request lacks what says who the user is, and is not cached.
    case missing(source: String)
    /// `digest`, shortened; nil: only the running proxy can compute it.
    case user(source: String, digest: String?)
  }

  struct Origin: Sendable, Equatable {
    var method: String
    var url: String
    var host: String
  }

  /// Whether the origin's answer may be stored, as far as that can be said without it.
  struct Answer: Sendable, Equatable {
    var notStored: NotStoredReason?
    /// The request's credentials: only an answer whose words allow it is stored.
    var needsPermission: Bool
  }

  struct Routed: Sendable, Equatable {
    var route: Route
    var strategy: ChosenStrategy
    /// nil: the request has none, for the reason in `unkeyed`.
    var key: Key?
    var unkeyed: NotStoredReason?
    var identity: Identity
    var origin: Origin
    var policy: [PolicyValue]
    var tags: [String]
    /// What a success of this request makes void besides its own URL.
    var invalidates: [String]
    /// Of the request's Cache-Control: what counts, and what `clientMay` takes away.
    var directives: [String]
    var ignoredDirectives: [String]
    var answer: Answer
  }

  var request: Request
  /// The authority and the path (in normal form) that routes are matched by; nil: not read.
  var authority: String?
  var path: String?
  var query: String?
  var refusal: Refusal?
  var passed: [Passed] = []
  var routed: Routed?
  var stored: StoredOutlook?
}

extension Explanation {
  /// The keyed hash that stands for credentials; nil: there is no secret to make it with.
  typealias Digest = (Span<UInt8>) -> [UInt8]

  /// Explains a request by the configuration alone. `authority`: of a target that is a path.
  static func make(
    _ asked: ExplainedRequest, in policies: PolicySet, authority: String, digest: Digest?
  ) -> Explanation {
    do throws(RequestRefusal) {
      let head = try asked.head(authority: authority)
      var placement = RequestPlacement()
      let outlook = RequestOutlook(
        head, in: policies, with: &placement, isTraced: true, digest: digest ?? { _ in [] })
      return Explanation(asked, outlook, in: policies, digest: digest)
    } catch {
      return Explanation(asked, refusedBy: error, digest: digest)
    }
  }

  /// A request that the server cannot read.
  init(_ asked: ExplainedRequest, refusedBy refusal: RequestRefusal, digest: Digest?) {
    request = Request(asked, digest)
    self.refusal = Refusal(status: refusal.status, detail: "\(refusal.reason)")
  }

  init(
    _ asked: ExplainedRequest, _ outlook: RequestOutlook, in policies: PolicySet, digest: Digest?
  ) {
    request = Request(asked, digest)
    authority = string(outlook.head.authority)
    path = String(decoding: outlook.path, as: UTF8.self)
    query = outlook.head.query.map(string)
    refusal = outlook.refusal.map { Refusal(status: $0.status, detail: $0.detail) }
    passed = outlook.passed.map { passed in
      Passed(
        name: policies.routes[passed.route].name, index: passed.route,
        mismatches: passed.mismatches)
    }
    routed = outlook.routed.map { Routed($0, of: outlook, in: policies, digest) }
  }
}

private func string(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
private func string(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

extension Explanation {
  /// The first eight bytes in hexadecimal, as in the log.
  static func shortened(_ digest: [UInt8]) -> String? {
    digest.isEmpty
      ? nil
      : digest.prefix(8).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }
}

extension Explanation.Request {
  fileprivate init(_ asked: ExplainedRequest, _ digest: Explanation.Digest?) {
    method = asked.method
    target = asked.target
    headers = asked.headers.map { line in
      guard KeyRecipe.isCredential(line.name) else {
        return Explanation.Line(name: line.name, value: line.value)
      }
      let bytes = Array(line.value.utf8)
      let shown = digest.flatMap { Explanation.shortened($0(bytes.span)) }
      return Explanation.Line(name: line.name, value: shown.map { "(digest \($0))" } ?? "(hidden)")
    }
  }
}

extension Explanation.Routed {
  fileprivate init(
    _ routed: RequestOutlook.Routed, of outlook: RequestOutlook, in policies: PolicySet,
    _ digest: Explanation.Digest?
  ) {
    let route = routed.route
    let head = outlook.head
    let configuration = policies.configuration
    self.route = Explanation.Route(
      name: route.name, index: routed.index, match: route.pattern?.source)
    var ignored: ClientStrategy.Refusal?
    if case .ignored(let reason) = routed.choice { ignored = reason }
    strategy = Explanation.ChosenStrategy(
      inForce: route.policy.strategy, ofRoute: routed.asWritten.policy.strategy,
      isChosenByClient: routed.choice.strategy != nil, ignored: ignored)
    key = routed.wholeKey.flatMap { Explanation.Key($0, route.options.key) }
    unkeyed = routed.unkeyed
    identity = Explanation.Identity(routed)
    origin = Explanation.Origin(
      method: string(head.methodToken), url: routed.originURL(of: outlook),
      host: string(OriginRequestBuilder.host(of: head, route: route)))
    policy =
      routed.index.map { configuration.values(ofRoute: $0) } ?? configuration.valuesOfDefaults
    tags = (routed.tags ?? []).map(string)
    let captures = route.pattern?.captures(path: outlook.path.span) ?? []
    invalidates =
      Invalidation.isUnsafe(head.method)
      ? route.options.invalidates.compactMap { $0.filled(with: captures)?.text } : []
    let all = RequestDirectives(head.fields).words
    directives = route.directives(of: head.fields).words
    let counting = directives
    ignoredDirectives = all.filter { !counting.contains($0) }
    answer = Explanation.Answer(routed, head)
  }
}

extension Explanation.Key {
  fileprivate init?(_ wholeKey: [UInt8], _ recipe: KeyRecipe) {
    let read = CacheKey.Parts(wholeKey.span)
    let additions = CacheKey.additions(of: wholeKey.span)
    guard let read, let additions else { return nil }
    upstream = string(wholeKey[read.upstream])
    authority = string(wholeKey[read.authority])
    path = string(wholeKey[read.path])
    query = read.query.map { string(wholeKey[$0]) }
    headers = Array(additions.parts.prefix(recipe.headers.count))
    cookies = Array(additions.parts.dropFirst(recipe.headers.count))
  }
}

extension Explanation.Identity {
  fileprivate init(_ routed: RequestOutlook.Routed) {
    guard let source = routed.route.options.perUser else {
      self = .none
      return
    }
    if routed.unkeyed == .noIdentity {
      self = .missing(source: source.description)
      return
    }
    let wholeKey = routed.wholeKey ?? []
    let digest = CacheKey.additions(of: wholeKey.span)?.identity
    self = .user(
      source: source.description, digest: digest.flatMap(Explanation.shortened))
  }
}

extension Explanation.Answer {
  fileprivate init(_ routed: RequestOutlook.Routed, _ head: RequestHead) {
    notStored = routed.storingAtBest(head).notStored
    let withoutPermission = routed.storing(
      status: 200, Fields([("Cache-Control", "max-age=60")]), to: head, nowMilliseconds: 0)
    needsPermission = notStored == nil && withoutPermission.notStored == .authorization
  }
}

extension InvalidationTarget.Filled {
  fileprivate var text: String {
    switch self {
    case .tag(let tag): "tag:" + String(decoding: tag, as: UTF8.self)
    case .path(let pattern): pattern.source
    }
  }
}

extension RequestDirectives {
  /// The directives that bear on an answer, as a request would write them.
  var words: [String] {
    func seconds(_ name: String, _ value: Int64?) -> String? { value.map { "\(name)=\($0)" } }
    return [
      noCache ? "no-cache" : nil, noStore ? "no-store" : nil, seconds("max-age", maxAgeSeconds),
      maxStaleSeconds == ASCII.deltaSecondsMax
        ? "max-stale" : seconds("max-stale", maxStaleSeconds),
      seconds("min-fresh", minFreshSeconds), onlyIfCached ? "only-if-cached" : nil,
    ].compactMap { $0 }
  }
}
