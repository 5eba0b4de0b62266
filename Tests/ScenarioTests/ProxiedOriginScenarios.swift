/// Origins that are reached through a forward proxy.
import Foundation
import Support
import Testing

struct ProxiedOriginScenarios {
  /// What a proxy answers to CONNECT is about the tunnel alone (RFC 9110 §9.3.6), whatever fields it
  /// has; here there is no TLS behind it, so that no origin has answered.
  @Test(arguments: ["", "Content-Length: 0\r\n", "Cache-Control: max-age=60\r\n"])
  func whatAProxySaysOfItsTunnelIsNoAnswer(_ fields: String) throws {
    let forwardProxy = try RawOrigin { connection in
      connection.readHead()
      connection.send("HTTP/1.1 200 Connection established\r\n\(fields)\r\n")
    }
    let unused = try ScriptedOrigin()
    let policies = scenarioPolicies(
      #"{ "name": "a", "match": "/**", "strategy": "cache-first", "ttl": "1h" }"#,
      upstream: "\"retries\": 0, \"proxy\": \"http://127.0.0.1:\(forwardProxy.port)\""
    ).replacingOccurrences(of: "http://{ORIGIN}", with: "https://127.0.0.1:9")
    let proxy = try TestProxy(policies: policies, origin: unused)
    defer {
      forwardProxy.stop()
      unused.stop()
      proxy.stop()
    }
    for _ in 0..<2 {
      let answer = try proxy.get("/a")
      #expect(answer.status == 502)
    }
    #expect(forwardProxy.heads.allSatisfy { $0.hasPrefix("CONNECT 127.0.0.1:9 HTTP/1.1") })
    #expect(forwardProxy.heads.count == 2)
  }
}
