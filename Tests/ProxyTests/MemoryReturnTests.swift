import Backends
import Testing

@testable import Proxy

/// When free memory goes back to the system: by what is kept, and by whether the process works.
@Suite struct MemoryReturnTests {
  struct Look: Sendable, CustomTestStringConvertible {
    var name: String
    var keptBytes: Int
    var spentMilliseconds: Int64
    var givesBack: Bool
    var testDescription: String { name }
  }

  static let looks = [
    Look(
      name: "under load a little stays", keptBytes: MemoryReturn.keptBytesMax,
      spentMilliseconds: 5000, givesBack: false),
    Look(
      name: "under load what a burst left goes", keptBytes: MemoryReturn.keptBytesMax + 1,
      spentMilliseconds: 5000, givesBack: true),
    Look(
      name: "at the least load a little stays", keptBytes: MemoryReturn.keptBytesMaxIdle + 1,
      spentMilliseconds: MemoryReturn.idleProcessorMilliseconds, givesBack: false),
    Look(
      name: "idle, a little goes", keptBytes: MemoryReturn.keptBytesMaxIdle + 1,
      spentMilliseconds: MemoryReturn.idleProcessorMilliseconds - 1, givesBack: true),
    Look(
      name: "idle, next to nothing stays", keptBytes: MemoryReturn.keptBytesMaxIdle,
      spentMilliseconds: 0, givesBack: false),
  ]

  @Test(arguments: looks) func keptMemoryGoesBackByItsSizeAndTheLoad(_ look: Look) {
    var memory = MemoryReturn()
    let reading = HeapMemory.Reading(
      ownBytes: 50_000_000 + look.keptBytes, usedBytes: 50_000_000)
    // The first look only learns what the process had spent before.
    _ = memory.shouldGiveBack(
      HeapMemory.Reading(ownBytes: 0, usedBytes: 0), processorMilliseconds: 70_000)
    let givesBack = memory.shouldGiveBack(
      reading, processorMilliseconds: 70_000 + look.spentMilliseconds)
    #expect(givesBack == look.givesBack)
  }

  @Test func whatCannotGoIsNotTriedAgain() {
    var memory = MemoryReturn()
    let left = HeapMemory.Reading(ownBytes: 20_000_000, usedBytes: 5_000_000)
    let more = HeapMemory.Reading(
      ownBytes: left.ownBytes + MemoryReturn.keptBytesMaxIdle + 1, usedBytes: left.usedBytes)
    let isFirstTried = memory.shouldGiveBack(left, processorMilliseconds: 0)
    memory.gaveBack(leaving: left)
    let isTriedAgain = memory.shouldGiveBack(left, processorMilliseconds: 0)
    let isMoreTried = memory.shouldGiveBack(more, processorMilliseconds: 0)
    #expect(isFirstTried)
    #expect(!isTriedAgain)
    #expect(isMoreTried)
  }
}
