import CachePolicy
import Testing

@Suite struct MaxForwardsTests {
  @Test(
    arguments: [
      ("0", .reached), ("00", .reached), ("1", .remaining(0)), ("10", .remaining(9)),
      ("", .unlimited), ("-1", .unlimited), ("1.5", .unlimited), ("x", .unlimited),
    ] as [(String, MaxForwards)])
  func optionsGoAsFarAsTheyMay(value: String, expected: MaxForwards) {
    let fields = Fields([("Max-Forwards", value)])
    #expect(MaxForwards(fields, method: .options) == expected)
    #expect(MaxForwards(fields, method: .get) == .unlimited)
  }

  @Test func withoutTheFieldThereIsNoLimit() {
    #expect(MaxForwards(Fields(), method: .options) == .unlimited)
  }
}
