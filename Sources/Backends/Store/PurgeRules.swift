/// The purges that are not done with: each a target and a floor, below which the IDs lie of the
/// entries that it covers.
///
/// A rule holds from the moment it is made, for readers and for writes on their way, while the
/// writer still has to note it in the file and remove what it covers (PurgeSweep). Its stages:
/// announced; stored (its row is committed); swept (the removals are committed); settled (they are
/// in every reader's snapshot: readers need not look any more); gone, once no fill runs that began
/// before it. A purge of a target that has a rule raises the rule's floor and begins anew.
///
/// The table is bounded. Where it is full, rules that only wait for old fills go first: instead,
/// no fill that began before the latest of them may land. Patterns, with which every record is
/// compared, have a bound of their own: beyond it all of them are widened to the first segment of
/// their path. What cannot be made to fit so becomes a purge of everything: never is one lost.
///
/// One lock; a loop takes it at a hit only where the copy is older than some rule. Owned by
/// StoreShared.
internal import CachePolicy
internal import Synchronization

final class PurgeRules: Sendable {
  static let rulesMax = 4096
  static let patternsMax = 128

  private let secret: (UInt64, UInt64)
  private let rulesMax: Int
  private let patternsMax: Int
  private let state = Mutex(State())
  /// The highest floor of a rule that readers look at, 0 without any: what hits compare with.
  private let readFloorMax = Atomic<UInt64>(0)
  /// The same of all rules.
  private let writeFloorMax = Atomic<UInt64>(0)

  struct Rule {
    var floor: UInt64
    var stage: Stage
  }

  enum Stage: Equatable {
    case announced, stored
    case swept(generation: UInt64)
    case settled
  }

  /// A rule's target and its floor.
  struct Purge: Equatable {
    var target: PurgeTarget
    var floor: UInt64
  }

  /// What a new rule asks of the writer.
  enum Registration: Equatable {
    case rules(written: [Purge], forgotten: [PurgeTarget])
    /// There is no room for it: everything is to be purged instead.
    case everything
  }

  fileprivate struct State {
    var rules: [PurgeTarget: Rule] = [:]
    // What of them there is to look up.
    var tagCount = 0
    var urlCount = 0
    var hostsByPath: [UInt64: [RoutePattern.HostPattern?]] = [:]
    var patterns: [PurgePattern] = []
    /// Rules whose sweep is to be done, and those that are past it.
    var storedCount = 0
    var sweptCount = 0
    /// No fill that began below it lands: it stands for rules that were given up.
    var landingFloor: UInt64 = 0
  }

  /// `stored` are the rules that the file holds.
  init(
    secret: (UInt64, UInt64), stored: [Purge] = [], rulesMax: Int = PurgeRules.rulesMax,
    patternsMax: Int = PurgeRules.patternsMax
  ) {
    self.secret = secret
    self.rulesMax = rulesMax
    self.patternsMax = patternsMax
    state.withLock { state in
      for purge in stored { state.set(purge.target, Rule(floor: purge.floor, stage: .stored)) }
      publishFloors(state)
    }
  }

  var count: Int { state.withLock { $0.rules.count } }

  // MARK: For readers and writes

  /// Whether readers skip the record: a purge covers it.
  @inline(__always)
  func hides(_ record: RecordView, pathHash: UInt64) -> Bool {
    guard record.entryID < readFloorMax.load(ordering: .sequentiallyConsistent) else {
      return false
    }
    return isCovered(record, pathHash: pathHash, bySettled: false)
  }

  /// Whether the record must not land.
  func refuses(_ record: RecordView, pathHash: UInt64, mode: WriteMode) -> Bool {
    guard record.entryID < writeFloorMax.load(ordering: .sequentiallyConsistent) else {
      return false
    }
    if mode == .insert, record.entryID < state.withLock({ $0.landingFloor }) { return true }
    return isCovered(record, pathHash: pathHash, bySettled: true)
  }

  private func isCovered(
    _ record: RecordView, pathHash: UInt64, bySettled: Bool
  ) -> Bool {
    let subject = PurgeSubject(record: record, pathHash: pathHash, secret: secret)
    // SAFETY: the record's memory is the caller's for the call, within which the lock is held.
    nonisolated(unsafe) let unsafeSubject = subject
    return state.withLock { $0.covers(unsafeSubject, bySettled: bySettled) }
  }

  // MARK: For purges

  /// Makes a rule of the target, or raises that which it has; holds when this returns.
  func register(_ target: PurgeTarget, floor: UInt64) -> Registration {
    state.withLock { state in
      // Under the lock, so that `publishFloors` does not lower them again.
      defer {
        readFloorMax.max(floor, ordering: .sequentiallyConsistent)
        writeFloorMax.max(floor, ordering: .sequentiallyConsistent)
      }
      if let known = state.rules[target] {
        guard known.floor < floor else { return .rules(written: [], forgotten: []) }
        state.set(target, Rule(floor: floor, stage: .announced))
        return .rules(written: [Purge(target: target, floor: floor)], forgotten: [])
      }
      let isFull = state.rules.count >= rulesMax
      if isFull || target.isPattern && state.patterns.count >= patternsMax {
        state.forgetSettled()
      }
      if target.isPattern && state.patterns.count >= patternsMax {
        return state.widen(adding: target, floor: floor, patternsMax: patternsMax)
      }
      guard state.rules.count < rulesMax else { return .everything }
      state.set(target, Rule(floor: floor, stage: .announced))
      return .rules(written: [Purge(target: target, floor: floor)], forgotten: [])
    }
  }

  /// Everything below the floor is gone: rules that say no more are, too.
  func supersede(floor: UInt64) {
    state.withLock { state in
      for (target, rule) in state.rules where rule.floor <= floor { state.set(target, nil) }
      publishFloors(state)
    }
  }

  // MARK: For the writer

  var hasSweepWork: Bool { state.withLock { $0.storedCount > 0 } }
  /// Whether `advance` may have something to do.
  var awaitsOthers: Bool { state.withLock { $0.sweptCount > 0 || $0.landingFloor > 0 } }

  /// Rules whose entries are to be removed.
  var waiting: [Purge] {
    state.withLock { state in
      state.rules.compactMap { target, rule in
        rule.stage == .stored ? Purge(target: target, floor: rule.floor) : nil
      }
    }
  }

  /// The rule's row is committed, unless the rule has changed since.
  func markStored(_ purge: Purge) {
    state.withLock { state in
      guard let rule = state.rules[purge.target], rule.floor == purge.floor,
        rule.stage == .announced
      else { return }
      state.set(purge.target, Rule(floor: purge.floor, stage: .stored))
    }
  }

  /// What the rules cover is gone from snapshots that began at this generation or later.
  func markSwept(_ purges: [Purge], generation: UInt64) {
    guard !purges.isEmpty else { return }
    state.withLock { state in
      for purge in purges {
        guard let rule = state.rules[purge.target], rule.floor == purge.floor,
          rule.stage == .stored
        else { continue }
        state.set(purge.target, Rule(floor: purge.floor, stage: .swept(generation: generation)))
      }
    }
  }

  /// Settles what every snapshot from `oldestGeneration` on holds, and lets go of rules below which
  /// no fill runs any more.
  func advance(oldestGeneration: UInt64, lowestFill: UInt64?) {
    let lowestFill = lowestFill ?? .max
    state.withLock { state in
      if state.landingFloor <= lowestFill { state.landingFloor = 0 }
      for (target, rule) in state.rules {
        var isSettled = rule.stage == .settled
        if case .swept(let generation) = rule.stage { isSettled = generation <= oldestGeneration }
        guard isSettled else { continue }
        state.set(
          target, rule.floor <= lowestFill ? nil : Rule(floor: rule.floor, stage: .settled))
      }
      publishFloors(state)
    }
  }

  private func publishFloors(_ state: borrowing State) {
    var readFloor: UInt64 = 0
    var writeFloor = state.landingFloor
    for rule in state.rules.values {
      writeFloor = max(writeFloor, rule.floor)
      if rule.stage != .settled { readFloor = max(readFloor, rule.floor) }
    }
    readFloorMax.store(readFloor, ordering: .sequentiallyConsistent)
    writeFloorMax.store(writeFloor, ordering: .sequentiallyConsistent)
  }
}

extension PurgeRules.State {
  /// Whether a rule covers the record; of those that are settled only where they count.
  func covers(_ subject: PurgeSubject, bySettled: Bool) -> Bool {
    func holds(_ target: PurgeTarget) -> Bool {
      guard let rule = rules[target], subject.entryID < rule.floor else { return false }
      return bySettled || rule.stage != .settled
    }
    if tagCount > 0, subject.tagHashes.contains(where: { holds(.tag($0)) }) { return true }
    if urlCount > 0 {
      // Without a URL that can be read it is taken for covered.
      guard let url = subject.url else { return true }
      if holds(.url(subject.pathHash, url)) { return true }
    }
    for host in hostsByPath[subject.pathHash] ?? []
    where holds(.path(subject.pathHash, host)) && subject.isOn(host) {
      return true
    }
    return patterns.contains { holds(.pattern($0)) && subject.matches($0) }
  }

  /// Puts, changes or removes (nil) a target's rule.
  mutating func set(_ target: PurgeTarget, _ rule: PurgeRules.Rule?) {
    let old = rules[target]
    rules[target] = rule
    countStage(old, by: -1)
    countStage(rule, by: 1)
    guard (old == nil) != (rule == nil) else { return }
    let step = rule == nil ? -1 : 1
    switch target {
    case .tag: tagCount += step
    case .url: urlCount += step
    case .path(let pathHash, let host):
      var hosts = hostsByPath[pathHash] ?? []
      if rule == nil { hosts.removeAll { $0 == host } } else { hosts.append(host) }
      hostsByPath[pathHash] = hosts.isEmpty ? nil : hosts
    case .pattern(let pattern):
      if rule == nil { patterns.removeAll { $0 == pattern } } else { patterns.append(pattern) }
    }
  }

  private mutating func countStage(_ rule: PurgeRules.Rule?, by step: Int) {
    switch rule?.stage {
    case .stored: storedCount += step
    case .swept, .settled: sweptCount += step
    case .announced, nil: break
    }
  }

  /// Gives up the rules that only wait for fills, and with them those fills.
  mutating func forgetSettled() {
    for (target, rule) in rules where rule.stage == .settled {
      landingFloor = max(landingFloor, rule.floor)
      set(target, nil)
    }
  }

  /// Puts wider patterns in the place of all that there are.
  mutating func widen(
    adding target: PurgeTarget, floor: UInt64, patternsMax: Int
  ) -> PurgeRules.Registration {
    guard case .pattern(let added) = target else { return .everything }
    var wider: Set<PurgePattern> = []
    for pattern in patterns + [added] {
      guard let widened = pattern.pattern.widened.flatMap(PurgePattern.init) else {
        return .everything
      }
      wider.insert(widened)
    }
    // So that there is room for some time.
    guard wider.count <= max(1, patternsMax / 2) else { return .everything }
    let forgotten = patterns.filter { !wider.contains($0) }.map { PurgeTarget.pattern($0) }
    for target in forgotten { set(target, nil) }
    let written = wider.map { PurgeRules.Purge(target: .pattern($0), floor: floor) }
    for purge in written { set(purge.target, PurgeRules.Rule(floor: floor, stage: .announced)) }
    return .rules(written: written, forgotten: forgotten)
  }
}
