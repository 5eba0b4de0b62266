public import Backends
public import CachePolicy

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// A request's head as it was parsed: the request line and the header fields, and ranges into both.
///
/// Reused from request to request (line and fields keep their memory), so that parsing allocates
/// nothing, and a header block that is the same as the one before is not parsed again. Written by
/// `RequestParser`, read by everyone behind it. A reference, so that handing it on costs nothing;
/// who keeps it beyond the turn keeps a `copy()`.
public final class RequestHead: @unchecked Sendable {
  // @unchecked Sendable: a loop's own is written and read on its loop alone, and a copy is never
  // written again.

  public internal(set) var method: Method = .get
  /// The request line; what lies behind `lineCount` is left from longer ones.
  private var line: [UInt8]
  private var lineCount = 0
  /// The header fields; their `bytes` are the header block, the empty line at its end included.
  public internal(set) var fields = Fields()
  /// In the request line, as the next four.
  var methodRange = 0..<0
  var targetRange = 0..<0
  /// Absolute path, without the query; empty for `OPTIONS *`.
  var pathRange = 0..<0
  /// The query without its `?`; nil where there is no `?`.
  var queryRange: Range<Int>?
  /// The authority of an absolute-form target; nil: the Host field's counts.
  var targetAuthorityRange: Range<Int>?
  /// The value of the Host field, in `fields`; empty in HTTP/1.0 without Host.
  var hostRange = 0..<0
  public internal(set) var minorVersion: UInt8 = 1
  /// How the request's body is delimited.
  public internal(set) var framing = MessageFraming.none
  /// Whether the client lets the connection live on after the answer.
  public internal(set) var isPersistent = true
  /// Whether the client waits for 100 (Continue) before it sends its body.
  public internal(set) var expectsContinue = false
  /// The target is `*` (OPTIONS only).
  public internal(set) var isAsterisk = false
  /// The minor version by which `fields` were read to their end and not refused, together with all
  /// that follows from them: an equal block of that version needs no reading. nil: none was.
  private var readBlockVersion: UInt8?

  public init() { line = [UInt8](repeating: 0, count: 512) }

  private init(line: [UInt8]) { self.line = line }

  /// The head in memory of its own.
  func copy() -> RequestHead {
    let copy = RequestHead(line: line.withUnsafeBufferPointer { Array($0[..<lineCount]) })
    copy.method = method
    copy.lineCount = lineCount
    copy.fields = fields.copy()
    copy.methodRange = methodRange
    copy.targetRange = targetRange
    copy.pathRange = pathRange
    copy.queryRange = queryRange
    copy.targetAuthorityRange = targetAuthorityRange
    copy.hostRange = hostRange
    copy.minorVersion = minorVersion
    copy.framing = framing
    copy.isPersistent = isPersistent
    copy.expectsContinue = expectsContinue
    copy.isAsterisk = isAsterisk
    return copy
  }

  /// Replaces the request line by a copy of these bytes.
  func setLine(_ bytes: UnsafeRawBufferPointer) {
    if bytes.count > line.count { line = [UInt8](repeating: 0, count: 2 * bytes.count) }
    lineCount = bytes.count
    line.withUnsafeMutableBytes { $0.copyMemory(from: bytes) }
  }

  // MARK: A header block that comes again

  /// Replaces the fields by a copy of this block, of which the parser then names the lines.
  func beginBlock(_ bytes: UnsafeRawBufferPointer) {
    readBlockVersion = nil
    fields.setBlock(Span(_unsafeBytes: bytes))
  }

  /// The block has been read by the rules of `minorVersion`, and all that follows from it is set.
  func endBlock() { readBlockVersion = minorVersion }

  /// The next block is read, whatever it is: the limits by which this one was accepted may have
  /// changed.
  func forgetBlock() { readBlockVersion = nil }

  /// Whether what was read last holds for this block, under `minorVersion`, as it is.
  func hasRead(block bytes: UnsafeRawBufferPointer) -> Bool {
    readBlockVersion == minorVersion && blockLength(beginning: bytes) == bytes.count
  }

  /// How many bytes of `bytes` are, byte for byte, the block that was read last; nil: they begin
  /// otherwise, or are not all there.
  func blockLength(beginning bytes: UnsafeRawBufferPointer) -> Int? {
    guard readBlockVersion != nil, fields.bytes.count <= bytes.count else { return nil }
    return fields.bytes.withUnsafeBytes { block in
      let beginning = UnsafeRawBufferPointer(rebasing: bytes[0..<block.count])
      return equalBytes(block, beginning) ? block.count : nil
    }
  }

  /// Gives the request line up to the target's end, method and all, and the value of Host.
  @inline(__always)
  func withTargetAndHost<Result>(
    _ body: (_ request: UnsafeRawBufferPointer, _ host: UnsafeRawBufferPointer) -> Result
  ) -> Result {
    line.withUnsafeBytes { line in
      fields.bytes.withUnsafeBytes { block in
        body(
          UnsafeRawBufferPointer(rebasing: line[0..<targetRange.upperBound]),
          UnsafeRawBufferPointer(rebasing: block[hostRange]))
      }
    }
  }

  public var hasBody: Bool { framing != .none && framing != .length(0) }
  public var methodToken: ArraySlice<UInt8> { line[methodRange] }
  public var path: ArraySlice<UInt8> { line[pathRange] }
  public var query: ArraySlice<UInt8>? { queryRange.map { line[$0] } }
  /// The authority that the client asked for, port included; empty in HTTP/1.0 without Host.
  public var authority: ArraySlice<UInt8> {
    targetAuthorityRange.map { line[$0] } ?? fields.bytes[hostRange]
  }
}

/// Whether both have the same bytes.
@inline(__always)
func equalBytes(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
  guard left.count == right.count else { return false }
  guard let first = left.baseAddress, let second = right.baseAddress else { return true }
  // SAFETY: both have as many bytes as are compared.
  return memcmp(first, second, left.count) == 0
}

/// Why a request is refused before it reaches a route: the answer's status, and a word for it.
/// Source: the client.
public struct RequestRefusal: Error, Sendable, Equatable {
  public let status: UInt16
  public let reason: StaticString
  /// Whether the connection's framing is lost, so that it has to be closed.
  public let mustClose: Bool

  init(_ status: UInt16, _ reason: StaticString, mustClose: Bool = true) {
    self.status = status
    self.reason = reason
    self.mustClose = mustClose
  }

  public static func == (left: RequestRefusal, right: RequestRefusal) -> Bool {
    left.status == right.status && left.reason.description == right.reason.description
  }
}
