internal import Backends
internal import CachePolicy

/// The tags that a copy carries: the route's, filled from the path, and the origin's own.
///
/// What cannot be kept whole makes the answer one that is not stored: a copy with a tag missing
/// would outlive the purge that was meant for it.
enum CopyTags {
  /// The route's own tags for a path; nil: one of them cannot be made.
  static func tags(of route: RouteContext, path: [UInt8]) -> [[UInt8]]? {
    guard !route.options.tags.isEmpty else { return [] }
    let captures = route.pattern?.captures(path: path.span) ?? []
    var tags: [[UInt8]] = []
    for template in route.options.tags {
      guard let tag = template.filled(with: captures) else { return nil }
      if !tags.contains(tag) { tags.append(tag) }
    }
    return tags
  }

  /// With those that the origin names; nil: they cannot all be kept.
  static func adding(originTagsOf response: Fields, to own: [[UInt8]]?) -> [[UInt8]]? {
    guard var tags = own, case .tags(let more) = OriginTags.read(response) else { return nil }
    if tags.isEmpty, more.isEmpty { return tags }
    let known = Set(tags)
    tags += more.filter { !known.contains($0) }
    let bytes = tags.reduce(0) { $0 + $1.count }
    guard tags.count <= StoreConfiguration.tagsMax, bytes <= StoreConfiguration.tagBytesMax else {
      return nil
    }
    return tags
  }
}
