/// The rows about upstreams, routes and their policies.
extension ConfigurationDiagnosticsTests {
  static let upstreamRows: [Row] = [
    Row(
      whole: "no upstream", "{\"version\":1,\"upstreams\":{}}",
      ["p.json:1:26: upstreams: at least one upstream"]),
    Row(
      whole: "upstreams as a list", "{\"version\":1,\"upstreams\":[]}",
      ["p.json:1:26: upstreams: expected an object, got a list"]),
    Row(
      whole: "upstreams as a list: routes are not blamed",
      "{\"version\":1,\"upstreams\":[],\"defaults\":{\"upstream\":\"a\"}}",
      ["p.json:1:26: upstreams: expected an object, got a list"]),
    upstream("without a URL", "", "p.json:2:1: upstreams.u: \"url\" is missing"),
    upstream(
      "bad name", "\"url\": \"http://a\"", name: "a b",
      "p.json:1:27: upstreams.a b: \"a b\": a name is 1 to 64 letters, digits, \".\", \"_\" or "
        + "\"-\""
    ),
    upstream(
      "other scheme", "\"url\": \"ftp://a\"",
      "p.json:2:9: upstreams.u.url: \"ftp://a\": a URL that starts with \"http://\" or \"https://\""
    ),
    upstream(
      "URL with a user", "\"url\": \"http://u:secret@a\"",
      "p.json:2:9: upstreams.u.url: an upstream's URL has no user and no password"),
    upstream(
      "URL with a query", "\"url\": \"http://a/?b\"",
      "p.json:2:9: upstreams.u.url: \"http://a/?b\": an upstream's URL has no query and no fragment"
    ),
    upstream(
      "URL without a host", "\"url\": \"http:///b\"",
      "p.json:2:9: upstreams.u.url: \"http:///b\": \"\" is no host"),
    upstream(
      "URL with a bad port", "\"url\": \"http://a:0\"",
      "p.json:2:9: upstreams.u.url: \"http://a:0\": a port is a number from 1 to 65535"),
    upstream(
      "retries out of bounds", "\"url\": \"http://a\", \"retries\": 6",
      "p.json:2:32: upstreams.u.retries: 6: a whole number from 0 to 5"),
    upstream(
      "time-outs that contradict each other",
      "\"url\": \"http://a\", \"firstByteTimeout\": \"9s\", \"totalTimeout\": \"8s\",\n"
        + "\"connectTimeout\": \"10s\"",
      "p.json:2:41: upstreams.u.firstByteTimeout: must not be longer than totalTimeout",
      "p.json:3:19: upstreams.u.connectTimeout: must not be longer than firstByteTimeout"),
    upstream("one short time-out", "\"url\": \"http://a\", \"totalTimeout\": \"1s\""),
    upstream(
      "unknown host header", "\"url\": \"http://a\", \"hostHeader\": \"clients\"",
      "p.json:2:35: upstreams.u.hostHeader: unknown value \"clients\", did you mean \"client\"?"),
    upstream(
      "bad proxy", "\"url\": \"http://a\", \"proxy\": \"a:1\"",
      "p.json:2:30: upstreams.u.proxy: \"none\", or a URL that starts with http://, https://, "
        + "socks5://, socks5h://"),
  ]

  static func upstream(
    _ name: String, _ text: String, name key: String = "u", _ expected: String...
  ) -> Row {
    Row(
      whole: "upstream: \(name)",
      "{\"version\":1,\"upstreams\":{\"\(key)\":\n{\(text)}}}",
      expected)
  }

  static let routeRows: [Row] = [
    Row(
      "route that is no object", "\"routes\": [1]",
      "p.json:2:12: routes[0]: expected an object, got a number"),
    Row(
      "route without name and match", "\"routes\": [{}]",
      "p.json:2:12: routes[0]: \"name\" is missing",
      "p.json:2:12: routes[0]: \"match\" is "
        + "missing"),
    Row(
      "two routes of one name",
      "\"routes\": [{name: 'a', match: '/a'},\n{name: 'a', match: '/b'}]",
      "p.json:3:8: routes[1].name: the name \"a\" is taken by routes[0], first at line 2, column 19"
    ),
    Row(
      "route that never matches",
      "\"routes\": [{name: 'all', match: '/a/**'},\n{name: 'one', match: 'GET /a/{x}'}]",
      "p.json:3:22: routes[1].match: never matches: routes[0] (\"all\") takes all of it"),
    Row(
      "route that never matches, by two",
      "\"routes\": [{name: 'g', match: 'GET /a'}, {name: 'p', match: 'POST /a'},\n"
        + "{name: 'b', match: 'POST|GET /a'}]",
      "p.json:3:20: routes[2].match: never matches: routes[0] (\"g\") and routes[1] (\"p\") take "
        + "all "
        + "of it"),
    Row(
      "bad match", "\"routes\": [{name: 'a', match: 'get /a'}, {name: 'b', match: '/a?b'}]",
      "p.json:2:31: routes[0].match: methods are upper case, did you mean \"GET\"?",
      "p.json:2:61: routes[1].match: a query or fragment is no part of a match"),
    .route(
      "unknown upstream", "\"upstream\": \"apj\"",
      "p.json:3:13: routes[0].upstream: unknown upstream \"apj\", did you mean \"api\"?"),
    Row(
      whole: "route without an upstream",
      "{\"version\":1,\"upstreams\":{\"a\":{\"url\":\"http://a\"}},\n"
        + "\"routes\":[{\"name\":\"r\",\"match\":\"/r\"}]}",
      ["p.json:2:11: routes[0]: \"upstream\" is missing, and \"defaults\" names none"]),
    Row(
      whole: "defaults with an unknown upstream: said once",
      "{\"version\":1,\"upstreams\":{\"a\":{\"url\":\"http://a\"}},\n"
        + "\"defaults\":{\"upstream\":\"b\"},\"routes\":[{\"name\":\"r\",\"match\":\"/r\"}]}",
      ["p.json:2:24: defaults.upstream: unknown upstream \"b\", did you mean \"a\"?"]),
    Row(
      whole: "strategy of defaults is not taken over",
      "{\"version\":1,\"upstreams\":{\"a\":{\"url\":\"http://a\"}},\n"
        + "\"defaults\":{\"upstream\":\"a\",\"strategy\":\"cache-first\"},\n"
        + "\"routes\":[{\"name\":\"r\",\"match\":\"/r\"}]}",
      [
        "p.json:3:11: routes[0]: warning: has no strategy and is network-only: defaults.strategy "
          + "is "
          + "not taken over"
      ]),
  ]

  static let policyRows: [Row] = [
    .route(
      "misspelt field", "\"ttll\": \"1m\"",
      "p.json:3:1: routes[0].ttll: unknown key, did you mean \"ttl\"?"),
    .route(
      "misspelt strategy", "\"strategy\": \"cache-frist\"",
      "p.json:3:13: routes[0].strategy: unknown value \"cache-frist\", did you mean "
        + "\"cache-first\"?"
    ),
    .route(
      "far-fetched strategy", "\"strategy\": \"fast\"",
      "p.json:3:13: routes[0].strategy: unknown value \"fast\"; one of cache-first, "
        + "stale-while-revalidate, network-first, network-only, network-and-store, cache-only"),
    .route("strategy from the environment", "\"strategy\": \"${WORD}\", \"ttl\": \"15m\""),
    .route(
      "bare ttl", "\"strategy\": \"cache-first\", \"ttl\": 900",
      "p.json:3:35: routes[0].ttl: 900: a duration has units (ms, s, m, h, d), as in \"15m\""),
    .route(
      "bare ttl in quotes", "\"strategy\": \"cache-first\", \"ttl\": \"900\"",
      "p.json:3:35: routes[0].ttl: \"900\": a duration has units (ms, s, m, h, d), as in \"15m\""),
    .route(
      "ttl in an unknown unit", "\"strategy\": \"cache-first\", \"ttl\": \"2w\"",
      "p.json:3:35: routes[0].ttl: \"2w\": no unit \"w\"; a duration has units (ms, s, m, h, d), "
        + "as "
        + "in \"15m\""),
    .route(
      "ttl as a boolean", "\"strategy\": \"cache-first\", \"ttl\": false",
      "p.json:3:35: routes[0].ttl: expected a duration such as \"15m\", got a boolean"),
    .route(
      "clamped ttl",
      "\"strategy\": \"cache-first\", \"ttl\": {default: \"1m\", min: \"1s\", max: \"1h\"}"),
    .route(
      "clamped ttl, misspelt", "\"strategy\": \"cache-first\", \"ttl\": {defualt: \"1m\", max: 5}",
      "p.json:3:36: routes[0].ttl.defualt: unknown key, did you mean \"default\"?",
      "p.json:3:56: routes[0].ttl.max: 5: a duration has units (ms, s, m, h, d), as in \"15m\""),
    .route(
      "clamped ttl upside down",
      "\"strategy\": \"cache-first\", \"ttl\": {min: \"1h\", max: \"1m\"}",
      "p.json:3:35: routes[0].ttl: needs min <= default <= max"),
    .route(
      "clamped ttl of nothing", "\"strategy\": \"cache-first\", \"ttl\": {}",
      "p.json:3:35: routes[0].ttl: names at least one of default, min and max"),
    .route(
      "negative", "\"strategy\": \"cache-first\", \"negative\": {\"404\": \"30s\", \"5xx\": \"1s\"}"
    ),
    .route(
      "negative of what is no error",
      "\"strategy\": \"cache-first\", \"negative\": {\"200\": \"30s\", \"6xx\": \"1s\", \"404\": "
        + "1}",
      "p.json:3:41: routes[0].negative.200: an error status, \"400\" to \"599\", \"4xx\" or "
        + "\"5xx\"",
      "p.json:3:55: routes[0].negative.6xx: an error status, \"400\" to \"599\", \"4xx\" or "
        + "\"5xx\"",
      "p.json:3:75: routes[0].negative.404: 1: a duration has units (ms, s, m, h, d), as in \"15m\""
    ),
    .route(
      "ignoreOrigin", "\"strategy\": \"cache-first\", \"ignoreOrigin\": [\"no-stroe\", 1]",
      "p.json:3:45: routes[0].ignoreOrigin[0]: unknown value \"no-stroe\", did you mean "
        + "\"no-store\"?",
      "p.json:3:57: routes[0].ignoreOrigin[1]: expected one of no-store, private, no-cache, "
        + "must-revalidate, proxy-revalidate, s-maxage, set-cookie, authorization, vary, got a "
        + "number"
    ),
    .route(
      "lifetimes on a network-only route",
      "\"strategy\": \"network-only\", \"ttl\": \"1m\",\n\"staleWhileRevalidate\": \"1m\", "
        + "\"staleIfError\": \"1m\",\n\"negative\": {}, \"keep\": \"1d\"",
      "p.json:3:36: routes[0].ttl: means nothing: a network-only route stores nothing",
      "p.json:4:25: routes[0].staleWhileRevalidate: means nothing: a network-only route stores "
        + "nothing",
      "p.json:4:47: routes[0].staleIfError: means nothing: a network-only route stores nothing",
      "p.json:5:13: routes[0].negative: means nothing: a network-only route stores nothing",
      "p.json:5:25: routes[0].keep: means nothing: a network-only route stores nothing"),
    .route(
      "ttl without a strategy", "\"ttl\": \"1m\"",
      "p.json:3:8: routes[0].ttl: means nothing: a network-only route stores nothing"),
    .route(
      "ttl beside a misspelt strategy", "\"strategy\": \"cache\", \"ttl\": \"1m\"",
      "p.json:3:13: routes[0].strategy: unknown value \"cache\"; one of cache-first, "
        + "stale-while-revalidate, network-first, network-only, network-and-store, cache-only"),
    .route(
      "deadline without a meaning", "\"strategy\": \"cache-first\", \"deadline\": \"1s\"",
      "p.json:3:40: routes[0].deadline: warning: has no effect: only network-first has a deadline, "
        + "this route is cache-first"),
    .route(
      "sizes and words without a meaning",
      "\"strategy\": \"network-only\", \"maxEntrySize\": \"1MiB\", \"ignoreOrigin\": [\"vary\"]",
      "p.json:3:45: routes[0].maxEntrySize: warning: has no effect: a network-only route stores "
        + "nothing",
      "p.json:3:69: routes[0].ignoreOrigin: warning: has no effect: a network-only route stores "
        + "nothing"),
    .route(
      "entry larger than the store's", "\"strategy\": \"cache-first\", \"maxEntrySize\": \"65MiB\"",
      "p.json:3:44: routes[0].maxEntrySize: must not be larger than store.maxEntrySize (64MiB)"),
    .route(
      "forwardHeaders that cannot be",
      "\"forwardHeaders\": [\"X-Forwarded-For\", \"Connection\", \"a b\", \"X-Original-Host\", "
        + "\"Host\"]",
      "p.json:3:20: routes[0].forwardHeaders[0]: \"X-Forwarded-For\" is made by Larder, the "
        + "client's "
        + "is not forwarded",
      "p.json:3:39: routes[0].forwardHeaders[1]: \"Connection\" belongs to one connection",
      "p.json:3:53: routes[0].forwardHeaders[2]: \"a b\" is no field name",
      "p.json:3:79: routes[0].forwardHeaders[4]: \"Host\" is made by Larder, the client's is not "
        + "forwarded"),
    .route(
      "forwardHeaders outside of the key",
      "\"strategy\": \"cache-first\", \"forwardHeaders\": [\"X-Original-Host\"]",
      "p.json:3:46: routes[0].forwardHeaders: warning: these fields reach the origin and are not "
        + "in "
        + "the key: an answer that depends on them is shared all the same"),
  ]
}
