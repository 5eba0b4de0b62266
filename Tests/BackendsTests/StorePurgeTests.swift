/// What a purge takes away, and that nothing of it comes back: not from a fill that was running, not
/// from what is queued, not for a turn that began before it, not over a restart.
import CachePolicy
import Synchronization
import Testing

@testable import Backends

struct StorePurgeTests {
  struct Entry: Sendable {
    var label: String
    var key: String
    var variant: UInt64 = 0
    var tags: [String] = []
  }

  /// Everything that a scope could take too much or too little of.
  static let entries = [
    Entry(label: "plain", key: wholeKey("/a/1"), tags: ["one"]),
    Entry(label: "variant", key: wholeKey("/a/1"), variant: 7, tags: ["two", "one"]),
    Entry(label: "query", key: wholeKey("/a/1", query: "x=1"), tags: ["two"]),
    Entry(label: "empty query", key: wholeKey("/a/1", query: "")),
    Entry(label: "user", key: wholeKey("/a/1", further: "u\u{4}user")),
    Entry(label: "user and query", key: wholeKey("/a/1", query: "x=1", further: "u\u{4}user")),
    Entry(label: "upstream", key: wholeKey("/a/1", upstream: "other")),
    Entry(label: "host", key: wholeKey("/a/1", authority: "www.example.com")),
    Entry(label: "port", key: wholeKey("/a/1", authority: "example.com:8080")),
    Entry(label: "slashes", key: wholeKey("//a//1")),
    Entry(label: "slash behind", key: wholeKey("/a/1/")),
    Entry(label: "sibling", key: wholeKey("/a/2"), tags: ["one", "three"]),
    Entry(label: "below", key: wholeKey("/a/1/b.json"), tags: ["on"]),
    Entry(label: "elsewhere", key: wholeKey("/b/1", query: "/a/1"), tags: ["onee", ""]),
  ]

  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var scope: PurgeScope
    var taken: Set<String>
    var testDescription: String { name }
  }

  static func path(_ path: String, _ host: String? = nil) -> PurgeScope {
    .path(Array(path.utf8), authority: host.map { try! RoutePattern.HostPattern(parsing: $0) })
  }
  static func pattern(_ text: String) -> PurgeScope {
    .pattern(try! RoutePattern(parsing: text))
  }
  static let onePath: Set<String> = [
    "plain", "variant", "query", "empty query", "user", "user and query", "upstream", "host",
    "port", "slashes",
  ]
  static let all = Set(entries.map(\.label))

  static let cases = [
    Case(name: "everything", scope: .everything, taken: all),
    Case(
      name: "a tag", scope: .tag(Array("one".utf8)), taken: ["plain", "variant", "sibling"]),
    Case(name: "an empty tag", scope: .tag([]), taken: ["elsewhere"]),
    Case(name: "a tag nobody has", scope: .tag(Array("zero".utf8)), taken: []),
    Case(
      name: "a URL", scope: .url(wholeKeyPrefix: Array(wholeKey("/a/1").utf8)),
      taken: ["plain", "variant", "user"]),
    Case(
      name: "a URL with a query, named by a user's key",
      scope: .url(
        wholeKeyPrefix: Array(wholeKey("/a/1", query: "x=1", further: "u\u{4}user").utf8)),
      taken: ["query", "user and query"]),
    Case(
      name: "a URL with an empty query",
      scope: .url(wholeKeyPrefix: Array(wholeKey("/a/1", query: "").utf8)),
      taken: ["empty query"]),
    Case(
      name: "a URL with repeated slashes",
      scope: .url(wholeKeyPrefix: Array(wholeKey("//a//1").utf8)), taken: ["slashes"]),
    Case(name: "a path", scope: path("/a/1"), taken: onePath),
    Case(name: "a path with repeated slashes", scope: path("/a///1"), taken: onePath),
    Case(name: "a path with a slash behind", scope: path("/a/1/"), taken: ["slash behind"]),
    Case(
      name: "a path on a host", scope: path("/a/1", "example.com"),
      taken: onePath.subtracting(["host"])),
    Case(
      name: "a path on a host and port", scope: path("/a/1", "example.com:8080"), taken: ["port"]),
    Case(
      name: "a path on the default port", scope: path("/a/1", "example.com:80"),
      taken: onePath.subtracting(["host", "port"])),
    Case(name: "a path on hosts below", scope: path("/a/1", "*.example.com"), taken: ["host"]),
    Case(name: "a pattern of one path", scope: pattern("POST /a/1"), taken: onePath),
    Case(
      name: "a pattern of one path on a host", scope: pattern("//www.example.com/a/1"),
      taken: ["host"]),
    Case(
      name: "a pattern of a segment", scope: pattern("DELETE /a/{id}"),
      taken: onePath.union(["sibling"])),
    Case(name: "a pattern of a part", scope: pattern("/a/1/*.json"), taken: ["below"]),
    Case(
      name: "a pattern of all below", scope: pattern("/a/**"),
      taken: all.subtracting(["elsewhere"])),
    Case(
      name: "a pattern on a host", scope: pattern("//example.com:8080/**"), taken: ["port"]),
  ]

  static func putAll(_ fixture: StoreFixture) {
    for entry in entries {
      fixture.putInline(entry.key, entry.label, variant: entry.variant, tags: entry.tags)
    }
  }

  static func found(_ fixture: StoreFixture) -> Set<String> {
    Set(entries.flatMap { fixture.bodies($0.key).values })
  }

  @Test(arguments: cases) func aPurgeTakesWhatItsScopeSaysAndNothingElse(
    _ sample: Case
  ) throws {
    let folder = TemporaryFolder()
    let fixture = try StoreFixture(folder: folder)
    let left = Self.all.subtracting(sample.taken)
    Self.putAll(fixture)
    fixture.store.flush()
    #expect(Self.found(fixture) == Self.all)
    let gate = fixture.closeGate()
    fixture.store.purge(sample.scope)
    #expect(Self.found(fixture) == left, "at once")
    gate.open()
    fixture.store.sweep()
    #expect(Self.found(fixture) == left, "swept")
    #expect(fixture.store.statistics().purged == UInt64(sample.taken.count))
    #expect(fixture.store.statistics().entries == UInt64(left.count))
    #expect(fixture.store.statistics().activePurges == 0)
    Self.putAll(fixture)
    #expect(Self.found(fixture) == Self.all, "new entries")
    fixture.close()
    try Self.removeGatesChunk(folder)
    let audit = try StoreAudit(path: folder.path)
    #expect(audit.problems == [] && audit.purgeCount == 0)
  }

  @Test(arguments: cases) func aPurgeTakesWhatIsStillQueued(_ sample: Case) throws {
    let fixture = try StoreFixture()
    let gate = fixture.closeGate()
    Self.putAll(fixture)
    fixture.store.purge(sample.scope)
    #expect(Self.found(fixture) == Self.all.subtracting(sample.taken))
    gate.open()
    fixture.store.sweep()
    #expect(Self.found(fixture) == Self.all.subtracting(sample.taken))
    let refused = fixture.store.statistics().notStored[.invalidated] ?? 0
    #expect(refused == UInt64(sample.taken.count))
  }

  @Test(arguments: cases) func aPurgeInTheFileHoldsAfterTheRestart(_ sample: Case) throws {
    let folder = TemporaryFolder()
    let first = try StoreFixture(folder: folder)
    Self.putAll(first)
    let floor = first.store.nextEntryID()
    let secret = first.store.keySecret
    first.close()
    // As if the process had been killed between the purge's commit and its sweep.
    if let target = PurgeTarget(sample.scope, secret: secret) {
      try Self.writeRule(PurgeRules.Purge(target: target, floor: floor), folder, secret)
    } else {
      let between = try StoreFixture(folder: folder)
      between.store.purge(sample.scope)
      between.close()
    }
    let second = try StoreFixture(folder: folder)
    let left = Self.all.subtracting(sample.taken)
    #expect(Self.found(second) == left)
    second.store.sweep()
    #expect(Self.found(second) == left)
    #expect(second.store.statistics().entries == UInt64(left.count))
    second.close()
    let audit = try StoreAudit(path: folder.path)
    #expect(audit.problems == [] && audit.purgeCount == 0)
  }

  /// What held the writer leaves a chunk without a record: the next opening deletes it.
  private static func removeGatesChunk(_ folder: TemporaryFolder) throws {
    let fixture = try StoreFixture(folder: folder)
    fixture.store.sweep()
    fixture.close()
  }

  private static func writeRule(
    _ purge: PurgeRules.Purge, _ folder: TemporaryFolder, _ secret: (UInt64, UInt64)
  ) throws {
    let environment = try LMDBEnvironment(
      folder: StoreFolder(path: folder.path), mapSizeBytes: 1 << 26, readersMax: 1)
    _ = try StoreSchema.open(environment)
    let transaction = try environment.beginWrite()
    try transaction.put(
      environment.tables.purges, purge.target.rowKey(secret), purge.target.row(floor: purge.floor))
    try transaction.commit()
  }

  // MARK: Fills

  private let tag = Array("t".utf8)

  private func record(_ entryID: UInt64, tags: [String]) -> RecordBuffer {
    RecordBuffer.sample(entryID: entryID, name: "a", body: [1], tags: tags)
  }

  /// What a request's path brought into a pattern stays literal in memory; its text may read as a
  /// wildcard, as another pattern's does, or not at all.
  @Test(arguments: ["*", "a*b", "**", "{x}", "{", "}x", "a%2Ab"])
  func aPatternFilledByAPathNeitherHidesAnotherNorIsLost(_ value: String) throws {
    let folder = TemporaryFolder()
    let fixture = try StoreFixture(folder: folder)
    let target = try InvalidationTarget(parsing: "/a/{id}/**")
    guard case .path(let filled)? = target.filled(with: [(name: "id", value: value)]) else {
      Issue.record("not filled")
      return
    }
    let secret = fixture.store.keySecret
    Self.putAll(fixture)
    fixture.store.purge(.pattern(filled))
    // The same text from policies.json, and wider.
    fixture.store.purge(Self.pattern("/a/*/**"))
    #expect(Self.found(fixture).isDisjoint(with: ["below", "slash behind", "plain", "sibling"]))
    // What the file keeps of it covers the path that it was made for.
    guard let kept = PurgeTarget(.pattern(filled), secret: secret) else { return }
    let row = kept.row(floor: 7)
    let read = try #require(row.withUnsafeBytes { PurgeTarget.read($0) })
    #expect(read.target == kept && read.floor == 7)
    guard case .pattern(let pattern) = read.target else {
      Issue.record("no pattern")
      return
    }
    let path = Array("/a/\(value)/b".utf8)
    let isCovered = pattern.pattern.matches(host: [UInt8]().span, path: path.span)
    #expect(isCovered)
  }

  @Test func aFillThatBeganBeforeThePurgeDoesNotLandHoweverLateItEnds() throws {
    let fixture = try StoreFixture()
    let before = fixture.store.beginFill()
    let receipt = fixture.store.purge(.tag(tag))
    let after = fixture.store.beginFill()
    #expect(before.entryID < receipt.floor && receipt.floor <= after.entryID)
    fixture.store.sweep()
    #expect(fixture.store.statistics().activePurges == 1)
    let key = fixture.key("a")
    let old = record(before.entryID, tags: ["s", "t"])
    #expect(fixture.store.put(old, key: key, mode: .insert) == .invalidated)
    let new = record(after.entryID, tags: ["t"])
    #expect(fixture.store.put(new, key: key, mode: .insert) == nil)
    before.end()
    fixture.store.sweep()
    #expect(fixture.store.statistics().activePurges == 0)
    #expect(fixture.entryIDs("a") == [after.entryID])
  }

  @Test func aFillOfSomethingElseLandsBesideThePurge() throws {
    let fixture = try StoreFixture()
    let fill = fixture.store.beginFill()
    fixture.store.purge(.tag(tag))
    #expect(
      fixture.store.put(record(fill.entryID, tags: ["s"]), key: fixture.key("a"), mode: .insert)
        == nil)
    fixture.store.sweep()
    #expect(fixture.entryIDs("a") == [fill.entryID])
  }

  @Test func aTicketThatNobodyHoldsEnds() throws {
    let fixture = try StoreFixture()
    do {
      let ticket = fixture.store.beginFill()
      fixture.store.purge(.tag(tag))
      fixture.store.sweep()
      #expect(fixture.store.statistics().activePurges == 1)
      withExtendedLifetime(ticket) {}
    }
    fixture.store.sweep()
    #expect(fixture.store.statistics().activePurges == 0)
  }

  @Test(arguments: [false, true]) func aPurgedEntryIsNotRefreshed(_ isSwept: Bool) throws {
    let fixture = try StoreFixture()
    let entryID = fixture.putInline("a", "old", tags: ["t"])
    fixture.store.flush()
    let gate = isSwept ? nil : fixture.closeGate()
    fixture.store.purge(.tag(tag))
    if isSwept { fixture.store.sweep() }
    // The confirmation has lost the tag: what it confirms counts.
    let confirmed = record(entryID, tags: [])
    _ = fixture.store.put(confirmed, key: fixture.key("a"), mode: .refresh)
    #expect(fixture.entryIDs("a").isEmpty)
    gate?.open()
    fixture.store.sweep()
    #expect(fixture.entryIDs("a").isEmpty)
    #expect(fixture.store.statistics().entries == 0)
  }

  @Test func anEntryTakesThePlaceOfAPurgedOne() throws {
    let folder = TemporaryFolder()
    let fixture = try StoreFixture(folder: folder)
    fixture.putChunked("a", chunkCount: 2, chunkBytes: 1000, tags: ["t"])
    fixture.store.flush()
    let gate = fixture.closeGate()
    fixture.store.purge(.tag(tag))
    fixture.putInline("a", "new", tags: ["t"])
    #expect(fixture.bodies("a") == [0: "new"])
    gate.open()
    fixture.store.sweep()
    #expect(fixture.bodies("a") == [0: "new"])
    fixture.close()
    try Self.removeGatesChunk(folder)
    let audit = try StoreAudit(path: folder.path)
    #expect(audit.problems == [] && audit.entryCount == 1 && audit.chunkRowCount == 0)
  }

  // MARK: Turns

  @Test func aTurnThatBeganBeforeThePurgeDoesNotFindWhatItTook() throws {
    let fixture = try StoreFixture()
    fixture.putInline("a", "old", tags: ["t"])
    fixture.store.flush()
    fixture.reader.begin()
    fixture.store.purge(.tag(tag))
    var found = 0
    readRecords(fixture.reader, fixture.key("a"), "a") { _ in found += 1 }
    fixture.store.sweep()
    readRecords(fixture.reader, fixture.key("a"), "a") { _ in found += 1 }
    #expect(found == 0)
    #expect(fixture.store.statistics().activePurges == 1, "the snapshot still has it")
    fixture.reader.end()
    fixture.store.sweep()
    #expect(fixture.store.statistics().activePurges == 0)
  }

  @Test func whatALongTurnKeptPendingDoesNotComeBack() throws {
    let fixture = try StoreFixture()
    let other = try fixture.store.makeReader()
    other.begin()
    // Stays in the overlay: the turn's snapshot lacks it.
    fixture.putInline("a", "old", tags: ["t"])
    fixture.store.flush()
    fixture.store.purge(.tag(tag))
    fixture.store.sweep()
    other.end()
    fixture.store.sweep()
    #expect(fixture.store.statistics().activePurges == 0)
    #expect(fixture.entryIDs("a").isEmpty)
  }

  // MARK: Many

  @Test(
    arguments: [
      ("a tag", .tag(Array("t".utf8))), ("a path", path("/p")),
      ("a pattern", pattern("/*")), ("everything", .everything),
    ] as [(String, PurgeScope)])
  func moreThanOneStepsWorthGoes(_ name: String, _ scope: PurgeScope) throws {
    let fixture = try StoreFixture(maxSizeBytes: 64 * 1024 * 1024)
    let count = UInt64(EntryTransaction.removalsMax * 2 + 100)
    for number in 0..<count {
      fixture.putInline(wholeKey("/p", query: "\(number)"), "x", tags: ["t"])
    }
    let rest = UInt64(PurgeSweep.rowsMax + 100)
    if name != "everything" {
      for number in 0..<rest { fixture.putInline(wholeKey("/q/\(number)"), "x") }
    }
    fixture.store.flush()
    fixture.store.purge(scope)
    fixture.store.sweep()
    #expect(fixture.store.statistics().purged == count)
    #expect(fixture.store.statistics().entries == (name == "everything" ? 0 : rest))
    #expect(fixture.store.statistics().activePurges == 0)
  }

  @Test func aPurgeThatComesAgainTakesWhatCameBetween() throws {
    let fixture = try StoreFixture()
    for number in 0..<5 {
      fixture.putInline("a", "\(number)", tags: ["t"])
      if number % 2 == 0 { fixture.store.flush() }
      fixture.store.purge(.tag(tag))
      #expect(fixture.entryIDs("a").isEmpty)
    }
    fixture.store.sweep()
    #expect(fixture.entryIDs("a").isEmpty)
    #expect(fixture.store.statistics().activePurges == 0)
  }

  private final class Progress: Sendable {
    let floor = Atomic<UInt64>(0)
    let isDone = Atomic<Bool>(false)
  }

  @Test func noReaderOnAnyThreadFindsAnEntryFromBeforeAPurge() async throws {
    let fixture = try StoreFixture()
    let store = fixture.store
    let progress = Progress()
    let keys = (0..<8).map { wholeKey("/p/\($0)") }
    let scopes: [PurgeScope] = [
      .tag(tag), Self.pattern("/p/*"), Self.pattern("/**"), .everything,
    ]
    let storeKeys = keys.map { fixture.key($0) }
    await withTaskGroup(of: Int.self) { group in
      for _ in 0..<2 {
        group.addTask {
          guard let reader = try? store.makeReader() else { return 1 }
          var failures = 0
          while !progress.isDone.load(ordering: .relaxed) {
            for (key, storeKey) in zip(keys, storeKeys) {
              reader.begin()
              let floorBefore = progress.floor.load(ordering: .sequentiallyConsistent)
              readRecords(reader, storeKey, key) { if $0.entryID < floorBefore { failures += 1 } }
              reader.end()
            }
          }
          return failures
        }
      }
      for number in 0..<2000 {
        fixture.putInline(keys[number % 8], "x", tags: ["t"])
        if number % 7 == 0 {
          let receipt = store.purge(scopes[number / 7 % 4])
          progress.floor.store(receipt.floor, ordering: .sequentiallyConsistent)
        }
      }
      progress.isDone.store(true, ordering: .relaxed)
      for await failures in group { #expect(failures == 0) }
    }
    store.sweep()
    #expect(store.statistics().activePurges == 0)
  }
}
