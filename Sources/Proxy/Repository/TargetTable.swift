internal import Backends
internal import CachePolicy

/// What follows from a request's method, target and Host alone, under the policies in force: its
/// path in normal form, its route, its whole key and where the store has it. Immutable.
final class KnownTarget {
  /// Method, space and target as they begin the request line, and the Host field's value.
  fileprivate let request: [UInt8]
  fileprivate let host: [UInt8]
  fileprivate let hash: UInt64
  let path: [UInt8]
  let route: RouteContext
  let wholeKey: [UInt8]
  let key: StoreKey

  fileprivate init(
    _ head: RequestHead, hash: UInt64, path: [UInt8], route: RouteContext, wholeKey: [UInt8],
    key: StoreKey
  ) {
    (request, host) = head.withTargetAndHost { (Array($0), Array($1)) }
    self.hash = hash
    // Copies of the very size: those of the placement have room for more.
    self.path = path.withUnsafeBytes { Array($0) }
    self.route = route
    self.wholeKey = wholeKey.withUnsafeBytes { Array($0) }
    self.key = key
  }
}

/// The targets that a loop was asked for lately, so that a path is brought into its form, a route
/// found and a key made and hashed once and not with each request.
///
/// Whether a target is known decides a comparison of all bytes of method, target and Host; the hash
/// only says where to look, and is keyed, so that nobody outside can crowd a place. It takes in what
/// has a key that nothing else of a request bears on (`RouteContext.isPlacedByTarget`), when it is
/// asked for the second time: a walk over many targets that never come again costs a look, no
/// memory. Bounded in number and in bytes. Who changes policies or limits empties it. Owned by
/// `RequestPlacement`; used by one loop.
final class TargetTable {
  /// A set of places is what one hash may lie in.
  private static let placesPerSet = 4
  private static let placesMin = 1024
  private static let placesMax = 16 * 1024
  /// The longest target, with all that is kept of it, in bytes.
  private static let targetBytesMax = 768

  private let secret: (UInt64, UInt64)
  private var targets: [KnownTarget?]
  private var hashes: [UInt64]
  /// For each set, what was asked for last and is not known.
  private var candidates: [UInt64]
  private(set) var count = 0

  init() {
    var random = SystemRandomNumberGenerator()
    secret = (random.next(), random.next())
    targets = []
    hashes = []
    candidates = []
    removeAll()
  }

  /// Forgets everything.
  func removeAll() { makePlaces(Self.placesMin) }

  private func makePlaces(_ places: Int) {
    targets = Array(repeating: nil, count: places)
    hashes = Array(repeating: 0, count: places)
    candidates = Array(repeating: 0, count: places / Self.placesPerSet)
    count = 0
  }

  /// Where a hash's set is among the sets.
  private func set(of hash: UInt64) -> Int {
    Int(truncatingIfNeeded: hash) & (candidates.count - 1)
  }

  // MARK: Finding

  /// What is known of the request's target.
  func find(_ head: RequestHead) -> KnownTarget? {
    head.withTargetAndHost { request, host in
      let hash = hash(request, host)
      let first = set(of: hash) * Self.placesPerSet
      for place in first..<first + Self.placesPerSet where hashes[place] == hash {
        guard let target = targets[place], Self.isEqual(target.request, request),
          Self.isEqual(target.host, host)
        else { continue }
        // Newcomers take the last place: what is asked for again gives it to another.
        if place == first + Self.placesPerSet - 1 {
          targets.swapAt(place, place - 1)
          hashes.swapAt(place, place - 1)
        }
        return target
      }
      return nil
    }
  }

  @inline(__always)
  private static func isEqual(_ known: [UInt8], _ bytes: UnsafeRawBufferPointer) -> Bool {
    known.withUnsafeBytes { equalBytes($0, bytes) }
  }

  private func hash(_ request: UnsafeRawBufferPointer, _ host: UnsafeRawBufferPointer) -> UInt64 {
    absorb(host, absorb(request, secret.0))
  }

  /// Multiplies and folds eight bytes at a time.
  @inline(__always)
  private func absorb(_ bytes: UnsafeRawBufferPointer, _ state: UInt64) -> UInt64 {
    func mixed(_ state: UInt64, _ word: UInt64) -> UInt64 {
      let product = (state ^ word).multipliedFullWidth(by: secret.1 | 1)
      return product.high ^ product.low
    }
    var state = mixed(state, UInt64(truncatingIfNeeded: bytes.count))
    var offset = 0
    while bytes.count &- offset >= 8 {
      state = mixed(state, bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      offset &+= 8
    }
    var last: UInt64 = 0
    while offset < bytes.count {
      last = last << 8 | UInt64(bytes[offset])
      offset &+= 1
    }
    return mixed(state, last)
  }

  // MARK: Taking in

  /// Notes what was found out of a request's target; kept where it is the second time of late.
  func note(
    _ head: RequestHead, path: [UInt8], route: RouteContext, wholeKey: [UInt8], key: StoreKey
  ) {
    // In absolute-form the Host says nothing.
    guard route.isPlacedByTarget, head.targetAuthorityRange == nil else { return }
    let hash = head.withTargetAndHost { self.hash($0, $1) }
    guard candidates[set(of: hash)] == hash else {
      candidates[set(of: hash)] = hash
      return
    }
    let bytes = head.withTargetAndHost { $0.count + $1.count } + path.count + wholeKey.count
    guard bytes <= Self.targetBytesMax else { return }
    if count > targets.count / 2, targets.count < Self.placesMax { grow() }
    put(
      KnownTarget(head, hash: hash, path: path, route: route, wholeKey: wholeKey, key: key))
  }

  /// Into a place that is free, else into the last of its set.
  private func put(_ target: KnownTarget) {
    let first = set(of: target.hash) * Self.placesPerSet
    var place = first
    while place < first + Self.placesPerSet - 1, targets[place] != nil { place += 1 }
    if targets[place] == nil { count += 1 }
    targets[place] = target
    hashes[place] = target.hash
  }

  private func grow() {
    let known = targets
    makePlaces(targets.count * 2)
    for case let target? in known { put(target) }
  }
}
