public import Backends
internal import CachePolicy

/// A small origin to try Larder with: countries, rates, balances, a profile, articles, and paths
/// that are slow or fail. Every answer tells how many requests the origin has had, so that one sees
/// whether the network was asked.
///
/// It runs on a loop of its own and is served by the proxy's own HTTP server. Not an origin to
/// build on: it forgets everything when it ends.
public final class SampleOrigin: Sendable {
  /// The port really bound.
  public let port: UInt16
  private let worker: Worker

  /// Binds the address and serves. `port` 0 takes a free one.
  public static func start(
    host: String, port: UInt16, clock: Clock = Clock()
  ) throws(ServerError) -> SampleOrigin {
    do throws(ListenError) {
      return SampleOrigin(try ListeningSocket(host: host, port: port), clock)
    } catch {
      throw ServerError(description: "sample origin: \(error.description)")
    }
  }

  private init(_ socket: ListeningSocket, _ clock: Clock) {
    port = socket.port
    let limits = Limits()
    let worker = Worker(index: 0, limits: limits, clock: clock)
    self.worker = worker
    let handler = SampleHandler(worker: worker)
    let listener = Listener(
      socket: socket, workers: [worker], handlers: [handler],
      gate: ConnectionGate(connectionsMax: limits.connections))
    listener.start()
    worker.onTick { listener.tick() }
    // The closure keeps the handler, which connections do not own.
    worker.onClose { withExtendedLifetime(handler) { listener.close() } }
    worker.start()
  }

  /// Ends it and waits for its thread.
  public func stop() {
    worker.stop()
    worker.join()
  }
}

/// Answers the sample origin's requests, on its one loop.
private final class SampleHandler: RequestHandler {
  private let worker: Worker
  private var requestCount = 0
  private var balanceCalls = 0
  private var thumbs: [String: Int] = [:]

  private static let countries: [(code: String, name: String, capital: String)] = [
    ("at", "Austria", "Vienna"), ("br", "Brazil", "Brasília"), ("de", "Germany", "Berlin"),
    ("jp", "Japan", "Tokyo"), ("ke", "Kenya", "Nairobi"), ("nz", "New Zealand", "Wellington"),
  ]
  private static let rates: [(symbol: String, value: Double)] = [
    ("CHF", 0.88), ("EUR", 0.92), ("GBP", 0.78), ("JPY", 151.2), ("USD", 1),
  ]
  private static let articleCount = 3

  init(worker: Worker) { self.worker = worker }

  func requestWasRefused(_ refusal: RequestRefusal) {}
  func ownAnswerWasWritten(byteCount: Int) {}

  func handleRequest(on connection: Connection) {
    requestCount += 1
    let head = worker.head
    let request = SampleRequest(head)
    let segments = request.segments
    let first = segments.first ?? ""
    switch (first, segments.count) {
    case ("countries", 1): list(connection, head, SampleHandler.countries.map(\.code), "countries")
    case ("countries", 2): country(connection, head, segments[1])
    case ("rates", 1): rates(connection, head, request)
    case ("balances", 2): balance(connection, segments[1])
    case ("me", 1): profile(connection, head)
    case ("articles", 1):
      list(connection, head, (1...SampleHandler.articleCount).map(String.init), "articles")
    case ("articles", 2): article(connection, head, segments[1])
    case ("articles", 3) where segments[2] == "thumbs": thumb(connection, head, segments[1])
    case ("slow", 1): slow(connection, request)
    case ("fail", 1): fail(connection, request)
    default: notFound(connection, "there is nothing at this path")
    }
  }

  // MARK: The resources

  private func list(
    _ connection: Connection, _ head: RequestHead, _ items: [String], _ name: String
  ) {
    let quoted = items.map { "\"\($0)\"" }.joined(separator: ", ")
    respond(connection, head, "\"\(name)\": [\(quoted)]", tag: "list-\(name)")
  }

  private func country(_ connection: Connection, _ head: RequestHead, _ code: String) {
    guard let found = SampleHandler.countries.first(where: { $0.code == code.lowercased() }) else {
      notFound(connection, "no such country")
      return
    }
    respond(
      connection, head,
      "\"code\": \"\(found.code)\", \"name\": \"\(found.name)\", \"capital\": \"\(found.capital)\"",
      tag: found.code)
  }

  private func rates(_ connection: Connection, _ head: RequestHead, _ request: SampleRequest) {
    let base = request.parameter("base") ?? "USD"
    let wanted = request.parameter("symbols")?.split(separator: ",").map(String.init)
    guard let basis = SampleHandler.rates.first(where: { $0.symbol == base }) else {
      notFound(connection, "no such base")
      return
    }
    let chosen = SampleHandler.rates.filter { wanted?.contains($0.symbol) ?? true }
    let pairs = chosen.map { rate in
      let value = (rate.value / basis.value * 10_000).rounded() / 10_000
      return "\"\(rate.symbol)\": \(value)"
    }
    respond(
      connection, head, "\"base\": \"\(base)\", \"rates\": {\(pairs.joined(separator: ", "))}",
      tag: nil)
  }

  private func balance(_ connection: Connection, _ identifier: String) {
    balanceCalls += 1
    respond(
      connection, nil,
      "\"account\": \"\(escaped(identifier))\", \"balance\": \(1000 + balanceCalls)", tag: nil)
  }

  private func profile(_ connection: Connection, _ head: RequestHead) {
    guard let credentials = head.fields.first(.authorization) else {
      send(
        connection, status: 401, "\"error\": \"send an Authorization field\"",
        fields: [("WWW-Authenticate", "Bearer")])
      return
    }
    let user = String(decoding: credentials, as: UTF8.self).split(separator: " ").last ?? ""
    respond(connection, nil, "\"user\": \"\(escaped(String(user)))\"", tag: nil)
  }

  private func article(_ connection: Connection, _ head: RequestHead, _ identifier: String) {
    guard isArticle(identifier) else {
      notFound(connection, "no such article")
      return
    }
    let count = thumbs[identifier] ?? 0
    respond(
      connection, head,
      "\"id\": \(identifier), \"title\": \"Article \(identifier)\", \"thumbs\": \(count)",
      tag: "article-\(identifier)-\(count)")
  }

  private func thumb(_ connection: Connection, _ head: RequestHead, _ identifier: String) {
    guard isArticle(identifier) else {
      notFound(connection, "no such article")
      return
    }
    guard head.method == .post else {
      send(
        connection, status: 405, "\"error\": \"a thumb is given with POST\"",
        fields: [("Allow", "POST")])
      return
    }
    thumbs[identifier, default: 0] += 1
    respond(connection, nil, "\"id\": \(identifier), \"thumbs\": \(thumbs[identifier]!)", tag: nil)
  }

  private func isArticle(_ identifier: String) -> Bool {
    Int(identifier).map { (1...SampleHandler.articleCount).contains($0) } ?? false
  }

  // MARK: Trouble to order

  private static let slowMillisecondsMax: Int64 = 60_000

  private func slow(_ connection: Connection, _ request: SampleRequest) {
    let wanted = request.parameter("ms").flatMap { Int64($0) } ?? 1000
    let milliseconds = min(max(0, wanted), SampleHandler.slowMillisecondsMax)
    let exchange = DelayedAnswer(loop: worker.loop, afterMilliseconds: milliseconds) {
      [weak self, weak connection] in
      guard let self, let connection else { return }
      respond(connection, nil, "\"waitedMilliseconds\": \(milliseconds)", tag: nil)
    }
    connection.exchange = exchange
  }

  private func fail(_ connection: Connection, _ request: SampleRequest) {
    let wanted = request.parameter("status").flatMap { UInt16($0) } ?? 500
    let status = (400...599).contains(wanted) ? wanted : 500
    send(connection, status: status, "\"error\": \"as you asked\"", fields: [])
  }

  // MARK: Answers

  private func notFound(_ connection: Connection, _ text: String) {
    send(connection, status: 404, "\"error\": \"\(text)\"", fields: [])
  }

  /// A 200, or a 304 where the client has what the tag names. The tag speaks of the content; the
  /// request count beside it does not change it.
  private func respond(
    _ connection: Connection, _ head: RequestHead?, _ members: String, tag: String?
  ) {
    guard let tag else {
      send(connection, status: 200, members, fields: [])
      return
    }
    let entityTag = "W/\"\(tag)\""
    if let sent = head?.fields.first(.ifNoneMatch), Array(sent) == Array(entityTag.utf8) {
      connection.respond(
        status: 304, fields: [("ETag", entityTag), ("Origin-Request", "\(requestCount)")], body: [])
      return
    }
    send(connection, status: 200, members, fields: [("ETag", entityTag)])
  }

  private func send(
    _ connection: Connection, status: UInt16, _ members: String,
    fields: [(name: String, value: String)]
  ) {
    let body = "{\(members), \"originRequest\": \(requestCount)}\n"
    connection.respond(
      status: status,
      fields: fields + [
        ("Content-Type", "application/json"), ("Origin-Request", "\(requestCount)"),
      ],
      body: Array(body.utf8))
  }

  private func escaped(_ text: String) -> String {
    String(text.filter { $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0)) })
  }
}

/// Path and query of a request, taken apart.
private struct SampleRequest {
  let segments: [String]
  private let parameters: [(name: String, value: String)]

  init(_ head: RequestHead) {
    segments = String(decoding: head.path, as: UTF8.self).split(separator: "/").map(String.init)
    let query = head.query.map { String(decoding: $0, as: UTF8.self) } ?? ""
    parameters = query.split(separator: "&").map { pair in
      let halves = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      return (String(halves[0]), halves.count > 1 ? String(halves[1]) : "")
    }
  }

  func parameter(_ name: String) -> String? { parameters.first { $0.name == name }?.value }
}

/// An answer that comes after a while, or never if the client goes before.
private final class DelayedAnswer: ConnectionExchange {
  private var timer: LoopTimer?

  init(loop: EventLoop, afterMilliseconds: Int64, _ answer: @escaping () -> Void) {
    timer = LoopTimer(loop: loop, afterMilliseconds: afterMilliseconds) { [weak self] in
      self?.timer = nil
      answer()
    }
  }

  func clientTookAll() {}
  func requestBodyArrived(_ bytes: UnsafeRawBufferPointer) {}
  func requestBodyEnded() {}
  func clientLeft() {
    timer?.cancel()
    timer = nil
  }
}
