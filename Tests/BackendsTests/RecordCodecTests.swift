/// The record's bytes, the chunk's row, and the hash and checksum under them.
import CachePolicy
import Testing

@testable import Backends

struct RecordCodecTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var record: @Sendable () -> RecordBuffer
    var testDescription: String { name }
  }

  static let cases: [Case] = [
    Case(name: "empty everything") { .sample(entryID: 1, name: "", head: "", body: []) },
    Case(name: "inline body") { .sample(entryID: 2, body: Array("hello".utf8)) },
    Case(name: "validators and vary") {
      .sample(
        entryID: 3, variant: 9, vary: "accept: a", entityTag: "\"x\"", lastModified: "Mon",
        body: [1, 2, 3])
    },
    Case(name: "tags") { .sample(entryID: 5, body: [1], tags: ["article:1", "", "b"]) },
    Case(name: "chunked body") {
      .sample(entryID: 4, body: nil, bodyLength: 70_000, chunkCount: 2)
    },
    Case(name: "all values large") {
      .sample(
        entryID: .max, variant: .max, routeID: .max, status: .max,
        flags: StoredFlags(rawValue: .max), body: nil, bodyLength: .max, chunkCount: .max,
        evictAfter: .max, keepUntil: .max)
    },
  ]

  @Test func fieldsAndSectionsAreReadAsTheyWereWritten() {
    let buffer = RecordBuffer.sample(
      entryID: 77, name: "the key", variant: 5, routeID: 6, status: 404,
      flags: [.noCache, .hasValidator], vary: "vary", head: "the head", entityTag: "\"tag\"",
      lastModified: "Mon, 01", body: Array("the body".utf8), tags: ["one", "two"],
      evictAfter: 123, keepUntil: 456, begunID: 79, date: 1_000_000_000_000)
    let view = buffer.view
    #expect(
      view.metadata
        == StoredMetadata(
          entryID: 77, status: 404, flags: [.noCache, .hasValidator],
          requestTimeMilliseconds: 1001, responseTimeMilliseconds: 1002,
          initialAgeMilliseconds: 1003, originLifetimeMilliseconds: 1004,
          originStaleWhileRevalidateMilliseconds: 1005, originStaleIfErrorMilliseconds: -1,
          bodyLength: 8, dateMilliseconds: 1_000_000_000_000))
    #expect(view.begunID == 79)
    #expect(view.routeID == 6 && view.variantHash == 5 && view.entryID == 77)
    #expect(view.evictAfterMilliseconds == 123 && view.keepUntilMilliseconds == 456)
    let sections = [
      view.wholeKey, view.varyBlock, view.head, view.entityTag, view.lastModified,
      view.inlineBody,
    ].map { String(decoding: $0, as: UTF8.self) }
    #expect(sections == ["the key", "vary", "the head", "\"tag\"", "Mon, 01", "the body"])
    #expect(view.tags.map { String(decoding: $0, as: UTF8.self) } == ["one", "two"])
    #expect(view.isInline && view.chunkCount == 0)
    let copy = RecordBuffer.copy(of: view)
    #expect(copy.bytes.elementsEqual(buffer.bytes) && copy.view.isUndamaged)
    withExtendedLifetime(buffer) {}
  }

  /// RFC 9111 §4: by Date, and in the same second by the fetch that began later.
  @Test(
    arguments: [
      (2000, 1, 1000, 9, true), (1000, 9, 2000, 1, false), (1000, 5, 1000, 4, true),
      (1000, 4, 1000, 5, false), (1000, 4, 1000, 4, false),
    ] as [(Int64, UInt64, Int64, UInt64, Bool)])
  func oneRecordIsMoreRecentThanAnother(
    _ date: Int64, _ begunID: UInt64, _ otherDate: Int64, _ otherBegunID: UInt64, _ isIt: Bool
  ) {
    let one = RecordBuffer.sample(entryID: 3, body: [], begunID: begunID, date: date)
    let other = RecordBuffer.sample(entryID: 7, body: [], begunID: otherBegunID, date: otherDate)
    withExtendedLifetime((one, other)) {
      #expect(one.view.isMoreRecent(than: other.view) == isIt)
    }
  }

  @Test func aRecordWithoutAConfirmationWasBegunByItsOwnFetch() {
    let record = RecordBuffer.sample(entryID: 3, body: [])
    #expect(record.view.begunID == 3)
  }

  @Test(arguments: cases) func aMadeRecordIsUndamaged(_ sample: Case) {
    let record = sample.record()
    #expect(record.view.isUndamaged)
    #expect(record.view.byteCount == record.bytes.count)
    withExtendedLifetime(record) {}
  }

  @Test func aChunkedRecordTellsItsChunksAndHasNoKeepTime() {
    let buffer = RecordBuffer.sample(entryID: 4, body: nil, bodyLength: 70_000, chunkCount: 2)
    let view = buffer.view
    #expect(!view.isInline && view.chunkCount == 2 && view.bodyLength == 70_000)
    #expect(view.inlineBody.isEmpty && view.keepUntilMilliseconds == nil)
    withExtendedLifetime(buffer) {}
  }

  @Test(arguments: cases) func everyFlippedBitIsFound(_ sample: Case) {
    let record = sample.record()
    var bytes = withExtendedLifetime(record) { Array(record.bytes) }
    var undetected: [Int] = []
    for offset in bytes.indices {
      for bit in 0..<8 {
        bytes[offset] ^= 1 << bit
        let isAccepted = bytes.withUnsafeBytes { RecordView($0)?.isUndamaged ?? false }
        if isAccepted { undetected.append(offset) }
        bytes[offset] ^= 1 << bit
      }
    }
    #expect(undetected == [])
  }

  @Test(arguments: cases) func everyShorterOrLongerCopyIsRefused(_ sample: Case) {
    let record = sample.record()
    let bytes = withExtendedLifetime(record) { Array(record.bytes) }
    let accepted = (0..<bytes.count).filter { count in
      bytes[..<count].withUnsafeBytes { RecordView($0) != nil }
    }
    #expect(accepted == [])
    #expect((bytes + [0]).withUnsafeBytes { RecordView($0) == nil })
  }

  @Test func aRecordMayHaveAsManyTagsAsTheLimitsSay() {
    let count = StoreConfiguration.tagsMax
    let length = StoreConfiguration.tagBytesMax / count
    let tags = (0..<count).map { String(repeating: "t", count: length - 3) + "\($0 + 100)" }
    let buffer = RecordBuffer.sample(entryID: 1, body: [1], tags: tags)
    let read = withExtendedLifetime(buffer) {
      buffer.view.tags.map { String(decoding: $0, as: UTF8.self) }
    }
    #expect(read == tags && buffer.view.tags.count == count)
  }

  @Test func aChunkIsBoundToItsEntryAndNumber() {
    let body: [UInt8] = Array(0..<100)
    var row = [UInt8](repeating: 0, count: ChunkRow.headerBytes + body.count)
    row.withUnsafeMutableBytes { target in
      body.withUnsafeBytes { ChunkRow.write($0, ChunkKey(7, 1), into: target) }
    }
    func isAccepted(_ entryID: UInt64, _ index: UInt32) -> Bool {
      row.withUnsafeBytes { ChunkRow.body($0, ChunkKey(entryID, index)) != nil }
    }
    #expect(isAccepted(7, 1))
    #expect(!isAccepted(7, 2) && !isAccepted(8, 1))
    row[50] ^= 1
    #expect(!isAccepted(7, 1))
  }

  @Test func checksumsOfAllShortLengthsDiffer() {
    let bytes = [UInt8](repeating: 0, count: 200)
    let sums = (0...200).map { count in
      bytes[..<count].withUnsafeBytes { StoreChecksum.of($0, seed: 1) }
    }
    #expect(Set(sums).count == 201)
  }

  @Test func aFullChunkFillsExactly16Pages() {
    // LMDB: a value of its own pages has 16 bytes of header in the first.
    let rowBytes = StoreConfiguration.chunkBytesOf16Pages + ChunkRow.headerBytes + 16
    #expect(rowBytes == 16 * 4096)
  }
}

struct StoreKeyHashTests {
  struct Vector: Sendable, CustomTestStringConvertible {
    var count: Int
    var digest: String
    var testDescription: String { "\(count) bytes" }
  }

  /// SipHash-2-4 with 16 bytes of output, key 00…0f, message 00, 01, 02 …
  static let vectors = [
    Vector(count: 0, digest: "a3817f04ba25a8e66df67214c7550293"),
    Vector(count: 1, digest: "da87c1d86b99af44347659119b22fc45"),
    Vector(count: 7, digest: "a1f1ebbed8dbc153c0b84aa61ff08239"),
    Vector(count: 8, digest: "3b62a9ba6258f5610f83e264f31497b4"),
    Vector(count: 15, digest: "5493e99933b0a8117e08ec0f97cfc3d9"),
    Vector(count: 63, digest: "5150d1772f50834a503e069a973fbd7c"),
  ]

  @Test(arguments: vectors) func theReferenceVectorsHold(_ vector: Vector) {
    let secret: (UInt64, UInt64) = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908)
    let message = (0..<vector.count).map { UInt8($0) }
    let key = message.withUnsafeBytes { StoreKeyHash.hash(secret, $0) }
    let words = [key.high.littleEndian, key.low.littleEndian]
    let digest = words.withUnsafeBytes { bytes in
      bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
    #expect(digest == vector.digest)
  }

  @Test func anotherSecretGivesAnotherKey() {
    let first = [UInt8(1)].withUnsafeBytes { StoreKeyHash.hash((1, 2), $0) }
    let second = [UInt8(1)].withUnsafeBytes { StoreKeyHash.hash((1, 3), $0) }
    #expect(first != second)
  }

  private static func key(_ wholeKey: String, path: String) -> StoreKey {
    Array(wholeKey.utf8).withUnsafeBytes { wholeKey in
      Array(path.utf8).withUnsafeBytes {
        StoreKeyHash.key((1, 2), wholeKey: wholeKey, path: $0)
      }
    }
  }

  @Test func copiesOfOnePathLieSideBySide() {
    let first = Self.key("a", path: "/articles/1")
    let second = Self.key("b", path: "/articles/1")
    let other = Self.key("a", path: "/articles/2")
    #expect(first.high == second.high && first.low != second.low)
    #expect(first.high != other.high && first.low == other.low)
  }

  @Test(
    arguments: [
      ("//", "/"), ("///a", "/a"), ("/a//b", "/a/b"), ("/a/b//", "/a/b/"),
      ("//abcdefghijk//lmnopqrstuvwxyz", "/abcdefghijk/lmnopqrstuvwxyz"),
      ("/abcdef//", "/abcdef/"), ("/1234567//8", "/1234567/8"),
    ]) func repeatedSlashesCountAsOne(_ repeated: String, _ plain: String)
  {
    #expect(Self.key("a", path: repeated) == Self.key("a", path: plain))
  }

  @Test func aSlashAtTheEndCounts() {
    #expect(Self.key("a", path: "/a") != Self.key("a", path: "/a/"))
    #expect(Self.key("a", path: "") != Self.key("a", path: "/"))
  }
}
