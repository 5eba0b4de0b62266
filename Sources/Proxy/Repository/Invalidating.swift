internal import Backends
internal import CachePolicy

/// Makes copies void after a change went through (RFC 9111 §4.4): those of its target, of what its
/// answer points to, and of what the route's `invalidates` names.
///
/// Running fills that a change makes void do not land, and nobody joins them any more.
extension Repository {
  func invalidate(_ source: FetchSource, answer: Fill.Head) {
    guard Invalidation.invalidates(method: source.head.method, status: answer.status) else {
      return
    }
    let authority = source.head.authority
    drop(path: source.path, query: source.head.query, authority: authority)
    let host = String(decoding: authority, as: UTF8.self)
    var target = String(decoding: source.path, as: UTF8.self)
    if let query = source.head.query { target += "?" + String(decoding: query, as: UTF8.self) }
    for line in answer.fields.lines where line.known == .location || line.known == .contentLocation
    {
      let reference = answer.fields.bytes[line.value]
      if let other = Invalidation.sameOriginTarget(
        reference.span, scheme: "http", authority: host, target: target), other != target
      {
        drop(target: Array(other.utf8), authority: authority)
      }
    }
    let captures = source.route.pattern?.captures(path: source.path.span) ?? []
    for entry in source.route.options.invalidates {
      guard let filled = entry.filled(with: captures) else { continue }
      switch filled {
      case .tag(let tag): purge(.tag(tag))
      case .path(let pattern): purge(.pattern(pattern))
      }
    }
  }

  /// Purges the store, and keeps running fills that the scope covers from being joined.
  func purge(_ scope: PurgeScope) {
    // The store first: a fill that begins in between carries a later ID, and loses only its joiners.
    services.store.purge(scope)
    // What the origin tags its answer with is not known before its head is here: the store judges
    // whether it lands, and whoever asks after the purge does not wait for it.
    if case .tag = scope { services.fillTable.close { $0.progress.head == nil } }
    services.fillTable.invalidate { $0.isCovered(by: scope) }
  }

  private func drop(target: [UInt8], authority: ArraySlice<UInt8>) {
    let parts = target.split(separator: 0x3F, maxSplits: 1, omittingEmptySubsequences: false)
    var path = Array(parts[0])
    var normalized: [UInt8] = []
    switch PathNormalization.normalize(path.span, into: &normalized) {
    case .refused: return
    case .rewritten: path = normalized
    case .unchanged: break
    }
    drop(path: path, query: parts.count > 1 ? parts[1] : nil, authority: authority)
  }

  /// Drops all copies of a target, as the route keys them that reads it.
  private func drop(path: [UInt8], query: ArraySlice<UInt8>?, authority: ArraySlice<UInt8>) {
    let method = Array("GET".utf8)
    let route = policies.route(method: method.span, host: authority.span, path: path.span)
    guard let route else { return }
    placement.makeTargetKey(route, authority: authority, path: path, query: query)
    guard !route.hasKeyExtras else {
      purge(.url(wholeKeyPrefix: placement.wholeKey))
      return
    }
    let key = storeKey()
    services.fillTable.invalidate(key)
    services.store.remove(key: key)
  }
}

extension Fill {
  /// Whether what the fill brings is, as far as is known by now, in the scope of a purge.
  func isCovered(by scope: PurgeScope) -> Bool {
    if case .everything = scope { return true }
    if case .tag(let tag) = scope {
      return (progress.head?.tags ?? plan.tags)?.contains(tag) ?? false
    }
    let wholeKey = plan.wholeKey
    let readable = CacheKey.Parts(wholeKey.span)
    guard let parts = readable else { return true }
    let (authority, path) = (wholeKey[parts.authority], wholeKey[parts.path])
    switch scope {
    case .everything, .tag: return true
    case .url(let prefix): return wholeKey[..<parts.further.lowerBound].elementsEqual(prefix)
    case .path(let wanted, let host):
      if let host, !host.matches(authority.span) { return false }
      return path.elementsEqual(wanted)
    case .pattern(let pattern): return pattern.matches(host: authority.span, path: path.span)
    }
  }
}
