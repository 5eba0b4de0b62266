import Support
import Testing

/// What a client is told of where its answer came from, in the words of `Cache-Status`.
enum Outcome {
  /// From the copy, without a word from the network.
  case hit
  /// From the network, and stored.
  case stored(String)
  /// From the network, and not stored.
  case notStored(String)
  /// From the copy, after the network was asked; with the status it answered, if it did.
  case copy(String, Int?)
  /// An error that Larder made.
  case failed
}

/// Compares one answer with what is due: body, status, `Cache-Status`, and that it is whole.
func expect(
  _ answer: Answer, _ body: String, status: Int = 200, _ outcome: Outcome,
  _ location: SourceLocation = #_sourceLocation
) {
  let cacheStatus = answer.cacheStatus
  #expect(!answer.isCut, sourceLocation: location)
  #expect(answer.status == status, sourceLocation: location)
  #expect(cacheStatus.isOurs, sourceLocation: location)
  switch outcome {
  case .hit:
    #expect(cacheStatus.isHit, "\(cacheStatus)", sourceLocation: location)
    #expect(cacheStatus.forward == nil, "\(cacheStatus)", sourceLocation: location)
    #expect(cacheStatus.timeToLiveSeconds != nil, "\(cacheStatus)", sourceLocation: location)
    #expect(answer.ageSeconds != nil, sourceLocation: location)
  case .stored(let word):
    #expect(!cacheStatus.isHit && cacheStatus.isStored, "\(cacheStatus)", sourceLocation: location)
    #expect(cacheStatus.forward == word, sourceLocation: location)
    #expect(cacheStatus.forwardStatus == status, "\(cacheStatus)", sourceLocation: location)
  case .notStored(let word):
    #expect(!cacheStatus.isHit && !cacheStatus.isStored, "\(cacheStatus)", sourceLocation: location)
    #expect(cacheStatus.forward == word, sourceLocation: location)
    #expect(cacheStatus.forwardStatus == status, "\(cacheStatus)", sourceLocation: location)
  case .copy(let word, let originStatus):
    #expect(!cacheStatus.isHit && !cacheStatus.isStored, "\(cacheStatus)", sourceLocation: location)
    #expect(cacheStatus.forward == word, sourceLocation: location)
    #expect(cacheStatus.forwardStatus == originStatus, "\(cacheStatus)", sourceLocation: location)
    #expect(answer.ageSeconds != nil, sourceLocation: location)
  case .failed:
    #expect(answer.first("Content-Type") == "application/problem+json", sourceLocation: location)
    #expect(!cacheStatus.isHit && !cacheStatus.isStored, "\(cacheStatus)", sourceLocation: location)
    return
  }
  #expect(answer.text == body, sourceLocation: location)
}

/// A route named "r" for all paths, with windows wide apart: fresh for an hour, stale while one
/// refresh runs for another hour, good for bad days for ten.
func windowedRoute(_ strategy: String, _ more: String = "") -> String {
  """
  { "name": "r", "match": "/**", "strategy": "\(strategy)", "ttl": "1h",
    "staleWhileRevalidate": "1h", "staleIfError": "10h", \(more) },
  """
}

/// Ages of a copy on a `windowedRoute`.
enum Age {
  static let fresh: Int64 = 0
  static let stale: Int64 = 90 * 60
  static let older: Int64 = 5 * 3600
  static let beyondAll: Int64 = 20 * 3600
}

/// How a network fails.
enum NetworkFailure: String, CaseIterable, CustomTestStringConvertible {
  case refusesConnections, resetsInsteadOfAnswering, neverAnswers, answers503

  var testDescription: String { rawValue }

  /// The upstream's members in policies.json: impatient only where a test waits for its patience.
  var upstream: String {
    self == .neverAnswers ? "\"retries\": 0, \"firstByteTimeout\": \"1s\"" : "\"retries\": 0"
  }

  /// What the origin answered, as Cache-Status tells.
  var forwardStatus: Int? { self == .answers503 ? 503 : nil }

  /// The status of the error where no copy may serve.
  var errorStatus: Int {
    switch self {
    case .refusesConnections, .resetsInsteadOfAnswering: 502
    case .neverAnswers: 504
    case .answers503: 503
    }
  }

  func begin(_ origin: ScriptedOrigin, _ path: String) {
    switch self {
    case .refusesConnections: origin.stop()
    case .resetsInsteadOfAnswering: origin.on(path, .silence(.reset))
    case .neverAnswers: origin.on(path, OriginAnswer.text("too late").waiting(for: Gate()))
    case .answers503: origin.on(path, .text("origin's own error", status: 503))
    }
  }

  /// What a client gets who no copy is for, and what it counts as.
  func expectError(_ answer: Answer, _ location: SourceLocation = #_sourceLocation) {
    if self == .answers503 {
      #expect(answer.text == "origin's own error", sourceLocation: location)
      #expect(answer.status == 503, sourceLocation: location)
      #expect(!answer.cacheStatus.isStored, sourceLocation: location)
    } else {
      expect(answer, "", status: errorStatus, .failed, location)
    }
  }

  var errorCounts: ProxyStatistics.Counts {
    self == .answers503 ? .init(passes: 1) : .init(errors: 1)
  }
}

extension ProxyStatistics.Counts {
  static func + (left: Self, right: Self) -> Self {
    .init(
      hits: left.hits + right.hits, stale: left.stale + right.stale,
      misses: left.misses + right.misses, passes: left.passes + right.passes,
      errors: left.errors + right.errors)
  }
}

/// Compares a whole answer's body and status alone.
func expectText(
  _ answer: Answer, _ body: String, status: Int = 200,
  _ location: SourceLocation = #_sourceLocation
) {
  #expect(answer.status == status, sourceLocation: location)
  #expect(!answer.isCut, "\(answer.cacheStatus)", sourceLocation: location)
  #expect(answer.text == body, "\(answer.cacheStatus)", sourceLocation: location)
}
