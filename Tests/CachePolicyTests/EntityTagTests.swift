import CachePolicy
import Testing

struct EntityTagTests {
  @Test(arguments: [
    ("\"a\"", "\"a\"", true, true), ("\"a\"", "\"b\"", false, false),
    ("W/\"a\"", "\"a\"", true, false), ("\"a\"", "W/\"a\"", true, false),
    ("W/\"a\"", "W/\"a\"", true, false), ("\"\"", "\"\"", true, true),
    ("\"A\"", "\"a\"", false, false), ("a", "a", false, false), ("w/\"a\"", "\"a\"", false, false),
    ("\"a", "\"a", false, false), ("\"a b\"", "\"a b\"", false, false),
    ("\"a,b\"", "\"a,b\"", true, true), ("\"a\\\"", "\"a\\\"", true, true),
    ("*", "*", false, false), ("", "", false, false), ("W/", "W/", false, false),
  ])
  func tagsCompareWeaklyAndStrongly(
    _ one: String, _ other: String, _ weakly: Bool, _ strongly: Bool
  ) {
    let (left, right) = (Array(one.utf8), Array(other.utf8))
    let foundWeakly = EntityTag.list(left.span, hasWeakly: right.span)
    let foundStrongly = EntityTag.equalStrongly(left.span, right.span)
    #expect(foundWeakly == weakly)
    #expect(foundStrongly == strongly)
  }

  @Test(arguments: [
    ("\"x\", W/\"a\" ,\"y\"", true), ("\"x\",,\"a\"", true), ("x, \"a\"", true),
    ("\"x, \"a\"", false), ("\"x\\\", \"a\"", true), (" \"a\" ", true), ("\"b\", \"c\"", false),
  ])
  func aListIsSearchedToItsEnd(_ list: String, _ has: Bool) {
    let (left, right) = (Array(list.utf8), Array("\"a\"".utf8))
    let found = EntityTag.list(left.span, hasWeakly: right.span)
    #expect(found == has)
  }
}
