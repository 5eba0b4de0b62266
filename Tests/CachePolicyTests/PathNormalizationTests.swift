import CachePolicy
import Testing

@Suite struct PathNormalizationTests {
  struct Row: Sendable, CustomTestStringConvertible {
    var path: String
    /// nil: unchanged.
    var normal: String?
    var testDescription: String { path }

    init(_ path: String, _ normal: String? = nil) {
      self.path = path
      self.normal = normal
    }
  }

  @Test(arguments: [
    Row("/"), Row("/a/b"), Row("//a"), Row("/a//b/"), Row("/a/.b"), Row("/a/..b"), Row("/a/b.."),
    Row("/..."), Row("/.well-known/x"), Row("/a%2Fb"), Row("/a%5Cb"), Row("/a%00"), Row("/a\\b"),
    Row("/caf%C3%A9"), Row("/a%20b"), Row("/%252e%252e%252f"), Row("/a;b=c:@!$&'()*+,"),
    Row("/a\"<>^`{|}"),
    Row("/%61", "/a"), Row("/%41%7a%30%2D%5f%7E", "/Az0-_~"), Row("/a%2fb", "/a%2Fb"),
    Row("/caf%c3%a9", "/caf%C3%A9"), Row("/a%5cb", "/a%5Cb"), Row("/%2561", nil),
    Row("/.", "/"), Row("/..", "/"), Row("/./", "/"), Row("/../", "/"), Row("/../../a", "/a"),
    Row("/a/.", "/a/"), Row("/a/..", "/"), Row("/a/b/..", "/a/"), Row("/a/b/../", "/a/"),
    Row("/a/./b", "/a/b"), Row("/a/../b", "/b"), Row("/a/b/../../c", "/c"),
    Row("/a//../b", "/a/b"), Row("//../a", "/a"), Row("/.//a", "//a"),
    Row("/a/%2e%2e/b", "/b"), Row("/a/.%2E/b", "/b"), Row("/a/%2e/b", "/a/b"),
    Row("/a/%2e%2e", "/"), Row("/x%2f/../y%2f", "/y%2F"),
  ])
  func pathTakesItsNormalForm(row: Row) {
    var buffer: [UInt8] = []
    let bytes = Array(row.path.utf8)
    let outcome = PathNormalization.normalize(bytes.span, into: &buffer)
    guard let normal = row.normal else {
      #expect(outcome == .unchanged)
      return
    }
    #expect(outcome == .rewritten)
    #expect(String(decoding: buffer, as: UTF8.self) == normal)
    // The normal form of a normal form is itself.
    var again: [UInt8] = []
    #expect(PathNormalization.normalize(buffer.span, into: &again) == .unchanged)
  }

  @Test(
    arguments: [
      ("", .notAbsolute), ("a", .notAbsolute), ("*", .notAbsolute), ("http://a/b", .notAbsolute),
      ("/%", .malformedPercent), ("/%4", .malformedPercent), ("/%g0", .malformedPercent),
      ("/a%0", .malformedPercent), ("/%%41", .malformedPercent), ("/%u0041", .malformedPercent),
      ("/a b", .forbiddenByte), ("/a\u{0}", .forbiddenByte), ("/a\u{7F}", .forbiddenByte),
      ("/é", .forbiddenByte), ("/a#b", .forbiddenByte), ("/a?b", .forbiddenByte),
      ("/a\r\nb", .forbiddenByte), ("/a\tb", .forbiddenByte),
      ("/a/..%2fb", .separatorBesideDotSegment), ("/a/..%2Fb", .separatorBesideDotSegment),
      ("/a/%2e%2e%2fb", .separatorBesideDotSegment), ("/a%2f..%2fb", .separatorBesideDotSegment),
      ("/a%2f..", .separatorBesideDotSegment), ("/a/..%5cb", .separatorBesideDotSegment),
      ("/a/..\\b", .separatorBesideDotSegment), ("/a\\..", .separatorBesideDotSegment),
      ("/.%2fb", .separatorBesideDotSegment), ("/a/..%00", .separatorBesideDotSegment),
      ("/x/..%2f/../y", .separatorBesideDotSegment),
    ] as [(String, PathNormalization.Refusal)])
  func pathIsRefused(path: String, refusal: PathNormalization.Refusal) {
    var buffer: [UInt8] = []
    let bytes = Array(path.utf8)
    #expect(PathNormalization.normalize(bytes.span, into: &buffer) == .refused(refusal))
  }

  @Test func bufferIsReusedFromCallToCall() {
    var buffer = Array("left over".utf8)
    let bytes = Array("/a/../b".utf8)
    #expect(PathNormalization.normalize(bytes.span, into: &buffer) == .rewritten)
    #expect(buffer == Array("/b".utf8))
  }
}
