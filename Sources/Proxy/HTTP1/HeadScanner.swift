#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Finds where a message's head ends, across as many reads as it takes, looking at no byte twice.
///
/// Refuses early what can never become a head: a line end without CR, a request line or block over
/// its limit, too many lines.
struct HeadScanner {
  enum Outcome: Equatable {
    case more
    /// The head takes this many bytes, the empty line included.
    case complete(Int)
    case refused(RequestRefusal)
  }

  private var scanned = 0
  private var lineStart = 0
  private var lineCount = 0
  /// Where the request line has ended and the header block begins.
  private var blockStart = 0

  mutating func reset() { self = HeadScanner() }

  /// `bytes` begins with the head and holds everything received of it so far. `previous`: one that
  /// was accepted under the same limits; where its header block comes again, its end is known.
  mutating func scan(
    _ bytes: UnsafeRawBufferPointer, limits: Limits, previous: RequestHead? = nil
  ) -> Outcome {
    guard let base = bytes.baseAddress else { return .more }
    while scanned < bytes.count {
      // SAFETY: the search stays within `bytes`.
      guard let found = memchr(base + scanned, 0x0A, bytes.count - scanned) else {
        scanned = bytes.count
        return checkUnfinished(bytes.count, limits)
      }
      let newline = UnsafeRawPointer(found) - base
      // Before the line's end is looked at: the answer must not depend on how the bytes came.
      if let refusal = check(lineEnd: newline - 1, limits) { return .refused(refusal) }
      guard newline > lineStart, bytes[newline - 1] == 0x0D else {
        return .refused(RequestRefusal(400, "line ends without CR"))
      }
      scanned = newline + 1
      if newline - 1 == lineStart, lineCount > 0 { return .complete(newline + 1) }
      if lineCount == 0 {
        blockStart = newline + 1
        let block = UnsafeRawBufferPointer(rebasing: bytes[blockStart...])
        if let length = previous?.blockLength(beginning: block) {
          return .complete(blockStart + length)
        }
      }
      lineCount += 1
      lineStart = newline + 1
    }
    return .more
  }

  private func check(lineEnd: Int, _ limits: Limits) -> RequestRefusal? {
    if lineCount == 0, lineEnd > limits.requestLineBytes {
      return RequestRefusal(414, "request line too long")
    }
    if lineCount > 0, lineEnd > lineStart, lineEnd + 2 - blockStart > limits.headerBytes {
      return RequestRefusal(431, "header block too large")
    }
    if lineCount > limits.headerFields, lineEnd > lineStart {
      return RequestRefusal(431, "too many header fields")
    }
    return nil
  }

  private func checkUnfinished(_ count: Int, _ limits: Limits) -> Outcome {
    if lineCount == 0 {
      guard count <= limits.requestLineBytes + 1 else {
        return .refused(RequestRefusal(414, "request line too long"))
      }
    } else if count - blockStart > limits.headerBytes + 1 {
      // One byte more than the block may have: the CR of the empty line.
      return .refused(RequestRefusal(431, "header block too large"))
    }
    return .more
  }
}
