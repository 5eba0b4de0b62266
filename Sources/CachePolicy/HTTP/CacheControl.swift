/// What `Cache-Control` says in a response and in a request (RFC 9111 §5.2, RFC 5861, RFC 8246).
///
/// Directives add up over several lines, in any case and order; unknown ones are ignored, and
/// words within quoted strings are no directives. Where a directive comes twice or with a value
/// that makes no sense, the careful reading wins: the shorter lifetime, and a lifetime that cannot
/// be read is 0 (RFC 9111 §4.2.1). Called by Freshness, Storability and the exchange.
public struct ResponseDirectives: Sendable, Equatable {
  public var noStore = false
  /// `no-cache`, also in the form with field names where those are not ones that can be left out.
  public var noCache = false
  /// `private`, also in the form with field names where those are not ones that can be left out.
  public var isPrivate = false
  public var isPublic = false
  public var mustRevalidate = false
  public var proxyRevalidate = false
  public var mustUnderstand = false
  public var noTransform = false
  public var immutable = false
  public var maxAgeSeconds: Int64?
  public var sharedMaxAgeSeconds: Int64?
  public var staleWhileRevalidateSeconds: Int64?
  public var staleIfErrorSeconds: Int64?
  /// Fields that `no-cache="…"` and `private="…"` name, in lower case: they are left out of what
  /// is stored, and the rest may be kept (RFC 9111 §5.2.2.4, §5.2.2.7).
  public var fieldsNotStored: [[UInt8]] = []
  /// The directives came from a targeted field (RFC 9213), beside which Expires does not count.
  public var isTargeted = false

  public init() {}

  /// All lines of Cache-Control.
  public init(_ fields: Fields) {
    guard fields.contains(.cacheControl) else { return }
    let all = fields.bytes.span
    for line in fields.lines where line.known == .cacheControl { add(all.extracting(line.value)) }
  }

  /// Adds what one field line says.
  public mutating func add(_ value: Span<UInt8>) {
    var position = 0
    while let member = ASCII.nextListMember(value, &position) {
      add(Directive(value, member), of: value)
    }
  }

  mutating func add(_ directive: Directive, of value: Span<UInt8>) {
    var directive = directive
    // RFC 9213 §2.1: a string is not the Integer that a structured field needs there.
    if isTargeted, directive.isQuoted { directive.isNoNumber = true }
    let name = value.extracting(directive.name)
    switch name.count {
    case 6:
      if ASCII.equalsIgnoringCase(name, "public") { isPublic = true }
    case 7:
      if ASCII.equalsIgnoringCase(name, "max-age") {
        maxAgeSeconds = directive.lesser(value, than: maxAgeSeconds)
      } else if ASCII.equalsIgnoringCase(name, "private") {
        if !addFieldNames(directive, of: value) { isPrivate = true }
      }
    case 8:
      if ASCII.equalsIgnoringCase(name, "no-store") {
        noStore = true
      } else if ASCII.equalsIgnoringCase(name, "no-cache") {
        if !addFieldNames(directive, of: value) { noCache = true }
      } else if ASCII.equalsIgnoringCase(name, "s-maxage") {
        sharedMaxAgeSeconds = directive.lesser(value, than: sharedMaxAgeSeconds)
      }
    case 9: if ASCII.equalsIgnoringCase(name, "immutable") { immutable = true }
    case 12: if ASCII.equalsIgnoringCase(name, "no-transform") { noTransform = true }
    case 14:
      if ASCII.equalsIgnoringCase(name, "stale-if-error") {
        staleIfErrorSeconds = directive.lesser(value, than: staleIfErrorSeconds)
      }
    default: addLong(name, directive, of: value)
    }
  }

  private mutating func addLong(
    _ name: Span<UInt8>, _ directive: Directive, of value: Span<UInt8>
  ) {
    if ASCII.equalsIgnoringCase(name, "must-revalidate") {
      mustRevalidate = true
    } else if ASCII.equalsIgnoringCase(name, "must-understand") {
      mustUnderstand = true
    } else if ASCII.equalsIgnoringCase(name, "proxy-revalidate") {
      proxyRevalidate = true
    } else if ASCII.equalsIgnoringCase(name, "stale-while-revalidate") {
      staleWhileRevalidateSeconds = directive.lesser(value, than: staleWhileRevalidateSeconds)
    }
  }

  /// Takes the names of `private="a, b"` over; false where the directive stands for the whole
  /// response: without names, with something that is no list of names, or naming a field without
  /// which the copy would mean something else (anything the proxy acts on, but Set-Cookie).
  private mutating func addFieldNames(_ directive: Directive, of value: Span<UInt8>) -> Bool {
    guard directive.isQuoted else { return false }
    let list = value.extracting(directive.argument)
    var names: [[UInt8]] = []
    var position = 0
    while let member = ASCII.nextListMember(list, &position) {
      let name = list.extracting(member)
      guard ASCII.isToken(name) else { return false }
      if let known = KnownField.lookup(name), known != .setCookie { return false }
      names.append(name.indices.map { ASCII.lowercased(name[$0]) })
    }
    guard !names.isEmpty else { return false }
    fieldsNotStored += names
    return true
  }
}

/// What a client asks of a cache (RFC 9111 §5.2.1).
public struct RequestDirectives: Sendable, Equatable {
  public var noCache = false
  public var noStore = false
  public var onlyIfCached = false
  public var noTransform = false
  /// The oldest answer that is wanted.
  public var maxAgeSeconds: Int64?
  /// How stale an answer may be; `ASCII.deltaSecondsMax` for `max-stale` without a value.
  public var maxStaleSeconds: Int64?
  /// How much longer an answer has to stay fresh.
  public var minFreshSeconds: Int64?

  public init() {}

  /// All lines of Cache-Control; `Pragma: no-cache` where there is none (RFC 9111 §5.4).
  public init(_ fields: Fields) {
    let all = fields.bytes.span
    if fields.contains(.cacheControl) {
      for line in fields.lines where line.known == .cacheControl {
        add(all.extracting(line.value))
      }
    } else if fields.contains(.pragma) {
      for line in fields.lines where line.known == .pragma {
        let value = all.extracting(line.value)
        var position = 0
        while let member = ASCII.nextListMember(value, &position) {
          let name = value.extracting(Directive(value, member).name)
          if ASCII.equalsIgnoringCase(name, "no-cache") { noCache = true }
        }
      }
    }
  }

  /// Adds what one field line says.
  public mutating func add(_ value: Span<UInt8>) {
    var position = 0
    while let member = ASCII.nextListMember(value, &position) {
      let directive = Directive(value, member)
      let name = value.extracting(directive.name)
      if ASCII.equalsIgnoringCase(name, "no-cache") {
        noCache = true
      } else if ASCII.equalsIgnoringCase(name, "no-store") {
        noStore = true
      } else if ASCII.equalsIgnoringCase(name, "only-if-cached") {
        onlyIfCached = true
      } else if ASCII.equalsIgnoringCase(name, "no-transform") {
        noTransform = true
      } else if ASCII.equalsIgnoringCase(name, "max-age") {
        maxAgeSeconds = directive.lesser(value, than: maxAgeSeconds)
      } else if ASCII.equalsIgnoringCase(name, "max-stale") {
        addMaxStale(directive, of: value)
      } else if ASCII.equalsIgnoringCase(name, "min-fresh") {
        // What cannot be read is more than any copy has left.
        let seconds = directive.seconds(value) ?? ASCII.deltaSecondsMax
        minFreshSeconds = max(minFreshSeconds ?? 0, seconds)
      }
    }
  }

  private mutating func addMaxStale(_ directive: Directive, of value: Span<UInt8>) {
    if !directive.hasArgument {
      maxStaleSeconds = maxStaleSeconds ?? ASCII.deltaSecondsMax
    } else {
      maxStaleSeconds = directive.lesser(value, than: maxStaleSeconds)
    }
  }

  /// The directives without those that the route does not let a client use (`clientMay`).
  public func keeping(_ words: ClientWords) -> RequestDirectives {
    var kept = self
    if !words.contains(.noCache) { kept.noCache = false }
    if !words.contains(.noStore) { kept.noStore = false }
    if !words.contains(.maxAge) { kept.maxAgeSeconds = nil }
    if !words.contains(.maxStale) { kept.maxStaleSeconds = nil }
    if !words.contains(.minFresh) { kept.minFreshSeconds = nil }
    if !words.contains(.onlyIfCached) { kept.onlyIfCached = false }
    return kept
  }
}

/// The request directives that a route lets count (`clientMay`).
public struct ClientWords: OptionSet, Sendable, Hashable {
  public let rawValue: UInt8
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  public static let noCache = ClientWords(rawValue: 1 << 0)
  public static let noStore = ClientWords(rawValue: 1 << 1)
  public static let maxAge = ClientWords(rawValue: 1 << 2)
  public static let maxStale = ClientWords(rawValue: 1 << 3)
  public static let minFresh = ClientWords(rawValue: 1 << 4)
  public static let onlyIfCached = ClientWords(rawValue: 1 << 5)
  public static let all = ClientWords(rawValue: 0b11_1111)

  /// The words as policies.json spells them, in the order of its reference.
  public static let named: [(name: String, word: ClientWords)] = [
    ("no-cache", .noCache), ("no-store", .noStore), ("max-age", .maxAge),
    ("max-stale", .maxStale), ("min-fresh", .minFresh), ("only-if-cached", .onlyIfCached),
  ]
}

/// One member of a Cache-Control list, as ranges into the line.
struct Directive {
  var name: Range<Int>
  /// What follows `=`, without the quotes.
  var argument: Range<Int>
  var hasArgument = false
  var isQuoted = false
  /// The argument is no number whatever its digits: the `=` had whitespace beside it, which the
  /// grammar does not allow, or the field takes no quoted ones.
  var isNoNumber = false

  init(_ line: Span<UInt8>, _ member: Range<Int>) {
    var equals = member.lowerBound
    while equals < member.upperBound, line[equals] != 0x3D { equals += 1 }
    name = ASCII.trimmed(line, member.lowerBound..<equals)
    argument = equals..<equals
    guard equals < member.upperBound else { return }
    hasArgument = true
    argument = ASCII.trimmed(line, equals + 1..<member.upperBound)
    isNoNumber = name.upperBound != equals || argument.lowerBound != equals + 1
    if argument.count >= 2, line[argument.lowerBound] == 0x22,
      ASCII.quotedStringEnd(line, argument.lowerBound) == argument.upperBound
    {
      isQuoted = true
      argument = argument.lowerBound + 1..<argument.upperBound - 1
    }
  }

  /// The argument as delta-seconds, quoted or not (RFC 9111 §5.2).
  func seconds(_ line: Span<UInt8>) -> Int64? {
    isNoNumber ? nil : ASCII.deltaSeconds(line.extracting(argument))
  }

  /// The smaller of this argument and what was there; an argument that cannot be read is 0.
  func lesser(_ line: Span<UInt8>, than other: Int64?) -> Int64 {
    min(seconds(line) ?? 0, other ?? Int64.max)
  }
}
