internal import Foundation

/// An origin and a proxy in front of it, for the time of one test.
///
/// `routes` are the members of the list in policies.json; `upstream`, `limits` and `top` add members
/// to their objects. Both servers are gone when this returns, and the store's folder with them.
/// Retries are off unless `upstream` says otherwise, so that requests can be counted.
public func scenario(
  _ routes: String, upstream: String = "\"retries\": 0", limits: String = "", top: String = "",
  _ body: (ScriptedOrigin, TestProxy) throws -> Void
) throws {
  let origin = try ScriptedOrigin()
  let proxy = try TestProxy(
    policies: scenarioPolicies(routes, upstream: upstream, limits: limits, top: top),
    origin: origin)
  defer {
    // The origin first: an exchange that still waits for it would hold the drain up.
    origin.stop()
    proxy.stop()
  }
  try body(origin, proxy)
}

/// Whether scenarios have the proxy reach its origin by libcurl, as with TLS, instead of by our own
/// HTTP/1.1: the origin is then its own forward proxy. `script/test` runs the suites on the origin
/// side both ways.
let reachesOriginByLibcurl =
  ProcessInfo.processInfo.environment["LARDER_TEST_ORIGIN"] == "libcurl"

/// The policies.json of a scenario.
public func scenarioPolicies(
  _ routes: String, upstream: String = "\"retries\": 0", limits: String = "", top: String = ""
) -> String {
  let proxy = reachesOriginByLibcurl ? "\"proxy\": \"http://{ORIGIN}\"," : ""
  return """
    {
      "version": 1,
      "upstreams": { "origin": { "url": "http://{ORIGIN}", \(proxy) \(upstream) } },
      "limits": { \(limits) },
      \(top)
      "defaults": { "upstream": "origin" },
      "routes": [ \(routes) ],
    }
    """
}
