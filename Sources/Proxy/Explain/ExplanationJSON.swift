internal import CachePolicy

/// An explanation for programs. Members keep their order and their meaning; what is not there is
/// left out.
extension Explanation {
  var json: OrderedJSON {
    var members: [(String, OrderedJSON)] = [("request", requestJSON)]
    if let refusal {
      members.append(
        (
          "refusal",
          .object([("status", .integer(Int(refusal.status))), ("detail", .text(refusal.detail))])
        ))
    }
    members.append(
      (
        "passed",
        .list(
          passed.map { passed in
            .object([
              ("route", .text(passed.name)), ("at", .text("routes[\(passed.index)]")),
              ("because", .texts(passed.mismatches.map(\.rawValue))),
            ])
          })
      ))
    if let routed { members += routed.json }
    if let stored { members.append(("stored", stored.json)) }
    return .object(members)
  }

  private var requestJSON: OrderedJSON {
    object(
      ("method", .text(request.method)), ("target", .text(request.target)),
      ("authority", authority.map(OrderedJSON.text)), ("path", path.map(OrderedJSON.text)),
      ("query", query.map(OrderedJSON.text)), ("headers", lines(request.headers)))
  }
}

/// Without the members that are nil.
private func object(_ members: (String, OrderedJSON?)...) -> OrderedJSON {
  .object(members.compactMap { name, value in value.map { (name, $0) } })
}

private func lines(_ lines: [Explanation.Line]) -> OrderedJSON {
  .list(lines.map { .object([("name", .text($0.name)), ("value", .text($0.value))]) })
}

extension Explanation.Routed {
  fileprivate var json: [(String, OrderedJSON)] {
    [
      (
        "route",
        object(
          ("name", .text(route.name)), ("at", .text(route.place)),
          ("match", route.match.map(OrderedJSON.text)))
      ),
      (
        "strategy",
        object(
          ("inForce", .text(strategy.inForce.name)), ("ofRoute", .text(strategy.ofRoute.name)),
          ("chosenByClient", .boolean(strategy.isChosenByClient)),
          ("ignored", strategy.ignored.map { .text($0.rawValue) }))
      ),
      ("key", key?.json ?? object(("none", .text(unkeyed?.rawValue ?? "no copies")))),
      ("identity", identity.json),
      (
        "origin",
        .object([
          ("method", .text(origin.method)), ("url", .text(origin.url)),
          ("host", .text(origin.host)),
        ])
      ),
      (
        "policy",
        .list(
          policy.map { value in
            .object([
              ("name", .text(value.name)), ("value", .verbatim(value.value)),
              ("from", .text(value.source.rawValue)),
            ])
          })
      ),
      ("tags", .texts(tags)), ("invalidates", .texts(invalidates)),
      (
        "directives",
        .object([("counting", .texts(directives)), ("ignored", .texts(ignoredDirectives))])
      ),
      (
        "answer",
        object(
          ("mayBeStored", .boolean(answer.notStored == nil)),
          ("notStored", answer.notStored.map { .text($0.rawValue) }),
          ("needsPermission", .boolean(answer.needsPermission)))
      ),
    ]
  }
}

extension Explanation.Key {
  fileprivate var json: OrderedJSON {
    object(
      ("upstream", .text(upstream)), ("authority", .text(authority)), ("path", .text(path)),
      ("query", query.map(OrderedJSON.text)), ("headers", Self.parts(headers)),
      ("cookies", Self.parts(cookies)))
  }

  private static func parts(_ parts: [CacheKey.KeyedPart]) -> OrderedJSON {
    .list(
      parts.map { part in
        switch part.value {
        case .absent: object(("name", .text(part.name)), ("absent", .boolean(true)))
        case .clear(let values):
          object(
            ("name", .text(part.name)),
            ("values", .texts(values.map { String(decoding: $0, as: UTF8.self) })))
        case .digest(let digest):
          object(
            ("name", .text(part.name)), ("isCredential", .boolean(true)),
            ("digest", Explanation.shortened(digest).map(OrderedJSON.text)))
        }
      })
  }
}

extension Explanation.Identity {
  fileprivate var json: OrderedJSON {
    switch self {
    case .none: object(("source", .text("none")))
    case .missing(let source):
      object(("source", .text(source)), ("missing", .boolean(true)))
    case .user(let source, let digest):
      object(
        ("source", .text(source)), ("missing", .boolean(false)),
        ("digest", digest.map(OrderedJSON.text)))
    }
  }
}

extension StoredOutlook {
  fileprivate var json: OrderedJSON {
    object(
      ("now", .text(now)), ("then", .texts(then)), ("copies", .list(copies.map(Self.json))))
  }

  private static func json(_ copy: Copy) -> OrderedJSON {
    object(
      ("selected", .boolean(copy.isSelected)), ("status", .integer(Int(copy.status))),
      ("bodyBytes", .integer(Int(clamping: copy.bodyBytes))),
      ("storedAt", .text(copy.storedAt)),
      ("ageSeconds", seconds(copy.ageMilliseconds)),
      ("lifetimeSeconds", seconds(copy.lifetimeMilliseconds)),
      ("freshSecondsLeft", seconds(copy.freshMillisecondsLeft)),
      ("staleWhileRevalidateSecondsLeft", seconds(copy.staleWhileRevalidateMillisecondsLeft)),
      ("staleIfErrorSecondsLeft", seconds(copy.staleIfErrorMillisecondsLeft)),
      ("entityTag", copy.entityTag.map(OrderedJSON.text)),
      ("lastModified", copy.lastModified.map(OrderedJSON.text)),
      ("varies", .texts(copy.varies)), ("tags", .texts(copy.tags)))
  }

  /// Rounded down; a window without an end is `"any"`.
  private static func seconds(_ milliseconds: Int64) -> OrderedJSON {
    milliseconds == .max
      ? .text("any")
      : .integer(Int(milliseconds >= 0 ? milliseconds / 1000 : -((999 - milliseconds) / 1000)))
  }
}
