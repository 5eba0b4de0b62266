/// The table of purges by itself: its stages, and what it does where it is full.
import CachePolicy
import Testing

@testable import Backends

struct PurgeRulesTests {
  private let secret: (UInt64, UInt64) = (1, 2)

  private func target(_ scope: PurgeScope) -> PurgeTarget {
    PurgeTarget(scope, secret: secret)!
  }
  private func tag(_ name: String) -> PurgeTarget { target(.tag(Array(name.utf8))) }
  private func pattern(_ text: String) throws -> PurgeTarget {
    target(.pattern(try RoutePattern(parsing: text)))
  }

  private func sample(_ entryID: UInt64, tag: String) -> RecordBuffer {
    .sample(entryID: entryID, name: wholeKey("/a/b"), body: [], tags: [tag])
  }
  private func hides(_ rules: PurgeRules, _ entryID: UInt64, tag: String = "") -> Bool {
    let record = sample(entryID, tag: tag)
    return withExtendedLifetime(record) { rules.hides(record.view, pathHash: 5) }
  }
  private func refuses(
    _ rules: PurgeRules, _ entryID: UInt64, tag: String = "", mode: WriteMode = .insert
  ) -> Bool {
    let record = sample(entryID, tag: tag)
    return withExtendedLifetime(record) { rules.refuses(record.view, pathHash: 5, mode: mode) }
  }

  /// As the writer does with a rule, up to its sweep.
  private func sweep(_ rules: PurgeRules, _ target: PurgeTarget, _ floor: UInt64) {
    let purge = PurgeRules.Purge(target: target, floor: floor)
    rules.markStored(purge)
    #expect(rules.waiting.contains(purge))
    rules.markSwept([purge], generation: 7)
  }

  @Test func aRuleGoesThroughItsStages() {
    let rules = PurgeRules(secret: secret)
    let purge = PurgeRules.Purge(target: tag("t"), floor: 10)
    #expect(
      rules.register(purge.target, floor: 10) == .rules(written: [purge], forgotten: []))
    #expect(hides(rules, 9, tag: "t") && !hides(rules, 10, tag: "t") && !hides(rules, 9, tag: "s"))
    #expect(!rules.hasSweepWork)
    rules.markStored(purge)
    #expect(rules.hasSweepWork && rules.waiting == [purge])
    rules.markSwept([purge], generation: 7)
    #expect(!rules.hasSweepWork && rules.awaitsOthers)
    rules.advance(oldestGeneration: 6, lowestFill: nil)
    #expect(hides(rules, 9, tag: "t"), "a snapshot may have it")
    rules.advance(oldestGeneration: 7, lowestFill: 9)
    #expect(!hides(rules, 9, tag: "t") && refuses(rules, 9, tag: "t"), "a fill may bring it")
    rules.advance(oldestGeneration: 7, lowestFill: 10)
    #expect(!refuses(rules, 9, tag: "t") && rules.count == 0 && !rules.awaitsOthers)
  }

  @Test func aRepeatedPurgeRaisesTheFloorAndBeginsAnew() {
    let rules = PurgeRules(secret: secret)
    let first = PurgeRules.Purge(target: tag("t"), floor: 10)
    let second = PurgeRules.Purge(target: tag("t"), floor: 20)
    _ = rules.register(first.target, floor: 10)
    rules.markStored(first)
    #expect(rules.register(second.target, floor: 20) == .rules(written: [second], forgotten: []))
    rules.markSwept([first], generation: 7)
    #expect(hides(rules, 19, tag: "t") && rules.count == 1 && !rules.hasSweepWork)
    #expect(rules.register(first.target, floor: 15) == .rules(written: [], forgotten: []))
    rules.markStored(second)
    #expect(rules.waiting == [second])
  }

  @Test func aPurgeOfEverythingTakesTheOlderRulesPlace() {
    let rules = PurgeRules(secret: secret)
    _ = rules.register(tag("older"), floor: 10)
    _ = rules.register(tag("newer"), floor: 12)
    rules.supersede(floor: 11)
    #expect(rules.count == 1)
    #expect(hides(rules, 9, tag: "newer") && !hides(rules, 9, tag: "older"))
  }

  @Test func aFullTableGivesUpOldFillsBeforeAnythingElse() {
    let rules = PurgeRules(secret: secret, rulesMax: 2)
    for (name, floor) in [("a", 10), ("b", 20)] as [(String, UInt64)] {
      _ = rules.register(tag(name), floor: floor)
      sweep(rules, tag(name), floor)
    }
    rules.advance(oldestGeneration: 7, lowestFill: 5)
    let added = PurgeRules.Purge(target: tag("c"), floor: 30)
    #expect(rules.register(added.target, floor: 30) == .rules(written: [added], forgotten: []))
    #expect(rules.count == 1)
    // What is stored stays and may be confirmed; what began before does not land, whatever it is.
    #expect(!hides(rules, 9, tag: "other"))
    #expect(refuses(rules, 19, tag: "other") && !refuses(rules, 20, tag: "other"))
    #expect(!refuses(rules, 9, tag: "other", mode: .refresh))
    sweep(rules, added.target, 30)
    rules.advance(oldestGeneration: 7, lowestFill: 20)
    #expect(!refuses(rules, 19, tag: "other"))
  }

  @Test func aTableThatIsFullOfPurgesUnderWayTurnsToEverything() {
    let rules = PurgeRules(secret: secret, rulesMax: 2)
    _ = rules.register(tag("a"), floor: 10)
    _ = rules.register(tag("b"), floor: 11)
    #expect(rules.register(tag("c"), floor: 12) == .everything)
    #expect(rules.register(tag("a"), floor: 12) != .everything, "it has its place")
  }

  @Test func tooManyPatternsAreWidened() throws {
    let rules = PurgeRules(secret: secret, patternsMax: 4)
    for number in 0..<4 { _ = rules.register(try pattern("/a/\(number)/*"), floor: 10) }
    _ = rules.register(tag("t"), floor: 10)
    #expect(!hides(rules, 9))
    let wider = PurgeRules.Purge(target: try pattern("/a/**"), floor: 12)
    let outcome = rules.register(try pattern("/a/4/*"), floor: 12)
    guard case .rules(let written, let forgotten) = outcome else {
      Issue.record("\(outcome)")
      return
    }
    #expect(written == [wider])
    #expect(Set(forgotten) == Set(try (0..<4).map { try pattern("/a/\($0)/*") }))
    #expect(hides(rules, 11) && !hides(rules, 12) && rules.count == 2)
  }

  @Test(arguments: ["/*/x", "//h.example/**"]) func patternsWithoutACommonBeginTurnToEverything(
    _ text: String
  ) throws {
    let rules = PurgeRules(secret: secret, patternsMax: 2)
    _ = rules.register(try pattern("/a/*"), floor: 10)
    _ = rules.register(try pattern("/a/x*"), floor: 10)
    #expect(rules.register(try pattern(text), floor: 12) == .everything)
  }

  @Test func patternsOfTooManyBeginsTurnToEverything() throws {
    let rules = PurgeRules(secret: secret, patternsMax: 2)
    _ = rules.register(try pattern("/a/*"), floor: 10)
    _ = rules.register(try pattern("/b/*"), floor: 10)
    #expect(rules.register(try pattern("/b/c/*"), floor: 12) == .everything)
  }

  @Test(arguments: StorePurgeTests.cases) func aRowIsReadAsItWasWritten(
    _ sample: StorePurgeTests.Case
  ) throws {
    guard let target = PurgeTarget(sample.scope, secret: secret) else { return }
    let row = target.row(floor: 77)
    let read = try #require(row.withUnsafeBytes { PurgeTarget.read($0) })
    #expect(read.target == target && read.floor == 77)
    for count in 0..<10 {
      #expect(row[..<count].withUnsafeBytes { PurgeTarget.read($0) == nil }, "\(count) bytes")
    }
  }
}
