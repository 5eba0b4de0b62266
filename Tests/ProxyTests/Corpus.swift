internal import Foundation

/// A folder under Tests of pairs: NAME.json, and NAME.txt with what is said of it.
struct Corpus: Sendable {
  let folder: URL

  init(_ name: String) {
    folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: name)
  }

  private var files: [String] {
    // A folder that cannot be read has no pairs, which each suite counts.
    (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
  }

  var names: [String] {
    files.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()
  }

  /// Whether each file is one of a pair.
  var isComplete: Bool { Set(files) == Set(names.flatMap { ["\($0).json", "\($0).txt"] }) }

  func text(_ file: String) throws -> String {
    try String(contentsOf: folder.appending(path: file), encoding: .utf8)
  }
}
