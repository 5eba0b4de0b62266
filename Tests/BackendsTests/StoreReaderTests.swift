/// What a reader knows of a key within one turn.
import CachePolicy
import Testing

@testable import Backends

struct StoreReaderTests {
  private let name = wholeKey("/a")

  /// Looks the key up in vain; returns the snapshot's number.
  private func look(_ reader: StoreReader, _ key: StoreKey) -> UInt64 {
    reader.begin()
    readRecords(reader, key, name) { _ in Issue.record("something is stored") }
    defer { reader.end() }
    return reader.snapshotNumber
  }

  @Test func aKeyIsLackedUntilSomethingIsPutOrTheTurnEnds() throws {
    let fixture = try StoreFixture()
    let loop = EventLoop()
    let reader = try fixture.store.makeReader(for: loop)
    let key = fixture.key(name)
    let first = look(reader, key)
    #expect(reader.stillLacks(key, sinceSnapshot: first))
    reader.release()
    #expect(!reader.stillLacks(key, sinceSnapshot: first))
    fixture.putInline(wholeKey("/b"), "another's")
    fixture.store.flush()
    let second = look(reader, key)
    #expect(second != first && !reader.stillLacks(key, sinceSnapshot: first))
    fixture.putInline(wholeKey("/c"), "another's")
    #expect(reader.stillLacks(key, sinceSnapshot: second))
    fixture.putInline(name, "body")
    #expect(!reader.stillLacks(key, sinceSnapshot: second))
    // Committed, and not within the snapshot that this turn holds.
    fixture.store.flush()
    #expect(!reader.stillLacks(key, sinceSnapshot: second))
    reader.release()
    #expect(!reader.stillLacks(key, sinceSnapshot: second))
  }

  @Test func withoutASharedSnapshotNothingIsKnownOfAKey() throws {
    let fixture = try StoreFixture()
    let number = look(fixture.reader, fixture.key(name))
    #expect(!fixture.reader.stillLacks(fixture.key(name), sinceSnapshot: number))
  }
}
