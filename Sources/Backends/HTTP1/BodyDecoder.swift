internal import CachePolicy

/// How a message's body is delimited, where it is (RFC 9112 §6.3).
public enum MessageFraming: Sendable, Equatable {
  case none
  case length(UInt64)
  case chunked
}

/// What is wrong with a chunked body. Source: whoever sent the message.
public enum ChunkedBodyFault: Error, Sendable, Equatable {
  case malformedSize
  case malformed
  case trailerTooLarge

  public var reason: StaticString {
    switch self {
    case .malformedSize: "malformed chunk size"
    case .malformed: "malformed chunked body"
    case .trailerTooLarge: "trailer section too large"
    }
  }
}

/// Takes a body out of its framing, strictly, as the bytes come: a client's requests and an origin's
/// answers alike.
///
/// A value without memory of its own: it is fed what was read, hands on slices of it, and says how
/// much belonged to this body. Chunk extensions and trailer fields are checked and dropped.
public struct BodyDecoder {
  public enum Outcome: Equatable, Sendable {
    case more
    /// The body is whole; the rest of the input belongs to the next message.
    case complete
    case refused(ChunkedBodyFault)
  }

  private enum State {
    case data(remaining: UInt64)
    case size(digits: Int, value: UInt64)
    /// White space behind the size.
    case sizePadding(length: Int)
    case sizeExtension(length: Int)
    case sizeNewline(value: UInt64)
    case chunkData(remaining: UInt64)
    case chunkReturn
    case chunkNewline
    case trailerStart
    case trailer(length: Int)
    case trailerNewline
    case endNewline
    case complete
  }

  /// The longest chunk-size line's extension and the longest trailer section, in bytes.
  private static let extensionBytesMax = 1024
  private static let trailerBytesMax = 8 * 1024

  private var state: State
  private var chunkSize: UInt64 = 0
  private var trailerBytes = 0
  private let acceptsPaddedSizes: Bool

  /// `acceptsPaddedSizes`: white space between a chunk's size and its line's end, which the grammar
  /// has only before an extension, is read over. Some servers write it, and nobody reads another
  /// size for it.
  public init(_ framing: MessageFraming, acceptsPaddedSizes: Bool = false) {
    self.acceptsPaddedSizes = acceptsPaddedSizes
    switch framing {
    case .none: state = .complete
    case .length(let length): state = length == 0 ? .complete : .data(remaining: length)
    case .chunked: state = .size(digits: 0, value: 0)
    }
  }

  public var isComplete: Bool {
    if case .complete = state { return true }
    return false
  }

  /// Decodes from `input`, hands body bytes to `deliver`, and returns how many bytes were consumed.
  public mutating func decode(
    _ input: UnsafeRawBufferPointer, deliver: (UnsafeRawBufferPointer) -> Void
  ) -> (consumed: Int, outcome: Outcome) {
    var position = 0
    while position < input.count {
      switch state {
      case .complete: return (position, .complete)
      case .data(let remaining), .chunkData(let remaining):
        let count = Int(min(UInt64(input.count - position), remaining))
        deliver(UnsafeRawBufferPointer(rebasing: input[position..<position + count]))
        position += count
        advance(by: UInt64(count), of: remaining)
      default:
        if let refusal = take(input[position]) { return (position, .refused(refusal)) }
        position += 1
      }
    }
    return (position, isComplete ? .complete : .more)
  }

  private mutating func advance(by count: UInt64, of remaining: UInt64) {
    if case .data = state {
      state = remaining == count ? .complete : .data(remaining: remaining - count)
    } else {
      state = remaining == count ? .chunkReturn : .chunkData(remaining: remaining - count)
    }
  }

  /// One byte of the chunked framing (RFC 9112 §7.1); a refusal where it does not belong there.
  private mutating func take(_ byte: UInt8) -> ChunkedBodyFault? {
    switch state {
    case .size(let digits, let value): return takeSize(byte, digits, value)
    case .sizePadding(let length): return takePadding(byte, length)
    case .sizeExtension(let length):
      if byte == 0x0D {
        state = .sizeNewline(value: chunkSize)
      } else if length >= BodyDecoder.extensionBytesMax || byte < 0x20 && byte != 0x09
        || byte == 0x7F
      {
        return .malformed
      } else {
        state = .sizeExtension(length: length + 1)
      }
    case .sizeNewline(let value):
      guard byte == 0x0A else { return .malformed }
      state = value == 0 ? .trailerStart : .chunkData(remaining: value)
    case .chunkReturn:
      guard byte == 0x0D else { return .malformed }
      state = .chunkNewline
    case .chunkNewline:
      guard byte == 0x0A else { return .malformed }
      state = .size(digits: 0, value: 0)
    case .trailerStart:
      if byte == 0x0D {
        state = .endNewline
      } else {
        guard ASCII.isToken(byte) else { return .malformed }
        state = .trailer(length: 1)
      }
    case .trailer:
      trailerBytes += 1
      guard trailerBytes <= BodyDecoder.trailerBytesMax else {
        return .trailerTooLarge
      }
      if byte == 0x0D {
        state = .trailerNewline
      } else if byte < 0x20 && byte != 0x09 || byte == 0x7F {
        return .malformed
      }
    case .trailerNewline:
      guard byte == 0x0A else { return .malformed }
      state = .trailerStart
    case .endNewline:
      guard byte == 0x0A else { return .malformed }
      state = .complete
    case .data, .chunkData, .complete: break
    }
    return nil
  }

  private mutating func takeSize(_ byte: UInt8, _ digits: Int, _ value: UInt64) -> ChunkedBodyFault?
  {
    if let digit = ASCII.hexValue(byte) {
      guard digits < 15 else { return .malformedSize }
      state = .size(digits: digits + 1, value: value << 4 | UInt64(digit))
      return nil
    }
    guard digits > 0 else { return .malformedSize }
    chunkSize = value
    switch byte {
    case 0x0D: state = .sizeNewline(value: value)
    case 0x3B: state = .sizeExtension(length: 0)
    case 0x20, 0x09: state = .sizePadding(length: 1)
    default: return .malformedSize
    }
    return nil
  }

  /// White space before an extension is to be read over (BWS, RFC 9112 §7.1.1).
  private mutating func takePadding(_ byte: UInt8, _ length: Int) -> ChunkedBodyFault? {
    switch byte {
    case 0x20 where length < BodyDecoder.extensionBytesMax,
      0x09 where length < BodyDecoder.extensionBytesMax:
      state = .sizePadding(length: length + 1)
    case 0x3B: state = .sizeExtension(length: length)
    case 0x0D where acceptsPaddedSizes: state = .sizeNewline(value: chunkSize)
    default: return .malformedSize
    }
    return nil
  }
}
