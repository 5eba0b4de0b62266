internal import Backends
internal import CachePolicy

/// Fetches what routes list in `warm` at the start and keeps it warm: each is fetched anew shortly
/// before its freshness ends, and soon where its copy goes before that (a purge, an eviction).
///
/// Looked at with the tick of one loop. Fetches that bring nothing that stays fresh are tried again
/// later and later: an origin that is down, or that forbids storing, is not asked all the time.
final class Warmer {
  /// How long before its freshness ends a copy is fetched anew.
  static func leadMilliseconds(of copy: CopyState) -> Int64 {
    min(2_000, copy.lifetimeMilliseconds / 10)
  }
  static let retryMillisecondsMin: Int64 = 1_000
  static let retryMillisecondsMax: Int64 = 300_000
  /// How long a copy is taken to be there without a look at the store.
  static let lookMillisecondsMax: Int64 = 5_000
  /// How many are looked at in one tick, so that a long list does not come down on an origin at
  /// once.
  static let checksPerTick = 8

  private struct Item {
    let text: String
    let head: RequestHead
    var nextCheckMilliseconds: Int64 = 0
    var lastLookMilliseconds: Int64 = .max
    var failures = 0
  }

  private let repository: Repository
  private var items: [Item] = []
  private var next = 0

  init(repository: Repository) { self.repository = repository }

  private var clock: Clock { repository.services.clock }
  private var log: Log { repository.services.log }

  /// Takes the lists of a configuration. Everything is looked at anew, since it may be keyed or asked
  /// otherwise now.
  func use(_ configuration: Configuration, listeningOn authority: String) {
    items = []
    next = 0
    for route in configuration.routes {
      for text in route.options.warm {
        do throws(RequestRefusal) {
          let head = try SyntheticRequest.head(
            method: "GET", target: text, authority: configuration.publicAuthority ?? authority)
          items.append(Item(text: text, head: head))
        } catch {
          log.warning("\(route.name): warm \"\(text)\" is no request: \(error.reason)")
        }
      }
    }
  }

  func tick() {
    guard !items.isEmpty else { return }
    let now = clock.nowMilliseconds
    var checks = 0
    for _ in items.indices where checks < Warmer.checksPerTick {
      next = next + 1 < items.count ? next + 1 : 0
      guard items[next].nextCheckMilliseconds <= now else { continue }
      checks += 1
      check(&items[next], now)
    }
  }

  private func check(_ item: inout Item, _ now: Int64) {
    let warmth = repository.warm(item.head, lastLookMilliseconds: item.lastLookMilliseconds)
    item.lastLookMilliseconds = now
    switch warmth {
    case .fresh(let wait), .shortLived(let wait):
      item.failures = 0
      item.nextCheckMilliseconds = now + min(wait, Warmer.lookMillisecondsMax)
      return
    case .cold: item.failures += 1
    }
    let doublings = min(item.failures - 1, 16)
    item.nextCheckMilliseconds =
      now + min(Warmer.retryMillisecondsMin << Int64(doublings), Warmer.retryMillisecondsMax)
    if item.failures == 4 {
      log.warning(
        "\(item.text) is not kept warm: no answer, or none that may be stored and stays fresh")
    }
  }
}
