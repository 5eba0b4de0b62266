public import CachePolicy

/// One entry of the file's `tests`: a request, what the origin would answer, and what must hold.
///
/// Read with the rest of the file and run by `larder check`, at start and before each reload, on
/// the configuration alone: no network, no store.
public struct PolicyTest: Sendable, Equatable {
  /// `tests[3]`: where it stands in the file.
  public var path: String
  /// Of the test in the file; from 1.
  public var line: Int
  public var column: Int
  public var method: String
  /// A path with its query, or an absolute URL.
  public var target: String
  public var headers: [HeaderLine]
  /// nil: the origin is not asked about.
  public var given: Given?
  public var expect: Expectation

  public struct HeaderLine: Sendable, Equatable {
    public var name: String
    public var value: String

    public init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  /// What the origin would answer.
  public struct Given: Sendable, Equatable {
    public var status: UInt16
    public var headers: [HeaderLine]

    public init(status: UInt16 = 200, headers: [HeaderLine] = []) {
      self.status = status
      self.headers = headers
    }
  }

  /// What must hold; nil: nothing is said of it.
  public struct Expectation: Sendable, Equatable {
    public var route: String?
    public var strategy: Strategy?
    public var timeToLiveMilliseconds: Int64?
    public var stores: Bool?
    /// The query part of the key.
    public var key: String?
    public var upstreamURL: String?
    public var perUser: Bool?
    public var tags: [String]?

    public init() {}
  }

  public init(
    path: String, line: Int, column: Int, method: String, target: String,
    headers: [HeaderLine] = [], given: Given? = nil, expect: Expectation = Expectation()
  ) {
    self.path = path
    self.line = line
    self.column = column
    self.method = method
    self.target = target
    self.headers = headers
    self.given = given
    self.expect = expect
  }
}
