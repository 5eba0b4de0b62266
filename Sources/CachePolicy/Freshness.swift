/// How old a copy is, how long it stays fresh, and where it may still serve after that
/// (RFC 9111 §4.2, RFC 5861, and a route's own numbers).
///
/// Two steps. `originWords` turns what the origin said into numbers, once, when a response comes.
/// `copyState` puts a route's policy, a client's wishes and the time beside those numbers, at each
/// read, without an allocation: a changed policy holds for what is stored already. Neither decides
/// what is done; `StrategyMachine` does. Times are wall clock milliseconds since 1970.
public enum Freshness {
  /// A guessed lifetime is a tenth of the time since Last-Modified (RFC 9111 §4.2.2), and not more
  /// than this.
  public static let heuristicLifetimeMillisecondsMax: Int64 = 86_400_000
  /// The same for an error: a guess must not outlast by much what may be mended any moment.
  public static let heuristicErrorLifetimeMillisecondsMax: Int64 = 60_000

  /// What the origin said of a response, as numbers. The entry's number and the body's length stay
  /// 0, for the store to fill in.
  public static func originWords(
    status: UInt16, _ fields: Fields, _ directives: ResponseDirectives,
    requestTimeMilliseconds: Int64, responseTimeMilliseconds: Int64
  ) -> StoredMetadata {
    let responseSeconds = responseTimeMilliseconds.flooredDivision(by: 1000)
    let dateSeconds = seconds(of: .date, fields, nowSeconds: responseSeconds) ?? responseSeconds
    let lifetime = lifetime(status: status, fields, directives, dateSeconds: dateSeconds)
    var flags = lifetime.flags
    if directives.noCache { flags.insert(.noCache) }
    if directives.mustRevalidate { flags.insert(.mustRevalidate) }
    if directives.proxyRevalidate { flags.insert(.proxyRevalidate) }
    if directives.sharedMaxAgeSeconds != nil { flags.insert(.sharedMaxAge) }
    if directives.immutable { flags.insert(.immutable) }
    let hasETag = !(fields.first(.eTag) ?? []).isEmpty
    if hasETag || seconds(of: .lastModified, fields, nowSeconds: responseSeconds) != nil {
      flags.insert(.hasValidator)
    }
    // RFC 9111 §4.2.3. Date has whole seconds, so the apparent age is taken in whole seconds too:
    // else a response would be up to a second old the moment it is made.
    let apparentAge = max(0, responseSeconds - dateSeconds) * 1000
    let responseDelay = max(0, responseTimeMilliseconds - requestTimeMilliseconds)
    let correctedAge = ageSeconds(fields) * 1000 + responseDelay
    return StoredMetadata(
      entryID: 0, status: status, flags: flags,
      requestTimeMilliseconds: requestTimeMilliseconds,
      responseTimeMilliseconds: responseTimeMilliseconds,
      initialAgeMilliseconds: max(apparentAge, correctedAge),
      originLifetimeMilliseconds: lifetime.milliseconds,
      originStaleWhileRevalidateMilliseconds: milliseconds(directives.staleWhileRevalidateSeconds),
      originStaleIfErrorMilliseconds: milliseconds(directives.staleIfErrorSeconds),
      bodyLength: 0, dateMilliseconds: dateSeconds * 1000)
  }

  /// RFC 9111 §4.2.1: s-maxage, max-age, Expires, then a guess; -1 where there is nothing.
  private static func lifetime(
    status: UInt16, _ fields: Fields, _ directives: ResponseDirectives, dateSeconds: Int64
  ) -> (milliseconds: Int64, flags: StoredFlags) {
    if let seconds = directives.sharedMaxAgeSeconds ?? directives.maxAgeSeconds {
      return (seconds * 1000, .explicitLifetime)
    }
    if fields.contains(.expires), !directives.isTargeted {
      return (expiresLifetime(fields, dateSeconds: dateSeconds), .explicitLifetime)
    }
    guard directives.isPublic || StatusRules.isHeuristicallyCacheable(status),
      let modified = seconds(of: .lastModified, fields, nowSeconds: dateSeconds),
      modified <= dateSeconds
    else { return (-1, []) }
    let guess = (dateSeconds - modified) * 100
    let most =
      status >= 400 ? heuristicErrorLifetimeMillisecondsMax : heuristicLifetimeMillisecondsMax
    return (min(guess, most), .heuristic)
  }

  /// Expires less Date; an Expires that is no date, `0` above all, has passed (RFC 9111 §5.3), and
  /// so have several of them (§4.2.1).
  private static func expiresLifetime(_ fields: Fields, dateSeconds: Int64) -> Int64 {
    guard let expires = seconds(of: .expires, fields, nowSeconds: dateSeconds) else { return 0 }
    return max(0, expires - dateSeconds) * 1000
  }

  /// The first member of Age; one that makes no sense is ignored (RFC 9111 §5.1).
  private static func ageSeconds(_ fields: Fields) -> Int64 {
    guard let index = fields.firstIndex(of: .age) else { return 0 }
    let value = fields.bytes.span.extracting(fields.lines[index].value)
    var position = 0
    guard let member = ASCII.nextListMember(value, &position) else { return 0 }
    return ASCII.deltaSeconds(value.extracting(member)) ?? 0
  }

  /// The date in a field of one line; several lines are no date (RFC 9110 §5.3).
  private static func seconds(
    of field: KnownField, _ fields: Fields, nowSeconds: Int64
  ) -> Int64? {
    guard let index = fields.firstIndex(of: field),
      fields.firstIndex(of: field, from: index + 1) == nil
    else { return nil }
    let value = fields.bytes.span.extracting(fields.lines[index].value)
    return HTTPDate.parse(value, nowSeconds: nowSeconds)
  }

  private static func milliseconds(_ seconds: Int64?) -> Int64 { seconds.map { $0 * 1000 } ?? -1 }
}

/// What RFC 9110 §15 says of statuses, so far as it bears on storing.
enum StatusRules {
  /// RFC 9110 §15.1.
  static func isHeuristicallyCacheable(_ status: UInt16) -> Bool {
    switch status {
    case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
    default: false
    }
  }

  /// Final statuses whose meaning for a cache is known here (RFC 9111 §3, must-understand).
  static func isUnderstood(_ status: UInt16) -> Bool {
    switch status {
    case 200...204, 300...303, 307, 308, 400...406, 408...411, 413...415, 421, 422, 429, 451,
      500...505:
      true
    default: false
    }
  }
}
