/// The weight of a member of an Accept field (RFC 9110 §12.4.2). Read by `Vary` and its sets.
enum Weight {
  /// 0 to 1000 for what follows a member: nothing, or `;q=` with 0 to 1 and up to three decimals.
  /// nil for anything else.
  static func thousandths(_ parameters: Span<UInt8>) -> Int? {
    if parameters.isEmpty { return 1000 }
    let weight = parameters.extracting(ASCII.trimmed(parameters, 1..<parameters.count))
    guard (3...7).contains(weight.count), ASCII.lowercased(weight[0]) == 0x71,
      weight[1] == 0x3D, weight[2] == 0x30 || weight[2] == 0x31,
      weight.count < 4 || weight[3] == 0x2E
    else { return nil }
    var (value, unit) = (weight[2] == 0x31 ? 1000 : 0, 100)
    for index in 4..<max(4, weight.count) {
      guard ASCII.isDigit(weight[index]) else { return nil }
      value += Int(weight[index] - 0x30) * unit
      unit /= 10
    }
    return value <= 1000 ? value : nil
  }
}
