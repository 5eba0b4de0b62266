internal import CachePolicy

/// An explanation for people: one heading a line, what belongs to it aligned behind it.
extension Explanation {
  /// How many routes that were passed are listed; more are counted.
  private static let passedMax = 20

  /// Lines, each with a line end.
  var text: String {
    var rows = Rows()
    rows.add("request", "\(request.method) \(request.target)")
    rows.add("headers", request.headers.map { "\($0.name): \($0.value)" })
    if let authority {
      let isAssumed =
        request.target.hasPrefix("/")
        && !request.headers.contains { $0.name.lowercased() == "host" }
      // Who explains a path forgets that apps may have asked under another name.
      rows.add("authority", authority + (isAssumed ? " (a URL with a host asks for another)" : ""))
    }
    if let path { rows.add("path", path) }
    if let query { rows.add("query", query) }
    rows.add("passed", passedLines)
    if let refusal { rows.add("refused", "\(refusal.status), \(refusal.detail)") }
    if let routed { Self.add(routed, to: &rows) }
    if let stored { Self.add(stored, to: &rows) }
    return rows.text
  }

  /// Those that some part of the request fits go first: one of them was meant, most likely.
  private var passedLines: [String] {
    let near = passed.filter { !$0.mismatches.contains(.path) }
    let listed = passed.count <= Self.passedMax ? passed : Array(near.prefix(Self.passedMax))
    var lines = listed.map { passed in
      let because = passed.mismatches.map(\.rawValue).joined(separator: ", ")
      return "\(passed.name) (routes[\(passed.index)]): another \(because)"
    }
    if listed.count < passed.count {
      lines.append("\(listed.isEmpty ? "" : "and ")\(passed.count - listed.count) others")
    }
    return lines
  }

  private static func add(_ routed: Routed, to rows: inout Rows) {
    let match = routed.route.match.map { ", \($0)" } ?? ""
    rows.add("route", "\(routed.route.name) (\(routed.route.place)\(match))")
    rows.add("strategy", strategyText(routed.strategy))
    rows.add("key", keyLines(routed))
    rows.add("identity", identityText(routed.identity))
    rows.add(
      "origin",
      ["\(routed.origin.method) \(routed.origin.url)", "Host: \(routed.origin.host)"])
    rows.add(
      "policy",
      TextTable.lines(routed.policy.map { [$0.name, $0.source.rawValue, $0.value] }))
    if !routed.tags.isEmpty { rows.add("tags", routed.tags.joined(separator: " ")) }
    rows.add("invalidates", routed.invalidates)
    var directives = routed.directives
    directives += routed.ignoredDirectives.map { "\($0) (ignored: the route's clientMay)" }
    rows.add("directives", directives)
    rows.add("answer", answerText(routed.answer))
  }

  private static func strategyText(_ strategy: ChosenStrategy) -> String {
    if strategy.isChosenByClient {
      return "\(strategy.inForce.name), chosen by the client (the route's own: "
        + "\(strategy.ofRoute.name))"
    }
    let ignored = strategy.ignored.map { " (the client's choice is ignored: \($0.rawValue))" }
    return strategy.inForce.name + (ignored ?? "")
  }

  private static func keyLines(_ routed: Routed) -> [String] {
    guard let key = routed.key else {
      return ["none: \(routed.unkeyed?.rawValue ?? "no copies are kept of this request")"]
    }
    var lines = [
      "upstream \(key.upstream)", "authority \(key.authority)", "path \(key.path)",
      key.query.map { "query \($0)" } ?? "no query",
    ]
    lines += key.headers.map { "header \($0.shown)" }
    lines += key.cookies.map { "cookie \($0.shown)" }
    return lines
  }

  private static func identityText(_ identity: Identity) -> String {
    switch identity {
    case .none: "none: copies are everybody's"
    case .missing(let source): "\(source) is missing: the answer is not stored"
    case .user(let source, let digest?): "\(source), digest \(digest)"
    case .user(let source, nil): "\(source), whose digest only the running proxy knows"
    }
  }

  private static func answerText(_ answer: Answer) -> String {
    if let reason = answer.notStored { return "not stored: \(reason.rawValue)" }
    return answer.needsPermission
      ? "stored only where it says public, must-revalidate or s-maxage: the request has credentials"
      : "stored, where its own words and the policy allow it"
  }

  // MARK: The store

  private static func add(_ stored: StoredOutlook, to rows: inout Rows) {
    if stored.copies.isEmpty { rows.add("stored", "nothing") }
    for copy in stored.copies { rows.add("stored", lines(copy)) }
    rows.add("now", [stored.now] + stored.then)
  }

  private static func lines(_ copy: StoredOutlook.Copy) -> [String] {
    var lines = [
      "\(copy.status), \(copy.bodyBytes) bytes, stored at \(copy.storedAt)"
        + (copy.isSelected ? ", selected" : "")
    ]
    let left = copy.freshMillisecondsLeft
    let freshness =
      left > 0 ? "fresh for \(duration(left))" : "stale since \(duration(-left))"
    lines.append(
      "age \(duration(copy.ageMilliseconds)), \(freshness) "
        + "(lifetime \(duration(copy.lifetimeMilliseconds)))")
    lines.append(
      "then stale while revalidated for \(duration(copy.staleWhileRevalidateMillisecondsLeft)), "
        + "on errors for \(duration(copy.staleIfErrorMillisecondsLeft))")
    if let tag = copy.entityTag { lines.append("ETag \(tag)") }
    if let date = copy.lastModified { lines.append("Last-Modified \(date)") }
    if !copy.varies.isEmpty { lines.append("varies by \(copy.varies.joined(separator: " "))") }
    if !copy.tags.isEmpty { lines.append("tags \(copy.tags.joined(separator: " "))") }
    return lines
  }

  /// Whole seconds.
  private static func duration(_ milliseconds: Int64) -> String {
    milliseconds == .max ? "ever" : Quantity.text(milliseconds: milliseconds / 1000 * 1000)
  }
}

extension CacheKey.KeyedPart {
  fileprivate var shown: String {
    switch value {
    case .absent: "\(name) is absent"
    case .clear(let values):
      "\(name): " + values.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ", ")
    case .digest(let digest):
      Explanation.shortened(digest).map { "\(name), digest \($0)" }
        ?? "\(name), whose digest only the running proxy knows"
    }
  }
}

/// Headings, and lines aligned behind them.
private struct Rows {
  private static let width = 13
  private(set) var text = ""

  mutating func add(_ heading: String, _ line: String) { add(heading, [line]) }

  /// Nothing where there are no lines.
  mutating func add(_ heading: String, _ lines: [String]) {
    for (index, line) in lines.enumerated() {
      let head = index == 0 ? heading : ""
      let padding = String(repeating: " ", count: max(1, Self.width - head.count))
      text += "\(head)\(padding)\(line)\n"
    }
  }
}

/// Rows of cells as lines whose columns are aligned.
enum TextTable {
  static func lines(_ rows: [[String]]) -> [String] {
    var widths: [Int] = []
    for row in rows {
      for (column, cell) in row.enumerated() {
        if column == widths.count { widths.append(0) }
        widths[column] = max(widths[column], cell.count)
      }
    }
    return rows.map { row in
      var line = ""
      for (column, cell) in row.enumerated() {
        line += cell + String(repeating: " ", count: widths[column] - cell.count + 2)
      }
      while line.last == " " { line.removeLast() }
      return line
    }
  }
}
