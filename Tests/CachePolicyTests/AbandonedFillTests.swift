import CachePolicy
import Testing

/// Which fetches go on when all their clients have left, as a table.
struct AbandonedFillTests {
  struct Row: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let rule: AbandonedFill
    let received: UInt64
    let declared: UInt64?
    let goesOn: Bool

    init(
      _ name: String, _ rule: AbandonedFill, _ received: UInt64, of declared: UInt64?,
      _ goesOn: Bool
    ) {
      testDescription = name
      self.rule = rule
      self.received = received
      self.declared = declared
      self.goesOn = goesOn
    }
  }

  private static let mebibyte: UInt64 = 1 << 20
  private static let tenth = AbandonedFill.finishWhere(belowBytes: 0, fromPercent: 10)
  private static let whole = AbandonedFill.finishWhere(belowBytes: 100, fromPercent: 100)

  static let rows = [
    Row("finish, at the begin of the largest", .finish, 0, of: .max, true),
    Row("stop, before the head", .stop, 0, of: nil, false),
    Row("stop, one byte before the end", .stop, 9, of: 10, false),
    Row("before the head", .standard, 0, of: nil, true),
    Row("a small body that has not begun", .standard, 0, of: 10, true),
    Row("exactly small", .standard, 0, of: mebibyte, true),
    Row("a byte too large", .standard, 0, of: mebibyte + 1, false),
    Row("a byte before the half", .standard, mebibyte - 1, of: 2 * mebibyte, false),
    Row("exactly the half", .standard, mebibyte, of: 2 * mebibyte, true),
    Row("the half of an odd length", .standard, mebibyte, of: 2 * mebibyte + 1, false),
    Row("more than the half of an odd length", .standard, mebibyte + 1, of: 2 * mebibyte + 1, true),
    Row("unknown length, exactly small", .standard, mebibyte, of: nil, true),
    Row("unknown length, a byte too large", .standard, mebibyte + 1, of: nil, false),
    Row("an empty body", tenth, 0, of: 0, true),
    Row("a tenth", tenth, 100, of: 1_000, true),
    Row("nearly a tenth", tenth, 99, of: 1_000, false),
    Row("below nothing, before the head", tenth, 0, of: nil, true),
    Row("below nothing, a byte of unknown length", tenth, 1, of: nil, false),
    Row("only the whole, a byte before the end", whole, 999, of: 1_000, false),
    Row("only the whole, all there", whole, 1_000, of: 1_000, true),
    Row("a length as large as can be written", .standard, .max / 2 + 1, of: .max, true),
    Row("the same, a byte less", .standard, .max / 2, of: .max, false),
  ]

  @Test(arguments: rows) func goesOn(_ row: Row) {
    #expect(row.rule.goesOn(receivedBytes: row.received, declaredBytes: row.declared) == row.goesOn)
  }
}
