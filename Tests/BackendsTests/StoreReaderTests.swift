/// What a reader knows of a key within one turn.
import CachePolicy
import Testing

@testable import Backends

struct StoreReaderTests {
  private let name = wholeKey("/a")

  private func look(_ reader: StoreReader, _ key: StoreKey) {
    reader.begin()
    readRecords(reader, key, name) { _ in }
    reader.end()
  }

  @Test func aKeyIsLackedUntilSomethingIsPutOrTheTurnEnds() throws {
    let fixture = try StoreFixture()
    let loop = EventLoop()
    let reader = try fixture.store.makeReader(for: loop)
    let key = fixture.key(name)
    #expect(!reader.stillLacks(key))
    look(reader, key)
    #expect(reader.stillLacks(key) && !reader.stillLacks(fixture.key(wholeKey("/b"))))
    fixture.putInline(wholeKey("/b"), "another's")
    #expect(reader.stillLacks(key))
    fixture.putInline(name, "body")
    #expect(!reader.stillLacks(key))
    // Committed, and not within the snapshot that this turn holds.
    fixture.store.flush()
    #expect(!reader.stillLacks(key))
    reader.release()
    #expect(!reader.stillLacks(key))
    look(reader, key)
    #expect(!reader.stillLacks(key))
    reader.release()
  }

  @Test func withoutASharedSnapshotNothingIsKnownOfAKey() throws {
    let fixture = try StoreFixture()
    look(fixture.reader, fixture.key(name))
    #expect(!fixture.reader.stillLacks(fixture.key(name)))
  }
}
