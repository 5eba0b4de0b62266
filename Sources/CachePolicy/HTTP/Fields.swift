/// A block of header fields: the bytes as received, and where each line's name and value lie.
///
/// It owns one byte array and one array of lines, so that a block is filled, read and emptied
/// again without an allocation a line (`removeAll` keeps both arrays' room). Names and values stay
/// exactly as received: order, case and duplicates. It refuses nothing that a parser accepted; only
/// the `append` functions look at what they are given, since their bytes may come from elsewhere.
/// Made by the parsers and by whoever builds a message; read by every decision.
public struct Fields: Sendable {
  /// One field line: ranges into `bytes`.
  public struct Line: Sendable, Equatable {
    public var nameStart: Int32
    public var nameCount: Int32
    public var valueStart: Int32
    public var valueCount: Int32
    public var known: KnownField?

    @inlinable
    public var name: Range<Int> { Int(nameStart)..<Int(nameStart) + Int(nameCount) }
    @inlinable
    public var value: Range<Int> { Int(valueStart)..<Int(valueStart) + Int(valueCount) }

    @inlinable
    init(name: Range<Int>, value: Range<Int>, known: KnownField?) {
      nameStart = Int32(name.lowerBound)
      nameCount = Int32(name.count)
      valueStart = Int32(value.lowerBound)
      valueCount = Int32(value.count)
      self.known = known
    }
  }

  public internal(set) var bytes: [UInt8] = []
  public internal(set) var lines: [Line] = []
  /// A bit for each known field that has a line.
  @usableFromInline
  internal var present: UInt64 = 0

  public init() {}

  public init(_ pairs: [(String, String)]) {
    for (name, value) in pairs { append(name, value) }
  }

  public mutating func reserve(bytes bytesCount: Int, lines linesCount: Int) {
    bytes.reserveCapacity(bytesCount)
    lines.reserveCapacity(linesCount)
  }

  /// The block in memory of its own, as small as may be: a block that is filled again and again
  /// keeps its room.
  public func copy() -> Fields {
    var copy = Fields()
    // SAFETY: both arrays copy before the calls return.
    copy.bytes = unsafe bytes.withUnsafeBufferPointer { unsafe Array($0) }
    copy.lines = unsafe lines.withUnsafeBufferPointer { unsafe Array($0) }
    copy.present = present
    return copy
  }

  /// Empties the block and keeps its room.
  public mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    lines.removeAll(keepingCapacity: true)
    present = 0
  }

  // MARK: Filling, by a parser

  /// Replaces everything by a raw block of which `appendLine` then names the lines.
  public mutating func setBlock(_ block: Span<UInt8>) {
    removeAll()
    appendBytes(block)
  }

  /// Adds a line whose name and value lie in `bytes`. The caller has checked both.
  public mutating func appendLine(name: Range<Int>, value: Range<Int>) {
    let known = KnownField.lookup(bytes.span.extracting(name))
    lines.append(Line(name: name, value: value, known: known))
    if let known { present |= known.bit }
  }

  // MARK: Adding lines

  /// Adds a line of the proxy's own making. A name that is no token is a programmer's error.
  ///
  /// CR, LF and NUL in the value become spaces (RFC 9110 §5.5): a value can never end its line.
  public mutating func append(_ name: String, _ value: String) {
    let nameBytes = Array(name.utf8)
    let valueBytes = Array(value.utf8)
    precondition(append(name: nameBytes.span, value: valueBytes.span), "a field name is a token")
  }

  /// Adds a line. False, and nothing added, where the name is no token; CR, LF and NUL in the
  /// value become spaces, and whitespace around it is left off.
  @discardableResult
  public mutating func append(name: Span<UInt8>, value: Span<UInt8>) -> Bool {
    guard ASCII.isToken(name) else { return false }
    let nameStart = bytes.count
    appendBytes(name)
    let valueStart = bytes.count
    appendBytes(value.extracting(ASCII.trimmed(value)))
    for index in valueStart..<bytes.count {
      let byte = bytes[index]
      if byte == 0x0D || byte == 0x0A || byte == 0 { bytes[index] = 0x20 }
    }
    appendLine(name: nameStart..<valueStart, value: valueStart..<bytes.count)
    return true
  }

  /// Adds a line that a parser has checked: `name` is a token, `value` has no CR, LF or NUL and no
  /// whitespace around it. Both are ranges of the line.
  public mutating func append(
    checkedLine line: Span<UInt8>, name: Range<Int>, value: Range<Int>
  ) {
    let start = bytes.count
    appendBytes(line)
    appendLine(
      name: start + name.lowerBound..<start + name.upperBound,
      value: start + value.lowerBound..<start + value.upperBound)
  }

  /// Adds a line of another block, as it is there.
  public mutating func append(line: Line, of other: Fields) {
    let nameStart = bytes.count
    bytes.append(contentsOf: other.bytes[line.name])
    let valueStart = bytes.count
    bytes.append(contentsOf: other.bytes[line.value])
    lines.append(
      Line(name: nameStart..<valueStart, value: valueStart..<bytes.count, known: line.known))
    if let known = line.known { present |= known.bit }
  }

  private mutating func appendBytes(_ span: Span<UInt8>) {
    // SAFETY: the span outlives the call, and the array copies before it returns.
    unsafe span.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
  }

  // MARK: Reading

  /// How many lines there are.
  @inlinable
  public var count: Int { lines.count }

  @inlinable
  public func name(at index: Int) -> ArraySlice<UInt8> { bytes[lines[index].name] }
  @inlinable
  public func value(at index: Int) -> ArraySlice<UInt8> { bytes[lines[index].value] }

  @inlinable
  public func contains(_ field: KnownField) -> Bool { present & field.bit != 0 }

  /// The first line of this field at or after `start`.
  @inlinable
  public func firstIndex(of field: KnownField, from start: Int = 0) -> Int? {
    guard contains(field) else { return nil }
    var index = start
    while index < lines.count {
      if lines[index].known == field { return index }
      index += 1
    }
    return nil
  }

  /// The first line's value.
  @inlinable
  public func first(_ field: KnownField) -> ArraySlice<UInt8>? {
    guard let index = firstIndex(of: field) else { return nil }
    return value(at: index)
  }

  /// Where the first line's value lies in `bytes`; empty where there is no such line.
  @inlinable
  public func firstValueRange(of field: KnownField) -> Range<Int> {
    guard let index = firstIndex(of: field) else { return 0..<0 }
    return lines[index].value
  }

  /// The values of all lines of this field, in order.
  public func values(of field: KnownField) -> [ArraySlice<UInt8>] {
    guard contains(field) else { return [] }
    return lines.filter { $0.known == field }.map { bytes[$0.value] }
  }

  /// All lines of this field as one list (RFC 9110 §5.3), or nil where there is none. Not for
  /// Set-Cookie, whose lines cannot be joined.
  public func combined(_ field: KnownField) -> [UInt8]? {
    guard contains(field) else { return nil }
    return joined(lines.filter { $0.known == field })
  }

  /// The first line of this name, in any case, at or after `start`.
  public func firstIndex(named name: Span<UInt8>, from start: Int = 0) -> Int? {
    if let known = KnownField.lookup(name) { return firstIndex(of: known, from: start) }
    let all = bytes.span
    var index = start
    while index < lines.count {
      let line = lines[index]
      if line.known == nil, ASCII.equalsIgnoringCase(all.extracting(line.name), name) {
        return index
      }
      index += 1
    }
    return nil
  }

  public func firstIndex(named name: String, from start: Int = 0) -> Int? {
    guard hasName(ofBytes: name.utf8.count) else { return nil }
    let nameBytes = Array(name.utf8)
    return firstIndex(named: nameBytes.span, from: start)
  }

  /// All lines of this name as one text, for tests and logs.
  public subscript(name: String) -> String? {
    guard hasName(ofBytes: name.utf8.count) else { return nil }
    let nameBytes = Array(name.utf8)
    var found: [Line] = []
    var start = 0
    while let index = firstIndex(named: nameBytes.span, from: start) {
      found.append(lines[index])
      start = index + 1
    }
    return found.isEmpty ? nil : String(decoding: joined(found), as: UTF8.self)
  }

  /// Whether a line's name is as long: what is looked for is most often not there.
  private func hasName(ofBytes count: Int) -> Bool {
    lines.contains { Int($0.nameCount) == count }
  }

  private func joined(_ lines: [Line]) -> [UInt8] {
    var result: [UInt8] = []
    for (index, line) in lines.enumerated() {
      if index > 0 { result.append(contentsOf: [0x2C, 0x20]) }
      result.append(contentsOf: bytes[line.value])
    }
    return result
  }

  // MARK: Removing

  /// Drops the lines for which the closure, given a name as received, says so.
  public mutating func remove(where shouldRemove: (ArraySlice<UInt8>, KnownField?) -> Bool) {
    let block = bytes
    lines.removeAll { shouldRemove(block[$0.name], $0.known) }
    countPresent()
  }

  /// Drops the lines for whose index, as it is before, the closure says so.
  public mutating func removeLines(where shouldRemove: (Int) -> Bool) {
    // As a block is copied on its first change only, one that stays as it is costs nothing.
    guard let first = lines.indices.first(where: shouldRemove) else { return }
    var kept: [Line] = []
    kept.reserveCapacity(lines.count)
    kept.append(contentsOf: lines[..<first])
    for index in lines.indices[(first + 1)...] where !shouldRemove(index) {
      kept.append(lines[index])
    }
    lines = kept
    countPresent()
  }

  public mutating func remove(_ field: KnownField) {
    guard contains(field) else { return }
    lines.removeAll { $0.known == field }
    present &= ~field.bit
  }

  /// Drops every line of this name, in any case.
  public mutating func remove(named name: Span<UInt8>) {
    while let index = firstIndex(named: name) { lines.remove(at: index) }
    countPresent()
  }

  private mutating func countPresent() {
    present = lines.reduce(0) { $0 | ($1.known?.bit ?? 0) }
  }
}

/// Equal where the lines are: the same names (as spelt) and values in the same order.
extension Fields: Equatable {
  public static func == (left: Fields, right: Fields) -> Bool {
    guard left.count == right.count else { return false }
    for index in 0..<left.count {
      guard left.name(at: index) == right.name(at: index) else { return false }
      guard left.value(at: index) == right.value(at: index) else { return false }
    }
    return true
  }
}
