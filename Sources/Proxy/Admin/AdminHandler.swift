internal import Backends
internal import CachePolicy

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Serves the admin listener: `/stats` and `/healthz`. Everything else is 404 with the list of what
/// there is.
final class AdminHandler: RequestHandler {
  private unowned let server: Server
  private let worker: Worker
  private let tokenField: [UInt8]?

  init(server: Server, worker: Worker) {
    self.server = server
    self.worker = worker
    let token = server.configuration.admin.token.flatMap { $0.isEmpty ? nil : $0 }
    tokenField = token.map { Array("Bearer \($0)".utf8) }
  }

  private static let paths = ["/stats", "/healthz"]

  func requestWasRefused(_ refusal: RequestRefusal) {}
  func ownAnswerWasWritten(byteCount: Int) {}

  func handleRequest(on connection: Connection) {
    let head = worker.head
    let path = String(decoding: head.path, as: UTF8.self)
    guard AdminHandler.paths.contains(path) else {
      connection.respond(
        Problem(
          status: 404,
          detail:
            "there is no \(path) here; there is: \(AdminHandler.paths.joined(separator: ", "))"
        ))
      return
    }
    guard head.method == .get || head.method == .head else {
      connection.respond(
        Problem(
          status: 405, detail: "\(path) is read with GET", fields: [("Allow", "GET, HEAD")]))
      return
    }
    if path == "/healthz" {
      respondHealth(connection)
    } else if isAllowed(head) {
      respondStats(connection)
    } else {
      connection.respond(
        Problem(
          status: 401, detail: "the admin token is missing or wrong",
          fields: [("WWW-Authenticate", "Bearer")]))
    }
  }

  /// Compares in a time that does not depend on where the difference is.
  private func isAllowed(_ head: RequestHead) -> Bool {
    guard let tokenField else { return true }
    let given = Array(head.fields.first(.authorization) ?? [])
    guard given.count == tokenField.count else { return false }
    return zip(given, tokenField).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
  }

  private func respondHealth(_ connection: Connection) {
    let state = server.services.store.statistics().state
    var store = "ok"
    if case .degraded(let reason) = state { store = "degraded: \(reason)" }
    let health = Health(status: "ok", store: store)
    respond(connection, health)
  }

  private func respondStats(_ connection: Connection) {
    let exchange = StatsExchange(connection: connection, worker: worker)
    connection.exchange = exchange
    let server = self.server
    server.collectCounts { counters, origin in
      let stats = Stats(server: server, counters: counters, origin: origin)
      exchange.worker.loop.post { exchange.finish(stats) }
    }
  }

  private func respond(_ connection: Connection, _ value: some Encodable) {
    StatsExchange(connection: connection, worker: worker).finish(value)
  }
}

/// Waits for the other loops' counts.
private final class StatsExchange: ConnectionExchange, @unchecked Sendable {
  // @unchecked Sendable: touched on its connection's loop alone; others carry the reference.
  private var connection: Connection?
  let worker: Worker

  init(connection: Connection, worker: Worker) {
    self.connection = connection
    self.worker = worker
  }

  func finish(_ value: some Encodable) {
    guard let connection else { return }
    self.connection = nil
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    guard let body = try? encoder.encode(value) else {
      // Only a number that JSON does not have could fail, and ratios are never NaN.
      connection.respond(Problem(status: 500, detail: "the answer could not be encoded"))
      return
    }
    connection.respond(
      status: 200, fields: [("Content-Type", "application/json"), ("Cache-Control", "no-store")],
      body: Array(body) + [0x0A])
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
