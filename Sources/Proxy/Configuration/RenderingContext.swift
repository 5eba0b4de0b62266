/// Where a value is printed, and what the file had there: what a row needs to print a secret
/// without saying it.
struct RenderingContext: Sendable {
  /// `upstreams.api.proxy`.
  var path = ""
  /// By path, the file's texts that name variables of the environment.
  let sources: [String: String]
  private var secrecy = Secrecy.open

  init(sources: [String: String]) { self.sources = sources }

  /// The file's text of this very field, where it names variables.
  var source: String? { sources[path] }

  func inside(_ name: String) -> RenderingContext {
    guard !sources.isEmpty else { return self }
    var context = self
    context.path = FieldDecoder.join(path, name)
    return context
  }

  func at(_ index: Int) -> RenderingContext {
    guard !sources.isEmpty else { return self }
    var context = self
    context.path = "\(path)[\(index)]"
    return context
  }

  func with(_ secrecy: Secrecy) -> RenderingContext {
    var context = self
    context.secrecy = secrecy
    return context
  }

  /// The text, as far as the field's secrecy lets it be shown.
  func text(_ value: String) -> OrderedJSON {
    .text(SecretText.shown(value, source: source, secrecy))
  }
}
