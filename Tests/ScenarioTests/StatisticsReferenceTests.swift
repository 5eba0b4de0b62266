import CachePolicy
internal import Foundation
import Proxy
import Support
import Testing

/// The fields of `GET /stats` are those that docs/operations.md explains, and no others.
@Suite struct StatisticsReferenceTests {
  private static let operations = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "docs/operations.md")

  /// Objects whose members have names of their own: routes, reasons, errors.
  private static let open = [
    "routes", "upstreams", "store.notStored", "config.lastError", "config.needsRestart",
  ]

  /// The names in the table's first column; `.b` behind `a.x` stands for `a.b`.
  private static func explained() throws -> Set<String> {
    let lines = try String(contentsOf: operations, encoding: .utf8).components(separatedBy: "\n")
    let table = lines.drop { !$0.hasPrefix("| field of `/stats`") }.dropFirst(2)
    var names: Set<String> = []
    for line in table.prefix(while: { $0.hasPrefix("|") }) {
      let cell = line.components(separatedBy: "|")[1]
      var section = ""
      for (index, name) in cell.components(separatedBy: "`").enumerated() where index % 2 == 1 {
        if let dot = name.firstIndex(of: "."), dot != name.startIndex {
          section = String(name[..<dot])
        }
        names.insert(name.hasPrefix(".") ? section + name : name)
      }
    }
    return names
  }

  private static func paths(of object: [String: Any], below prefix: String = "") -> Set<String> {
    var found: Set<String> = []
    for (name, value) in object {
      let path = prefix + name
      if let members = value as? [String: Any], !open.contains(path) {
        found.formUnion(paths(of: members, below: path + "."))
      } else {
        found.insert(path)
      }
    }
    return found
  }

  @Test func everyFieldIsExplained() throws {
    try scenario(
      """
      { "name": "stored", "match": "/stored/**", "strategy": "cache-first", "ttl": "1h" }
      """
    ) { origin, proxy in
      try proxy.settle()
      let admin = try ClientConnection(port: proxy.server!.adminAddresses[0].port)
      let answer = try admin.get("/stats")
      let document = try #require(
        try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any])
      #expect(Self.paths(of: document) == (try Self.explained()))
    }
  }

  /// Every word that says why an answer is not stored has its row.
  @Test(arguments: NotStoredReason.allCases)
  func everyWordOfADetailIsExplained(_ reason: NotStoredReason) throws {
    let text = try String(contentsOf: Self.operations, encoding: .utf8)
    let rows = text.components(separatedBy: "\n").filter { $0.hasPrefix("| `") }
    #expect(rows.contains { $0.components(separatedBy: "|")[1].contains("`\(reason.rawValue)`") })
  }
}
