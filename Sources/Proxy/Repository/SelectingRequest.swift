internal import Backends
internal import CachePolicy

/// A request as the Vary blocks of copies see it: with keyed digests in the place of what may be
/// somebody's secret, so that nobody's cookie, token or key lies in the store.
///
/// Digests are made of the fields that a block names, and once for all copies of a key that vary by
/// the same ones; where no block names a secret, none are. Made for one request, by whoever looks its
/// copies up.
struct SelectingRequest {
  private let request: Fields
  private let services: Services
  /// The names that `keyed` was made for; nil: it was not made yet.
  private var names: [String]?
  private var keyed = Fields()

  init(_ request: Fields, _ services: Services) {
    self.request = request
    self.services = services
  }

  /// Whether the request selects the copy with this block.
  mutating func selects(_ block: Span<UInt8>) -> Bool {
    if block.isEmpty { return true }
    return Vary.matches(block: block, request: fields(for: block))
  }

  /// `Vary.differsInNegotiationAlone`, of a block that may hold digests.
  mutating func differsInNegotiationAlone(_ block: Span<UInt8>) -> Bool {
    Vary.differsInNegotiationAlone(block: block, request: fields(for: block))
  }

  /// The block of an answer to the request; nil: it varies by what no request shows.
  mutating func block(of response: Fields, ignoresVary: Bool) -> [UInt8]? {
    let block = Vary.selectingBlock(response: response, request: request, ignore: ignoresVary)
    guard let block, Vary.mayHoldSecrets(block: block.span) else { return block }
    return Vary.selectingBlock(
      response: response, request: fields(for: block.span), ignore: ignoresVary)
  }

  private mutating func fields(for block: Span<UInt8>) -> Fields {
    guard Vary.mayHoldSecrets(block: block) else { return request }
    let wanted = Vary.names(in: block)
    if names != wanted {
      names = wanted
      keyed = Fields()
      for name in wanted { append(Array(name.utf8)) }
    }
    return keyed
  }

  /// The lines of a name; of a secret one, a line with the digest of all of them together, which mean
  /// the same as one (RFC 9110 §5.3).
  private mutating func append(_ name: [UInt8]) {
    let isSecret = Vary.mayBeSecret(KnownField.lookup(name.span))
    var value: [UInt8] = []
    var start = 0
    while let index = request.firstIndex(named: name.span, from: start) {
      if isSecret {
        if start > 0 { value += [0x2C, 0x20] }
        value += request.value(at: index)
      } else {
        keyed.append(line: request.lines[index], of: request)
      }
      start = index + 1
    }
    guard isSecret, start > 0 else { return }
    keyed.append(name: name.span, value: services.digest(value.span).span)
  }
}
