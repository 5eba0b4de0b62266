/// S3-FIFO (Yang et al., SOSP 2023): a tenth of the cache takes newcomers, what was asked for more
/// than once there goes on to the main queue, the rest leaves its name in a third one, by which it
/// is known if it comes again soon. A store on disk would write at each change of queue.
final class S3FIFO: EvictionPolicy {
  private enum Place: UInt8 { case nowhere, small, main }
  private let capacityBytes: Int
  private let smallBytesMax: Int
  private var small: KeyRow
  private var main: KeyRow
  private var places: [Place]
  private var sizes: [Int32]
  private var uses: [UInt8]
  private var smallBytes = 0
  private var mainBytes = 0
  private var mainCount = 0
  /// When each key left `small`, by a count of those that did; -1: never, or long ago.
  private var departures: [Int32]
  private var departureCount: Int32 = 0
  var usedBytes: Int { smallBytes + mainBytes }

  init(keyCount: Int, capacityBytes: Int) {
    self.capacityBytes = capacityBytes
    smallBytesMax = capacityBytes / 10
    small = KeyRow(keyCount: keyCount)
    main = KeyRow(keyCount: keyCount)
    places = Array(repeating: .nowhere, count: keyCount)
    sizes = Array(repeating: 0, count: keyCount)
    uses = Array(repeating: 0, count: keyCount)
    departures = Array(repeating: -1, count: keyCount)
  }

  func request(_ key: Int, bytes: Int) -> Bool {
    if places[key] != .nowhere {
      uses[key] = min(3, uses[key] + 1)
      return true
    }
    guard bytes <= capacityBytes else { return false }
    while usedBytes + bytes > capacityBytes { evict() }
    // As many names are remembered as the main queue has keys.
    let isKnown = departures[key] >= 0 && Int(departureCount - departures[key]) <= mainCount
    departures[key] = -1
    uses[key] = 0
    sizes[key] = Int32(bytes)
    if isKnown { appendToMain(key) } else { appendToSmall(key) }
    return false
  }

  private func appendToSmall(_ key: Int) {
    small.append(Int32(key))
    places[key] = .small
    smallBytes += Int(sizes[key])
  }

  private func appendToMain(_ key: Int) {
    main.append(Int32(key))
    places[key] = .main
    mainBytes += Int(sizes[key])
    mainCount += 1
  }

  private func evict() {
    if smallBytes > smallBytesMax || main.oldest == KeyRow.none {
      evictFromSmall()
    } else {
      evictFromMain()
    }
  }

  private func evictFromSmall() {
    let key = Int(small.oldest)
    small.remove(Int32(key))
    smallBytes -= Int(sizes[key])
    if uses[key] > 1 {
      uses[key] = 0
      appendToMain(key)
    } else {
      places[key] = .nowhere
      departureCount += 1
      departures[key] = departureCount
    }
  }

  private func evictFromMain() {
    while true {
      let key = Int(main.oldest)
      main.remove(Int32(key))
      mainBytes -= Int(sizes[key])
      mainCount -= 1
      guard uses[key] > 0 else {
        places[key] = .nowhere
        return
      }
      uses[key] -= 1
      appendToMain(key)
    }
  }
}
