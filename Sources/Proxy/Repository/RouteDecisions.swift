internal import CachePolicy

/// What a request means under a route, before anything of the store or the network is known.
///
/// One way for the data path, for `explain` and for the tests in policies.json.
extension RouteContext {
  /// What the client asks for, as far as the route lets it.
  func directives(of fields: Fields) -> RequestDirectives {
    guard fields.contains(.cacheControl) || fields.contains(.pragma) else {
      return RequestDirectives()
    }
    return RequestDirectives(fields).keeping(policy.clientMay)
  }

  func machine(for head: RequestHead) -> StrategyMachine {
    let hasDirectives = head.fields.contains(.cacheControl) || head.fields.contains(.pragma)
    return StrategyMachine(
      policy: policy,
      request: StrategyMachine.Request(
        method: head.method,
        directives: hasDirectives ? directives(of: head.fields) : RequestDirectives(),
        hasRange: head.fields.contains(.range),
        hasOriginPrecondition: Validation.hasOriginConditions(head.fields)))
  }

  /// Whether a request of this method has a key: whether copies are read or written for it.
  func keepsCopies(for method: Method) -> Bool {
    (method == .get || method == .head) && policy.strategy != .networkOnly
  }

  /// Why the answer to a fetch is not stored, whatever it says; nil: its words decide.
  func notStored(_ fetch: StrategyMachine.Fetch, for head: RequestHead) -> NotStoredReason? {
    if fetch.isShared { return nil }
    if head.method == .head { return .method }
    return head.fields.contains(.range) && policy.range == .pass ? .range : nil
  }

  /// Why the answer to a request that is passed on is not stored. `unkeyed`: why it has no key.
  static func notStored(
    _ reason: StrategyMachine.ForwardReason, unkeyed: NotStoredReason?
  ) -> NotStoredReason {
    reason == .method ? .method : unkeyed ?? .strategy
  }
}
