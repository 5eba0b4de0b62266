import Support
import Testing

/// A `multipart/byteranges` answer taken apart by its own boundary and lengths.
struct MultipartAnswer {
  struct Part: Equatable {
    var contentType: String?
    var contentRange: String
    var body: [UInt8]

    init(_ range: Range<Int>, of whole: [UInt8], _ contentType: String?) {
      self.contentType = contentType
      contentRange = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(whole.count)"
      body = Array(whole[range])
    }

    init(contentType: String?, contentRange: String, body: [UInt8]) {
      self.contentType = contentType
      self.contentRange = contentRange
      self.body = body
    }
  }

  let parts: [Part]
  let boundary: String

  /// nil, and an issue: the answer is not whole, or not in the grammar.
  init?(_ answer: Answer, _ location: SourceLocation = #_sourceLocation) {
    let prefix = "multipart/byteranges; boundary="
    guard answer.status == 206, !answer.isCut, answer.all("Content-Type").count == 1,
      let type = answer.first("Content-Type"), type.hasPrefix(prefix),
      answer.first("Content-Range") == nil,
      answer.all("Content-Length") == ["\(answer.body.count)"]
    else {
      Issue.record("\(answer.status) \(answer.fields)", sourceLocation: location)
      return nil
    }
    boundary = String(type.dropFirst(prefix.count))
    var rest = answer.body[...]
    guard let parts = MultipartAnswer.parts(&rest, boundary) else {
      Issue.record("the parts do not hold together", sourceLocation: location)
      return nil
    }
    self.parts = parts
  }

  private static func parts(_ rest: inout ArraySlice<UInt8>, _ boundary: String) -> [Part]? {
    var parts: [Part] = []
    while take("\(parts.isEmpty ? "" : "\r\n")--\(boundary)", from: &rest) {
      if take("--\r\n", from: &rest) { return rest.isEmpty ? parts : nil }
      guard take("\r\n", from: &rest) else { return nil }
      var fields: [String: String] = [:]
      while let line = line(of: &rest), !line.isEmpty {
        let pair = line.split(separator: ": ", maxSplits: 1).map(String.init)
        guard pair.count == 2, fields[pair[0]] == nil else { return nil }
        fields[pair[0]] = pair[1]
      }
      guard let range = fields.removeValue(forKey: "Content-Range") else { return nil }
      let type = fields.removeValue(forKey: "Content-Type")
      let ends = range.split { " -/".contains($0) }.dropFirst().compactMap { Int($0) }
      guard fields.isEmpty, ends.count == 3, rest.count >= ends[1] - ends[0] + 1 else { return nil }
      let body = Array(rest.prefix(ends[1] - ends[0] + 1))
      rest = rest.dropFirst(body.count)
      parts.append(Part(contentType: type, contentRange: range, body: body))
    }
    return nil
  }

  private static func take(_ text: String, from rest: inout ArraySlice<UInt8>) -> Bool {
    guard rest.starts(with: text.utf8) else { return false }
    rest = rest.dropFirst(text.utf8.count)
    return true
  }

  private static func line(of rest: inout ArraySlice<UInt8>) -> String? {
    guard let end = rest.firstIndex(of: 0x0A), end > rest.startIndex, rest[end - 1] == 0x0D else {
      return nil
    }
    defer { rest = rest[(end + 1)...] }
    return String(decoding: rest[..<(end - 1)], as: UTF8.self)
  }
}
