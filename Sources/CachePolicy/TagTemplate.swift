/// A tag as policies.json has it, with `{name}` in the place of what the path brings.
public struct TagTemplate: Sendable, Equatable {
  /// The text in policies.json.
  public let source: String
}

/// One entry of a route's `invalidates`: what a successful unsafe request removes.
public enum InvalidationTarget: Sendable, Equatable {
  /// Copies that carry the tag.
  case tag(TagTemplate)
  /// Copies whose path (and host, where the pattern has one) matches; `{name}` stands for what the
  /// unsafe request's own path brings.
  case path(String)
}
