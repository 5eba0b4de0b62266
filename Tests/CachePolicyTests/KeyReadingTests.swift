import Testing

@testable import CachePolicy

/// What is written into a key can be read out of it, and nothing else can.
@Suite struct KeyReadingTests {
  private func key(
    _ recipe: KeyRecipe, _ identity: UserIdentity?, _ fields: Fields
  ) -> [UInt8] {
    var key: [UInt8] = []
    for part in ["upstream", "host", "/path"] {
      let bytes = Array(part.utf8)
      CacheKey.append(part: bytes.span, to: &key)
    }
    let digest = { (bytes: Span<UInt8>) in [UInt8](repeating: UInt8(bytes.count & 0xFF), count: 4) }
    let count = recipe.headers.count + recipe.cookies.count
    if count > 0 {
      key += [UInt8(ascii: "h"), UInt8(count)]
      recipe.append(headersOf: fields, to: &key, digest: digest)
    }
    if let identity {
      key.append(UInt8(ascii: "u"))
      #expect(identity.append(identityOf: fields, to: &key, digest: digest))
    }
    return key
  }

  @Test func everyPartIsReadBack() throws {
    let fields = Fields([
      ("Accept", "a"), ("Accept", ""), ("X-Api-Key", "secret"), ("Cookie", "region=eu"),
    ])
    let recipe = KeyRecipe(headers: ["accept", "x-api-key", "x-none"], cookies: ["region"])
    let key = key(recipe, .header("x-api-key"), fields)
    let read = CacheKey.additions(of: key.span)
    let found = try #require(read)
    #expect(found.parts.map(\.name) == ["accept", "x-api-key", "x-none", "region"])
    #expect(found.parts[0].value == .clear([Array("a".utf8), []]))
    #expect(found.parts[2].value == .absent)
    for part in [found.parts[1], found.parts[3]] {
      guard case .digest(let digest) = part.value else {
        Issue.record("\(part) is no digest")
        continue
      }
      #expect(digest.count == 4)
    }
    #expect(found.identity?.count == 4)
  }

  @Test func keyOfATargetAloneAddsNothing() {
    let key = key(KeyRecipe(), nil, Fields())
    let read = CacheKey.additions(of: key.span)
    #expect(read == CacheKey.Additions())
  }

  @Test func keyThatBreaksOffIsNotRead() {
    let fields = Fields([("Accept", "a"), ("Authorization", "b")])
    let whole = key(KeyRecipe(headers: ["accept"]), .header("authorization"), fields)
    let target = key(KeyRecipe(), nil, fields)
    for count in target.count + 1..<whole.count {
      let part = Array(whole[..<count])
      let read = CacheKey.additions(of: part.span)
      // At the end of the fields it is whole again: a key without a user.
      #expect(read == nil || read?.identity == nil && !read!.parts.isEmpty, "\(count)")
    }
    let tooLong = whole + [0]
    #expect(CacheKey.additions(of: tooLong.span) == nil)
  }

  @Test func namesOfABlockAreRead() throws {
    let response = Fields([("Vary", "Accept-Language, accept-encoding"), ("Vary", "X-A")])
    let request = Fields([("Accept-Encoding", "gzip"), ("X-A", "long value")])
    let made = Vary.selectingBlock(response: response, request: request, ignore: false)
    let block = try #require(made)
    #expect(Vary.names(in: block.span) == ["accept-encoding", "accept-language", "x-a"])
    #expect(Vary.names(in: [UInt8]().span).isEmpty)
    let damaged = Array(block.dropLast())
    #expect(Vary.names(in: damaged.span).count == 2)
  }

  @Test(
    arguments: [
      (Strategy.cacheFirst, 200, [], Int64(-1), Int64(-1), Int64(0), Int64(0)),
      (.cacheFirst, 200, [], 5, 7, 5, 7),
      (.networkFirst, 200, [], 5, -1, 5, .max),
      (.cacheFirst, 404, [], 5, 7, 0, 0),
      (.cacheFirst, 200, .mustRevalidate, 5, 7, 0, 0),
      (.cacheFirst, 200, .sharedMaxAge, 5, -1, 5, 0),
    ] as [(Strategy, UInt16, StoredFlags, Int64, Int64, Int64, Int64)])
  func windowsAreThoseThatHold(
    strategy: Strategy, status: UInt16, flags: StoredFlags, refresh: Int64, error: Int64,
    expectedRefresh: Int64, expectedError: Int64
  ) {
    let metadata = StoredMetadata(
      entryID: 1, status: status, flags: flags, requestTimeMilliseconds: 0,
      responseTimeMilliseconds: 0, initialAgeMilliseconds: 0, originLifetimeMilliseconds: 1,
      originStaleWhileRevalidateMilliseconds: refresh, originStaleIfErrorMilliseconds: error,
      bodyLength: 0)
    let windows = Freshness.staleWindows(of: metadata, policy: Policy(strategy: strategy))
    #expect(windows.staleWhileRevalidateMilliseconds == expectedRefresh)
    #expect(windows.staleIfErrorMilliseconds == expectedError)
  }
}
