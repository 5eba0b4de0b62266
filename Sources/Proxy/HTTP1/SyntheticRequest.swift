internal import CachePolicy

/// A request that no client sent: what is warmed, explained, or tested in policies.json.
///
/// Written out and read by the same parser as everybody's, so that what a connection would refuse
/// is refused here too.
enum SyntheticRequest {
  /// `target`: a path with its query, or an absolute URL, which brings its own authority.
  /// `headers` may have a Host, which then takes the place of `authority`.
  static func head(
    method: String, target: String, authority: String,
    headers: [(name: String, value: String)] = []
  ) throws(RequestRefusal) -> RequestHead {
    var target = target
    var host = headers.first { $0.name.lowercased() == "host" }?.value ?? authority
    for scheme in ["http://", "https://"] where target.lowercased().hasPrefix(scheme) {
      let rest = target.dropFirst(scheme.count)
      let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
      host = String(rest[..<end])
      target = String(rest[end...])
      if !target.hasPrefix("/") { target = "/" + target }
    }
    var text = "\(method) \(target) HTTP/1.1\r\nHost: \(host)\r\n"
    for header in headers where header.name.lowercased() != "host" {
      guard !header.name.contains(where: \.isNewline), !header.value.contains(where: \.isNewline)
      else { throw RequestRefusal(400, "malformed field") }
      text += "\(header.name): \(header.value)\r\n"
    }
    text += "\r\n"
    let bytes = Array(text.utf8)
    let head = RequestHead()
    var refusal: RequestRefusal?
    bytes.withUnsafeBytes { block in
      // Whole heads alone may be parsed: a line break inside of one would end it early.
      var scanner = HeadScanner()
      guard case .complete(let count) = scanner.scan(block, limits: Limits()), count == block.count
      else {
        refusal = RequestRefusal(400, "malformed request")
        return
      }
      do throws(RequestRefusal) {
        try RequestParser.parse(block, into: head)
      } catch {
        refusal = error
      }
    }
    if let refusal { throw refusal }
    return head
  }
}
