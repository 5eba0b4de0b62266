import Support
import Synchronization
import Testing

/// Everything at once: clients on two loops, variants that the origin names for each other,
/// confirmations, HEADs and changes. Whatever the order, nobody is given another language's body, or
/// one from before a change that they know of.
@Suite(.serialized)
struct ValidationStormScenarios {
  private static func answer(_ request: RecordedRequest, _ version: Int) -> OriginAnswer {
    let asked = request.first("Accept-Language") ?? ""
    // To a language that it has not, the origin gives English.
    let language = asked == "de" ? "de" : "en"
    let tag = "\"\(version)-\(language)\""
    if request.first("If-None-Match")?.contains(tag) == true {
      return .empty(
        status: 304, "ETag: \(tag)", "Vary: Accept-Language", "Cache-Control: max-age=600")
    }
    return .text(
      "\(version) \(language)", "ETag: \(tag)", "Vary: Accept-Language",
      "Cache-Control: max-age=600")
  }

  @Test func nobodyGetsAnothersVariantOrWhatAChangeMadeVoid() async throws {
    let route = #"{ "name": "r", "match": "/**", "strategy": "cache-first" },"#
    let origin = try ScriptedOrigin()
    let proxy = try TestProxy(
      policies: scenarioPolicies(route, top: "\"loops\": 2,"), origin: origin)
    defer {
      origin.stop()
      proxy.stop()
    }
    let versions = Versions()
    origin.on("/a") { request in
      if request.method == "POST" {
        return .text("\(versions.next())")
      }
      return Self.answer(request, versions.current)
    }
    let port = proxy.port
    let wrong = await withTaskGroup(of: [String].self) { group in
      for client in 0..<6 {
        group.addTask { Self.client(client, port, versions) }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    #expect(wrong == [])
    let last = try proxy.get("/a", "Accept-Language: de")
    #expect(last.text == "\(versions.current) de")
    #expect(origin.requests("/a").contains { $0.first("If-None-Match") != nil })
  }

  /// What one client found wrong.
  private static func client(_ number: Int, _ port: UInt16, _ versions: Versions) -> [String] {
    var dice = UInt64(number) &* 0x9E37_79B9_7F4A_7C15 | 1
    var wrong: [String] = []
    do {
      let connection = try ClientConnection(port: port)
      defer { connection.close() }
      for _ in 0..<120 {
        dice = dice &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        let roll = Int(dice >> 33)
        let language = ["en", "de", "pt", "es"][roll % 4]
        var fields = ["Accept-Language: \(language)"]
        if roll / 4 % 3 == 0 { fields.append("Cache-Control: no-cache") }
        switch roll / 12 % 12 {
        case 0:
          connection.send("POST", "/a", [], body: [1])
          versions.acknowledge(Int(try connection.readAnswer().text) ?? .max)
        case 1:
          connection.send("HEAD", "/a", fields)
          _ = try connection.readAnswer()
        default:
          let known = versions.acknowledged
          let answer = try connection.get("/a", fields)
          let parts = answer.text.split(separator: " ")
          let expected = language == "de" ? "de" : "en"
          if answer.status != 200 || parts.count != 2 || parts[1] != expected
            || Int(parts[0]) ?? 0 < known
          {
            wrong.append("\(language) after \(known): \(answer.status) \(answer.text)")
          }
        }
      }
    } catch {
      wrong.append("\(error)")
    }
    return wrong
  }
}

/// What the origin has, and what clients have been told that it has.
private final class Versions: Sendable {
  private let state = Mutex((current: 1, acknowledged: 1))

  var current: Int { state.withLock { $0.current } }
  var acknowledged: Int { state.withLock { $0.acknowledged } }

  func next() -> Int {
    state.withLock { state in
      state.current += 1
      return state.current
    }
  }

  func acknowledge(_ version: Int) {
    state.withLock { $0.acknowledged = max($0.acknowledged, version) }
  }
}
