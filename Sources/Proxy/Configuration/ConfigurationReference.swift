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
    FieldTable.sections.map(section).joined(separator: "\n") + "\n" + unsupported
  }

  private static func section(_ section: SectionDescription) -> String {
    let title = section.path.isEmpty ? section.title : "`\(section.path)`"
    var lines = ["### \(title)", "", section.summary, ""]
    if section.path == "defaults" {
      lines += ["The fields of a route, but for `name` and `match`.", ""]
      return lines.joined(separator: "\n")
    }
    lines += ["| field | value | default | meaning |", "|---|---|---|---|"]
    for field in section.fields where field.shape != .unsupported {
      let value = field.defaultText.map { "`\($0)`" } ?? (field.isRequired ? "required" : "–")
      let example = field.example.map { " Example: `\($0)`." } ?? ""
      lines.append(
        "| `\(field.name)` | \(describe(field.shape)) | \(value) | \(field.summary)\(example) |")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private static var unsupported: String {
    var lines = [
      "### Not supported yet", "",
      "These fields have their place in the design. This version refuses a file that has one of "
        + "them, instead of running without it.",
      "", "| field | what it will say |", "|---|---|",
    ]
    for section in FieldTable.sections where section.path != "defaults" {
      for field in section.fields where field.shape == .unsupported {
        let path = FieldDecoder.join(section.path, field.name)
        lines.append("| `\(path)` | \(field.summary) |")
      }
    }
    return lines.joined(separator: "\n") + "\n"
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
    case .section(let title): "[object](#\(title))"
    case .sectionByName: "object by name"
    case .sectionList: "list of objects"
    case .unsupported: ""
    }
  }
}
