/// What a route's `match` says, parsed: methods, host and path.
///
/// `[METHODS ]//host[:port]/path` or `[METHODS ]/path`. In the path `*` stands within one segment,
/// `{name}` for one whole segment (neither for an empty one) and a final `**` for the rest, the
/// empty rest included. Literal parts are brought into the same normal form as a request's path, so
/// that `/caf%c3%a9` in the file matches what `PathNormalization` makes of it. Refuses what could
/// never match (dot segments, empty segments, methods that no route ever sees). Made by the reading
/// of policies.json; looked up through `RouteTable`.
public struct RoutePattern: Sendable, Equatable {
  /// The text in policies.json.
  public let source: String
  /// In upper case, HEAD beside GET; empty: all methods.
  public let methods: [String]
  public let host: HostPattern?
  let segments: [SegmentPattern]
  /// Whether `**` stands at the end.
  let takesRest: Bool

  /// A host in lower case, with or without a port.
  public struct HostPattern: Sendable, Equatable, Hashable {
    /// Without `*.` and without a port; an IPv6 literal keeps its brackets.
    public let name: String
    /// Whether `*.` goes before the name: one or more labels.
    public let isWildcard: Bool
    /// nil: any port.
    public let port: UInt16?
  }

  enum SegmentPattern: Sendable, Equatable, Hashable {
    /// Empty only as the last one: a path that ends with a slash.
    case literal([UInt8])
    /// A lone `*` or `{name}`: any segment but an empty one.
    case any(name: String?)
    /// Bytes with `*` among them.
    case glob([UInt8])
  }

  /// Methods that the server answers before it looks for a route.
  static let unroutedMethods = ["CONNECT", "TRACE", "PURGE", "BAN"]

  public init(parsing source: String) throws(RoutePatternError) {
    self.source = source
    let bytes = Array(source.utf8)
    var start = 0
    if let space = bytes.firstIndex(of: UInt8(ascii: " ")) {
      methods = try Self.parseMethods(bytes[..<space])
      start = space + 1
    } else {
      methods = []
    }
    var target = bytes[start...]
    if target.starts(with: "//".utf8) {
      let authorityStart = target.startIndex + 2
      guard let slash = target[authorityStart...].firstIndex(of: UInt8(ascii: "/")) else {
        throw .hostWithoutPath(String(decoding: target, as: UTF8.self))
      }
      host = try Self.parseHost(target[authorityStart..<slash])
      target = target[slash...]
    } else {
      host = nil
    }
    guard target.first == UInt8(ascii: "/") else { throw .notAbsolute }
    (segments, takesRest) = try Self.parsePath(target)
  }

  /// The values that a path gives the pattern's names, in the pattern's order, percent-encoded as
  /// they are. The path is a normalised one for which `RouteTable` found this pattern; allocates.
  public func captures(path: Span<UInt8>) -> [(name: String, value: String)] {
    var found: [(name: String, value: String)] = []
    var cursor = PathSegments.start
    for segment in segments {
      guard let range = PathSegments.next(path, from: &cursor) else { return [] }
      guard case .any(let name) = segment, let name else { continue }
      var value: [UInt8] = []
      for index in range { value.append(path[index]) }
      found.append((name, String(decoding: value, as: UTF8.self)))
    }
    return found
  }
}

extension RoutePattern.HostPattern {
  /// A host as a pattern has it: a name, `*.` and a name, or an address, each with or without a
  /// port.
  public init(parsing text: String) throws(RoutePatternError) {
    self = try RoutePattern.parseHost(Array(text.utf8)[...])
  }
}

/// Why a pattern is refused; `message` is what policies.json's reader prints.
public enum RoutePatternError: Error, Sendable, Equatable {
  case notAbsolute
  case hostWithoutPath(String)
  case badHost(String)
  case badMethod(String)
  case lowercaseMethod(String)
  case unroutedMethod(String)
  case queryOrFragment
  case forbiddenByte
  case malformedPercent(String)
  case dotSegment(String)
  case emptySegment
  case restNotLast
  case badName(String)
  case repeatedName(String)

  public var message: String {
    switch self {
    case .notAbsolute: "a path starts with \"/\" (methods stand before it, then one space)"
    case .hostWithoutPath(let text):
      "\"//\" opens a host, and a path must follow it, as in \"\(text)/**\""
    case .badHost(let text): "\"\(text)\" is no host: a name, \"*.\" and a name, or an address"
    case .badMethod(let text) where text.contains(","):
      "methods are parted by \"|\", as in \"\(text.split(separator: ",").joined(separator: "|"))\""
    case .badMethod(let text): "\"\(text)\" is no method"
    case .lowercaseMethod(let text):
      "methods are upper case, did you mean \"\(text.uppercased())\"?"
    case .unroutedMethod(let text): "\(text) is refused before any route is looked for"
    case .queryOrFragment: "a query or fragment is no part of a match"
    case .forbiddenByte:
      "a space, a control or a character beyond ASCII must be percent-encoded in a path"
    case .malformedPercent(let text): "\"%\" needs two hex digits behind it, in \"\(text)\""
    case .dotSegment(let text):
      "\"\(text)\" never matches: dot segments are removed from a request's path"
    case .emptySegment: "an empty segment never matches: repeated slashes count as one"
    case .restNotLast: "\"**\" is a whole segment, the last one"
    case .badName(let text): "\"\(text)\" is no \"{name}\": letters, digits and \"_\", alone"
    case .repeatedName(let text): "the name \"{\(text)}\" stands twice"
    }
  }
}

extension RoutePattern {
  private static func parseMethods(
    _ bytes: ArraySlice<UInt8>
  ) throws(RoutePatternError) -> [String] {
    var methods: [String] = []
    for part in bytes.split(separator: UInt8(ascii: "|"), omittingEmptySubsequences: false) {
      let text = String(decoding: part, as: UTF8.self)
      guard !part.isEmpty, part.allSatisfy(isTokenByte) else { throw .badMethod(text) }
      guard !part.contains(where: isLowercase) else { throw .lowercaseMethod(text) }
      guard !unroutedMethods.contains(text) else { throw .unroutedMethod(text) }
      if !methods.contains(text) { methods.append(text) }
    }
    // GET takes HEAD too: HEAD is GET without its body (RFC 9110 §9.3.2).
    if methods.contains("GET"), !methods.contains("HEAD") { methods.append("HEAD") }
    return methods
  }

  fileprivate static func parseHost(
    _ bytes: ArraySlice<UInt8>
  ) throws(RoutePatternError) -> HostPattern {
    let text = String(decoding: bytes, as: UTF8.self)
    let isWildcard = bytes.starts(with: "*.".utf8)
    var name = isWildcard ? bytes.dropFirst(2) : bytes
    var port: UInt16?
    let nameEnd = name.lastIndex(of: UInt8(ascii: "]")) ?? name.startIndex
    if let colon = name[nameEnd...].firstIndex(of: UInt8(ascii: ":")) {
      let digits = String(decoding: name[(colon + 1)...], as: UTF8.self)
      guard let number = UInt16(digits), number > 0 else { throw .badHost(text) }
      port = number
      name = name[..<colon]
    }
    let isLiteral = name.first == UInt8(ascii: "[") && name.last == UInt8(ascii: "]")
    let inner = isLiteral ? name.dropFirst().dropLast() : name
    guard !inner.isEmpty, !(isLiteral && isWildcard),
      inner.allSatisfy({ isLiteral ? isAddressByte($0) : isHostByte($0) }),
      inner.first != UInt8(ascii: "."), inner.last != UInt8(ascii: ".")
    else { throw .badHost(text) }
    let lowered = String(decoding: name.map(asciiLowercased), as: UTF8.self)
    return HostPattern(name: lowered, isWildcard: isWildcard, port: port)
  }

  private static func parsePath(
    _ bytes: ArraySlice<UInt8>
  ) throws(RoutePatternError) -> (segments: [SegmentPattern], takesRest: Bool) {
    let parts = bytes.dropFirst().split(
      separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    var segments: [SegmentPattern] = []
    var names: Set<String> = []
    for (index, part) in parts.enumerated() {
      let isLast = index == parts.count - 1
      if part.isEmpty {
        guard isLast else { throw .emptySegment }
        segments.append(.literal([]))
      } else if part.elementsEqual("**".utf8) {
        guard isLast else { throw .restNotLast }
        return (segments, true)
      } else {
        let segment = try parseSegment(part)
        if case .any(let name) = segment, let name, !names.insert(name).inserted {
          throw .repeatedName(name)
        }
        segments.append(segment)
      }
    }
    return (segments, false)
  }

  private static func parseSegment(
    _ part: ArraySlice<UInt8>
  ) throws(RoutePatternError) -> SegmentPattern {
    let text = String(decoding: part, as: UTF8.self)
    if part.contains(UInt8(ascii: "{")) || part.contains(UInt8(ascii: "}")) {
      let name = part.dropFirst().dropLast()
      guard part.first == UInt8(ascii: "{"), part.last == UInt8(ascii: "}"), !name.isEmpty,
        name.allSatisfy(isNameByte)
      else { throw .badName(text) }
      return .any(name: String(decoding: name, as: UTF8.self))
    }
    var normalized: [UInt8] = []
    // A slash before it makes a path of the segment, and is taken off again.
    let path = [UInt8(ascii: "/")] + part
    switch PathNormalization.normalize(path.span, into: &normalized) {
    case .unchanged: normalized = path
    case .rewritten: break
    case .refused(.malformedPercent): throw .malformedPercent(text)
    case .refused(.separatorBesideDotSegment): throw .dotSegment(text)
    case .refused:
      let isQuery = part.contains(UInt8(ascii: "?")) || part.contains(UInt8(ascii: "#"))
      throw isQuery ? .queryOrFragment : .forbiddenByte
    }
    let bytes = Array(normalized.dropFirst())
    guard !bytes.isEmpty else { throw .dotSegment(text) }
    guard bytes.contains(UInt8(ascii: "*")) else { return .literal(bytes) }
    if bytes == [UInt8(ascii: "*")] { return .any(name: nil) }
    for index in 1..<bytes.count
    where bytes[index] == UInt8(ascii: "*") && bytes[index - 1] == UInt8(ascii: "*") {
      throw .restNotLast
    }
    return .glob(bytes)
  }

  /// tchar of RFC 9110 §5.6.2.
  private static func isTokenByte(_ byte: UInt8) -> Bool {
    isNameByte(byte) || "!#$%&'*+-.^`~".utf8.contains(byte)
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  private static func isHostByte(_ byte: UInt8) -> Bool {
    isNameByte(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
  }

  private static func isAddressByte(_ byte: UInt8) -> Bool {
    isNameByte(byte) || byte == UInt8(ascii: ":") || byte == UInt8(ascii: ".")
  }

  private static func isLowercase(_ byte: UInt8) -> Bool {
    byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z")
  }

  static func asciiLowercased(_ byte: UInt8) -> UInt8 {
    byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
  }
}

/// A path's segments as matching sees them: repeated slashes count as one, and a slash at the end
/// makes a last, empty segment.
enum PathSegments {
  /// Where the walk begins; it goes to `end(of:)` behind the last segment.
  static let start = 0

  /// The next segment's bytes; nil behind the last one. A path that does not start with a slash has
  /// none.
  @inline(__always)
  static func next(_ path: Span<UInt8>, from cursor: inout Int) -> Range<Int>? {
    guard cursor < path.count, path[cursor] == UInt8(ascii: "/") else { return nil }
    var start = cursor + 1
    while start < path.count, path[start] == UInt8(ascii: "/") { start += 1 }
    var end = start
    while end < path.count, path[end] != UInt8(ascii: "/") { end += 1 }
    cursor = end
    return start..<end
  }
}
