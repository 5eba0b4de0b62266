public import CachePolicy

/// The remote data source: what a repository asks of the network. `OriginClient` is the real one.
///
/// One instance a loop; every call and every callback happens on that loop's thread.
public protocol RemoteDataSource: AnyObject {
  /// Begins an exchange with an origin. The receiver is told all that happens, never from within
  /// this call, and exactly one of finish and fail comes last (none after `cancel`).
  func start(_ request: OriginRequest, receiver: any OriginResponseReceiver) -> any OriginTransfer
  /// Runs work once the source's callbacks have returned (at once, outside of them): what arrives
  /// in one go is then passed on in one go.
  func afterCallbacks(_ work: @escaping () -> Void)
}

/// A running exchange with an origin.
public protocol OriginTransfer: AnyObject {
  /// Takes no more body bytes until `resume`: back-pressure towards the origin. What has been read by
  /// now may still come, at most a read buffer's worth.
  func pause()
  func resume()
  /// The request's body source has bytes again, or has ended.
  func bodyBecameAvailable()
  /// Ends the exchange; the receiver hears nothing more.
  func cancel()
}

/// Who takes an origin's answer.
public protocol OriginResponseReceiver: AnyObject {
  /// An interim answer (1xx other than 101).
  func originSentInterim(status: UInt16, fields: Fields, version: ReceivedVersion)
  /// The final answer's head, hop-by-hop fields removed.
  func originSentHead(_ head: OriginResponseHead)
  /// Body bytes; they are gone when the call returns.
  func originSentBody(_ bytes: UnsafeRawBufferPointer)
  /// The answer is whole.
  func originFinished()
  func originFailed(_ error: OriginError)
}

/// A request's body on its way to the origin.
public protocol OriginBodySource: AnyObject {
  func readBody(into buffer: UnsafeMutableRawBufferPointer) -> OriginBodyRead
  /// Whether any byte has been handed out: then the body cannot be sent again.
  var hasBeenRead: Bool { get }
}

public enum OriginBodyRead: Sendable {
  case bytes(Int)
  /// None now; `bodyBecameAvailable` will follow.
  case wait
  case end
  /// The client's body broke; the exchange with the origin is given up.
  case failed
}

public struct OriginResponseHead: Sendable {
  public var status: UInt16
  public var fields: Fields
  /// The length the origin declared, if it did.
  public var contentLength: UInt64?
  /// Whether the end of the body will be known to be its end: a length, a last chunk, a status
  /// without body or a stream's end, not merely a closed connection.
  public var endIsKnown: Bool
  public var version: ReceivedVersion

  public init(
    status: UInt16, fields: Fields, contentLength: UInt64?, endIsKnown: Bool,
    version: ReceivedVersion
  ) {
    self.version = version
    self.status = status
    self.fields = fields
    self.contentLength = contentLength
    self.endIsKnown = endIsKnown
  }
}

/// Why an origin gave no whole answer. Source: the origin or the network to it.
public enum OriginError: Error, Sendable, Equatable {
  /// The name could not be resolved, the connection not made, TLS not agreed: nothing was sent.
  case unreachable(String)
  /// No answer, or no progress, within the upstream's time.
  case timedOut(String)
  /// The answer broke off or is not acceptable HTTP.
  case broken(String)
  /// The request's own body broke off (source: the client).
  case requestBodyFailed
  /// As many requests as its upstream may have are on their way, and as many wait: nothing was sent.
  case busy(retryAfterSeconds: Int64)

  /// A connection that did not come about in time.
  static let noConnectionInTime = OriginError.timedOut("no connection in time")

  /// Whether it says that nobody is there who would answer anybody.
  public var isWithoutConnection: Bool {
    if case .unreachable = self { return true }
    return self == OriginError.noConnectionInTime
  }

  /// One line for the log and the problem report.
  public var reason: String {
    switch self {
    case .unreachable(let text): "origin unreachable: \(text)"
    case .timedOut(let text): "origin timed out: \(text)"
    case .broken(let text): "origin's answer broke: \(text)"
    case .requestBodyFailed: "the request's body broke off"
    case .busy: "the upstream has as many requests as it may"
    }
  }
}

/// Where requests of one upstream go, and how long they may take (milliseconds).
///
/// An object, so that what a client keeps for an endpoint (handles, settings) is found by identity
/// and outlives a reload that leaves the endpoint as it is.
public final class OriginEndpoint: Sendable {
  /// Scheme, host and port, such as `https://api.example.com`; no path.
  public let url: String
  public let connectTimeoutMilliseconds: Int64
  public let firstByteTimeoutMilliseconds: Int64
  /// The longest silence within an answer.
  public let stallTimeoutMilliseconds: Int64
  /// How often a request may be tried again.
  public let retriesMax: Int
  /// An HTTP or SOCKS proxy to use; nil: none, whatever the environment says.
  public let proxy: String?
  /// In clear text and without a proxy we speak HTTP/1.1 ourselves.
  let isSpokenToByHTTP1Client: Bool

  public init(
    url: String, connectTimeoutMilliseconds: Int64, firstByteTimeoutMilliseconds: Int64,
    stallTimeoutMilliseconds: Int64, retriesMax: Int, proxy: String? = nil
  ) {
    self.url = url
    self.connectTimeoutMilliseconds = connectTimeoutMilliseconds
    self.firstByteTimeoutMilliseconds = firstByteTimeoutMilliseconds
    self.stallTimeoutMilliseconds = stallTimeoutMilliseconds
    self.retriesMax = retriesMax
    self.proxy = proxy
    isSpokenToByHTTP1Client = url.hasPrefix("http:") && proxy == nil
  }
}
