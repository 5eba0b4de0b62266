/// What the candidates have in common: a budget of bytes, and the question whether a key is there.
///
/// Keys are small numbers, so that a candidate keeps its state in arrays; what a real cache would
/// hash is no part of what is compared. Asked by EvictionBench, once a request.
protocol EvictionPolicy: AnyObject {
  init(keyCount: Int, capacityBytes: Int)
  /// A request for a key whose object has so many bytes. True: it was there. Otherwise it is
  /// fetched, and is there from then on, unless it is larger than the cache.
  func request(_ key: Int, bytes: Int) -> Bool
  /// What is there now, for the check that the budget is kept.
  var usedBytes: Int { get }
}

/// Keys in a row, linked both ways; a key is in one row at most.
struct KeyRow {
  static let none: Int32 = -1
  private var older: [Int32]
  private var newer: [Int32]
  private(set) var oldest = KeyRow.none
  private(set) var newest = KeyRow.none

  init(keyCount: Int) {
    older = Array(repeating: KeyRow.none, count: keyCount)
    newer = Array(repeating: KeyRow.none, count: keyCount)
  }

  func newer(than key: Int32) -> Int32 { newer[Int(key)] }

  mutating func append(_ key: Int32) {
    older[Int(key)] = newest
    newer[Int(key)] = KeyRow.none
    if newest == KeyRow.none { oldest = key } else { newer[Int(newest)] = key }
    newest = key
  }

  mutating func remove(_ key: Int32) {
    let (before, behind) = (older[Int(key)], newer[Int(key)])
    if before == KeyRow.none { oldest = behind } else { newer[Int(before)] = behind }
    if behind == KeyRow.none { newest = before } else { older[Int(behind)] = before }
  }
}
