internal import CachePolicy

@testable import Backends
@testable import Support

/// One exchange as its receiver sees it: notes what it is told, and may act from within.
final class Exchanged: OriginResponseReceiver, @unchecked Sendable {
  // @unchecked Sendable: `record` is locked; the rest is touched on the client's loop alone.
  enum Event: Equatable {
    case interim(UInt16)
    case head(UInt16)
    case body
    case finished
    case failed(OriginError)
  }

  struct Record {
    /// Without those of the body.
    var events: [Event] = []
    var head: OriginResponseHead?
    var body: [UInt8] = []
    /// How often it was told the end.
    var endCount = 0
    /// What came behind the end, or after it was cancelled.
    var lateCount = 0
    var isCancelled = false
  }

  private let record = Monitored(Record())
  private let on: (Exchanged, Event) -> Void
  var transfer: (any OriginTransfer)?
  weak var weakTransfer: AnyObject?

  init(on event: @escaping (Exchanged, Event) -> Void = { _, _ in }) { on = event }

  func begin(
    _ client: OriginClient, _ endpoint: OriginEndpoint, _ method: Method, _ body: ScriptedBody?,
    _ length: Int64?
  ) {
    let token =
      switch method {
      case .head: "HEAD"
      case .post: "POST"
      case .put: "PUT"
      default: "GET"
      }
    let request = OriginRequest(
      endpoint: endpoint, method: method, methodToken: Array(token.utf8), target: [0x2F],
      body: body.map { ($0, length) })
    request.addField("Host", "origin")
    let transfer = client.start(request, receiver: self)
    body?.transfer = transfer
    self.transfer = transfer
    weakTransfer = transfer
  }

  func cancel() {
    record.update { $0.isCancelled = true }
    transfer?.cancel()
  }

  // MARK: What the test sees

  /// What came, once it has ended.
  func wait() -> Record? {
    guard record.wait(until: { $0.endCount > 0 }) else { return nil }
    return record.read { $0 }
  }

  /// How it ended; nil: it has not.
  var ending: Event? {
    guard record.wait(until: { $0.endCount > 0 }) else { return nil }
    return record.read { $0.events.last }
  }

  var now: Record { record.read { $0 } }

  // MARK: OriginResponseReceiver

  private func note(_ event: Event, _ change: (inout Record) -> Void = { _ in }) {
    record.update {
      if $0.endCount > 0 || $0.isCancelled { $0.lateCount += 1 }
      if event != .body { $0.events.append(event) }
      change(&$0)
    }
    on(self, event)
  }

  func originSentInterim(status: UInt16, fields: Fields, version: ReceivedVersion) {
    note(.interim(status))
  }
  func originSentHead(_ head: OriginResponseHead) { note(.head(head.status)) { $0.head = head } }
  func originSentBody(_ bytes: UnsafeRawBufferPointer) {
    note(.body) { $0.body.append(contentsOf: bytes) }
  }
  func originFinished() { end(.finished) }
  func originFailed(_ error: OriginError) { end(.failed(error)) }

  private func end(_ event: Event) {
    transfer = nil
    // What acts on the end does so before the test hears of it.
    on(self, event)
    record.update {
      if $0.isCancelled { $0.lateCount += 1 }
      $0.events.append(event)
      $0.endCount += 1
    }
  }
}

/// A request's body, piece by piece as the test writes them out.
final class ScriptedBody: OriginBodySource, @unchecked Sendable {
  // @unchecked Sendable: touched on the client's loop alone.
  enum Piece {
    case bytes(String)
    /// Until the test adds more.
    case wait
    case end
    case failed
  }

  private var pieces: [Piece]
  private(set) var hasBeenRead = false
  weak var transfer: (any OriginTransfer)?
  /// Done within each reading, before it returns.
  var whileRead: (ScriptedBody) -> Void = { _ in }

  init(_ pieces: Piece...) { self.pieces = pieces }

  /// On the loop.
  func add(_ more: Piece...) {
    pieces += more
    transfer?.bodyBecameAvailable()
  }

  func readBody(into buffer: UnsafeMutableRawBufferPointer) -> OriginBodyRead {
    hasBeenRead = true
    whileRead(self)
    guard let piece = pieces.first else { return .wait }
    switch piece {
    case .bytes(let text):
      pieces.removeFirst()
      let bytes = Array(text.utf8)
      let count = min(bytes.count, buffer.count)
      buffer.copyBytes(from: bytes.prefix(count))
      if count < bytes.count {
        pieces.insert(.bytes(String(decoding: bytes[count...], as: UTF8.self)), at: 0)
      }
      return .bytes(count)
    case .wait:
      pieces.removeFirst()
      return .wait
    case .end: return .end
    case .failed: return .failed
    }
  }
}
