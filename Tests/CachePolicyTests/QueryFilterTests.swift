import CachePolicy
import Testing

/// What counts of the query, or nil where nothing does.
func keyed(_ query: String, _ recipe: KeyRecipe) -> String? {
  let bytes = Array(query.utf8)
  var key: [UInt8] = [0x21]
  let counts = QueryFilter(recipe).appendKeyedQuery(bytes.span, to: &key)
  // What was there before stays, and nothing is added where nothing counts.
  guard key[0] == 0x21, counts || key.count == 1 else { return "broken" }
  return counts ? text(Array(key[1...])) as String : nil
}

struct QueryFilterTests {
  private static let named = KeyRecipe(query: .names(["base", "symbols"]))
  private static let tracking = KeyRecipe(ignoreQuery: ["utm_*", "fbclid"])

  @Test(
    arguments: [
      ("nothing of these", "utm_source=x&y=1", nil),
      ("nothing at all", "", nil),
      ("only separators", "&&;&;;", nil),
      ("one of several", "utm_source=x&base=USD&y=1", "base=USD"),
      ("both, as they came", "symbols=EUR&x=1&base=USD", "symbols=EUR&base=USD"),
      ("twice", "base=USD&base=EUR", "base=USD&base=EUR"),
      ("without a value", "base", "base"),
      ("with an empty value", "base=", "base="),
      ("values stay byte for byte", "base=%55+SD%zz", "base=%55+SD%zz"),
      ("an encoded separator is no separator", "x=1%26base=2", nil),
      ("empty groups go", "&&base=USD&&", "base=USD"),
      ("a longer name is another", "bases=1&base2=2&xbase=3", nil),
      ("the name in the value is none", "x=base&y=1=base", nil),
    ] as [(String, String, String?)])
  func namedParametersCount(_ name: String, _ query: String, _ expected: String?) {
    #expect(keyed(query, Self.named) == expected, "\(name)")
  }

  /// Parameter cloaking: what some origin reads as a listed parameter counts.
  @Test(
    arguments: [
      ("a value with a semicolon", "symbols=EUR;USD", "symbols=EUR;USD"),
      ("a semicolon parts for older origins", "utm_source=x;base=USD", "&base=USD"),
      ("a leading semicolon", ";base=USD", "&base=USD"),
      ("behind an ampersand", "symbols=EUR&utm=x;base=USD", "symbols=EUR&&base=USD"),
      ("from the first that counts on", "a=1;base=1;b=2;symbols=3;c", "&base=1;b=2;symbols=3;c"),
      ("percent-encoded", "b%61se=USD", "b%61se=USD"),
      ("percent-encoded, wholly", "%62%61%73%65=USD", "%62%61%73%65=USD"),
      ("other letters (ASP.NET)", "BASE=USD&Base=EUR", "BASE=USD&Base=EUR"),
      ("a list (PHP, Rails, qs)", "base[]=USD&base[x]=1", "base[]=USD&base[x]=1"),
      ("a list, encoded", "base%5B%5D=USD", "base%5B%5D=USD"),
      ("a member (qs with dots)", "base.x=1", "base.x=1"),
      ("in brackets (qs, Rack)", "[base]=1&]base=2", "[base]=1&]base=2"),
      ("spaces before it (PHP)", "+base=1&%20base=2", "+base=1&%20base=2"),
      ("a question mark before it (URLSearchParams)", "?base=1", "?base=1"),
      ("cut at NUL (PHP)", "base%00x=1", "base%00x=1"),
      ("a percent that is none", "%u0062ase=1&%zz=2&x%=3", "%u0062ase=1&%zz=2&x%=3"),
      ("beyond ASCII", "ba%C5%BFe=1", "ba%C5%BFe=1"),
    ] as [(String, String, String?)])
  func whatAnOriginMayTakeForANamedParameterCounts(
    _ name: String, _ query: String, _ expected: String?
  ) {
    #expect(keyed(query, Self.named) == expected, "\(name)")
  }

  @Test(
    arguments: [
      ("an underscore of PHP's", "a_b", "a.b=1&a+b=2&a[b=3&a_b=4", "a.b=1&a+b=2&a[b=3&a_b=4"),
      ("a list that is listed", "ids[]", "ids[]=1&ids=2&ids[x]=3", "ids[]=1&ids=2&ids[x]=3"),
      ("a dotted name that is listed", "a.b", "a.b=1&a=2&b=3&a_b=4", "a.b=1&a_b=4"),
      ("a name with a semicolon, encoded", "a;b", "a%3Bb=1&a;b=2&b=3", "a%3Bb=1&a;b=2"),
      ("a name in capitals", "Base", "base=1", "base=1"),
    ] as [(String, String, String, String?)])
  func listedNamesAreReadAsOriginsReadThem(
    _ name: String, _ listed: String, _ query: String, _ expected: String?
  ) {
    #expect(keyed(query, KeyRecipe(query: .names([listed]))) == expected, "\(name)")
  }

  @Test(
    arguments: [
      ("ignored", "utm_source=x&fbclid=y", nil),
      ("ignored, encoded", "%75tm%5fsource=x", nil),
      ("the rest stays", "a=1&utm_source=x&b=2;3&c", "a=1&b=2;3&c"),
      ("the pattern takes the whole name", "xutm_a=1&fbclid2=2", "xutm_a=1&fbclid2=2"),
      ("a star stands for nothing, too", "utm_=1&utm=2", "utm=2"),
      ("letters of another case", "UTM_source=x", "UTM_source=x"),
      ("a list of that name is another", "fbclid[]=x", "fbclid[]=x"),
      ("a list that the pattern takes", "utm_x[]=1&utm_x[a]=2", nil),
      ("a semicolon behind an ignored one", "utm_a=x;base=USD", "&base=USD"),
      ("all ignored by both readings", "utm_a=x;fbclid=2", nil),
      ("pieces are ignored, the whole is not", "fbclid;utm_a=1", "fbclid;utm_a=1"),
      ("a name without a value", "1234&utm_x", "1234"),
      ("an empty name", "=1", "=1"),
      ("what cannot be read is not ignored", "utm_%zz=1&utm_%00=2", "utm_%zz=1&utm_%00=2"),
    ] as [(String, String, String?)])
  func ignoredParametersDoNotCount(_ name: String, _ query: String, _ expected: String?) {
    #expect(keyed(query, Self.tracking) == expected, "\(name)")
  }

  @Test(arguments: [
    ("*_src", "base[]_src=1", false), ("*_src", "[base]_src=1", false), ("*_src", "a_src=1", true),
    ("ref[]", "ref[]=1", true), ("ref[]", "ref=1", false), ("ref[*", "ref[x]=1", true),
    ("*", "a[b]=1", true), ("*", "=1", true), ("a*b*c", "aXbYbZc=1", true),
    ("a*b*c", "abcd=1", false), ("a b", "a+b=1", true), ("", "=1", true), ("", "a=1", false),
  ])
  func aPatternTakesNoNameThatAnOriginReadsAsAnother(
    _ pattern: String, _ query: String, _ isIgnored: Bool
  ) {
    #expect((keyed(query, KeyRecipe(ignoreQuery: [pattern])) == nil) == isIgnored)
  }

  @Test func namesAndPatternsBothHold() {
    let recipe = KeyRecipe(query: .names(["a", "b"]), ignoreQuery: ["b"])
    #expect(keyed("a=1&b=2&b[]=3&c=4", recipe) == "a=1&b[]=3")
  }

  @Test(
    arguments: [
      ("by name", "b=2&a=1&c=3", "a=1&b=2&c=3"),
      ("values of one name stay in order", "b=2&a=2&b=1&a=1", "a=2&a=1&b=2&b=1"),
      ("by the decoded name", "%62=1&a=2", "a=2&%62=1"),
      ("spellings of one name stay in order", "b=1&A=2&%61=3&a=4", "A=2&%61=3&a=4&b=1"),
      ("members stay in order", "x=1&a[y]=2&a[]=3&a=4", "a[y]=2&a[]=3&a=4&x=1"),
      ("empty groups go", "&b=1&&a=2&", "a=2&b=1"),
      ("not with a semicolon", "b=1&a=2;c=3", "b=1&a=2;c=3"),
      ("not with a name that cannot be read", "b=1&a=2&%zz=3", "b=1&a=2&%zz=3"),
      ("not where PHP reads two names as one", "a_b=1&a.b=2&a=3", "a_b=1&a.b=2&a=3"),
      ("underscores alone are sorted", "x_b=1&x_a=2&i[]=3", "i[]=3&x_a=2&x_b=1"),
      ("dots alone are sorted", "b.x=1&a.y=2&a.x=3", "a.y=2&a.x=3&b.x=1"),
      ("nothing", "", nil),
    ] as [(String, String, String?)])
  func sortedParametersCountInOneOrder(_ name: String, _ query: String, _ expected: String?) {
    #expect(keyed(query, KeyRecipe(sortQuery: true)) == expected, "\(name)")
  }

  @Test func aFilteredQueryIsSorted() {
    let recipe = KeyRecipe(query: .names(["base", "symbols"]), sortQuery: true)
    #expect(keyed("symbols=EUR&utm_source=x&base=USD", recipe) == "base=USD&symbols=EUR")
    #expect(keyed("utm_source=x", recipe) == nil)
  }

  /// An origin that reads a thousand parameters would not see the one at the end.
  @Test func aQueryOfVeryManyParametersCountsByteForByte() {
    let few = String(repeating: "x&", count: QueryFilter.parametersMax - 1) + "base=1"
    #expect(keyed(few, Self.named) == "base=1")
    let many = String(repeating: "x&", count: QueryFilter.parametersMax) + "base=1"
    #expect(keyed(many, Self.named) == many)
    #expect(keyed(many, KeyRecipe(sortQuery: true)) == many)
    #expect(keyed(many, KeyRecipe(query: .none)) == nil)
  }

  @Test func onlyARecipeThatChangesNothingIsPlain() {
    #expect(QueryFilter(KeyRecipe(headers: ["a"], cookies: ["b"])).isPlain)
    for recipe in [
      KeyRecipe(query: .none), KeyRecipe(query: .names([])), KeyRecipe(ignoreQuery: ["a"]),
      KeyRecipe(sortQuery: true),
    ] { #expect(!QueryFilter(recipe).isPlain) }
    #expect(keyed("&b=1;&a", KeyRecipe()) == "&b=1;&a")
    #expect(keyed("", KeyRecipe()) == "")
    #expect(keyed("a=1", KeyRecipe(query: .none, sortQuery: true)) == nil)
  }
}
