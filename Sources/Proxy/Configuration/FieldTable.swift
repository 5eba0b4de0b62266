internal import CachePolicy

/// The table of every field of policies.json: the decoding, the schema and the reference all come
/// from here.
///
/// A new field is one row. What looks at several fields at once (an unknown upstream, a `ttl` on a
/// network-only route) is in `ConfigurationChecks`.
struct ConfigurationDraft: Sendable {
  var schema: String?
  var version = 1
  var listen = [Configuration.ListenAddress(host: "127.0.0.1", port: 8080)]
  var loops = 0
  var publicAuthority: String?
  var admin = Configuration.Admin()
  var store = Configuration.Store()
  var upstreams: [Upstream] = []
  var limits = Limits()
  var defaults = PolicyDraft()
  var routes: [RouteDraft] = []
  var tests: [PolicyTest] = []
}

/// A route before its upstream is found and `defaults` are filled in.
struct RouteDraft: Sendable {
  /// `routes[2]`.
  var path = ""
  var name: String?
  var pattern: RoutePattern?
  var policy = PolicyDraft()
}

enum FieldTable {
  private static let second: Int64 = 1_000
  private static let minute: Int64 = 60 * second
  private static let hour: Int64 = 60 * minute

  static let root = Section<ConfigurationDraft>(
    title: "Top level", path: "", summary: "The whole file is one object.",
    fields: [
      .custom(
        "$schema", \.schema, .text, example: "\"./policies.schema.json\"",
        "For editors: where the JSON Schema lies. Larder does not read it.",
        render: { _, _ in nil },
        read: { decoder, node, path in decoder.text(node, path) }),
      .custom(
        "version", \.version, .integer(1...1), isRequired: true, example: "1",
        "The version of the file's form.", render: { value, _ in .integer(value) },
        read: { decoder, node, path in decoder.integer(node, path, 1...1) }),
      .custom(
        "listen", \.listen, .addresses, defaultText: "\"127.0.0.1:8080\"",
        example: "[\"0.0.0.0:8080\", \"[::]:8080\"]",
        "Where apps are served: an address and a port, or a list of them.",
        render: { value, _ in rendered(value) },
        read: { decoder, node, path in decoder.addresses(node, path) }),
      .integer(
        "loops", \.loops, 0...1_024, from: ConfigurationDraft(), example: "2",
        "Event loops, each a thread; 0: one per core."),
      .custom(
        "publicUrl", \.publicAuthority, .publicURL, example: "\"http://api.example.com\"",
        "The URL by which apps reach Larder, for paths in `warm`. Absent: the first `listen` "
          + "address.",
        render: { value, _ in value.map { .text("http://\($0)") } },
        read: { decoder, node, path in
          guard let text = decoder.text(node, path, expected: "a URL") else { return nil }
          return decoder.checked(node, path) { () throws(ValueError) in
            try AddressParsing.publicURL(text)
          }
        }),
      .section("admin", \.admin, admin),
      .section("store", \.store, store),
      Field(
        description: FieldDescription(
          name: "upstreams", shape: .sectionByName(upstream.title), isRequired: true,
          summary: "The origins, by name."),
        assign: { node, path, target, decoder in
          target.upstreams = decodeUpstreams(node, path, &decoder)
        },
        render: { target, context in
          .object(
            target.upstreams.map {
              ($0.name, .object(upstream.rendered($0, context.inside($0.name))))
            })
        }),
      .section("limits", \.limits, limits),
      .section("defaults", \.defaults, defaults),
      .custom(
        "routes", \.routes, .sectionList(route.title), defaultText: "[]",
        "What is done with which requests; the first that matches wins.",
        render: { routes, context in
          .list(
            routes.enumerated().map { .object(route.rendered($1, context.at($0))) })
        },
        read: { decoder, node, path in decodeRoutes(node, path, &decoder) }),
      .custom(
        "tests", \.tests, .sectionList(TestFields.section.title), defaultText: "[]",
        "Requests and what must come of them; see [tests](#tests).",
        render: { tests, context in
          .list(
            tests.enumerated().map { .object(TestFields.section.rendered($1, context.at($0))) })
        },
        read: { decoder, node, path in TestFields.decode(node, path, &decoder) }),
    ])

  static let admin = Section<Configuration.Admin>(
    title: "admin", path: "admin",
    summary: "The listener for stats, explain, the configuration and reloads.",
    fields: [
      .custom(
        "listen", \.listen, .addresses, example: "\"127.0.0.1:8081\"",
        "Where it listens. Absent: there is none.",
        render: { value, _ in value.isEmpty ? nil : rendered(value) },
        read: { decoder, node, path in decoder.addresses(node, path) }),
      .custom(
        "token", \.token, .text, example: "\"${LARDER_ADMIN_TOKEN:-}\"", secrecy: .whole,
        "What callers send as a bearer token. Absent or empty: none is asked for.",
        render: { value, context in
          value == nil && context.source == nil ? nil : context.text(value ?? "")
        },
        read: { decoder, node, path in
          decoder.text(node, path).map { $0.isEmpty ? nil : $0 }
        }),
    ])

  static let store = Section<Configuration.Store>(
    title: "store", path: "store", summary: "Where copies are kept.",
    fields: [
      .custom(
        "path", \.path, .text, defaultText: "\"\(Configuration.Store().path)\"",
        "The store's folder; a relative one is taken from the folder of this file.",
        render: { value, _ in .text(value) },
        read: { decoder, node, path in
          guard let text = decoder.text(node, path) else { return nil }
          if text.isEmpty { decoder.report(at: node.place, path, "must not be empty") }
          return text
        }),
      .size(
        "maxSize", \.maxSizeBytes, 1 << 20...1 << 44, from: Configuration.Store(),
        "How large the store may grow; the oldest copies make room."),
      .size(
        "maxEntrySize", \.maxEntrySizeBytes, PolicyDraft.entrySizeRange,
        from: Configuration.Store(), "The largest body that any route stores."),
    ])

  private static let freshUpstream = Upstream(name: "", host: "", port: 0)

  static let upstream = Section<Upstream>(
    title: "upstreams", path: "upstreams.NAME", summary: "One origin and how it is asked.",
    fields: [
      Field(
        description: FieldDescription(
          name: "url", shape: .upstreamURL, isRequired: true,
          summary: "Scheme, host, port and what goes before every path. With https the "
            + "certificate authorities that the system trusts are trusted; a private one is added there.",
          example: "\"https://api.example.com/v2\""),
        assign: { node, path, target, decoder in
          guard let text = decoder.text(node, path, expected: "a URL"),
            let url = decoder.checked(
              node, path,
              { () throws(ValueError) in
                try AddressParsing.upstreamURL(text)
              })
          else { return }
          (target.scheme, target.host, target.port) = (url.scheme, url.host, url.port)
          target.basePath = url.basePath
        },
        render: { target, _ in .text(target.baseURL) }),
      .duration(
        "connectTimeout", \.connectTimeoutMilliseconds, 1...minute, from: freshUpstream,
        "For the name's look-up, the connection and TLS."),
      .duration(
        "firstByteTimeout", \.firstByteTimeoutMilliseconds, 1...hour, from: freshUpstream,
        "To the answer's first byte, from the last of the request that the origin took."),
      .duration(
        "totalTimeout", \.totalTimeoutMilliseconds, 1...hour, from: freshUpstream,
        "To the first byte, and for any wait without progress in the body."),
      .integer(
        "retries", \.retries, 0...Limits().upstreamRetries, from: freshUpstream,
        "How often a request that may be repeated is tried again, within the deadline; and, up to "
          + "twice, how often the rest of a body that breaks off is asked for."),
      .choice(
        "hostHeader", \.hostHeader, initially: freshUpstream.hostHeader,
        "Whose name `Host` carries: the upstream's own, or the one the client asked for."),
      .custom(
        "proxy", \.proxy, .proxyURL, defaultText: "\"none\"",
        example: "\"http://proxy.example.com:3128\"", secrecy: .credentials,
        "A proxy between here and the origin; the environment's proxies are not used. What it "
          + "says of a request in clear text (407 too) counts as the origin's answer.",
        render: { value, context in context.text(value ?? "none") },
        read: { decoder, node, path in
          guard let text = decoder.text(node, path, expected: "a URL or \"none\"") else {
            return nil
          }
          return decoder.checked(node, path) { () throws(ValueError) in
            try AddressParsing.proxyURL(text)
          }
        }),
      .custom(
        "targetedCacheControl", \.targetedCacheControl, .headerNames,
        defaultText: OrderedJSON.texts(Upstream.targetedCacheControlDefault).compact,
        example: "[\"CDN-Cache-Control\"]",
        "Response fields that take the place of Cache-Control (RFC 9213): the first that is there.",
        render: { value, _ in .texts(value) },
        read: { decoder, node, path in decoder.targetedFields(node, path) }),
      .optionalInteger(
        "maxConcurrent", \.maxConcurrent, 1...1_000_000, example: "64",
        "How many requests it is sent at once, by all loops together; see "
          + "[Busy upstreams](#busy-upstreams). Absent: any number."),
      .integer(
        "maxQueue", \.maxQueue, 0...1_000_000, from: freshUpstream,
        "How many requests beyond `maxConcurrent` wait for a place; one more is answered by a copy "
          + "or 503."),
      .duration(
        "queueTimeout", \.queueTimeoutMilliseconds, 1...10 * minute, from: freshUpstream,
        "How long they wait."),
    ],
    isMeaningful: { upstream, field in
      upstream.maxConcurrent != nil || !["maxQueue", "queueTimeout"].contains(field.name)
    })

  private static let freshLimits = Limits()
  private static let bufferRange: ClosedRange<UInt64> = 64 << 10...64 << 20

  static let limits = Section<Limits>(
    title: "limits", path: "limits", summary: "What no client and no origin may exceed.",
    fields: [
      .integer(
        "connections", \.connections, 1...1_000_000, from: freshLimits,
        "Open client connections of the whole process."),
      .size(
        "requestLineBytes", \.requestLineBytes, 512...64 << 10, from: freshLimits,
        "Method, target and version of one request; longer: 414."),
      .size(
        "headerBytes", \.headerBytes, 1 << 10...1 << 20, from: freshLimits,
        "One header block, of a request (431) or of an origin's answer (502)."),
      .integer(
        "headerFields", \.headerFields, 8...10_000, from: freshLimits,
        "Field lines of one header block."),
      .duration(
        "headerTimeout", \.headerTimeoutMilliseconds, 100...10 * minute, from: freshLimits,
        "From a request's first byte to the end of its header block; longer: 408."),
      .duration(
        "bodyStall", \.bodyStallMilliseconds, 100...hour, from: freshLimits,
        "How long a body may make no progress."),
      .duration(
        "idle", \.idleMilliseconds, 100...hour, from: freshLimits,
        "How long a kept-alive connection waits for its next request."),
      .duration(
        "drain", \.drainMilliseconds, 0...hour, from: freshLimits,
        "How long running exchanges have when the process ends."),
      .size(
        "requestBodyBufferBytes", \.requestBodyBufferBytes, bufferRange, from: freshLimits,
        "How much of a request's body waits in memory for the origin."),
      .size(
        "responseBufferBytes", \.responseBufferBytes, bufferRange, from: freshLimits,
        "How much of an answer waits in memory for a slow client."),
      .size(
        "rescueHoldBytes", \.rescueHoldBytes, 0...64 << 20, from: freshLimits,
        "How much of the network's answer is held back while a copy could take its place."),
      .integer(
        "fills", \.fills, 1...1_000_000, from: freshLimits, "Shared fetches that run at once."),
      .integer(
        "fillWaiters", \.fillWaiters, 1...1_000_000, from: freshLimits,
        "Requests that wait for one fetch."),
      .integer(
        "upstreamConnections", \.upstreamConnections, 1...100_000, from: freshLimits,
        "Connections from one loop to one upstream."),
    ])

  static let defaults = Section<PolicyDraft>(
    title: "defaults", path: "defaults",
    summary: "What routes take where they say nothing themselves (but for `strategy`), and what "
      + "requests get that no route takes.",
    fields: PolicyDraft.fields,
    isMeaningful: { $1.need.isMet(by: $0.strategies) })

  static let route = Section<RouteDraft>(
    title: "routes", path: "routes[]", summary: "A match and its policy.",
    fields: [
      .custom(
        "name", \.name, .name, isRequired: true, example: "\"articles\"",
        "Labels the stats; no two routes share one.",
        render: { value, _ in value.map(OrderedJSON.text) },
        read: { decoder, node, path in decoder.name(node, path) }),
      .custom(
        "match", \.pattern, .pattern, isRequired: true, example: "\"GET /articles/{id}\"",
        "Which requests; see [match](#match).",
        render: { value, _ in value.map { .text($0.source) } },
        read: { decoder, node, path in decoder.pattern(node, path) }),
    ] + PolicyDraft.fields.map { $0.lifted(\.policy) },
    isMeaningful: { $1.need.isMet(by: $0.policy.strategies) })

  /// Every section, in the reference's order.
  static let sections: [SectionDescription] = [
    SectionDescription(root), SectionDescription(admin), SectionDescription(store),
    SectionDescription(upstream), SectionDescription(limits), SectionDescription(defaults),
    SectionDescription(route), SectionDescription(KeyFields.section),
    SectionDescription(TestFields.section), SectionDescription(TestFields.given),
    SectionDescription(TestFields.expect),
  ]

  private static func rendered(_ addresses: [Configuration.ListenAddress]) -> OrderedJSON {
    addresses.count == 1
      ? .text(addresses[0].description) : .texts(addresses.map(\.description))
  }

  private static func decodeUpstreams(
    _ node: JSONNode, _ path: String, _ decoder: inout FieldDecoder
  ) -> [Upstream] {
    guard let members = decoder.object(node, path) else { return [] }
    if members.isEmpty { decoder.report(at: node.place, path, "at least one upstream") }
    return members.map { member in
      let memberPath = FieldDecoder.join(path, member.key)
      if !FieldDecoder.isName(member.key) {
        decoder.report(at: member.keyPlace, memberPath, FieldDecoder.nameMessage(member.key))
      }
      var target = Upstream(name: member.key, host: "", port: 0)
      decoder.decode(member.value, memberPath, upstream, into: &target)
      return target
    }
  }

  private static func decodeRoutes(
    _ node: JSONNode, _ path: String, _ decoder: inout FieldDecoder
  ) -> [RouteDraft] {
    guard let elements = decoder.list(node, path, of: "routes") else { return [] }
    return elements.enumerated().map { index, element in
      var target = RouteDraft(path: "\(path)[\(index)]")
      decoder.decode(element, target.path, route, into: &target)
      return target
    }
  }
}
