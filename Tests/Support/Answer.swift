/// One answer as a client got it.
public struct Answer: Sendable {
  public var status: Int
  /// In their order, as they came.
  public var fields: [(name: String, value: String)]
  public var body: [UInt8] = []
  /// The connection ended before the answer did.
  public var isCut = false
  /// The interim answers before it.
  public var interimStatuses: [Int] = []

  public var text: String { String(decoding: body, as: UTF8.self) }

  /// The first line of this name, in any case.
  public func first(_ name: String) -> String? { all(name).first }

  public func all(_ name: String) -> [String] {
    fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
  }

  public var ageSeconds: Int? { first("Age").flatMap { Int($0) } }

  /// What Larder says of this answer (RFC 9211).
  public var cacheStatus: CacheStatus { CacheStatus(all("Cache-Status").joined(separator: ", ")) }
}

/// `Cache-Status: larder; hit; ttl=873; detail=cache-first`, taken apart.
public struct CacheStatus: Sendable, Equatable, CustomStringConvertible {
  public let description: String
  private let parameters: [String: String]

  public init(_ text: String) {
    description = text
    var found: [String: String] = [:]
    for part in text.split(separator: ";").dropFirst() {
      let pair = part.split(separator: "=", maxSplits: 1)
      let name = pair[0].filter { $0 != " " }
      found[name] = pair.count > 1 ? String(pair[1]) : ""
    }
    parameters = found
  }

  /// Whether it is one member, and Larder's.
  public var isOurs: Bool { description.hasPrefix("larder;") && !description.contains(",") }
  public var isHit: Bool { parameters["hit"] != nil }
  /// The `fwd` word: `uri-miss`, `stale`, `bypass`, `method`, `request`.
  public var forward: String? { parameters["fwd"] }
  public var forwardStatus: Int? { parameters["fwd-status"].flatMap { Int($0) } }
  public var isStored: Bool { parameters["stored"] != nil }
  public var isCollapsed: Bool { parameters["collapsed"] != nil }
  public var timeToLiveSeconds: Int? { parameters["ttl"].flatMap { Int($0) } }
  public var detail: String? { parameters["detail"] }
}
