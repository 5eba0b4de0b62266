internal import CachePolicy

/// What the file said of a configuration beyond its values: which of them stood where, and the
/// texts behind those that came from the environment. Kept for `larder config` and `explain`;
/// nothing that serves reads it.
struct ConfigurationProvenance: Sendable {
  /// false: the configuration was made by hand, field by field.
  var isFromFile = false
  /// By path, the file's texts that name variables of the environment.
  var sources: [String: String] = [:]
  var defaults = PolicyDraft()
  /// As each route was written.
  var routes: [PolicyDraft] = []
}

/// Where a route's value comes from.
public enum ValueSource: String, Sendable, CaseIterable {
  /// The route says it.
  case route
  /// `defaults` says it, and the route does not.
  case defaults
  /// Nobody says it.
  case builtIn = "built in"
}

/// One value of a route, as the file would have it, and its origin.
public struct PolicyValue: Sendable, Equatable {
  /// The field's name.
  public var name: String
  /// JSON on one line, without secrets.
  public var value: String
  public var source: ValueSource

  public init(name: String, value: String, source: ValueSource) {
    self.name = name
    self.value = value
    self.source = source
  }
}

/// Prints configurations by the table that reads them.
extension Configuration {
  /// The whole configuration as a policies.json that says everything: defaults are filled in, and
  /// each route has what it takes over. Valid JSON, with a line end behind it. Secrets are shown as
  /// the file has them, `${NAME}`, and as `${REDACTED}` where the file has them literally.
  public var effectiveText: String {
    let context = RenderingContext(sources: provenance.sources)
    return OrderedJSON.object(FieldTable.root.rendered(draft, context)).formatted + "\n"
  }

  /// Every value that a route has, in the order of the reference, and where it comes from. Fields
  /// that have neither a value nor a default are left out.
  public func values(ofRoute index: Int) -> [PolicyValue] {
    Self.values(policyDraft(of: routes[index])) { field in
      guard provenance.isFromFile else { return nil }
      if field.isSaid(by: provenance.routes[index]) { return .route }
      let isTaken = field.description.isInherited && field.isSaid(by: provenance.defaults)
      return isTaken ? .defaults : .builtIn
    }
  }

  /// The same for `defaults`, which answers the requests that no route takes.
  public var valuesOfDefaults: [PolicyValue] {
    Self.values(defaultsDraft) { field in
      guard provenance.isFromFile else { return nil }
      return field.isSaid(by: provenance.defaults) ? .defaults : .builtIn
    }
  }

  /// `source` answers nil where there is no file to ask.
  private static func values(
    _ effective: PolicyDraft, source: (Field<PolicyDraft>) -> ValueSource?
  ) -> [PolicyValue] {
    let context = RenderingContext(sources: [:])
    return PolicyDraft.fields.compactMap { field in
      let name = field.description.name
      guard field.description.need.isMet(by: effective.strategies),
        let value = field.render(effective, context)?.compact
      else { return nil }
      return PolicyValue(
        name: name, value: value,
        source: source(field) ?? (value == builtIn[name] ? .builtIn : .route))
    }
  }

  /// By name, what a route has of which nothing is said.
  private static let builtIn: [String: String] = {
    let fresh = PolicyDraft(Policy(), RouteOptions(), upstreamName: nil)
    let context = RenderingContext(sources: [:])
    return Dictionary(
      uniqueKeysWithValues: PolicyDraft.fields.compactMap { field in
        field.render(fresh, context).map { (field.description.name, $0.compact) }
      })
  }()

  private var draft: ConfigurationDraft {
    ConfigurationDraft(
      listen: listen, loops: loops, publicAuthority: publicAuthority, admin: admin, store: store,
      upstreams: upstreams, limits: limits, defaults: defaultsDraft,
      routes: routes.map { route in
        RouteDraft(name: route.name, pattern: route.pattern, policy: policyDraft(of: route))
      }, tests: tests)
  }

  private var defaultsDraft: PolicyDraft {
    PolicyDraft(
      defaults.policy, defaults.options,
      upstreamName: defaults.upstreamIndex.map { upstreams[$0].name })
  }

  private func policyDraft(of route: Route) -> PolicyDraft {
    PolicyDraft(
      route.policy, route.options, upstreamName: upstreams[route.upstreamIndex].name)
  }
}

extension Field<PolicyDraft> {
  fileprivate func isSaid(by draft: PolicyDraft) -> Bool {
    render(draft, RenderingContext(sources: [:])) != nil
  }
}
