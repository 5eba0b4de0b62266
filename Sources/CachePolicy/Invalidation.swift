/// Which requests and answers make stored copies invalid, and of which targets (RFC 9111 §4.4).
///
/// Unknown methods count as unsafe. A route's own `invalidates` is not looked at here. Called
/// after an answer of the origin to a request that was passed on.
public enum Invalidation {
  public static func isUnsafe(_ method: Method) -> Bool { !method.isSafe }

  /// Whether this answer to this method makes the copies of its target invalid: an unsafe method
  /// that was not refused.
  public static func invalidates(method: Method, status: UInt16) -> Bool {
    isUnsafe(method) && (200..<400).contains(status)
  }

  /// Whether an answer to GET says that what is stored of the target is no more. It is no failure
  /// of the network, so that no copy stands in for it (RFC 5861 §4 speaks of 500, 502, 503 and 504).
  public static func meansGone(status: UInt16) -> Bool { status == 404 || status == 410 }

  /// The path and query that a Location or Content-Location means, where it lies at the same
  /// origin; nil for another origin and for what is no URI reference. Only the own origin's
  /// copies may be named so: else one origin could empty another's.
  ///
  /// `scheme` and `authority` are those of the request's target, `target` its path and query.
  public static func sameOriginTarget(
    _ reference: Span<UInt8>, scheme: String, authority: String, target: String
  ) -> String? {
    let trimmed = ASCII.trimmed(reference)
    for index in trimmed where reference[index] <= 0x20 || reference[index] >= 0x7F { return nil }
    var rest = Array(trimmed.map { reference[$0] }.prefix { $0 != 0x23 })
    if let colon = schemeEnd(rest) {
      let own = Array(scheme.utf8)
      let prefix = Array(rest[..<colon])
      guard ASCII.equalsIgnoringCase(prefix.span, own.span) else { return nil }
      rest = Array(rest[(colon + 1)...])
      guard rest.starts(with: [0x2F, 0x2F]) else { return nil }
    }
    if rest.starts(with: [0x2F, 0x2F]) {
      let end = rest[2...].firstIndex { $0 == 0x2F || $0 == 0x3F } ?? rest.count
      let other = normalAuthority(String(decoding: rest[2..<end], as: UTF8.self), scheme: scheme)
      guard other == normalAuthority(authority, scheme: scheme) else { return nil }
      rest = Array(rest[end...])
      if rest.first != 0x2F { rest.insert(0x2F, at: 0) }
    } else if rest.first != 0x2F {
      rest = resolved(rest, against: Array(target.utf8))
    }
    let pathEnd = rest.firstIndex(of: 0x3F) ?? rest.count
    let path = withoutDotSegments(Array(rest[..<pathEnd]))
    return String(decoding: path + rest[pathEnd...], as: UTF8.self)
  }

  /// The position of the colon after a scheme, where there is one (RFC 3986 §3.1).
  private static func schemeEnd(_ reference: [UInt8]) -> Int? {
    for (index, byte) in reference.enumerated() {
      let lower = ASCII.lowercased(byte)
      if lower >= 0x61 && lower <= 0x7A { continue }
      if index > 0, ASCII.isDigit(byte) || byte == 0x2B || byte == 0x2D || byte == 0x2E { continue }
      return index > 0 && byte == 0x3A ? index : nil
    }
    return nil
  }

  private static func normalAuthority(_ authority: String, scheme: String) -> String {
    let lower = authority.lowercased()
    let port = scheme.lowercased() == "https" ? ":443" : ":80"
    if lower.hasSuffix(port) { return String(lower.dropLast(port.count)) }
    return lower.hasSuffix(":") ? String(lower.dropLast()) : lower
  }

  /// RFC 3986 §5.2.3: a reference without a leading slash, merged with the target's path.
  private static func resolved(_ reference: [UInt8], against target: [UInt8]) -> [UInt8] {
    let path = target.prefix { $0 != 0x3F }
    if reference.isEmpty { return target }
    if reference.first == 0x3F { return path + reference }
    let directoryEnd = path.lastIndex(of: 0x2F).map { $0 + 1 } ?? 0
    let directory = directoryEnd == 0 ? [0x2F] : Array(path[..<directoryEnd])
    return directory + reference
  }

  /// RFC 3986 §5.2.4, of a path that begins with a slash.
  private static func withoutDotSegments(_ path: [UInt8]) -> [UInt8] {
    var kept: [ArraySlice<UInt8>] = []
    let segments = path.split(separator: 0x2F, omittingEmptySubsequences: false).dropFirst()
    for (index, segment) in segments.enumerated() {
      let isLast = index == segments.count - 1
      if segment == [0x2E] {
        if isLast { kept.append([]) }
      } else if segment == [0x2E, 0x2E] {
        if !kept.isEmpty { kept.removeLast() }
        if isLast { kept.append([]) }
      } else {
        kept.append(segment)
      }
    }
    return kept.reduce(into: []) { $0 += [0x2F] + $1 }
  }
}
