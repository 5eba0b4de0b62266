internal import Backends
internal import CachePolicy
internal import Dispatch

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Serves the admin listener. A path that is not there is 404 with the list of what there is.
final class AdminHandler: RequestHandler {
  private unowned let server: Server
  private let worker: Worker

  init(server: Server, worker: Worker) {
    self.server = server
    self.worker = worker
  }

  /// What there is: one row a path.
  private struct Resource: Sendable {
    let path: String
    let method: Method
    /// Answers without the token: whoever watches the process must not need it.
    var isOpen = false
    /// Tells of counts alone.
    var isCount = false
    let answer: @Sendable (AdminHandler, AdminExchange) -> Void
  }

  private static let resources = [
    Resource(path: "/healthz", method: .get, isOpen: true) { $0.answerHealth($1) },
    Resource(path: "/stats", method: .get, isCount: true) { $0.answerStats($1) },
    Resource(path: "/config", method: .get) { $0.answerConfig($1) },
    Resource(path: "/explain", method: .get) { $0.answerExplain($1) },
    Resource(path: "/reload", method: .post) { $0.answerReload($1) },
  ]

  func requestWasRefused(_ refusal: RequestRefusal) {}
  func ownAnswerWasWritten(byteCount: Int) {}

  func handleRequest(on connection: Connection) {
    let head = worker.head
    let path = String(decoding: head.path, as: UTF8.self)
    guard let resource = AdminHandler.resources.first(where: { $0.path == path }) else {
      let paths = AdminHandler.resources.map(\.path).joined(separator: ", ")
      connection.respond(
        Problem(status: 404, detail: "there is no \(path) here; there is: \(paths)"))
      return
    }
    guard head.method == resource.method || head.method == .head && resource.method == .get else {
      let allowed = resource.method == .get ? "GET, HEAD" : "POST"
      connection.respond(
        Problem(status: 405, detail: "\(path) takes \(allowed)", fields: [("Allow", allowed)]))
      return
    }
    if !resource.isOpen,
      let refusal = AdminGuard.refusal(
        of: head, isPrivate: !resource.isCount, server.configuration.admin)
    {
      connection.respond(refusal.problem)
      return
    }
    let exchange = AdminExchange(connection: connection, worker: worker)
    connection.exchange = exchange
    resource.answer(self, exchange)
  }

  private func answerHealth(_ exchange: AdminExchange) {
    let state = server.services.store.statistics().state
    var store = "ok"
    if case .degraded(let reason) = state { store = "degraded: \(reason)" }
    exchange.finish(Health(status: "ok", store: store))
  }

  private func answerStats(_ exchange: AdminExchange) {
    let server = self.server
    server.collectCounts { counters, origin in
      exchange.finish { Stats(server: server, counters: counters, origin: origin) }
    }
  }

  private func answerConfig(_ exchange: AdminExchange) {
    let configuration = server.configuration
    exchange.finish(contentType: "application/json") { configuration.effectiveText }
  }

  private func answerExplain(_ exchange: AdminExchange) {
    let head = worker.head
    do throws(ValueError) {
      let query = try ExplainQuery(parsing: head.query ?? [])
      let explanation = server.repository(on: worker)
        .explain(query.request, authority: server.authorityOfPaths)
      if query.format ?? AdminHandler.format(accepted: head.fields) == .text {
        exchange.finish(contentType: "text/plain; charset=utf-8") { explanation.text }
      } else {
        exchange.finish(contentType: "application/json") { explanation.json.formatted + "\n" }
      }
    } catch {
      exchange.finish(Problem(status: 400, detail: error.message))
    }
  }

  /// Text for whoever asks for it by name and not for JSON.
  private static func format(accepted fields: Fields) -> ExplainQuery.Format {
    let accepted = (fields["Accept"] ?? "").lowercased()
    return accepted.contains("text/plain") && !accepted.contains("application/json")
      ? .text : .json
  }

  private func answerReload(_ exchange: AdminExchange) {
    guard let reloader = server.reloader else {
      exchange.finish(Problem(status: 409, detail: "there is no file to read anew"))
      return
    }
    reloader.order(.admin) { outcome in
      exchange.worker.loop.post { exchange.finish(outcome) }
    }
  }
}

/// A call of the admin listener that is answered later, or at once.
final class AdminExchange: ConnectionExchange, @unchecked Sendable {
  // @unchecked Sendable: touched on its connection's loop alone; others carry the reference.
  private var connection: Connection?
  let worker: Worker

  init(connection: Connection, worker: Worker) {
    self.connection = connection
    self.worker = worker
  }

  func finish(_ problem: Problem) {
    take()?.respond(problem)
  }

  func finish(_ outcome: Reloader.Outcome) {
    switch outcome {
    case .applied(let status, let warnings):
      finish(
        Reloaded(
          generation: status.generation, loadedAt: Stats.timestamp(status.loadedAtMilliseconds),
          needsRestart: status.needsRestart, warnings: warnings))
    case .refused(let errors):
      finish(
        Problem(
          status: 422, detail: "the new configuration is refused, the old one stays in force",
          errors: errors))
    case .unchanged: finish(Problem(status: 409, detail: "the file reads as before"))
    }
  }

  func finish(_ value: some Encodable) { finish(encoded: AdminExchange.encoded(value)) }

  /// Has the value made and encoded elsewhere, as `finish(contentType:text:)` has texts.
  func finish(_ value: @escaping @Sendable () -> Stats) {
    DispatchQueue.global().async { [self] in
      let body = AdminExchange.encoded(value())
      worker.loop.post { [self] in finish(encoded: body) }
    }
  }

  private static func encoded(_ value: some Encodable) -> [UInt8]? {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(value)).map { Array($0) + [0x0A] }
  }

  private func finish(encoded body: [UInt8]?) {
    guard let body else {
      // Only a number that JSON does not have could fail, and ratios are never NaN.
      finish(Problem(status: 500, detail: "the answer could not be encoded"))
      return
    }
    finish(contentType: "application/json", body: body)
  }

  /// Has the text made elsewhere: with thousands of routes it takes longer than a loop may stand
  /// still.
  func finish(contentType: String, text: @escaping @Sendable () -> String) {
    DispatchQueue.global().async { [self] in
      let body = Array(text().utf8)
      worker.loop.post { [self] in finish(contentType: contentType, body: body) }
    }
  }

  func finish(contentType: String, body: [UInt8]) {
    take()?.respond(
      status: 200, fields: [("Content-Type", contentType), ("Cache-Control", "no-store")],
      body: body)
  }

  /// The connection, once: nil where the client has gone.
  private func take() -> Connection? {
    defer { connection = nil }
    return connection
  }

  func clientTookAll() {}
  func requestBodyArrived(_ bytes: UnsafeRawBufferPointer) {}
  func requestBodyEnded() {}
  func clientLeft() { connection = nil }
}

private struct Health: Encodable {
  let status: String
  let store: String
}

private struct Reloaded: Encodable {
  let generation: Int
  let loadedAt: String
  let needsRestart: [String]
  let warnings: [String]
}
