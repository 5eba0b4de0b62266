internal import CachePolicy

/// Looks at what `invalidates` names: tags that no route carries and paths that no route keeps copies
/// of, where one that differs little is there. It is no error, since an origin may name tags of its own
/// and a file may be cut down for a while; but it is how a misspelt word leaves old copies in place.
extension ConfigurationChecks {
  mutating func checkInvalidated(_ configuration: Configuration) {
    let tags = (configuration.routes.map(\.options) + [configuration.defaults.options])
      .flatMap(\.tags).map(\.source)
    let paths = configuration.routes.filter { $0.policy.strategy != .networkOnly }
      .map(\.pattern.target)
    for route in draft.routes {
      for entry in route.policy.invalidates ?? [] {
        switch entry.value {
        case .tag(let template): check(template.source, among: tags, entry.place, entry.path)
        case .path(let pattern):
          guard !isKept(pattern, configuration),
            let near = Suggestion.nearest(to: pattern.target, among: paths)
          else { continue }
          report(
            .warning, at: entry.place, entry.path,
            "no route keeps copies of \"\(pattern.target)\", did you mean \"\(near)\"?"
          )
        }
      }
    }
  }

  private mutating func check(
    _ tag: String, among known: [String], _ place: SourcePlace, _ path: String
  ) {
    // What differs in its `{name}` alone is the same tag.
    let plain = ConfigurationChecks.withoutNames(tag)
    guard !known.contains(where: { ConfigurationChecks.withoutNames($0) == plain }),
      let near = Suggestion.nearest(to: tag, among: known)
    else { return }
    report(.warning, at: place, path, "no route has the tag \"\(tag)\", did you mean \"\(near)\"?")
  }

  /// `article:{id}` is `article:{}`.
  private static func withoutNames(_ tag: String) -> String {
    var result = ""
    var isWithin = false
    for character in tag {
      if character == "}" { isWithin = false }
      if !isWithin { result.append(character) }
      if character == "{" { isWithin = true }
    }
    return result
  }

  /// Whether a path of the pattern, one that stands for all, is read by a route that stores.
  private func isKept(_ pattern: RoutePattern, _ configuration: Configuration) -> Bool {
    let path = pattern.literalPath ?? ConfigurationChecks.sample(of: pattern)
    let host = pattern.host.map { Array($0.name.utf8) } ?? Array("host".utf8)
    let found = configuration.routeTable.match(
      method: Array("GET".utf8).span, host: host.span, path: path.span)
    let kept = found.map { configuration.routes[$0] }
    let policy = kept?.policy ?? configuration.defaults.policy
    let options = kept?.options ?? configuration.defaults.options
    // A wildcard or a host may reach routes that the one path does not show.
    let mayReachOthers = pattern.target.contains("*") || pattern.host != nil
    return mayReachOthers || policy.strategy != .networkOnly || !options.clientStrategies.isEmpty
      || configuration.routes.contains { $0.pattern.host != nil }
  }

  /// A path in which each `{name}` stands for itself.
  private static func sample(of pattern: RoutePattern) -> [UInt8] {
    Array(pattern.target.utf8).map { byte in
      byte == UInt8(ascii: "{") || byte == UInt8(ascii: "}") ? UInt8(ascii: "x") : byte
    }
  }
}
