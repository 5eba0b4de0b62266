/// Decides whether a fetch that all its clients have left goes on to the store (`whenAbandoned`).
///
/// What is small or nearly there is worth its rest: the next client finds a copy. What is large and
/// has just begun would cost the origin and the line a transfer that nobody may ever ask for again.
/// Asked by the fill when its last reader goes, and, as long as nobody reads, at every byte that
/// comes. A fetch that no client began (a refresh, `warm`) is not asked about.
public enum AbandonedFill: Sendable, Equatable {
  /// It always goes on.
  case finish
  /// It ends at once, also where no answer has begun.
  case stop
  /// It goes on where the body has at most `belowBytes`, or where `fromPercent` of it have come.
  /// Before the head, and where no length is declared, what has come counts in the length's place.
  case finishWhere(belowBytes: UInt64, fromPercent: Int)

  /// What holds where nothing is said: up to 1 MiB, or from the half on.
  public static let standard = AbandonedFill.finishWhere(
    belowBytes: AbandonedFill.standardBelowBytes,
    fromPercent: AbandonedFill.standardFromPercent)
  public static let standardBelowBytes: UInt64 = 1 << 20
  public static let standardFromPercent = 50

  /// Whether it goes on. `declaredBytes`: the body's length, where the origin has declared it.
  public func goesOn(receivedBytes: UInt64, declaredBytes: UInt64?) -> Bool {
    switch self {
    case .finish: return true
    case .stop: return false
    case .finishWhere(let belowBytes, let fromPercent):
      guard let declaredBytes else { return receivedBytes <= belowBytes }
      if declaredBytes <= belowBytes { return true }
      // Without multiplying what may be as large as a length can be written.
      let (quotient, remainder) = declaredBytes.quotientAndRemainder(dividingBy: 100)
      let percent = UInt64(fromPercent)
      let wantedBytes = quotient * percent + (remainder * percent + 99) / 100
      return receivedBytes >= wantedBytes
    }
  }
}
