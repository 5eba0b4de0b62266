/// Which copies of one key answer which requests (RFC 9111 §4.1).
///
/// A copy carries a block: the request fields that its Vary names, with the values of the request
/// that brought it. Another request may have the copy where all of them are the same. Values are
/// compared as combined lists without surrounding whitespace; Accept-Encoding is first brought to
/// the set of codings it accepts, Accept and Accept-Language to the sets of their ranges and
/// weights, so that the many spellings of browsers share copies. The request to compare is the one
/// the origin sees: without hop-by-hop fields. A block holds the values as they are given; who keeps
/// it gives keyed hashes for all that may be a secret (`mayBeSecret`).
///
/// An entry of a block: the name's count (2 bytes, little-endian), the name in lower case, a
/// kind, the value's count (4 bytes), the value. Entries rise by name and are unique.
public enum Vary {
  private enum Kind {
    static let absent: UInt8 = 0
    static let text: UInt8 = 1
    /// The value is one byte: a set of content codings.
    static let codings: UInt8 = 2
    /// The value is a set of language ranges as `AcceptedRanges` writes it.
    static let languages: UInt8 = 3
    /// The value is a set of media ranges as `AcceptedRanges` writes it.
    static let media: UInt8 = 4
  }

  /// Whether the response varies by what no request shows (`*`, or a list that cannot be read).
  public static func isAny(_ response: Fields) -> Bool { names(in: response) == nil }

  /// The block for a copy of this response, or nil for `Vary: *`; empty where nothing varies, or
  /// where the route overrules `vary`.
  public static func selectingBlock(
    response: Fields, request: Fields, ignore: Bool
  ) -> [UInt8]? {
    if ignore { return [] }
    guard let names = names(in: response) else { return nil }
    var block: [UInt8] = []
    for name in names {
      block.append(UInt8(truncatingIfNeeded: name.count))
      block.append(UInt8(truncatingIfNeeded: name.count >> 8))
      block += name
      appendValue(of: name, request, to: &block)
    }
    return block
  }

  /// A value with what two responses vary by; nil where the update's own says it all, and where the
  /// update says nothing of it.
  static func union(of stored: Fields, _ update: Fields) -> [UInt8]? {
    guard update.contains(.vary), let old = names(in: stored), let new = names(in: update),
      var value = stored.combined(.vary)
    else { return nil }
    if old.allSatisfy(new.contains) { return nil }
    for name in new where !old.contains(name) { value += [0x2C, 0x20] + name }
    return value
  }

  /// More names than this are taken for `*`: each costs every look-up of the copy.
  static let namesMax = 64

  /// The names that Vary lists, in lower case, sorted, each once; nil for `*`, for a list with
  /// something that is no field name, and for one of more than `namesMax`.
  private static func names(in response: Fields) -> [[UInt8]]? {
    guard response.contains(.vary) else { return [] }
    let all = response.bytes.span
    var result: [[UInt8]] = []
    for line in response.lines where line.known == .vary {
      let value = all.extracting(line.value)
      var position = 0
      while let member = ASCII.nextListMember(value, &position) {
        let name = value.extracting(member)
        guard ASCII.isToken(name), name.count <= Int(UInt16.max) else { return nil }
        if name.count == 1, name[0] == 0x2A { return nil }
        guard result.count < namesMax else { return nil }
        result.append(name.indices.map { ASCII.lowercased(name[$0]) })
      }
    }
    result.sort { $0.lexicographicallyPrecedes($1) }
    var unique: [[UInt8]] = []
    for name in result where unique.last != name { unique.append(name) }
    return unique
  }

  private static func appendValue(of name: [UInt8], _ request: Fields, to block: inout [UInt8]) {
    guard request.firstIndex(named: name.span) != nil else {
      block += [Kind.absent, 0, 0, 0, 0]
      return
    }
    if KnownField.lookup(name.span) == .acceptEncoding, let codings = codings(request) {
      block += [Kind.codings, 1, 0, 0, 0, codings]
      return
    }
    let set: (kind: UInt8, bytes: [UInt8]?) =
      switch KnownField.lookup(name.span) {
      case .acceptLanguage: (Kind.languages, AcceptedRanges.languages.canonical(request))
      case .accept: (Kind.media, AcceptedRanges.media.canonical(request))
      default: (Kind.text, nil)
      }
    if let bytes = set.bytes {
      block.append(set.kind)
      for shift in [0, 8, 16, 24] { block.append(UInt8(truncatingIfNeeded: bytes.count >> shift)) }
      block += bytes
      return
    }
    var value: [UInt8] = []
    var start = 0
    while let index = request.firstIndex(named: name.span, from: start) {
      if start > 0 { value += [0x2C, 0x20] }
      value += request.value(at: index)
      start = index + 1
    }
    block.append(Kind.text)
    for shift in [0, 8, 16, 24] { block.append(UInt8(truncatingIfNeeded: value.count >> shift)) }
    block += value
  }

  /// The names in a block, in its order: what its copy was selected by.
  public static func names(in block: Span<UInt8>) -> [String] {
    var names: [String] = []
    var position = 0
    while position + 2 <= block.count {
      let nameEnd = position + 2 + (Int(block[position]) | Int(block[position + 1]) << 8)
      guard nameEnd + 5 <= block.count else { break }
      var valueCount = 0
      for offset in 0..<4 { valueCount |= Int(block[nameEnd + 1 + offset]) << (8 * offset) }
      guard valueCount <= block.count - nameEnd - 5 else { break }
      names.append(
        String(decoding: (position + 2..<nameEnd).map { block[$0] }, as: UTF8.self))
      position = nameEnd + 5 + valueCount
    }
    return names
  }

  // MARK: Matching

  /// Whether the request would have made the same block. Allocates nothing; a block that is
  /// damaged matches nothing.
  public static func matches(block: Span<UInt8>, request: Fields) -> Bool {
    matches(block: block, request: request, allNames: true)
  }

  /// Whether a copy with this block differs from what the request selects by what was negotiated
  /// alone: the request has the same values of all fields but Accept, Accept-Language and User-Agent.
  ///
  /// Only such a copy may be brought into play by what an origin says of its tag (RFC 9111 §4.3.1).
  /// By other fields somebody may be known (Cookie, Authorization, fields not known here), may be
  /// allowed to read it (Origin), or cannot decode it (Accept-Encoding: compressing servers send one
  /// weak tag with all codings); and origins' tags are careless of that.
  public static func differsInNegotiationAlone(block: Span<UInt8>, request: Fields) -> Bool {
    matches(block: block, request: request, allNames: false)
  }

  private static func isNegotiation(_ field: KnownField?) -> Bool {
    field == .accept || field == .acceptLanguage || field == .userAgent
  }

  private static func matches(
    block: Span<UInt8>, request: Fields, allNames: Bool
  ) -> Bool {
    var position = 0
    while position < block.count {
      guard position + 2 <= block.count else { return false }
      let nameCount = Int(block[position]) | Int(block[position + 1]) << 8
      let nameEnd = position + 2 + nameCount
      guard nameEnd + 5 <= block.count else { return false }
      var valueCount = 0
      for offset in 0..<4 { valueCount |= Int(block[nameEnd + 1 + offset]) << (8 * offset) }
      let valueStart = nameEnd + 5
      guard valueStart + valueCount <= block.count else { return false }
      let name = block.extracting(position + 2..<nameEnd)
      let value = block.extracting(valueStart..<valueStart + valueCount)
      let counts = allNames || !isNegotiation(KnownField.lookup(name))
      if counts, !matches(name, kind: block[nameEnd], value, request) { return false }
      position = valueStart + valueCount
    }
    return true
  }

  private static func matches(
    _ name: Span<UInt8>, kind: UInt8, _ value: Span<UInt8>, _ request: Fields
  ) -> Bool {
    guard let first = request.firstIndex(named: name) else { return kind == Kind.absent }
    switch KnownField.lookup(name) {
    case .acceptEncoding:
      if let codings = codings(request) {
        return kind == Kind.codings && value.count == 1 && value[0] == codings
      }
    case .acceptLanguage:
      if let isSame = AcceptedRanges.languages.equals(value, request) {
        return kind == Kind.languages && isSame
      }
    case .accept:
      if let isSame = AcceptedRanges.media.equals(value, request) {
        return kind == Kind.media && isSame
      }
    default: break
    }
    guard kind == Kind.text else { return false }
    let all = request.bytes.span
    var offset = 0
    var next: Int? = first
    while let index = next {
      if index != first {
        guard offset + 2 <= value.count, value[offset] == 0x2C, value[offset + 1] == 0x20 else {
          return false
        }
        offset += 2
      }
      let own = all.extracting(request.lines[index].value)
      guard offset + own.count <= value.count,
        ASCII.equals(own, value.extracting(offset..<offset + own.count))
      else { return false }
      offset += own.count
      next = request.firstIndex(named: name, from: index + 1)
    }
    return offset == value.count
  }

  /// A number for a block, to find variants by; 0 for the empty block and for no other. Different
  /// blocks may share it: the blocks themselves are compared.
  public static func variantHash(_ block: Span<UInt8>) -> UInt64 {
    if block.isEmpty { return 0 }
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for index in block.indices { hash = (hash ^ UInt64(block[index])) &* 0x0000_0100_0000_01B3 }
    return hash == 0 ? 1 : hash
  }

  // MARK: Secrets

  /// Whether a field's value may be what somebody is known by: credentials, and every field that is
  /// not known here (`X-Api-Key`, `X-Session`).
  public static func mayBeSecret(_ field: KnownField?) -> Bool {
    switch field {
    case nil, .authorization, .proxyAuthorization, .cookie: true
    default: false
    }
  }

  /// Whether a block names such a field. Allocates nothing; a damaged block matches nothing anyway.
  public static func mayHoldSecrets(block: Span<UInt8>) -> Bool {
    var position = 0
    while position + 2 <= block.count {
      let nameCount = Int(block[position]) | Int(block[position + 1]) << 8
      let nameEnd = position + 2 + nameCount
      guard nameEnd + 5 <= block.count else { return true }
      if mayBeSecret(KnownField.lookup(block.extracting(position + 2..<nameEnd))) { return true }
      var valueCount = 0
      for offset in 0..<4 { valueCount |= Int(block[nameEnd + 1 + offset]) << (8 * offset) }
      position = nameEnd + 5 + valueCount
    }
    return false
  }

  // MARK: Accept-Encoding

  /// The content codings a request accepts, as a set; nil where it says something that the set
  /// cannot hold (`*`, a coding not listed here, a weight that cannot be read).
  ///
  /// Two requests with the same set accept the same copies: that is what makes sharing safe, and
  /// weights, which only say what is liked better, may differ. A set of none is a client that
  /// takes the plain form alone.
  private static func codings(_ request: Fields) -> UInt8? {
    let all = request.bytes.span
    var (accepted, refused): (UInt8, UInt8) = (0, 0)
    for line in request.lines where line.known == .acceptEncoding {
      let value = all.extracting(line.value)
      var position = 0
      while let member = ASCII.nextListMember(value, &position) {
        let item = value.extracting(member)
        var end = 0
        while end < item.count, item[end] != 0x3B { end += 1 }
        let name = item.extracting(ASCII.trimmed(item, 0..<end))
        guard let bit = codingBit(name),
          let weight = Weight.thousandths(item.extracting(end..<item.count))
        else { return nil }
        if weight > 0 { accepted |= bit } else { refused |= bit }
      }
    }
    // A client that accepts the plain form by name says no more than one that does not.
    return accepted & ~refused & ~Coding.identity | refused & Coding.identity
  }

  private enum Coding {
    static let gzip: UInt8 = 1
    static let brotli: UInt8 = 2
    static let zstandard: UInt8 = 4
    static let deflate: UInt8 = 8
    /// In a set: the plain form is refused.
    static let identity: UInt8 = 128
  }

  private static func codingBit(_ name: Span<UInt8>) -> UInt8? {
    switch name.count {
    case 2: ASCII.equalsIgnoringCase(name, "br") ? Coding.brotli : nil
    case 4:
      ASCII.equalsIgnoringCase(name, "gzip")
        ? Coding.gzip : ASCII.equalsIgnoringCase(name, "zstd") ? Coding.zstandard : nil
    case 6: ASCII.equalsIgnoringCase(name, "x-gzip") ? Coding.gzip : nil
    case 7: ASCII.equalsIgnoringCase(name, "deflate") ? Coding.deflate : nil
    case 8: ASCII.equalsIgnoringCase(name, "identity") ? Coding.identity : nil
    default: nil
    }
  }
}
