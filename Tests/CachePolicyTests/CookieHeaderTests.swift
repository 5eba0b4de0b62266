import CachePolicy
import Testing

struct CookieHeaderTests {
  private static func request(_ lines: [String]) -> Fields {
    Fields([("Accept", "a=9")] + lines.map { ("Cookie", $0) })
  }

  @Test(
    arguments: [
      ("alone", ["a=1"], ["1"]),
      ("among others", ["b=2; a=1; c=3"], ["1"]),
      ("none of that name", ["b=2; aa=1; A=3; xa=4"], []),
      ("no cookies", [], []),
      ("twice", ["a=1; b=2; a=3"], ["1", "3"]),
      ("on several lines", ["a=1", "b=2; a=3"], ["1", "3"]),
      ("without spaces", ["b=2;a=1;c=3"], ["1"]),
      ("with more spaces", [" b=2 ;\t a = 1 ; c"], ["1"]),
      ("empty", ["a="], [""]),
      ("empty pairs", [";;a=1;;"], ["1"]),
      ("an equals sign in the value", ["a=1=2"], ["1=2"]),
      ("quotes stay", ["a=\"1 2\""], ["\"1 2\""]),
      ("a quote does not hide a semicolon", ["a=\"1;a=2\""], ["\"1", "2\""]),
      ("no equals sign", ["a; b=1"], []),
      ("a comma belongs to the value", ["b=1,a=2; a=3"], ["3"]),
      ("the name in a value", ["b=a=1"], []),
    ] as [(String, [String], [String])])
  func everyCookieOfTheNameIsFound(_ name: String, _ lines: [String], _ expected: [String]) {
    let fields = Self.request(lines)
    let found = CookieHeader.values(of: "a", in: fields)
    #expect(found.map { text(Array(fields.bytes[$0])) as String } == expected, "\(name)")
  }

  @Test(
    arguments: [
      ("plain", ["b=2; a=1"], false),
      ("none", ["b=2"], false),
      ("twice", ["a=1;a=2"], false),
      ("a closed string", ["a=\"x\"; b=\"\\\"y\""], false),
      ("a comma within a value", ["b=1,2; a=3,4"], false),
      ("an open string", ["a=\"x; c=1"], true),
      ("an open string of another's that hides it", ["x=\"; a=de; y=\""], true),
      ("a lone quote", ["b=\""], true),
      ("letters of another case", ["A=1"], true),
      ("percent-encoded", ["%61=1"], true),
      ("a member", ["a[b]=1"], true),
      ("behind a comma", ["b=1,a=2"], true),
      ("without an equals sign", ["a; b=2"], true),
      ("white space before the equals sign", ["b=1; a =1"], true),
      ("white space behind the equals sign", ["a= 1"], true),
      ("white space in another cookie", ["b = 1; a=1"], false),
      ("a name that cannot be read", ["b%zz=1"], true),
    ] as [(String, [String], Bool)])
  func whatOriginsReadDifferentlyIsDoubtful(
    _ name: String, _ lines: [String], _ expected: Bool
  ) {
    #expect(CookieHeader.isDoubtful("a", in: Self.request(lines)) == expected, "\(name)")
  }
}
