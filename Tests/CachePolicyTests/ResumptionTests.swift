import CachePolicy
import Testing

/// Which broken bodies may be continued, and by what (RFC 9110 §15.3.7.3, RFC 9111 §3.4).
struct ResumptionTests {
  private static let date = ("Date", "Sun, 06 Nov 1994 08:50:37 GMT")
  private static let tag = ("ETag", "\"a\"")
  private static let accepts = ("Accept-Ranges", "bytes")
  private static let modified = ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")

  private static func resumption(
    _ response: [(String, String)], method: Method = .get, status: UInt16 = 200,
    request: [(String, String)] = [], length: UInt64? = 100
  ) -> Resumption? {
    Resumption(
      method: method, request: Fields(request), status: status, response: Fields(response),
      contentLength: length, nowSeconds: 784_111_900)
  }

  @Test(
    arguments: [
      ("a strong tag", [tag, accepts], true),
      ("a list of units", [tag, ("Accept-Ranges", "items, Bytes")], true),
      ("a date of long before", [modified, date, accepts], true),
      ("a weak tag", [("ETag", "W/\"a\""), accepts], false),
      ("a weak tag beside a date", [("ETag", "W/\"a\""), modified, date, accepts], false),
      ("a tag that is none", [("ETag", "a"), accepts], false),
      ("two tags", [tag, tag, accepts], false),
      ("no validator", [date, accepts], false),
      (
        "a date of the same minute",
        [
          ("Last-Modified", "Sun, 06 Nov 1994 08:49:38 GMT"), date,
          accepts,
        ], false
      ),
      ("no Date", [modified, accepts], false),
      ("a Last-Modified that is none", [("Last-Modified", "yesterday"), date, accepts], false),
      ("no ranges", [tag], false), ("none", [tag, ("Accept-Ranges", "none")], false),
      ("a part already", [tag, accepts, ("Content-Range", "bytes 0-99/200")], false),
    ] as [(String, [(String, String)], Bool)])
  func onlyWhatIsTheSameBeyondDoubtIsContinued(
    _ name: String, _ response: [(String, String)], _ isPossible: Bool
  ) {
    #expect((Self.resumption(response) != nil) == isPossible)
  }

  @Test func onlyAWholeAnswerToGetIsContinued() {
    let response = [Self.tag, Self.accepts]
    #expect(Self.resumption(response, method: .head) == nil)
    #expect(Self.resumption(response, method: .post) == nil)
    #expect(Self.resumption(response, status: 206) == nil)
    #expect(Self.resumption(response, status: 404) == nil)
    #expect(Self.resumption(response, request: [("Range", "bytes=0-4")]) == nil)
    #expect(Self.resumption(response, length: nil) == nil)
  }

  @Test func theRestIsAskedForUnderTheSameValidator() throws {
    let request = [("If-None-Match", "\"old\""), ("If-Modified-Since", "x"), ("Accept", "a/b")]
    let tagged = try #require(Self.resumption([Self.tag, Self.accepts], request: request))
    var fields = Fields(request)
    tagged.ask(&fields, from: 40)
    #expect(fields == Fields([("Accept", "a/b"), ("Range", "bytes=40-"), ("If-Range", "\"a\"")]))
    let dated = try #require(Self.resumption([Self.modified, Self.date, Self.accepts]))
    var other = Fields()
    dated.ask(&other, from: 1)
    #expect(other == Fields([("Range", "bytes=1-"), ("If-Range", Self.modified.1)]))
  }

  @Test(
    arguments: [
      ("the rest", 206, [tag, ("Content-Range", "bytes 40-99/100")], 60, true),
      ("of unknown length", 206, [tag, ("Content-Range", "bytes 40-99/100")], nil, true),
      ("the whole", 200, [tag, ("Content-Range", "bytes 40-99/100")], 60, false),
      ("another tag", 206, [("ETag", "\"b\""), ("Content-Range", "bytes 40-99/100")], 60, false),
      ("a weak tag", 206, [("ETag", "W/\"a\""), ("Content-Range", "bytes 40-99/100")], 60, false),
      ("no tag", 206, [("Content-Range", "bytes 40-99/100")], 60, false),
      ("an earlier part", 206, [tag, ("Content-Range", "bytes 39-99/100")], 61, false),
      ("a later part", 206, [tag, ("Content-Range", "bytes 41-99/100")], 59, false),
      ("less than the rest", 206, [tag, ("Content-Range", "bytes 40-98/100")], 59, false),
      ("of another whole", 206, [tag, ("Content-Range", "bytes 40-99/101")], 60, false),
      ("of an unknown whole", 206, [tag, ("Content-Range", "bytes 40-99/*")], 60, false),
      ("another length", 206, [tag, ("Content-Range", "bytes 40-99/100")], 61, false),
      ("no Content-Range", 206, [tag], 60, false),
      (
        "several parts", 206, [tag, ("Content-Type", "multipart/byteranges; boundary=x")], 60,
        false
      ),
      (
        "another coding", 206,
        [tag, ("Content-Range", "bytes 40-99/100"), ("Content-Encoding", "gzip")], 60, false
      ),
    ] as [(String, UInt16, [(String, String)], UInt64?, Bool)])
  func onlyTheExactRestContinues(
    _ name: String, _ status: UInt16, _ response: [(String, String)], _ length: UInt64?,
    _ isRest: Bool
  ) throws {
    let resumption = try #require(Self.resumption([Self.tag, Self.accepts]))
    #expect(
      resumption.isContinued(by: status, Fields(response), contentLength: length, from: 40)
        == isRest)
  }

  @Test func aDateContinuesByTheSameDateAlone() throws {
    let resumption = try #require(
      Self.resumption([Self.modified, Self.date, Self.accepts, ("Content-Encoding", "gzip")]))
    let part = ("Content-Range", "bytes 40-99/100")
    func continues(_ response: [(String, String)]) -> Bool {
      resumption.isContinued(by: 206, Fields(response), contentLength: 60, from: 40)
    }
    #expect(continues([Self.modified, part]))
    #expect(continues([Self.modified, part, ("Content-Encoding", "gzip")]))
    #expect(!continues([Self.modified, part, ("Content-Encoding", "br")]))
    #expect(!continues([part]))
    #expect(!continues([("Last-Modified", Self.date.1), part]))
  }
}
