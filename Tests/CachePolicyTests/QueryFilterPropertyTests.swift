import CachePolicy
import Support
import Testing

/// Two queries that some origin tells apart in their counting parameters never give one key.
struct QueryFilterPropertyTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var recipe: KeyRecipe
    /// Whether a parameter counts, by its name as an origin looks it up.
    var counts: @Sendable (ToyOrigin, String) -> Bool
    var testDescription: String { name }
  }

  private static func named(_ names: [String], isSorted: Bool) -> Case {
    Case(
      name: "names \(names)\(isSorted ? ", sorted" : "")",
      recipe: KeyRecipe(query: .names(names), sortQuery: isSorted),
      counts: { origin, name in names.contains { origin.own($0) == name } })
  }

  private static func ignoring(_ pattern: String, isSorted: Bool) -> Case {
    let (head, tail) = (
      String(pattern.prefix { $0 != "*" }),
      String(pattern.reversed().prefix { $0 != "*" }.reversed())
    )
    return Case(
      name: "ignore \(pattern)\(isSorted ? ", sorted" : "")",
      recipe: KeyRecipe(ignoreQuery: [pattern], sortQuery: isSorted),
      counts: { _, name in
        !(name.count >= head.count + tail.count && name.hasPrefix(head) && name.hasSuffix(tail))
      })
  }

  private static let cases: [Case] = [
    named(["base"], isSorted: false), named(["base"], isSorted: true),
    named(["a_b", "u;base"], isSorted: false), named(["a_b", "base[]"], isSorted: true),
    ignoring("u*", isSorted: false), ignoring("u*", isSorted: true),
    ignoring("*_x", isSorted: false), ignoring("*", isSorted: false),
    Case(name: "all, sorted", recipe: KeyRecipe(sortQuery: true), counts: { _, _ in true }),
  ]

  private static let names = [
    "base", "base", "base", "u", "u_x", "BASE", "b%61se", "base[]", "[base]", "base[]_x", "base.x",
    "base%00q", "+base", "a_b", "a_b", "a.b", "a.b", "a+b", "a[b", "a[b]", "%zz", "u%3Bbase", "x",
    "",
  ]

  private static func randomQuery(_ dice: inout Dice) -> String {
    var query = ""
    for index in 0..<Int.random(in: 0...4, using: &dice) {
      if index > 0 { query += dice.pick(["&", "&", ";"]) }
      query += dice.pick(names) + dice.pick(["", "=", "=1", "=1", "=2"])
    }
    return dice.pick(["", "", "", "", ";", "&"]) + query
  }

  @Test(arguments: cases)
  func queriesThatAnOriginTellsApartHaveDifferentKeys(_ row: Case) {
    var dice = Dice(seed: 1)
    var seen: [String?: (query: String, views: [[ToyOrigin.Parameter]])] = [:]
    var shared = 0
    for _ in 0..<6_000 {
      let query = Self.randomQuery(&dice)
      let key = keyed(query, row.recipe)
      let views = ToyOrigin.allCases.map { origin in
        let found = origin.read(query).filter { row.counts(origin, $0.name) }
        return row.recipe.sortQuery ? Self.inOrderOfNames(found) : found
      }
      guard let earlier = seen[key] else {
        seen[key] = (query, views)
        continue
      }
      if earlier.query != query { shared += 1 }
      #expect(earlier.views == views, "\(earlier.query) and \(query) have the key \(key ?? "nil")")
    }
    // Without keys that are shared there would be nothing to see.
    #expect(shared > 50)
  }

  /// What an origin that does not look at the order of different names sees.
  private static func inOrderOfNames(_ found: [ToyOrigin.Parameter]) -> [ToyOrigin.Parameter] {
    found.enumerated().sorted { ($0.element.name, $0.offset) < ($1.element.name, $1.offset) }
      .map(\.element)
  }
}
