/// Whether one pattern takes a host and a path, by the rules of `RouteTable` and without a table.
///
/// For purges, which compare many stored keys with one pattern; methods play no part in it, since a
/// copy is a copy for all of them. A request's route is found by `RouteTable`, which shares what a
/// host's port and a `*` mean with this.
extension RoutePattern {
  /// Whether the pattern's host and path match, whatever the method. The host may be empty and in
  /// any case of letters, the path is normalised and has no query.
  public func matches(host: Span<UInt8>, path: Span<UInt8>) -> Bool {
    if let pattern = self.host, !pattern.matches(host) { return false }
    return matches(path: path)
  }

  /// Whether the pattern's path matches.
  func matches(path: Span<UInt8>) -> Bool {
    guard path.count > 0, path[0] == UInt8(ascii: "/") else { return false }
    var cursor = PathSegments.start
    for segment in segments {
      guard let range = PathSegments.next(path, from: &cursor) else { return false }
      let bytes = path.extracting(range)
      switch segment {
      case .literal(let literal):
        guard ASCII.equals(literal.span, bytes) else { return false }
      case .any:
        if bytes.isEmpty { return false }
      case .glob(let glob):
        guard !bytes.isEmpty, Glob.matches(glob.span, bytes) else { return false }
      }
    }
    return takesRest || PathSegments.next(path, from: &cursor) == nil
  }

  /// The one path that the pattern takes; nil: it has wildcards.
  public var literalPath: [UInt8]? {
    if takesRest { return nil }
    var path: [UInt8] = []
    for segment in segments {
      guard case .literal(let bytes) = segment else { return nil }
      path.append(UInt8(ascii: "/"))
      path += bytes
    }
    return path
  }

  /// The pattern's text without its methods.
  public var target: String {
    source.firstIndex(of: " ").map { String(source[source.index(after: $0)...]) } ?? source
  }

  /// A pattern that takes everything that this one takes and whatever else begins with the same
  /// segment, on any host; nil where the first segment is no literal.
  public var widened: RoutePattern? {
    guard case .literal(let first)? = segments.first, !first.isEmpty else { return nil }
    // A literal in its normal form is one again when it is read; if not, there is no wider one.
    return try? RoutePattern(parsing: "/" + String(decoding: first, as: UTF8.self) + "/**")
  }
}

extension RoutePattern.HostPattern {
  /// Whether a host in any case of letters, with or without a port, is one of the pattern's. A port
  /// counts only where the pattern has one, and port 80 need not be written.
  public func matches(_ host: Span<UInt8>) -> Bool {
    let (nameEnd, hostPort) = Self.splitPort(host)
    if let port, port != hostPort ?? 80 { return false }
    let count = name.utf8.count
    guard isWildcard ? nameEnd > count : nameEnd == count else { return false }
    var index = nameEnd - count
    if isWildcard, host[index - 1] != UInt8(ascii: ".") { return false }
    for byte in name.utf8 {
      if RoutePattern.asciiLowercased(host[index]) != byte { return false }
      index += 1
    }
    return true
  }

  /// The pattern as it is written.
  public var text: String {
    (isWildcard ? "*." : "") + name + (port.map { ":\($0)" } ?? "")
  }

  /// Where the host's name ends, and the port behind it. A port that is no number matches no
  /// pattern that has one.
  static func splitPort(_ host: Span<UInt8>) -> (nameEnd: Int, port: UInt16?) {
    var nameEnd = host.count
    var port: UInt16?
    var index = host.count
    var value = 0
    var scale = 1
    while index > 0, index > host.count - 6 {
      index -= 1
      let byte = host[index]
      if byte == UInt8(ascii: ":") {
        nameEnd = index
        // An empty port is the default one (RFC 3986 §3.2.3).
        if index + 1 < host.count { port = UInt16(exactly: value) ?? 0 }
        break
      }
      guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { break }
      value += Int(byte - UInt8(ascii: "0")) * scale
      scale *= 10
    }
    if nameEnd > 1, host[nameEnd - 1] == UInt8(ascii: ".") { nameEnd -= 1 }
    return (nameEnd, port)
  }
}
