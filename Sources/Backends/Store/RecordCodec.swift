/// A record's bytes: a stored response's metadata, key, head and validators, and its body where
/// that is short.
///
/// `RecordBuffer` writes one and owns its memory; `RecordView` reads one in place, from such a
/// buffer or from the map. Fixed little-endian fields, then the whole key, the Vary block, the
/// head, the entity tag, Last-Modified, the tags and the inline body, without padding: records in
/// the map are aligned to two bytes only, so every load is unaligned. A view of bytes that do not
/// add up is refused; whether they are undamaged says the checksum.
public import CachePolicy

/// Where the fixed fields lie. The checksum comes first and covers all that follows it.
enum RecordLayout {
  /// "LRR" and the format's version.
  static let magic: UInt32 = 0x0352_524c
  static let checksum = 0
  static let magicOffset = 8
  static let totalBytes = 12
  static let entryID = 16
  static let requestTime = 24
  static let responseTime = 32
  static let initialAge = 40
  static let originLifetime = 48
  static let originStaleWhileRevalidate = 56
  static let originStaleIfError = 64
  static let bodyLength = 72
  static let routeID = 80
  static let variantHash = 88
  static let evictAfter = 96
  static let keepUntil = 104
  static let status = 112
  static let flags = 114
  static let chunkCount = 116
  static let wholeKeyBytes = 120
  static let varyBlockBytes = 124
  static let headBytes = 128
  static let entityTagBytes = 132
  static let lastModifiedBytes = 136
  static let tagsBytes = 140
  static let inlineBodyBytes = 144
  static let begunID = 148
  static let date = 156
  static let fixedBytes = 164
  /// In `inlineBodyBytes`: the body lies in chunks.
  static let notInline = UInt32.max
  static let checksumSeed: UInt64 = 0x6c61_7264_6572_0001
}

/// A record in place. It owns nothing: valid as long as the memory it was made from, which for a
/// view of `StoreReader` is until `end()`.
public struct RecordView {
  let base: UnsafeRawPointer
  public let byteCount: Int

  /// Nil where the bytes are not a record: too short, another format, lengths that do not add up.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard let base = bytes.baseAddress, bytes.count >= RecordLayout.fixedBytes else { return nil }
    self.base = base
    byteCount = bytes.count
    guard word32(RecordLayout.magicOffset) == RecordLayout.magic,
      Int(word32(RecordLayout.totalBytes)) == byteCount
    else { return nil }
    let isInline = word32(RecordLayout.inlineBodyBytes) != RecordLayout.notInline
    guard inlineBodyStart + inlineBodyByteCount == byteCount,
      !isInline || (chunkCount == 0 && UInt64(inlineBodyByteCount) == bodyLength)
    else { return nil }
  }

  // SAFETY: for all loads below: `init` made sure of `fixedBytes` bytes and that the sections'
  // lengths add up to `byteCount`; whoever made the view keeps its memory.
  @inline(__always)
  private func word32(_ offset: Int) -> UInt32 {
    UInt32(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }
  @inline(__always)
  private func word64(_ offset: Int) -> UInt64 {
    UInt64(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }
  @inline(__always)
  private func time(_ offset: Int) -> Int64 { Int64(bitPattern: word64(offset)) }
  @inline(__always)
  private func section(_ start: Int, _ count: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: base + start, count: count)
  }
  private func length(_ offset: Int) -> Int { Int(word32(offset)) }

  public var entryID: UInt64 { word64(RecordLayout.entryID) }
  /// The number of the fetch that brought the copy or last confirmed it: what a fetch that began
  /// earlier says does not count against it.
  public var begunID: UInt64 { word64(RecordLayout.begunID) }
  public var routeID: UInt64 { word64(RecordLayout.routeID) }
  /// Which variant of its key this is: a hash of the values of the fields that Vary names.
  public var variantHash: UInt64 { word64(RecordLayout.variantHash) }
  public var bodyLength: UInt64 { word64(RecordLayout.bodyLength) }
  /// 0 where the body is inline.
  public var chunkCount: UInt32 { word32(RecordLayout.chunkCount) }
  public var isInline: Bool { word32(RecordLayout.inlineBodyBytes) != RecordLayout.notInline }
  /// Wall clock milliseconds after which the copy is of no use; Int64.max: never.
  public var evictAfterMilliseconds: Int64 { time(RecordLayout.evictAfter) }
  /// Wall clock milliseconds when the copy is removed; nil: never.
  public var keepUntilMilliseconds: Int64? {
    let value = time(RecordLayout.keepUntil)
    return value < 0 ? nil : value
  }

  public var metadata: StoredMetadata {
    let statusAndFlags = word32(RecordLayout.status)
    return StoredMetadata(
      entryID: entryID, status: UInt16(truncatingIfNeeded: statusAndFlags),
      flags: StoredFlags(rawValue: UInt16(truncatingIfNeeded: statusAndFlags >> 16)),
      requestTimeMilliseconds: time(RecordLayout.requestTime),
      responseTimeMilliseconds: time(RecordLayout.responseTime),
      initialAgeMilliseconds: time(RecordLayout.initialAge),
      originLifetimeMilliseconds: time(RecordLayout.originLifetime),
      originStaleWhileRevalidateMilliseconds: time(RecordLayout.originStaleWhileRevalidate),
      originStaleIfErrorMilliseconds: time(RecordLayout.originStaleIfError),
      bodyLength: bodyLength, dateMilliseconds: time(RecordLayout.date))
  }

  /// Whether it is more recent than another (RFC 9111 §4): by Date, and in the same second by the
  /// fetch that began later.
  @inline(__always)
  public func isMoreRecent(than other: RecordView) -> Bool {
    let (date, otherDate) = (time(RecordLayout.date), other.time(RecordLayout.date))
    return date == otherDate ? begunID > other.begunID : date > otherDate
  }

  private var varyBlockStart: Int {
    RecordLayout.fixedBytes + length(RecordLayout.wholeKeyBytes)
  }
  private var headStart: Int { varyBlockStart + length(RecordLayout.varyBlockBytes) }
  private var entityTagStart: Int { headStart + length(RecordLayout.headBytes) }
  private var lastModifiedStart: Int { entityTagStart + length(RecordLayout.entityTagBytes) }
  private var tagsStart: Int { lastModifiedStart + length(RecordLayout.lastModifiedBytes) }
  private var inlineBodyStart: Int { tagsStart + length(RecordLayout.tagsBytes) }
  private var inlineBodyByteCount: Int { isInline ? length(RecordLayout.inlineBodyBytes) : 0 }

  public var wholeKey: UnsafeRawBufferPointer {
    section(RecordLayout.fixedBytes, length(RecordLayout.wholeKeyBytes))
  }
  public var varyBlock: UnsafeRawBufferPointer {
    section(varyBlockStart, length(RecordLayout.varyBlockBytes))
  }
  public var head: UnsafeRawBufferPointer { section(headStart, length(RecordLayout.headBytes)) }
  public var entityTag: UnsafeRawBufferPointer {
    section(entityTagStart, length(RecordLayout.entityTagBytes))
  }
  public var lastModified: UnsafeRawBufferPointer {
    section(lastModifiedStart, length(RecordLayout.lastModifiedBytes))
  }
  /// The names by which the copy is purged together with others.
  public var tags: RecordTags { RecordTags(section(tagsStart, length(RecordLayout.tagsBytes))) }
  /// The body; empty where it lies in chunks.
  public var inlineBody: UnsafeRawBufferPointer { section(inlineBodyStart, inlineBodyByteCount) }

  var bytes: UnsafeRawBufferPointer { section(0, byteCount) }
  /// The checksum as it was written.
  var storedChecksum: UInt64 { word64(RecordLayout.checksum) }
  /// Whether the bytes are the ones that were written.
  var isUndamaged: Bool {
    StoreChecksum.of(section(8, byteCount - 8), seed: RecordLayout.checksumSeed)
      == storedChecksum
  }
}

/// A record that is on its way into the store: memory of its own, immutable once made.
public final class RecordBuffer: @unchecked Sendable {
  // @unchecked Sendable: the memory is written by `make` alone, before anyone else has the object.
  private let memory: UnsafeMutableRawBufferPointer

  public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(memory) }

  /// Valid as long as this buffer is.
  public var view: RecordView {
    guard let view = RecordView(bytes) else { fatalError("store: a made record is a record") }
    return view
  }

  private init(byteCount: Int) {
    memory = .allocate(byteCount: byteCount, alignment: 16)
  }

  /// A record's bytes in memory of their own.
  public static func copy(of view: RecordView) -> RecordBuffer {
    let buffer = RecordBuffer(byteCount: view.byteCount)
    // SAFETY: as many bytes were allocated; the view's are kept by who made it.
    buffer.memory.copyMemory(from: view.bytes)
    return buffer
  }

  deinit { memory.deallocate() }

  /// Builds a record out of copies of what it is given.
  ///
  /// `inlineBody` are the pieces of a body that lies in the record, together
  /// `metadata.bodyLength` bytes; nil: the body lies in `chunkCount` chunks under
  /// `metadata.entryID`. `evictAfterMilliseconds` is the wall clock time after which the copy is of
  /// no use (Int64.max: never), `keepUntilMilliseconds` when it is removed even so (nil: never).
  /// `begunID` is the number of the fetch that says all this; nil: the entry's own.
  /// More `tags` than `StoreConfiguration.tagsMax`, or longer ones together than `tagBytesMax`, are
  /// a programmer's error.
  public static func make(
    metadata: StoredMetadata, routeID: UInt64, wholeKey: UnsafeRawBufferPointer,
    varyBlock: UnsafeRawBufferPointer, variantHash: UInt64, head: UnsafeRawBufferPointer,
    entityTag: UnsafeRawBufferPointer, lastModified: UnsafeRawBufferPointer,
    tags: [[UInt8]] = [], evictAfterMilliseconds: Int64, keepUntilMilliseconds: Int64?,
    inlineBody: [UnsafeRawBufferPointer]?, chunkCount: UInt32 = 0, begunID: UInt64? = nil
  ) -> RecordBuffer {
    let bodyBytes = inlineBody?.reduce(0) { $0 + $1.count }
    storeInvariant(
      bodyBytes == nil || (UInt64(bodyBytes ?? 0) == metadata.bodyLength && chunkCount == 0),
      "an inline body has its announced length and no chunks")
    let tagSection = RecordTags.encode(tags)
    let sectionBytes =
      wholeKey.count + varyBlock.count + head.count + entityTag.count + lastModified.count
      + tagSection.count
    let total = RecordLayout.fixedBytes + sectionBytes + (bodyBytes ?? 0)
    storeInvariant(total < Int(Int32.max), "a record's length fits its field")
    let buffer = RecordBuffer(byteCount: total)
    let memory = buffer.memory
    func put<Value: FixedWidthInteger & BitwiseCopyable>(_ value: Value, _ offset: Int) {
      // SAFETY: all fixed fields end at or before `fixedBytes`, which is allocated.
      memory.storeBytes(of: value.littleEndian, toByteOffset: offset, as: Value.self)
    }
    put(RecordLayout.magic, RecordLayout.magicOffset)
    put(UInt32(total), RecordLayout.totalBytes)
    put(metadata.entryID, RecordLayout.entryID)
    put(metadata.requestTimeMilliseconds, RecordLayout.requestTime)
    put(metadata.responseTimeMilliseconds, RecordLayout.responseTime)
    put(metadata.initialAgeMilliseconds, RecordLayout.initialAge)
    put(metadata.originLifetimeMilliseconds, RecordLayout.originLifetime)
    put(
      metadata.originStaleWhileRevalidateMilliseconds, RecordLayout.originStaleWhileRevalidate)
    put(metadata.originStaleIfErrorMilliseconds, RecordLayout.originStaleIfError)
    put(metadata.bodyLength, RecordLayout.bodyLength)
    put(routeID, RecordLayout.routeID)
    put(variantHash, RecordLayout.variantHash)
    put(max(0, evictAfterMilliseconds), RecordLayout.evictAfter)
    put(keepUntilMilliseconds.map { max(0, $0) } ?? -1, RecordLayout.keepUntil)
    put(metadata.status, RecordLayout.status)
    put(metadata.flags.rawValue, RecordLayout.flags)
    put(chunkCount, RecordLayout.chunkCount)
    put(begunID ?? metadata.entryID, RecordLayout.begunID)
    put(metadata.dateMilliseconds, RecordLayout.date)
    put(bodyBytes.map { UInt32($0) } ?? RecordLayout.notInline, RecordLayout.inlineBodyBytes)
    var end = RecordLayout.fixedBytes
    func append(_ section: UnsafeRawBufferPointer) {
      guard let source = section.baseAddress, let start = memory.baseAddress else { return }
      // SAFETY: `total` is the sum of these lengths; the sources outlive the call.
      (start + end).copyMemory(from: source, byteCount: section.count)
      end += section.count
    }
    func append(_ section: UnsafeRawBufferPointer, _ lengthOffset: Int) {
      put(UInt32(section.count), lengthOffset)
      append(section)
    }
    append(wholeKey, RecordLayout.wholeKeyBytes)
    append(varyBlock, RecordLayout.varyBlockBytes)
    append(head, RecordLayout.headBytes)
    append(entityTag, RecordLayout.entityTagBytes)
    append(lastModified, RecordLayout.lastModifiedBytes)
    tagSection.withUnsafeBytes { append($0, RecordLayout.tagsBytes) }
    for piece in inlineBody ?? [] { append(piece) }
    put(
      StoreChecksum.of(
        UnsafeRawBufferPointer(rebasing: memory[8...]), seed: RecordLayout.checksumSeed),
      RecordLayout.checksum)
    return buffer
  }
}
