internal import Backends
internal import CachePolicy

/// Makes the request that an origin is sent out of the one that a client sent: what ends here is
/// left out, and what only we can know is set.
///
/// "Nothing that goes to the origin may change a shared answer without being in the key": so Host
/// is the upstream's own, forwarding fields are made anew, and fields by which frameworks rewrite
/// a request's address or method are dropped unless the route lets them through.
enum OriginRequestBuilder {
  /// The client's fields that go on, in order and case as they came.
  static func forwardedFields(_ client: Fields, route: RouteContext, forStore: Bool) -> Fields {
    var fields = client
    let bytes = client.bytes.span
    fields.removeLines { index in
      let line = client.lines[index]
      switch line.known {
      case .host, .contentLength, .expect, .forwarded, .xForwardedFor, .xForwardedHost,
        .xForwardedProto, .larderStrategy:
        return true
      case .ifNoneMatch, .ifModifiedSince, .ifRange, .range:
        return forStore || client.isHopByHop(at: index)
      case nil:
        if client.isHopByHop(at: index) { return true }
        // To origins behind CGI or WSGI `X_A` is `X-A`: what selects a shared answer, and what
        // Larder drops, must not come in by another spelling.
        let name = bytes.extracting(line.name)
        let isDropped = rewritesRequest(name) || forStore && hasUnderscore(name)
        return isDropped && !isAllowed(client.name(at: index), route)
      default: return client.isHopByHop(at: index)
      }
    }
    return fields
  }

  private static func hasUnderscore(_ name: Span<UInt8>) -> Bool {
    for index in name.indices where name[index] == UInt8(ascii: "_") { return true }
    return false
  }

  private static func isAllowed(_ name: ArraySlice<UInt8>, _ route: RouteContext) -> Bool {
    !route.forwardHeaders.isEmpty
      && route.forwardHeaders.contains(String(decoding: name, as: UTF8.self).lowercased())
  }

  private static let rewritingPrefixes: [StaticString] = [
    "x-forwarded-", "x-original-", "x-rewrite-", "x-http-method",
  ]

  /// Fields that make an origin see another address, host or method than the one that was keyed.
  private static func rewritesRequest(_ name: Span<UInt8>) -> Bool {
    guard name.count > 2, name[0] | 0x20 == UInt8(ascii: "x") else { return false }
    for prefix in rewritingPrefixes where begins(name, with: prefix) { return true }
    let whole: StaticString = "x-method-override"
    return name.count == whole.utf8CodeUnitCount && begins(name, with: whole)
  }

  /// Origins behind CGI or WSGI cannot tell `_` from `-` in a name, so that neither do we.
  private static func begins(_ name: Span<UInt8>, with prefix: StaticString) -> Bool {
    guard name.count >= prefix.utf8CodeUnitCount else { return false }
    for offset in 0..<prefix.utf8CodeUnitCount {
      let byte = name[offset]
      let read = byte == UInt8(ascii: "_") ? UInt8(ascii: "-") : ASCII.lowercased(byte)
      // SAFETY: the offset is below the text's count.
      if read != prefix.utf8Start[offset] { return false }
    }
    return true
  }

  /// Whether an answer varies by what we tell of the client's address: that is no field of the
  /// client's request, so that no Vary block can hold it.
  static func variesByAddress(_ response: Fields) -> Bool {
    for line in response.lines where line.known == .vary {
      let value = response.bytes.span.extracting(line.value)
      var position = 0
      while let member = ASCII.nextListMember(value, &position) {
        let name = value.extracting(member)
        if ASCII.equalsIgnoringCase(name, "forwarded")
          || ASCII.equalsIgnoringCase(name, "x-forwarded-for")
        {
          return true
        }
      }
    }
    return false
  }

  /// The authority as it is keyed: two spellings that share an answer are not told apart by the
  /// origin.
  private static func keyedAuthority(of client: RequestHead) -> [UInt8] {
    let received = client.authority
    var authority = Array(received.prefix(CacheKey.lengthWithoutPort(received.span, "80")))
    for index in authority.indices { authority[index] = ASCII.lowercased(authority[index]) }
    return authority
  }

  /// The Host that the origin gets.
  static func host(of client: RequestHead, route: RouteContext) -> [UInt8] {
    host(keyedAuthority(of: client), route)
  }

  private static func host(_ authority: [UInt8], _ route: RouteContext) -> [UInt8] {
    authority.isEmpty ? route.upstreamAuthority : route.hostToOrigin ?? authority
  }

  /// Adds every line of the fields, and those that are ours to say.
  static func fill(
    _ request: OriginRequest, _ fields: Fields, of client: RequestHead, route: RouteContext,
    peer: String
  ) {
    let authority = keyedAuthority(of: client)
    host(authority, route).withUnsafeBytes { value in add(request, "Host", value) }
    fields.bytes.withUnsafeBytes { bytes in
      for line in fields.lines {
        request.addField(
          name: UnsafeRawBufferPointer(rebasing: bytes[line.name]),
          value: UnsafeRawBufferPointer(rebasing: bytes[line.value]))
      }
    }
    // The version in which the request was received (RFC 9110 §7.6.3).
    request.addField("Via", client.minorVersion == 0 ? "1.0 larder" : "1.1 larder")
    // Without a client behind it (a refresh in the background) a request is forwarded for nobody.
    guard !peer.isEmpty else { return }
    forwarded(peer, authority).withUnsafeBytes { add(request, "Forwarded", $0) }
    request.addField("X-Forwarded-For", peer)
    request.addField("X-Forwarded-Proto", "http")
    if !authority.isEmpty { authority.withUnsafeBytes { add(request, "X-Forwarded-Host", $0) } }
  }

  /// The value of Forwarded (RFC 7239 §4): an address of IPv6 stands in brackets and quotes.
  private static func forwarded(_ peer: String, _ authority: [UInt8]) -> [UInt8] {
    var value: [UInt8] = []
    value.reserveCapacity(peer.utf8.count + authority.count + 32)
    func append(_ text: StaticString) {
      value.append(
        contentsOf: UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
    var peer = peer
    peer.withUTF8 { node in
      let isBracketed = node.contains(UInt8(ascii: ":"))
      append(isBracketed ? "for=\"[" : "for=")
      value.append(contentsOf: node)
      if isBracketed { append("]\"") }
    }
    if !authority.isEmpty {
      append(";host=\"")
      value.append(contentsOf: authority)
      append("\"")
    }
    append(";proto=http")
    return value
  }

  private static func add(
    _ request: OriginRequest, _ name: StaticString, _ value: UnsafeRawBufferPointer
  ) {
    request.addField(
      name: UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount),
      value: value)
  }
}
