internal import CachePolicy

/// What a route takes from `defaults`, and the ways between drafts and the values that serve.
///
/// A route takes what it does not say itself. Three things it does not take: the strategy (a
/// balance must never be stored because somebody forgot a line), for the same reason
/// `clientStrategies` where it is network-only, and `warm`. A field that none of its strategies
/// gives a meaning is left out.
extension PolicyDraft {
  /// The route's own strategy, and those that a client may ask for.
  var strategies: [Strategy] { [strategy ?? .networkOnly] + (clientStrategies ?? []) }

  func inheriting(_ outer: PolicyDraft) -> PolicyDraft {
    var result = PolicyDraft()
    result.upstreamName = upstreamName ?? outer.upstreamName
    result.strategy = strategy ?? .networkOnly
    result.clientStrategies =
      clientStrategies ?? (result.strategy == .networkOnly ? nil : outer.clientStrategies)
    result.invalidates = invalidates ?? outer.invalidates
    result.stripPrefix = stripPrefix ?? outer.stripPrefix
    result.addPrefix = addPrefix ?? outer.addPrefix
    result.forwardHeaders = forwardHeaders ?? outer.forwardHeaders
    let strategies = result.strategies
    if StrategyNeed.deadline.isMet(by: strategies) {
      result.deadlineMilliseconds = deadlineMilliseconds ?? outer.deadlineMilliseconds
    }
    guard StrategyNeed.copies(elseError: true).isMet(by: strategies) else { return result }
    result.timeToLive = timeToLive ?? outer.timeToLive
    result.staleWhileRevalidateMilliseconds =
      staleWhileRevalidateMilliseconds ?? outer.staleWhileRevalidateMilliseconds
    result.staleIfErrorMilliseconds = staleIfErrorMilliseconds ?? outer.staleIfErrorMilliseconds
    result.ignoreOrigin = ignoreOrigin ?? outer.ignoreOrigin
    result.negative = negative ?? outer.negative
    result.keepMilliseconds = keepMilliseconds ?? outer.keepMilliseconds
    result.maxEntrySizeBytes = maxEntrySizeBytes ?? outer.maxEntrySizeBytes
    result.maxVariants = maxVariants ?? outer.maxVariants
    result.key = key ?? outer.key
    result.perUser = perUser ?? outer.perUser
    result.tags = tags ?? outer.tags
    result.notify = notify ?? outer.notify
    result.clientMay = clientMay ?? outer.clientMay
    result.range = range ?? outer.range
    result.whenAbandoned = whenAbandoned ?? outer.whenAbandoned
    result.warm = warm
    return result
  }

  var policy: Policy {
    let fresh = Policy()
    return Policy(
      strategy: strategy ?? fresh.strategy, timeToLive: timeToLive ?? fresh.timeToLive,
      staleWhileRevalidateMilliseconds: staleWhileRevalidateMilliseconds,
      staleIfErrorMilliseconds: staleIfErrorMilliseconds,
      ignoreOrigin: ignoreOrigin ?? fresh.ignoreOrigin, negative: negative ?? fresh.negative,
      deadlineMilliseconds: deadlineMilliseconds, keepMilliseconds: keepMilliseconds,
      maxEntrySizeBytes: maxEntrySizeBytes, maxVariants: maxVariants,
      clientMay: clientMay ?? fresh.clientMay, range: range ?? fresh.range,
      whenAbandoned: whenAbandoned ?? fresh.whenAbandoned)
  }

  var options: RouteOptions {
    let fresh = RouteOptions()
    return RouteOptions(
      forwardHeaders: forwardHeaders ?? fresh.forwardHeaders, key: key ?? fresh.key,
      perUser: perUser, tags: tags?.map(\.value) ?? fresh.tags,
      invalidates: invalidates?.map(\.value) ?? fresh.invalidates, notify: notify ?? fresh.notify,
      clientStrategies: clientStrategies ?? fresh.clientStrategies, stripPrefix: stripPrefix,
      addPrefix: addPrefix, warm: warm?.map(\.value) ?? fresh.warm)
  }

  /// What would have to be said for these values, every default filled in.
  init(_ policy: Policy, _ options: RouteOptions, upstreamName: String?) {
    self.upstreamName = upstreamName
    strategy = policy.strategy
    timeToLive = policy.timeToLive
    staleWhileRevalidateMilliseconds = policy.staleWhileRevalidateMilliseconds
    staleIfErrorMilliseconds = policy.staleIfErrorMilliseconds
    ignoreOrigin = policy.ignoreOrigin
    negative = policy.negative
    deadlineMilliseconds = policy.deadlineMilliseconds
    keepMilliseconds = policy.keepMilliseconds
    maxEntrySizeBytes = policy.maxEntrySizeBytes
    maxVariants = policy.maxVariants
    key = options.key
    perUser = options.perUser
    tags = options.tags.map(Located.init(nowhere:))
    invalidates = options.invalidates.map(Located.init(nowhere:))
    notify = options.notify
    clientMay = policy.clientMay
    clientStrategies = options.clientStrategies
    range = policy.range
    whenAbandoned = policy.whenAbandoned
    warm = options.warm.map(Located.init(nowhere:))
    stripPrefix = options.stripPrefix
    addPrefix = options.addPrefix
    forwardHeaders = options.forwardHeaders
  }
}

extension Located {
  /// Of no file.
  init(nowhere value: Value) {
    self.init(value: value, place: SourcePlace(line: 1, column: 1), path: "")
  }
}
