import CachePolicy
import Testing

@testable import Backends

/// A reader that is asked for the same key again and again finds what a new reader finds, whatever
/// happens between.
struct FoundRecordsTests {
  /// Often enough that the place of the record is known.
  private func read(_ fixture: StoreFixture, _ name: String) -> [UInt64: String] {
    let first = fixture.bodies(name)
    for _ in 0..<3 { #expect(fixture.bodies(name) == first) }
    return first
  }

  @Test func aReplacedRecordIsFoundAtOnceAndAfterItsCommit() throws {
    let fixture = try StoreFixture()
    for round in 0..<5 {
      fixture.putInline("a", "body \(round)")
      #expect(read(fixture, "a") == [0: "body \(round)"])
      fixture.store.flush()
      #expect(read(fixture, "a") == [0: "body \(round)"])
    }
  }

  @Test func whatIsRemovedOrPurgedIsNotFound() throws {
    let fixture = try StoreFixture()
    for round in 0..<3 {
      for name in ["a", "b"] { fixture.putInline(name, "\(round)", tags: ["t"]) }
      fixture.store.flush()
      #expect(read(fixture, "a") == [0: "\(round)"])
      #expect(read(fixture, "b") == [0: "\(round)"])
      fixture.store.remove(key: fixture.key("a"))
      #expect(read(fixture, "a").isEmpty)
      #expect(read(fixture, "b") == [0: "\(round)"])
      _ = fixture.store.purge(.tag(Array("t".utf8)))
      #expect(read(fixture, "b").isEmpty)
      fixture.store.sweep()
      #expect(read(fixture, "a").isEmpty && read(fixture, "b").isEmpty)
    }
  }

  @Test func aSecondVariantIsFoundBesideTheFirst() throws {
    let fixture = try StoreFixture()
    fixture.putInline("a", "first", variant: 1)
    fixture.store.flush()
    #expect(read(fixture, "a") == [1: "first"])
    fixture.putInline("a", "second", variant: 2)
    #expect(read(fixture, "a") == [1: "first", 2: "second"])
    fixture.store.flush()
    #expect(read(fixture, "a") == [1: "first", 2: "second"])
  }

  @Test func anotherKeyWithTheSameHashStaysAnother() throws {
    let fixture = try StoreFixture()
    fixture.putInline("a", "body")
    fixture.store.flush()
    #expect(read(fixture, "a") == [0: "body"])
    for _ in 0..<3 {
      fixture.reader.begin()
      var found = 0
      readRecords(fixture.reader, fixture.key("a"), "b") { _ in found += 1 }
      fixture.reader.end()
      #expect(found == 0)
    }
  }

  /// More keys than there are places, and the same places for many.
  @Test func manyKeysKeepApart() throws {
    let fixture = try StoreFixture(maxSizeBytes: 64 * 1024 * 1024)
    let names = (0..<3000).map { "key \($0)" }
    for name in names { fixture.putInline(name, "body of \(name)") }
    fixture.store.flush()
    for _ in 0..<3 {
      let wrong = names.filter { fixture.bodies($0) != [0: "body of \($0)"] }
      #expect(wrong.isEmpty)
    }
  }

  @Test func aMovedMapIsReadWhereItLies() throws {
    let fixture = try StoreFixture(maxSizeBytes: StoreConfiguration.maxSizeBytesMin)
    fixture.putInline("a", "body")
    fixture.store.flush()
    #expect(read(fixture, "a") == [0: "body"])
    for megabytes: UInt64 in [64, 512, 2048] {
      fixture.store.resize(maxSizeBytes: megabytes << 20)
      fixture.store.flush()
      #expect(read(fixture, "a") == [0: "body"])
    }
  }
}
