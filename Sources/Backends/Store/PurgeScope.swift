/// What a purge covers: as its caller says it, and as stored records are compared with it.
///
/// A scope names paths, tags and patterns; a target holds their hashes under the store's secret
/// (a pattern stays a pattern), so that a table of them is small and looked up by hash. Two tags or
/// paths with one hash are purged together: a copy too many, never one too few. Scopes come from
/// the proxy (`LMDBStore.purge`), targets go to PurgeRules and, as rows, into the file.
public import CachePolicy

/// What a purge covers: entries that are stored or being filled when it comes.
public enum PurgeScope: Sendable, Equatable {
  case everything
  /// Entries that carry this tag.
  case tag([UInt8])
  /// Entries of this upstream, authority, path and query, whatever comes behind them in the whole
  /// key, of all variants. Bytes that are no whole key are a programmer's error.
  case url(wholeKeyPrefix: [UInt8])
  /// Entries of this path (normalised; repeated slashes count as one) with any query on any
  /// upstream, where an authority is given on the hosts that it takes: a port counts only where it
  /// has one.
  case path([UInt8], authority: RoutePattern.HostPattern?)
  /// Entries whose path, and host where the pattern has one, match; its methods do not count.
  case pattern(RoutePattern)
}

/// A purge that holds.
public struct PurgeReceipt: Sendable, Equatable {
  /// Entries with a lower ID are gone where the scope covers them.
  public let floor: UInt64
}

/// A pattern without its methods, as its text says it.
///
/// Its text is what the file keeps and what tells patterns apart, so that the pattern is the one
/// that the text reads as: a `*` that a request's path brought becomes a wildcard, and covers more.
struct PurgePattern: Hashable, Sendable {
  let pattern: RoutePattern
  let text: String

  /// Nil: no pattern covers all that this one does, but everything does.
  init?(_ pattern: RoutePattern) {
    // What does not read again is covered by its first segment's whole tree.
    guard let readable = (try? RoutePattern(parsing: pattern.target)) ?? pattern.widened else {
      return nil
    }
    self.pattern = readable
    text = readable.target
  }

  static func == (left: PurgePattern, right: PurgePattern) -> Bool { left.text == right.text }
  func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

enum PurgeTarget: Hashable, Sendable {
  case tag(UInt64)
  /// The path's hash, and that of the whole key as far as the query.
  case url(UInt64, StoreKey)
  case path(UInt64, RoutePattern.HostPattern?)
  case pattern(PurgePattern)

  /// Nil: everything.
  init?(_ scope: PurgeScope, secret: (UInt64, UInt64)) {
    switch scope {
    case .everything: return nil
    case .tag(let tag):
      self = .tag(tag.withUnsafeBytes { StoreKeyHash.tagHash(secret, $0) })
    case .url(let wholeKey):
      let parts = CacheKey.Parts(wholeKey.span)
      guard let parts else { fatalError("store: a purge of a URL names a whole key") }
      let pathHash = Self.pathHash(Array(wholeKey[parts.path]), secret)
      let url = wholeKey[..<parts.further.lowerBound]
      self = .url(pathHash, url.withUnsafeBytes { StoreKeyHash.hash(secret, $0) })
    case .path(let path, let authority):
      self = .path(Self.pathHash(path, secret), authority)
    case .pattern(let pattern):
      if let path = pattern.literalPath {
        self = .path(Self.pathHash(path, secret), pattern.host)
      } else {
        guard let readable = PurgePattern(pattern) else { return nil }
        self = .pattern(readable)
      }
    }
  }

  private static func pathHash(_ path: [UInt8], _ secret: (UInt64, UInt64)) -> UInt64 {
    path.withUnsafeBytes { StoreKeyHash.pathHash(secret, $0) }
  }

  var isPattern: Bool {
    if case .pattern = self { return true }
    return false
  }

  /// Whether a record is one of those that the target names, whenever it was made.
  func covers(_ subject: PurgeSubject) -> Bool {
    switch self {
    case .tag(let hash): subject.tagHashes.contains(hash)
    case .url(let pathHash, let url):
      pathHash == subject.pathHash && subject.url.map { $0 == url } ?? true
    case .path(let pathHash, let host): pathHash == subject.pathHash && subject.isOn(host)
    case .pattern(let pattern): subject.matches(pattern)
    }
  }
}

/// A record, as purges see it. A whole key that cannot be read is covered by all that may mean it.
struct PurgeSubject {
  let record: RecordView
  /// The upper half of where it lies.
  let pathHash: UInt64
  let secret: (UInt64, UInt64)

  var entryID: UInt64 { record.entryID }

  var tagHashes: some Sequence<UInt64> {
    record.tags.lazy.map { StoreKeyHash.tagHash(secret, $0) }
  }

  /// The hash of the whole key as far as the query.
  var url: StoreKey? {
    parts.map { parts in
      StoreKeyHash.hash(
        secret, UnsafeRawBufferPointer(rebasing: record.wholeKey[..<parts.further.lowerBound]))
    }
  }

  // SAFETY: of both spans: the parts lie within the whole key, and whoever made the subject keeps
  // the record's memory.
  func isOn(_ host: RoutePattern.HostPattern?) -> Bool {
    guard let host, let parts else { return true }
    return host.matches(Span(_unsafeBytes: bytes(parts.authority)))
  }

  func matches(_ pattern: PurgePattern) -> Bool {
    guard let parts else { return true }
    return pattern.pattern.matches(
      host: Span(_unsafeBytes: bytes(parts.authority)), path: Span(_unsafeBytes: bytes(parts.path)))
  }

  private var parts: CacheKey.Parts? { CacheKey.Parts(Span(_unsafeBytes: record.wholeKey)) }

  private func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: record.wholeKey[range])
  }
}

/// A target and its floor as a row of the table `purges`.
extension PurgeTarget {
  private static let tagKind: UInt8 = 1
  private static let urlKind: UInt8 = 2
  private static let pathKind: UInt8 = 3
  private static let patternKind: UInt8 = 4

  func row(floor: UInt64) -> [UInt8] {
    var bytes: [UInt8] = []
    func append(_ word: UInt64) { withUnsafeBytes(of: word.littleEndian) { bytes += $0 } }
    append(floor)
    switch self {
    case .tag(let hash):
      bytes.append(Self.tagKind)
      append(hash)
    case .url(let pathHash, let url):
      bytes.append(Self.urlKind)
      append(pathHash)
      append(url.high)
      append(url.low)
    case .path(let pathHash, let host):
      bytes.append(Self.pathKind)
      append(pathHash)
      bytes += (host?.text ?? "").utf8
    case .pattern(let pattern):
      bytes.append(Self.patternKind)
      bytes += pattern.text.utf8
    }
    return bytes
  }

  /// Where the target's row lies: the same for every floor.
  func rowKey(_ secret: (UInt64, UInt64)) -> EntriesKey {
    let place = row(floor: 0).withUnsafeBytes { StoreKeyHash.hash(secret, $0) }
    return EntriesKey(place, variantHash: 0)
  }

  /// Nil where the bytes are no such row.
  static func read(_ row: UnsafeRawBufferPointer) -> (target: PurgeTarget, floor: UInt64)? {
    guard row.count >= 9 else { return nil }
    // SAFETY: every load ends at or before the row's end, which the cases look at first.
    func word(_ offset: Int) -> UInt64 {
      UInt64(littleEndian: row.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
    func text(_ offset: Int) -> String { String(decoding: row[offset...], as: UTF8.self) }
    let floor = word(0)
    switch row[8] {
    case tagKind where row.count == 17: return (.tag(word(9)), floor)
    case urlKind where row.count == 33:
      return (.url(word(9), StoreKey(high: word(17), low: word(25))), floor)
    case pathKind where row.count == 17: return (.path(word(9), nil), floor)
    case pathKind where row.count > 17:
      // Refused: the row is damaged, and so says nil.
      guard let host = try? RoutePattern.HostPattern(parsing: text(17)) else { return nil }
      return (.path(word(9), host), floor)
    case patternKind:
      // Refused: the row is damaged, and so says nil.
      guard let pattern = try? RoutePattern(parsing: text(9)),
        let readable = PurgePattern(pattern)
      else { return nil }
      return (.pattern(readable), floor)
    default: return nil
    }
  }
}
