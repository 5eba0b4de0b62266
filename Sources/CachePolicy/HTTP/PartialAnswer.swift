/// Judges an origin's 206 by what it was asked (RFC 9110 §15.3.7): a part that nobody asked for must
/// not reach a client, who may take it for another.
///
/// An origin may send less than was asked for, and may put ranges together; so what is refused is
/// a part that has nothing of what was asked, or that does not say what it is. Other units, and a
/// Range that cannot be read, are between the client and the origin. Called once a 206.
public enum PartialAnswer {
  public enum Fault: String, Sendable, Equatable {
    case unasked = "206 to a request without a range"
    case multipartForOneRange = "206 in several parts to a request for one"
    case noContentRange = "206 that does not say which part it is"
    case otherRange = "206 with a part that was not asked for"
    case otherLength = "206 whose length is not that of its part"
  }

  /// nil: it answers the request. `contentLength`: the length that the origin declared.
  public static func fault(
    method: Method, request: Fields, response: Fields, contentLength: UInt64?
  ) -> Fault? {
    guard request.contains(.range) else { return .unasked }
    // Range is defined for GET alone (RFC 9110 §14.2); what an origin makes of it elsewhere is its
    // own.
    guard method == .get, let requested = ByteRange.requested(in: request, rangesMax: .max) else {
      return nil
    }
    if isMultipart(response) { return requested.count == 1 ? .multipartForOneRange : nil }
    guard let value = response.soleValueRange(of: .contentRange),
      let found = ContentRange(response.bytes.span.extracting(value))
    else { return .noContentRange }
    if let contentLength, contentLength != found.bytes.byteCount { return .otherLength }
    return requested.contains { $0.mayMean(found) } ? nil : .otherRange
  }

  private static func isMultipart(_ response: Fields) -> Bool {
    let value = response.bytes.span.extracting(response.firstValueRange(of: .contentType))
    var position = 0
    guard let type = ASCII.nextListMember(value, &position, separator: 0x3B) else { return false }
    return ASCII.equalsIgnoringCase(value.extracting(type), "multipart/byteranges")
  }
}

extension ByteRange {
  /// Whether a part has something of this range.
  fileprivate func mayMean(_ part: ContentRange) -> Bool {
    switch self {
    case .closed(let first, let last):
      return part.bytes.lowerBound <= last && part.bytes.upperBound > first
    case .from(let first): return part.bytes.upperBound > first
    case .suffix(let count):
      guard let length = part.completeLength else { return count > 0 }
      return count > 0 && part.bytes.upperBound > length - min(count, length)
    }
  }
}
