/// The part of docs/policies.md that lists every field, made of the field table.
///
/// `larder schema --reference` prints it; a test fails when what stands between the two markers of
/// docs/policies.md differs from this.
public enum ConfigurationReference {
  public static let beginMarker =
    "<!-- fields: begin, printed by `larder schema --reference`, not edited by hand -->"
  public static let endMarker = "<!-- fields: end -->"

  /// Markdown, with a line end behind it; the markers are not part of it.
  public static var text: String {
    FieldTable.sections.map(section).joined(separator: "\n")
  }

  /// The anchor of a section's heading, as Markdown viewers make it.
  private static func anchor(_ section: SectionDescription) -> String {
    section.path.filter { $0.isLetter || $0.isNumber }.lowercased()
  }

  private static func section(_ section: SectionDescription) -> String {
    let title = section.path.isEmpty ? section.title : "`\(section.path)`"
    var lines = ["### \(title)", "", section.summary, ""]
    if section.path == "defaults" {
      lines += ["The fields of a route, but for `name` and `match`.", ""]
      return lines.joined(separator: "\n")
    }
    lines += ["| field | value | default | meaning |", "|---|---|---|---|"]
    for field in section.fields {
      let value = field.defaultText.map { "`\($0)`" } ?? (field.isRequired ? "required" : "–")
      lines.append("| `\(field.name)` | \(describe(field.shape)) | \(value) | \(meaning(field)) |")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private static func meaning(_ field: FieldDescription) -> String {
    var text = field.summary
    switch field.need {
    case .any: break
    case .copies(elseError: true): text += " An error on a network-only route."
    case .copies(elseError: false): text += " Without effect on a network-only route."
    case .deadline: text += " Without effect on other routes."
    }
    if !field.isInherited { text += " Never taken from `defaults`." }
    switch field.secrecy {
    case .open, .fromEnvironment: break
    case .whole: text += " Never printed."
    case .credentials: text += " Its user and password are never printed."
    }
    return text + (field.example.map { " Example: `\($0)`." } ?? "")
  }

  private static func describe(_ shape: FieldShape) -> String {
    switch shape {
    case .text: "text"
    case .integer(let range):
      range.count == 1
        ? "`\(range.lowerBound)`" : "number, \(range.lowerBound) to \(range.upperBound)"
    case .duration(let range):
      "duration, \(Quantity.text(milliseconds: range.lowerBound)) to "
        + Quantity.text(milliseconds: range.upperBound)
    case .size(let range):
      "size, \(Quantity.text(bytes: range.lowerBound)) to "
        + Quantity.text(bytes: range.upperBound)
    case .choice(let words): words.map { "`\($0)`" }.joined(separator: ", ")
    case .words(let words): "list of " + words.map { "`\($0)`" }.joined(separator: ", ")
    case .addresses: "`address:port`, or a list"
    case .upstreamURL: "URL"
    case .proxyURL: "URL or `none`"
    case .name: "name"
    case .upstreamName: "an upstream's name"
    case .pattern: "pattern"
    case .headerNames: "list of field names"
    case .timeToLive: "duration, or `default`, `min`, `max`"
    case .negative: "object from status to duration"
    case .boolean: "`true`, `false`"
    case .list(let what): "list of \(what)"
    case .publicURL: "`http://host[:port]`"
    case .userIdentity: "`header:NAME` or `cookie:NAME`"
    case .pathPrefix: "path"
    case .keyQuery: "`all`, `none`, or list of names"
    case .request: "`METHOD target`"
    case .fieldLines: "object from field name to value"
    case .abandoned: "`finish`, `stop`, or `finishBelow` and `finishFromPercent`"
    case .section(let title):
      "[object](#\(FieldTable.sections.first { $0.title == title }.map { anchor($0) } ?? title))"
    case .sectionByName: "object by name"
    case .sectionList: "list of objects"
    }
  }
}
