@testable import Proxy

/// Reads heads as `Connection` does, scanner first and parser then, for the tables of this folder.
enum HeadReading: Equatable {
  case more
  case refused(UInt16)
  /// The head's length in bytes.
  case complete(Int)

  /// Feeds `bytes` to a fresh scanner as they would arrive: first up to each of `ends`, then whole.
  static func scan(
    _ bytes: [UInt8], ends: some Sequence<Int> = [], limits: Limits = Limits()
  ) -> HeadReading {
    var scanner = HeadScanner()
    for end in Array(ends) + [bytes.count] {
      let outcome = bytes.withUnsafeBytes {
        scanner.scan(UnsafeRawBufferPointer(rebasing: $0[0..<end]), limits: limits)
      }
      switch outcome {
      case .more: continue
      case .complete(let length): return .complete(length)
      case .refused(let refusal): return .refused(refusal.status)
      }
    }
    return .more
  }

  /// The head of these bytes. Throws the scanner's refusal or the parser's; nil: not complete.
  static func head(_ bytes: [UInt8]) throws(RequestRefusal) -> RequestHead? {
    var scanner = HeadScanner()
    let outcome = bytes.withUnsafeBytes { scanner.scan($0, limits: Limits()) }
    switch outcome {
    case .more: return nil
    case .refused(let refusal): throw refusal
    case .complete(let length):
      let head = RequestHead()
      try parse(Array(bytes[0..<length]), into: head)
      return head
    }
  }

  static func parse(_ bytes: [UInt8], into head: RequestHead) throws(RequestRefusal) {
    var refused: RequestRefusal?
    bytes.withUnsafeBytes { all in
      do throws(RequestRefusal) {
        try RequestParser.parse(all, into: head)
      } catch {
        refused = error
      }
    }
    if let refused { throw refused }
  }

  static func head(_ text: String) throws(RequestRefusal) -> RequestHead? {
    try head(Array(text.utf8))
  }

  /// The status with which these bytes are refused; nil: they are not.
  static func refusal(_ bytes: [UInt8]) -> UInt16? {
    do throws(RequestRefusal) {
      _ = try head(bytes)
      return nil
    } catch {
      return error.status
    }
  }
}

func text(_ bytes: some Sequence<UInt8>) -> String { String(decoding: Array(bytes), as: UTF8.self) }
