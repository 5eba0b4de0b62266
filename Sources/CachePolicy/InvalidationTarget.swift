/// One entry of a route's `invalidates`: what a successful unsafe request removes besides its own
/// URL.
///
/// Made by the reading of policies.json, which also checks that the route's own match brings the
/// `names`; filled by whoever carries an invalidation out. What a client's path brings is never
/// read as a pattern: it stands for itself, whatever `*` or `{` is in it.
public enum InvalidationTarget: Sendable, Equatable {
  /// Copies that carry the tag.
  case tag(TagTemplate)
  /// Copies whose path (and host, where the pattern has one) matches; `{name}` stands for what the
  /// unsafe request's own path brings.
  case path(RoutePattern)

  /// What is removed for one request.
  public enum Filled: Sendable, Equatable {
    case tag([UInt8])
    /// All its segments are literal, or stars of policies.json's own.
    case path(RoutePattern)
  }

  /// Reads `tag:…`, `/…` or `//host/…`.
  public init(parsing source: String) throws(InvalidationTargetError) {
    if source.hasPrefix("tag:") {
      do throws(TagTemplateError) {
        self = .tag(try TagTemplate(parsing: String(source.dropFirst(4))))
      } catch {
        throw .tag(error)
      }
      return
    }
    guard source.hasPrefix("/") else { throw .neither(source) }
    // Before a space RoutePattern would look for methods, and there are none here.
    guard !source.contains(" ") else { throw .path(.forbiddenByte) }
    do throws(RoutePatternError) {
      self = .path(try RoutePattern(parsing: source))
    } catch {
      throw .path(error)
    }
  }

  /// The names in braces, each once, in their order.
  public var names: [String] {
    switch self {
    case .tag(let template): template.names
    case .path(let pattern): pattern.names
    }
  }

  /// The target of one request, by what its path gave the route's names (`RoutePattern.captures`);
  /// nil where a name has no value, or where a tag becomes too long (what would carry it was not
  /// stored either).
  public func filled(with captures: [(name: String, value: String)]) -> Filled? {
    switch self {
    case .tag(let template): template.filled(with: captures).map { .tag($0) }
    case .path(let pattern): pattern.filled(with: captures).map { .path($0) }
    }
  }
}

/// Why a target is refused; `message` is what policies.json's reader prints.
public enum InvalidationTargetError: Error, Sendable, Equatable {
  case tag(TagTemplateError)
  case path(RoutePatternError)
  case neither(String)

  public var message: String {
    switch self {
    case .tag(let error): error.message
    case .path(let error): error.message
    case .neither(let text):
      "\"\(text)\" is neither \"tag:NAME\" nor a path (\"/…\" or \"//host/…\", without methods)"
    }
  }
}

extension RoutePattern {
  /// The names in braces, in their order.
  public var names: [String] {
    segments.compactMap { segment in
      guard case .any(let name) = segment else { return nil }
      return name
    }
  }

  /// The pattern with each `{name}` replaced by a literal segment: the captured bytes as they are
  /// (a request's path in its normal form). nil where a name has no value, or one that is no
  /// segment. `source` shows it, and need not parse to the same again.
  func filled(with captures: [(name: String, value: String)]) -> RoutePattern? {
    var filled: [SegmentPattern] = []
    var shown = source
    for segment in segments {
      guard case .any(let name) = segment, let name else {
        filled.append(segment)
        continue
      }
      guard let value = captures.first(where: { $0.name == name })?.value, !value.isEmpty,
        !value.utf8.contains(UInt8(ascii: "/"))
      else { return nil }
      filled.append(.literal(Array(value.utf8)))
      if let place = shown.firstRange(of: "{\(name)}") { shown.replaceSubrange(place, with: value) }
    }
    return RoutePattern(
      source: shown, methods: methods, host: host, segments: filled, takesRest: takesRest)
  }

  private init(
    source: String, methods: [String], host: HostPattern?, segments: [SegmentPattern],
    takesRest: Bool
  ) {
    self.source = source
    self.methods = methods
    self.host = host
    self.segments = segments
    self.takesRest = takesRest
  }
}
