/// How a block of fields is written as lines and read back, and which of its lines end at this
/// connection.
///
/// `parse` reads what `encode` wrote (also a stored head); it is not the parser of what clients
/// and origins send. Called by the encoders, the record codec and whoever forwards a message.
extension Fields {
  /// Appends every line as `Name: value` CR LF.
  public func encode(into output: inout [UInt8]) {
    for line in lines { encode(line, into: &output) }
  }

  /// Appends one line as `Name: value` CR LF.
  public func encode(_ line: Line, into output: inout [UInt8]) {
    let (name, value) = (line.name, line.value)
    if value.lowerBound == name.upperBound + 2, bytes[name.upperBound] == 0x3A,
      bytes[name.upperBound + 1] == 0x20
    {
      // It lies there as it goes out.
      output.append(contentsOf: bytes[name.lowerBound..<value.upperBound])
    } else {
      output.append(contentsOf: bytes[name])
      output.append(0x3A)
      output.append(0x20)
      output.append(contentsOf: bytes[value])
    }
    output.append(0x0D)
    output.append(0x0A)
  }

  /// Appends every line but those of one field, as `encode` does. Lines that lie behind one another
  /// as they go out are copied together.
  public func encode(into output: inout [UInt8], without left: KnownField) {
    // SAFETY: all ranges of lines lie in `bytes`, and the array copies before `append` returns.
    unsafe bytes.withUnsafeBufferPointer { all in
      func append(_ range: Range<Int>) {
        unsafe output.append(contentsOf: UnsafeBufferPointer(rebasing: all[range]))
      }
      var run = 0..<0
      for line in lines where line.known != left {
        let (name, value) = (line.name, line.value)
        let isPlain =
          unsafe value.lowerBound == name.upperBound + 2 && all[name.upperBound] == 0x3A
          && all[name.upperBound + 1] == 0x20
        let end = value.upperBound
        if isPlain, unsafe end + 2 <= all.count && all[end] == 0x0D && all[end + 1] == 0x0A {
          if run.upperBound != name.lowerBound {
            append(run)
            run = name.lowerBound..<name.lowerBound
          }
          run = run.lowerBound..<end + 2
          continue
        }
        append(run)
        run = 0..<0
        append(isPlain ? name.lowerBound..<end : name)
        if !isPlain {
          output.append(0x3A)
          output.append(0x20)
          append(value)
        }
        output.append(0x0D)
        output.append(0x0A)
      }
      append(run)
    }
  }

  /// The lines that `encode` wrote. A line without a name is left out, and an empty line or the
  /// end of the span ends the block.
  public static func parse(wireLines: Span<UInt8>) -> Fields {
    var fields = Fields()
    fields.setBlock(wireLines)
    let count = wireLines.count
    var lineStart = 0
    while lineStart < count {
      var lineEnd = lineStart
      while lineEnd < count, wireLines[lineEnd] != 0x0A { lineEnd += 1 }
      let next = lineEnd + 1
      if lineEnd > lineStart, wireLines[lineEnd - 1] == 0x0D { lineEnd -= 1 }
      if lineEnd == lineStart { break }
      var colon = lineStart
      while colon < lineEnd, wireLines[colon] != 0x3A { colon += 1 }
      if colon < lineEnd, ASCII.isToken(wireLines.extracting(lineStart..<colon)) {
        let value = ASCII.trimmed(wireLines, colon + 1..<lineEnd)
        fields.appendLine(name: lineStart..<colon, value: value)
      }
      lineStart = next
    }
    return fields
  }

  /// The indexes, rising, of the lines that must not go beyond this connection: the hop-by-hop
  /// fields and those that `Connection` names (RFC 9110 §7.6.1).
  ///
  /// `Connection` must never name a field meant for all recipients, and a client that names
  /// Authorization, Cookie, Cache-Control, Host or X-Forwarded-For tries to make the origin see
  /// another request than the one that was keyed and checked. So a field that the proxy acts on
  /// (`KnownField`) stays, whatever `Connection` says. Any other field it names goes, and a key or
  /// a Vary block has to be made from the fields that are left: those are what the origin sees.
  /// A field that ends with `-Control` stays too: it may be the targeted one that says no-store.
  public func hopByHopLines() -> [Int] {
    var result: [Int] = []
    for index in lines.indices where isHopByHop(at: index) { result.append(index) }
    return result
  }

  /// Whether `hopByHopLines()` has this line.
  public func isHopByHop(at index: Int) -> Bool {
    if let known = lines[index].known { return known.isHopByHop }
    guard contains(.connection) else { return false }
    let name = bytes.span.extracting(lines[index].name)
    return isNamedByConnection(name) && !Fields.mayBeTargeted(name)
  }

  /// Whether the name is one for cache directives (RFC 9213 §2: they end with Cache-Control; some
  /// older ones with Control alone).
  private static func mayBeTargeted(_ name: Span<UInt8>) -> Bool {
    let ending: StaticString = "-control"
    guard name.count > ending.utf8CodeUnitCount else { return false }
    return ASCII.equalsIgnoringCase(
      name.extracting(name.count - ending.utf8CodeUnitCount..<name.count), ending)
  }

  /// Drops the lines of `hopByHopLines()`.
  public mutating func removeHopByHop() {
    let whole = self
    removeLines { whole.isHopByHop(at: $0) }
  }

  /// Whether a `Connection` line has this option, in any case: `close`, `upgrade`, a field's name.
  public func connectionHas(option: StaticString) -> Bool {
    let all = bytes.span
    for line in lines where line.known == .connection {
      let value = all.extracting(line.value)
      var position = 0
      while let member = ASCII.nextListMember(value, &position) {
        if ASCII.equalsIgnoringCase(value.extracting(member), option) { return true }
      }
    }
    return false
  }

  private func isNamedByConnection(_ name: Span<UInt8>) -> Bool {
    let all = bytes.span
    for line in lines where line.known == .connection {
      let value = all.extracting(line.value)
      var position = 0
      while let member = ASCII.nextListMember(value, &position) {
        if ASCII.equalsIgnoringCase(value.extracting(member), name) { return true }
      }
    }
    return false
  }
}
