internal import CachePolicy

/// What came of one test of policies.json.
public struct PolicyTestResult: Sendable, Equatable {
  /// An expectation that does not hold.
  public struct Mismatch: Sendable, Equatable {
    /// The member of `expect`.
    public var name: String
    public var expected: String
    public var actual: String
  }

  public var test: PolicyTest
  /// The request as the file writes it: without what came from the environment.
  public var request: String
  public var mismatches: [Mismatch] = []
  /// Why nothing could be compared; nil: it could.
  public var trouble: String?

  public var hasPassed: Bool { mismatches.isEmpty && trouble == nil }

  /// One error for each mismatch.
  func diagnostics(file: String) -> [Diagnostic] {
    let messages =
      trouble.map { [$0] }
      ?? mismatches.map { "\($0.name): expected \($0.expected), got \($0.actual)" }
    return messages.map { message in
      Diagnostic(
        severity: .error, file: file, place: SourcePlace(line: test.line, column: test.column),
        path: test.path, message: "\(request): \(message)")
    }
  }
}

/// Runs the `tests` of a configuration: each request through the same functions that serve, and
/// what comes of it beside what the file expects.
///
/// Pure: no store, no network, no clock. An answer that is `given` is received at the time of its
/// own Date. Without one the result must not depend on the time: a test that holds today alone is
/// in trouble, and says so. Run by `larder check`, at start and before each reload.
enum PolicyTestRunner {
  static func run(_ configuration: Configuration) -> [PolicyTestResult] {
    guard !configuration.tests.isEmpty else { return [] }
    let policies = PolicySet(
      configuration, generation: 0, slots: CounterSlots(), previous: nil)
    var placement = RequestPlacement()
    return configuration.tests.map { run($0, policies, &placement) }
  }

  private static func run(
    _ test: PolicyTest, _ policies: PolicySet, _ placement: inout RequestPlacement
  ) -> PolicyTestResult {
    let configuration = policies.configuration
    let sources = configuration.provenance.sources
    var result = PolicyTestResult(
      test: test, request: sources["\(test.path).request"] ?? "\(test.method) \(test.target)")
    let head: RequestHead
    do throws(RequestRefusal) {
      head = try SyntheticRequest.head(
        method: test.method, target: test.target, authority: configuration.ownAuthority,
        headers: test.headers.map { ($0.name, $0.value) })
    } catch {
      result.trouble = "the request is refused with \(error.status): \(error.reason)"
      return result
    }
    // Whether there is an identity is all that a test can see of it.
    let outlook = RequestOutlook(head, in: policies, with: &placement) { _ in [] }
    if let refusal = outlook.refusal, refusal.status != RequestPlacement.noRoute.status {
      result.trouble = "the request is refused with \(refusal.status): \(refusal.detail)"
      return result
    }
    guard let actual = Actual(test, outlook) else {
      result.trouble =
        "what comes of the given answer depends on the time it comes at: give it a Date"
      return result
    }
    result.mismatches =
      Comparison(
        sources: sources, path: test.path, expect: test.expect, actual: actual
      ).mismatches
    return result
  }
}

extension Configuration {
  /// The authority by which apps reach the proxy: of targets that are paths.
  var ownAuthority: String { publicAuthority ?? listen.first?.description ?? "localhost" }
}

/// What comes of a test's request.
private struct Actual {
  let outlook: RequestOutlook
  /// Of the given answer; without one, of an answer that may be stored if any may.
  let answer: AnswerOutlook?
  let isGiven: Bool

  /// Two times that no clock shows together.
  private static let times: [Int64] = [946_684_800_000, 4_102_444_800_000]

  /// Nil where the result depends on the time.
  init?(_ test: PolicyTest, _ outlook: RequestOutlook) {
    self.outlook = outlook
    isGiven = test.given != nil
    guard let routed = outlook.routed else {
      answer = nil
      return
    }
    guard let given = test.given else {
      answer = routed.storingAtBest(outlook.head)
      return
    }
    let fields = Fields(given.headers.map { ($0.name, $0.value) })
    func outlookAt(_ milliseconds: Int64) -> AnswerOutlook {
      routed.storing(
        status: given.status, fields, to: outlook.head, nowMilliseconds: milliseconds)
    }
    if let date = fields.first(.date),
      let seconds = HTTPDate.parse(date.span, nowSeconds: Self.times[0] / 1000)
    {
      answer = outlookAt(seconds * 1000)
      return
    }
    let all = Self.times.map(outlookAt)
    guard all[0] == all[1] else { return nil }
    answer = all[0]
  }

  var route: String { outlook.routed?.route.name ?? PolicySet.noneName }
  var strategy: String { outlook.routed?.route.policy.strategy.name ?? "none" }
  var stores: Bool { answer.map { $0.notStored == nil } ?? false }

  /// "no-store" and the like behind a false.
  var storesText: String {
    answer?.notStored.map { "false (\($0.rawValue))" } ?? (answer == nil ? "false" : "true")
  }

  /// nil: there is none that a test could name; the text says why.
  var timeToLive: (milliseconds: Int64?, text: String) {
    guard let routed = outlook.routed, let answer else { return (nil, "none") }
    let policy = routed.route.policy
    if isGiven {
      if let reason = answer.notStored { return (nil, "none (not stored: \(reason.rawValue))") }
      let lifetime = answer.lifetimeMilliseconds
      return (lifetime, Quantity.text(milliseconds: lifetime))
    }
    guard policy.strategy != .networkOnly else { return (nil, "none (\(policy.strategy.name))") }
    switch policy.timeToLive {
    case .fixed(let milliseconds), .clamped(let milliseconds?, _, _):
      return (milliseconds, Quantity.text(milliseconds: milliseconds))
    case .origin, .clamped: return (nil, "by the origin")
    }
  }

  /// The query part, "" where there is none; nil: the request has no key.
  var key: String? {
    guard let routed = outlook.routed, routed.wholeKey != nil else { return nil }
    return routed.keyedQuery ?? ""
  }

  var upstreamURL: String? { outlook.routed.map { $0.originURL(of: outlook) } }
  var isUsersOwn: Bool { outlook.routed?.isUsersOwn ?? false }

  var tags: [String] {
    guard let routed = outlook.routed else { return [] }
    if isGiven { return answer?.tags ?? [] }
    return (routed.tags ?? []).map { String(decoding: $0, as: UTF8.self) }
  }
}

/// Puts what is expected beside what came.
private struct Comparison {
  let sources: [String: String]
  let path: String
  let expect: PolicyTest.Expectation
  let actual: Actual

  var mismatches: [PolicyTestResult.Mismatch] {
    var found: [PolicyTestResult.Mismatch] = []
    func add(_ name: String, _ expected: String, _ came: String) {
      found.append(PolicyTestResult.Mismatch(name: name, expected: expected, actual: came))
    }
    if let route = expect.route, route != actual.route {
      add("route", shown("route", route), quoted(actual.route))
    }
    if let strategy = expect.strategy, strategy.name != actual.strategy {
      add("strategy", strategy.name, actual.strategy)
    }
    if let milliseconds = expect.timeToLiveMilliseconds {
      let timeToLive = actual.timeToLive
      if timeToLive.milliseconds != milliseconds {
        add("ttl", Quantity.text(milliseconds: milliseconds), timeToLive.text)
      }
    }
    if let stores = expect.stores, stores != actual.stores {
      add("stores", "\(stores)", actual.storesText)
    }
    if let key = expect.key, key != actual.key ?? "" {
      add("key", shown("key", key), actual.key.map(derived) ?? "none (no copies are kept)")
    }
    if let url = expect.upstreamURL, url != actual.upstreamURL {
      add("upstreamUrl", shown("upstreamUrl", url), actual.upstreamURL.map(derived) ?? "none")
    }
    if let perUser = expect.perUser, perUser != actual.isUsersOwn {
      add("perUser", "\(perUser)", "\(actual.isUsersOwn)")
    }
    if let tags = expect.tags, Set(tags) != Set(actual.tags) {
      add("tags", OrderedJSON.texts(tags).compact, tagsText)
    }
    return found
  }

  private var tagsText: String {
    isFromEnvironment ? hidden : OrderedJSON.texts(actual.tags).compact
  }

  /// The request has values of the environment, and what is made of it may show them.
  private var isFromEnvironment: Bool { sources["\(path).request"] != nil }
  private var hidden: String { "another (not shown: the request names the environment)" }

  private func derived(_ text: String) -> String { isFromEnvironment ? hidden : quoted(text) }

  /// As the file has it, where it names the environment.
  private func shown(_ name: String, _ text: String) -> String {
    quoted(sources["\(path).expect.\(name)"] ?? text)
  }

  private func quoted(_ text: String) -> String { OrderedJSON.text(text).compact }
}
