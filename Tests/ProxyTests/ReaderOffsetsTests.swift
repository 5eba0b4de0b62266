/// Where a fill's readers are: the first, whom most fills have alone, and the others.
import Testing

@testable import Proxy

struct ReaderOffsetsTests {
  private final class Reader {}

  @Test func theSlowestCountsWhoeverCameFirst() {
    let (one, two, three) = (Reader(), Reader(), Reader())
    var offsets = ReaderOffsets()
    #expect(offsets.isEmpty && offsets.slowest == nil && offsets.count == 0)
    offsets.set(one, to: 5)
    #expect(offsets.slowest == 5 && offsets.count == 1 && !offsets.isEmpty)
    offsets.set(two, to: 3)
    offsets.set(three, to: 9)
    #expect(offsets.slowest == 3 && offsets.count == 3)
    offsets.set(two, to: 7)
    #expect(offsets.slowest == 5 && offsets.count == 3)
    offsets.set(one, to: 8)
    #expect(offsets.slowest == 7)
  }

  @Test func whoHasGoneCountsNoMore() {
    let (one, two) = (Reader(), Reader())
    var offsets = ReaderOffsets()
    offsets.set(one, to: 1)
    offsets.set(two, to: 2)
    offsets.remove(one)
    #expect(offsets.slowest == 2 && offsets.count == 1)
    #expect(!offsets.contains(one) && offsets.contains(two))
    // Not entered a second time.
    offsets.set(two, to: 4)
    #expect(offsets.slowest == 4 && offsets.count == 1)
    offsets.remove(one)
    offsets.remove(two)
    #expect(offsets.isEmpty && offsets.slowest == nil)
  }
}
