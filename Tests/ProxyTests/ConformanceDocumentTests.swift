import Foundation
import Testing

/// docs/conformance.md says where each requirement is met and which test shows it. What it names has
/// to be there: a file of `Sources`, what is declared in it, a suite and its test.
@Suite struct ConformanceDocumentTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  /// What each Swift file below a folder declares, by the file's name.
  private static func declarations(_ folder: String) -> [String: Set<String>] {
    let path = root.appending(path: folder).path
    var found: [String: Set<String>] = [:]
    for case let name as String in FileManager.default.enumerator(atPath: path) ?? .init()
    where name.hasSuffix(".swift") {
      // A file that cannot be read declares nothing, and whoever names it fails.
      let text = (try? String(contentsOfFile: path + "/" + name, encoding: .utf8)) ?? ""
      found[String(name.split(separator: "/").last ?? ""), default: []].formUnion(declared(text))
    }
    return found
  }

  private static let declaringWords: Set = [
    "func", "var", "let", "case", "struct", "enum", "class", "extension",
  ]

  /// The names that stand behind a word that declares.
  private static func declared(_ text: String) -> Set<String> {
    var names: Set<String> = []
    var declares = false
    for word in text.utf8.split(whereSeparator: { !isOfName($0) }) {
      let name = String(decoding: word, as: UTF8.self)
      if declares { names.insert(name) }
      declares = declaringWords.contains(name)
    }
    return names
  }

  private static func isOfName(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "_") || (0x30...0x39).contains(byte) || (byte | 0x20) &- 0x61 < 26
  }

  private static let document: String = {
    // Without it there are no rows, which the first test counts.
    (try? String(contentsOf: root.appending(path: "docs/conformance.md"), encoding: .utf8)) ?? ""
  }()

  /// What stands between backquotes and is written as a place: `File.swift/name`, `Suite/test`.
  private static let places: [String] = {
    let quoted = document.split(separator: "`", omittingEmptySubsequences: false)
    return quoted.indices.filter { $0 % 2 == 1 }.map { String(quoted[$0]) }
      .filter { $0.contains(".swift") || isTestPlace($0) }
  }()

  private static func isTestPlace(_ text: String) -> Bool {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    return parts.count == 2 && !text.contains(".") && !text.contains(" ")
      && ["Tests", "Scenarios", "Corpus"].contains { parts[0].hasSuffix($0) }
  }

  @Test func everyFileAndDeclarationIsThere() {
    let sources = Self.declarations("Sources")
    let named = Self.places.filter { $0.contains(".swift") }
    #expect(named.count > 100)
    for place in named {
      let parts = place.split(separator: "/", maxSplits: 1).map(String.init)
      guard let names = sources[parts[0]] else {
        Issue.record("no file \(place)")
        continue
      }
      if parts.count == 2 {
        #expect(names.contains(parts[1]), "nothing is declared as \(place)")
      }
    }
  }

  @Test func everySuiteAndTestIsThere() {
    let tests = Self.declarations("Tests").values
    let named = Self.places.filter(Self.isTestPlace)
    #expect(named.count > 150)
    for place in named {
      let parts = place.split(separator: "/").map(String.init)
      let isThere = tests.contains { $0.contains(parts[0]) && $0.contains(parts[1]) }
      #expect(isThere, "no test \(place)")
    }
  }

  /// Each row of a table of requirements has its four columns, and names both code and a test.
  @Test func everyRowNamesItsCodeAndATest() {
    let rows = Self.document.split(separator: "\n").filter { $0.hasPrefix("| ") }
    var rowCount = 0
    for row in rows where !row.hasPrefix("| requirement") && !row.hasPrefix("| kind") {
      let columns = row.split(separator: "|", omittingEmptySubsequences: false)
        .dropFirst().dropLast().map { $0.trimmingCharacters(in: .whitespaces) }
      #expect(columns.count == 4 || columns.count == 2, "\(row)")
      if columns.count == 4 {
        rowCount += 1
        #expect(columns[2].contains(".swift"), "\(row)")
      }
      let names = (columns.last ?? "").split(separator: "`").map(String.init)
      #expect(names.contains(where: Self.isTestPlace), "\(row)")
    }
    #expect(rowCount > 70)
  }

  @Test(arguments: ["README.md", "docs/architecture.md"])
  func otherDocumentsPointToIt(_ path: String) throws {
    let text = try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
    #expect(text.contains("conformance.md"))
  }
}
