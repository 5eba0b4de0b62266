import CachePolicy
import Testing

struct InvalidationTests {
  @Test(
    arguments: [
      (Method.post, 200, true), (.put, 204, true), (.patch, 302, true), (.delete, 399, true),
      (.other, 200, true), (.post, 400, false), (.post, 500, false), (.post, 199, false),
      (.get, 200, false), (.head, 200, false), (.options, 200, false), (.trace, 200, false),
    ] as [(Method, UInt16, Bool)])
  func aSuccessfulUnsafeRequestInvalidates(_ method: Method, _ status: UInt16, _ does: Bool) {
    #expect(Invalidation.invalidates(method: method, status: status) == does)
  }

  @Test(
    arguments: [
      ("/a/b?c=d", "/a/b?c=d"), ("/a#f", "/a"), ("/", "/"), ("", "/x/y?q"), ("?z", "/x/y?z"),
      ("c", "/x/c"), ("../c", "/c"), ("../../../c/", "/c/"), ("./c/.", "/x/c/"), ("c/..", "/x/"),
      ("/a/../b/./c", "/b/c"), ("/a//b", "/a//b"), ("http://Host:80/a", "/a"),
      ("HTTP://host", "/"), ("http://host?q", "/?q"), ("//host/a", "/a"), (" /a ", "/a"),
      ("http://other/a", nil), ("//other/a", nil), ("https://host/a", nil),
      ("http://host:81/a", nil), ("http://host@other/", nil), ("http://other@host/", nil),
      ("mailto:a", nil), ("http:a", nil), ("/a b", nil), ("/a\u{0}", nil), ("/é", nil),
      ("c:d", nil), ("./c:d", "/x/c:d"), ("/c:d", "/c:d"),
    ] as [(String, String?)])
  func onlyTargetsOfTheSameOriginAreNamed(_ reference: String, _ target: String?) {
    let bytes = Array(reference.utf8)
    let found = Invalidation.sameOriginTarget(
      bytes.span, scheme: "http", authority: "host", target: "/x/y?q")
    #expect(found == target)
  }

  @Test func anotherPortIsAnotherOrigin() {
    let bytes = Array("https://Host:8443/a".utf8)
    let same = Invalidation.sameOriginTarget(
      bytes.span, scheme: "https", authority: "host:8443", target: "/")
    let other = Invalidation.sameOriginTarget(
      bytes.span, scheme: "https", authority: "host", target: "/")
    #expect(same == "/a" && other == nil)
  }
}
