/// Decides whether a body that broke off may be continued by a part, and whether a part is the
/// continuation (RFC 9110 §15.3.7.3, RFC 9111 §3.4).
///
/// Bytes of two answers may only be put together where both are of the same representation beyond
/// doubt: the same strong validator, the same complete length, the same coding, and a part that
/// begins exactly where the first answer ended. Called by the fill; what is refused here leaves the
/// body broken.
public struct Resumption: Sendable, Equatable {
  /// How much later than Last-Modified a Date must be, in seconds, for the former to be a strong
  /// validator whosever clock the Date is of (RFC 9110 §8.8.2.2).
  static let dateLeadSeconds: Int64 = 60

  public let completeLength: UInt64
  private let validator: KnownField
  private let validatorValue: [UInt8]
  private let contentEncoding: [UInt8]?

  /// From the answer that broke off; nil: it cannot be continued.
  ///
  /// `request` are the fields that the origin was sent. `contentLength` is what the origin declared:
  /// without one there is no telling whether the bytes that came are the first of a whole.
  public init?(
    method: Method, request: Fields, status: UInt16, response: Fields, contentLength: UInt64?,
    nowSeconds: Int64
  ) {
    guard method == .get, status == 200, !request.contains(.range), let contentLength,
      !response.contains(.contentRange), Resumption.acceptsRanges(response)
    else { return nil }
    completeLength = contentLength
    contentEncoding = response.combined(.contentEncoding)
    let all = response.bytes.span
    if response.contains(.eTag) {
      // Where there is a tag, If-Range takes no date (RFC 9110 §13.1.5).
      guard let value = response.soleValueRange(of: .eTag),
        let tag = EntityTag(all.extracting(value)), !tag.isWeak
      else { return nil }
      validator = .eTag
      validatorValue = Array(response.bytes[value])
      return
    }
    guard let value = response.soleValueRange(of: .lastModified),
      let date = response.soleValueRange(of: .date),
      let modifiedSeconds = HTTPDate.parse(all.extracting(value), nowSeconds: nowSeconds),
      let dateSeconds = HTTPDate.parse(all.extracting(date), nowSeconds: nowSeconds),
      dateSeconds - modifiedSeconds >= Resumption.dateLeadSeconds
    else { return nil }
    validator = .lastModified
    validatorValue = Array(response.bytes[value])
  }

  private static func acceptsRanges(_ response: Fields) -> Bool {
    let all = response.bytes.span
    for line in response.lines where line.known == .acceptRanges {
      let value = all.extracting(line.value)
      var position = 0
      while let member = ASCII.nextListMember(value, &position) {
        if ASCII.equalsIgnoringCase(value.extracting(member), "bytes") { return true }
      }
    }
    return false
  }

  /// Makes a request one for the rest, behind the bytes that are there. Other conditions go: they
  /// were met, or there would be no body.
  public func ask(_ request: inout Fields, from receivedBytes: UInt64) {
    for field in [KnownField.range, .ifRange, .ifNoneMatch, .ifModifiedSince] {
      request.remove(field)
    }
    let range = Array("bytes=\(receivedBytes)-".utf8)
    request.appendKnown(.range, value: range.span)
    request.appendKnown(.ifRange, value: validatorValue.span)
  }

  /// Whether an answer is exactly the rest.
  public func isContinued(
    by status: UInt16, _ response: Fields, contentLength: UInt64?, from receivedBytes: UInt64
  ) -> Bool {
    guard status == 206, let range = response.soleValueRange(of: .contentRange) else {
      return false
    }
    let all = response.bytes.span
    guard let part = ContentRange(all.extracting(range)), part.completeLength == completeLength,
      part.bytes == receivedBytes..<completeLength
    else { return false }
    if let contentLength, contentLength != part.bytes.byteCount { return false }
    // An answer to If-Range need not repeat the coding (RFC 9110 §15.3.7), but not change it.
    if let coding = response.combined(.contentEncoding), coding != contentEncoding { return false }
    guard let value = response.soleValueRange(of: validator) else { return false }
    if validator == .eTag {
      return EntityTag.equalStrongly(all.extracting(value), validatorValue.span)
    }
    return ASCII.equals(all.extracting(value), validatorValue.span)
  }
}
