/// The parameters of `GET /explain`: `url`, `method`, `header` (any number) and `format`.
///
/// Values are percent-decoded; a `+` is a plus. Refuses what it does not know, with the name of
/// what is wrong: a misspelt parameter would else be an answer to another question.
struct ExplainQuery: Equatable {
  enum Format: String, CaseIterable {
    case json, text
  }

  var request: ExplainedRequest
  /// nil: as `Accept` says.
  var format: Format?

  /// Reads a query without its `?`.
  init(parsing query: ArraySlice<UInt8>) throws(ValueError) {
    var single: [String: String] = [:]
    var headers: [String] = []
    for pair in query.split(separator: UInt8(ascii: "&")) {
      let parts = pair.split(
        separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      let name = String(decoding: parts[0], as: UTF8.self)
      guard Self.names.contains(name) else {
        throw ValueError(
          message: "unknown parameter \"\(name)\""
            + "\(Suggestion.sentence(for: name, among: Self.names)); there is "
            + Self.names.joined(separator: ", "))
      }
      let value = try Self.decoded(parts.count > 1 ? parts[1] : [], of: name)
      if name == "header" {
        headers.append(value)
      } else if single.updateValue(value, forKey: name) != nil {
        throw ValueError(message: "\(name) is given twice")
      }
    }
    guard let url = single["url"], !url.isEmpty else {
      throw ValueError(message: "url is missing, as in /explain?url=/articles/7")
    }
    request = try ExplainedRequest(
      method: single["method"] ?? "GET", target: url, headers: headers)
    if let word = single["format"] {
      guard let known = Format(rawValue: word) else {
        throw ValueError(message: "format: \"\(word)\" is neither \"json\" nor \"text\"")
      }
      format = known
    }
  }

  private static let names = ["url", "method", "header", "format"]

  private static func decoded(
    _ value: ArraySlice<UInt8>, of name: String
  ) throws(ValueError) -> String {
    var bytes: [UInt8] = []
    var rest = value
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      let digits = String(decoding: rest.prefix(2), as: UTF8.self)
      guard digits.utf8.count == 2, digits.allSatisfy(\.isHexDigit),
        let decoded = UInt8(digits, radix: 16)
      else { throw ValueError(message: "\(name): \"%\" needs two hex digits behind it") }
      bytes.append(decoded)
      rest = rest.dropFirst(2)
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw ValueError(message: "\(name): not UTF-8")
    }
    return text
  }
}
