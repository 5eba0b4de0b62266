/// When the writer commits what waits for it: pure, so that the rule has a table of tests.
///
/// Nobody waits for a commit, and each costs a sync, and the pages of the trees' inner nodes anew: a
/// larger one costs an entry less. So a write waits a while for others. What takes something away
/// does not, so that a crash brings back as little as may be; nor does much that waits, since fills
/// of large bodies are held up by what is not committed. Asked by WriteQueue under its lock.
struct CommitTiming {
  /// The least time between two commits.
  var intervalMilliseconds: Int64
  /// How long a write waits for others.
  var gatheringMilliseconds: Int64

  /// As much waiting is worth a commit of its own: far less than a fill may have uncommitted.
  static let gatheredBytesMax = 1024 * 1024

  struct Waiting {
    /// When the oldest came, in monotonic milliseconds.
    var sinceMilliseconds: Int64
    var bytes: Int
    /// Among them is one that takes something away.
    var hasRemoval: Bool

    /// Whether they wait for no others.
    var isHurried: Bool { hasRemoval || bytes >= CommitTiming.gatheredBytesMax }
  }

  /// The time to commit, in monotonic milliseconds. `earliestMilliseconds` is where the interval
  /// since the last commit ends. `hasOtherWork`: the writer has more to do, and is not to wait.
  func commitMilliseconds(
    of waiting: Waiting, earliestMilliseconds: Int64, hasOtherWork: Bool
  ) -> Int64 {
    if hasOtherWork || waiting.isHurried { return earliestMilliseconds }
    return max(earliestMilliseconds, waiting.sinceMilliseconds + gatheringMilliseconds)
  }
}
