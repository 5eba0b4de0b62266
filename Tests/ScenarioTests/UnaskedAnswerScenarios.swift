import Support
import Testing

/// Answers that no request asked for: they are an origin's error, and nobody is given them.
struct UnaskedAnswerScenarios {
  @Test(arguments: [304, 206], ["/a", "/stored/a"])
  func aPartOrConfirmationThatNobodyAskedForIsABrokenAnswer(_ status: Int, _ path: String) throws {
    let stored =
      #"{ "name": "stored", "match": "/stored/**", "strategy": "cache-first", "ttl": "1h" }"#
    try scenario(stored) { origin, proxy in
      let unasked: OriginAnswer =
        status == 304
        ? .empty(status: 304, "ETag: \"x\"")
        : .text("part", status: 206, "Content-Range: bytes 0-3/9")
      origin.on(path, inTurn: [unasked, .text("whole")])
      let first = try proxy.get(path)
      #expect(first.status == 502)
      let second = try proxy.get(path)
      #expect(second.text == "whole")
    }
  }

  @Test func whatAClientAskedForPasses() throws {
    try scenario("") { origin, proxy in
      origin.on("/a", .empty(status: 304, "ETag: \"x\""))
      origin.on("/b", .text("part", status: 206, "Content-Range: bytes 0-3/9"))
      let confirmed = try proxy.get("/a", "If-None-Match: \"x\"")
      #expect(confirmed.status == 304)
      let part = try proxy.get("/b", "Range: bytes=0-3")
      #expect(part.status == 206)
    }
  }
}
