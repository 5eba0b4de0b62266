import Foundation
import Testing

@testable import Proxy

/// The recipes of docs/cookbook.md are whole files, and work: each block of JSON5 that begins with
/// `// recipe: NAME` is loaded, and its tests are run, as `larder check` would.
@Suite struct CookbookTests {
  struct Recipe: Sendable, CustomTestStringConvertible {
    let name: String
    let text: String
    var testDescription: String { name }
  }

  private static let cookbook = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "docs/cookbook.md")

  private static let fence = "```json5\n// recipe: "

  private static let recipes: [Recipe] = {
    // A file that cannot be read has no recipes, and fails the count below.
    let document = (try? String(contentsOf: cookbook, encoding: .utf8)) ?? ""
    return document.components(separatedBy: fence).dropFirst().map { piece in
      let text = piece.components(separatedBy: "```")[0]
      return Recipe(name: String(text.prefix { $0 != "\n" }), text: "// recipe: " + text)
    }
  }()

  @Test func everyFileOfTheCookbookIsARecipeWithANameOfItsOwn() throws {
    let document = try String(contentsOf: Self.cookbook, encoding: .utf8)
    #expect(Self.recipes.count == document.components(separatedBy: "```json5").count - 1)
    #expect(Set(Self.recipes.map(\.name)).count == Self.recipes.count)
    #expect(Self.recipes.count >= 14)
  }

  @Test(arguments: recipes)
  func recipeLoadsWithoutAWarningAndPassesItsTests(recipe: Recipe) {
    let file = "\(recipe.name).json"
    let loaded = ConfigurationLoader.load(text: recipe.text, file: file, environment: [:])
    switch TestedConfiguration.testing(loaded, file: file) {
    case .sound(_, let warnings, let tests):
      #expect(warnings.map(\.description) == [])
      // What a recipe promises, it tests.
      #expect(!tests.isEmpty)
    case .failing(_, _, let tests, _):
      Issue.record("\(tests.flatMap { $0.diagnostics(file: file) }.map(\.description))")
    case .refused(let diagnostics):
      Issue.record("\(diagnostics.map(\.description))")
    }
  }
}
