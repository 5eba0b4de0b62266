/// A route's `stripPrefix` or `addPrefix`: whole segments at the start of the path that goes to the
/// origin.
///
/// It is compared as routes are: in the normal form of `PathNormalization`, segment by segment, and
/// repeated slashes count as one; so a request that `//api/users` brought to the route for
/// `/api/**` is stripped like one for `/api/users`. What stands behind the prefix stays byte for
/// byte, its slashes too. A path that does not begin with the prefix goes on as it is. The key
/// holds the path as it was asked for, so that stripping never makes two keys one. Made by the
/// reading of policies.json, called by whoever writes the origin's request.
public struct PathPrefix: Sendable, Equatable {
  /// In normal form: a slash before each segment, none at the end.
  public let text: String
  private let bytes: [UInt8]

  public init(parsing source: String) throws(PathPrefixError) {
    let given = Array(source.utf8)
    guard given.first == UInt8(ascii: "/") else { throw .notAbsolute }
    guard given.count > 1 else { throw .empty }
    if given.last == UInt8(ascii: "/") { throw .trailingSlash }
    if given.contains(UInt8(ascii: "?")) || given.contains(UInt8(ascii: "#")) {
      throw .queryOrFragment
    }
    var normal: [UInt8] = []
    for segment in given.dropFirst().split(
      separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    {
      if segment.isEmpty { throw .emptySegment }
      normal += try Self.normalized(segment)
    }
    bytes = normal
    text = String(decoding: normal, as: UTF8.self)
  }

  /// One segment in normal form, with a slash before it.
  private static func normalized(
    _ segment: ArraySlice<UInt8>
  ) throws(PathPrefixError) -> [UInt8] {
    let path = [UInt8(ascii: "/")] + segment
    var normal: [UInt8] = []
    switch PathNormalization.normalize(path.span, into: &normal) {
    case .unchanged: return path
    case .rewritten:
      // A dot segment leaves nothing.
      if normal.count < 2 { throw .dotSegment(String(decoding: segment, as: UTF8.self)) }
      return normal
    case .refused(.separatorBesideDotSegment):
      throw .dotSegment(String(decoding: segment, as: UTF8.self))
    case .refused(.malformedPercent):
      throw .malformedPercent(String(decoding: segment, as: UTF8.self))
    case .refused: throw .forbiddenByte
    }
  }

  /// Where a path goes on behind the prefix; nil where it does not begin with it. At the path's end
  /// or at a slash.
  private func end(in path: Span<UInt8>) -> Int? {
    let own = bytes.span
    var (cursor, ownCursor) = (PathSegments.start, PathSegments.start)
    while let segment = PathSegments.next(own, from: &ownCursor) {
      guard let other = PathSegments.next(path, from: &cursor),
        ASCII.equals(own.extracting(segment), path.extracting(other))
      else { return nil }
    }
    return cursor
  }

  /// Appends the path (in normal form, without a query) as it goes to the origin: without the one
  /// prefix, and then with the other. What is left always begins with a slash.
  public static func appendOriginPath(
    _ path: Span<UInt8>, stripping: PathPrefix?, adding: PathPrefix?, to output: inout [UInt8]
  ) {
    if let adding { output += adding.bytes }
    let start = stripping?.end(in: path) ?? 0
    if start == path.count { output.append(UInt8(ascii: "/")) }
    for index in start..<path.count { output.append(path[index]) }
  }
}

/// Why a prefix is refused; `message` is what policies.json's reader prints.
public enum PathPrefixError: Error, Sendable, Equatable {
  case notAbsolute
  case empty
  case trailingSlash
  case emptySegment
  case queryOrFragment
  case forbiddenByte
  case malformedPercent(String)
  case dotSegment(String)

  public var message: String {
    switch self {
    case .notAbsolute: "a prefix starts with \"/\""
    case .empty: "\"/\" is no prefix: there is nothing to strip or add"
    case .trailingSlash: "a prefix ends without \"/\": the path behind it brings its own"
    case .emptySegment: "a prefix has no empty segment: repeated slashes count as one"
    case .queryOrFragment: "a query or fragment is no part of a prefix"
    case .forbiddenByte:
      "a space, a control or a character beyond ASCII must be percent-encoded in a path"
    case .malformedPercent(let text): "\"%\" needs two hex digits behind it, in \"\(text)\""
    case .dotSegment(let text):
      "\"\(text)\" is no segment: dot segments are removed from a request's path"
    }
  }
}
