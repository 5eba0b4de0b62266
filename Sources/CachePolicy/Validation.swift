/// Conditional requests (RFC 9111 §4.3, RFC 9110 §13): a client's conditions against a copy, and
/// what an origin's answer changes of a copy's head. What we ask an origin is `ValidationQuestion`.
///
/// If-Match and If-Unmodified-Since are never evaluated here: they are for the origin
/// (RFC 9111 §4.3.2). Called by the exchange and by `StrategyMachine`'s executor.
public enum Validation {
  /// Whether a client's own conditions are met by this copy, so that it is answered by a 304.
  ///
  /// `eTag`, `lastModified` and `date` are the copy's fields, empty where it has none. Only a
  /// successful answer to GET or HEAD comes into question (RFC 9110 §13.2.1). Allocates nothing.
  public static func notModified(
    request: Fields, status: UInt16, eTag: Span<UInt8>, lastModified: Span<UInt8>,
    date: Span<UInt8>, nowSeconds: @autoclosure () -> Int64
  ) -> Bool {
    guard (200..<300).contains(status) else { return false }
    let all = request.bytes.span
    if request.contains(.ifNoneMatch) {
      for line in request.lines where line.known == .ifNoneMatch {
        let value = all.extracting(line.value)
        if value.count == 1, value[0] == 0x2A { return true }
        if EntityTag.list(value, hasWeakly: eTag) { return true }
      }
      // If-Modified-Since does not count beside it, met or not (RFC 9110 §13.1.3).
      return false
    }
    // Several lines are no date, and the condition is then ignored (RFC 9110 §13.1.3).
    guard let index = request.firstIndex(of: .ifModifiedSince),
      request.firstIndex(of: .ifModifiedSince, from: index + 1) == nil
    else { return false }
    let since = all.extracting(request.lines[index].value)
    // RFC 9111 §4.3.2: without Last-Modified, the Date of the copy stands for it.
    let changed = lastModified.isEmpty ? date : lastModified
    let now = nowSeconds()
    guard let sinceSeconds = HTTPDate.parse(since, nowSeconds: now),
      let changedSeconds = HTTPDate.parse(changed, nowSeconds: now)
    else { return false }
    return changedSeconds <= sinceSeconds
  }

  /// The same, of a copy whose head has been read.
  public static func notModified(
    request: Fields, status: UInt16, stored: Fields, nowSeconds: Int64
  ) -> Bool {
    let all = stored.bytes.span
    return notModified(
      request: request, status: status,
      eTag: all.extracting(stored.firstValueRange(of: .eTag)),
      lastModified: all.extracting(stored.firstValueRange(of: .lastModified)),
      date: all.extracting(stored.firstValueRange(of: .date)), nowSeconds: nowSeconds)
  }

  /// Whether a Range is to be honoured: no If-Range, or one that this copy meets by the strong
  /// comparison (RFC 9110 §13.1.5). A date meets it only to the second, and only where the copy's
  /// Date is later than its Last-Modified: else it may have changed within that second (§8.8.2.2).
  public static func ifRangeHolds(request: Fields, stored: Fields, nowSeconds: Int64) -> Bool {
    guard request.contains(.ifRange) else { return true }
    // Several lines are neither a tag nor a date.
    guard let line = request.soleValueRange(of: .ifRange) else { return false }
    let wanted = request.bytes.span.extracting(line)
    let all = stored.bytes.span
    if EntityTag(wanted) != nil {
      return EntityTag.equalStrongly(wanted, all.extracting(stored.firstValueRange(of: .eTag)))
    }
    let modified = all.extracting(stored.firstValueRange(of: .lastModified))
    let date = all.extracting(stored.firstValueRange(of: .date))
    guard let wantedSeconds = HTTPDate.parse(wanted, nowSeconds: nowSeconds),
      let modifiedSeconds = HTTPDate.parse(modified, nowSeconds: nowSeconds),
      let dateSeconds = HTTPDate.parse(date, nowSeconds: nowSeconds)
    else { return false }
    return modifiedSeconds == wantedSeconds && dateSeconds > modifiedSeconds
  }

  /// Whether the request has conditions that only the origin may judge.
  @inlinable
  public static func hasOriginConditions(_ request: Fields) -> Bool {
    request.contains(.ifMatch) || request.contains(.ifUnmodifiedSince)
  }

  // MARK: A 304 to a client

  /// The fields of a copy that a 304 to a client carries (RFC 9110 §15.4.5).
  ///
  /// Last-Modified only where there is no ETag; no Set-Cookie, which is not a cache's to hand out;
  /// Cache-Status, so that the caches before this one stay in the list (RFC 9211 §2); the rest of
  /// the head is in the client's hands already.
  public static func notModifiedFields(of stored: Fields) -> Fields {
    var result = Fields()
    for line in stored.lines {
      switch line.known {
      case .cacheControl, .cacheStatus, .contentLocation, .date, .eTag, .expires, .vary:
        result.append(line: line, of: stored)
      case .lastModified where !stored.contains(.eTag): result.append(line: line, of: stored)
      default: continue
      }
    }
    return result
  }

  // MARK: Our own conditions

  /// Takes the client's If-None-Match and If-Modified-Since off a request whose answer is to fill
  /// the store: the origin's 304 would be for the client's copy, and there would be nothing to
  /// store.
  public static func removeClientConditions(_ request: inout Fields) {
    request.remove(.ifNoneMatch)
    request.remove(.ifModifiedSince)
  }

  // MARK: Bringing a copy up to date

  /// The head of a copy after a 304, or after a 200 to HEAD (RFC 9111 §3.2): each field of the
  /// answer takes the place of all lines of its name.
  ///
  /// Not taken over: what is for one connection; what describes how the stored bytes are framed and
  /// coded (Content-Length, Content-Encoding, Content-Range); an ETag that is spelt otherwise than
  /// the stored one, which is the name of the stored bytes (compressing servers send `"a"` of what
  /// they sent as `W/"a"`); Age, which is kept as a number; and Set-Cookie, unless the route keeps
  /// it (`keepsSetCookie`): it must not come in by this door either. Nor must a field that the merged
  /// `private="…"` or `no-cache="…"` names; `targeted` are the fields that may say so in place of
  /// Cache-Control. Content-Type is taken over: it says what the bytes mean, not what they are. Vary
  /// only grows: servers forget in a 304 what an inner layer varies by, and whom the bytes are for does
  /// not change by that.
  public static func merge(
    stored: Fields, answer: Fields, targeted: [String] = [], keepsSetCookie: Bool = false
  ) -> Fields {
    var update = answer
    update.removeHopByHop()
    for field in [KnownField.contentLength, .contentEncoding, .contentRange, .age] {
      update.remove(field)
    }
    if !keepsSetCookie { update.remove(.setCookie) }
    if stored.contains(.eTag) { update.remove(.eTag) }
    var result = stored
    let vary = Vary.union(of: stored, update)
    if vary != nil {
      update.remove(.vary)
      result.remove(.vary)
    }
    let names = update.bytes.span
    for line in update.lines { result.remove(named: names.extracting(line.name)) }
    for line in update.lines { result.append(line: line, of: update) }
    if let vary { result.appendKnown(.vary, value: vary.span) }
    let directives = ResponseDirectives(result, targeted: targeted)
    for name in directives.fieldsNotStored { result.remove(named: name.span) }
    return result
  }
}

extension Fields {
  /// Adds a line of a known field with the name as the RFCs spell it.
  public mutating func appendKnown(_ field: KnownField, value: Span<UInt8>) {
    let name = Array(field.name.utf8)
    append(name: name.span, value: value)
  }
}
