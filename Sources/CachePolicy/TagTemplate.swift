/// A tag as policies.json has it, with `{name}` in the place of what the path brings.
///
/// A tag is 1 to 256 bytes of printable ASCII without space, comma and quotes, so that it can stand
/// in a list (`Surrogate-Key`, `Cache-Tag`) and in a purge. It refuses what could not. Made by the
/// reading of policies.json; filled when an answer is stored, and when an unsafe request's
/// `invalidates` is carried out: the same path gives the same tag in both.
public struct TagTemplate: Sendable, Equatable {
  /// The longest tag, in bytes.
  public static let bytesMax = 256

  /// The text in policies.json.
  public let source: String
  /// The names in braces, each once, in their order.
  public let names: [String]
  private let pieces: [Piece]

  private enum Piece: Sendable, Equatable {
    case text([UInt8])
    case name(String)
  }

  public init(parsing source: String) throws(TagTemplateError) {
    self.source = source
    guard (1...Self.bytesMax).contains(source.utf8.count) else { throw .badLength }
    var pieces: [Piece] = []
    var names: [String] = []
    var rest = Array(source.utf8)[...]
    while let byte = rest.first {
      if byte == UInt8(ascii: "{") {
        let close = rest.firstIndex(of: UInt8(ascii: "}")) ?? rest.endIndex
        let inner = rest[(rest.startIndex + 1)..<close]
        guard close < rest.endIndex, !inner.isEmpty, inner.allSatisfy(Self.isNameByte) else {
          throw .badName(String(decoding: rest[..<min(close + 1, rest.endIndex)], as: UTF8.self))
        }
        let name = String(decoding: inner, as: UTF8.self)
        if !names.contains(name) { names.append(name) }
        pieces.append(.name(name))
        rest = rest[(close + 1)...]
        continue
      }
      let text = rest.prefix { $0 != UInt8(ascii: "{") }
      if text.contains(UInt8(ascii: "}")) { throw .badName("}") }
      guard text.allSatisfy(Self.isTagByte) else { throw .forbiddenByte }
      pieces.append(.text(Array(text)))
      rest = rest[text.endIndex...]
    }
    self.pieces = pieces
    self.names = names
  }

  /// The tag of a path that gave these captures (`RoutePattern.captures`); nil where a name has
  /// none, or where the tag becomes too long: what would carry it is then not stored.
  ///
  /// A captured value is percent-encoded already; a comma or a quote in it is encoded here, alike
  /// for storing and for purging.
  public func filled(with captures: [(name: String, value: String)]) -> [UInt8]? {
    var tag: [UInt8] = []
    for piece in pieces {
      switch piece {
      case .text(let bytes): tag += bytes
      case .name(let name):
        guard let capture = captures.first(where: { $0.name == name }) else { return nil }
        for byte in capture.value.utf8 { Self.appendEncoded(byte, to: &tag) }
      }
    }
    return (1...Self.bytesMax).contains(tag.count) ? tag : nil
  }

  /// Whether a byte may stand in a tag.
  static func isTagByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: ","), UInt8(ascii: "\""), UInt8(ascii: "'"): false
    default: byte > 0x20 && byte < 0x7F
    }
  }

  private static func appendEncoded(_ byte: UInt8, to tag: inout [UInt8]) {
    guard !isTagByte(byte) else {
      tag.append(byte)
      return
    }
    let digits = Array("0123456789ABCDEF".utf8)
    tag += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 0x0F)]]
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    let lower = ASCII.lowercased(byte)
    return ASCII.isDigit(byte) || byte == UInt8(ascii: "_")
      || (lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "z"))
  }
}

/// Why a tag is refused; `message` is what policies.json's reader prints.
public enum TagTemplateError: Error, Sendable, Equatable {
  case badLength
  case forbiddenByte
  case badName(String)

  public var message: String {
    switch self {
    case .badLength: "a tag has 1 to \(TagTemplate.bytesMax) bytes"
    case .forbiddenByte: "a tag is printable ASCII without spaces, commas and quotes"
    case .badName(let text): "\"\(text)\" is no \"{name}\": letters, digits and \"_\" in braces"
    }
  }
}
