import CachePolicy
import Support

/// Patterns and requests that meet often, for the tests that hold two readings against each other.
enum RandomRoutes {
  static func pattern(_ dice: inout Dice) throws -> RoutePattern {
    let segments = (0..<Int.random(in: 0...3, using: &dice)).map { index in
      let piece = dice.pick(["a", "b", "a", "{x}", "*", "a*", "*b", "a*b*"])
      return piece == "{x}" ? "{x\(index)}" : piece
    }
    let method = dice.pick(["", "", "", "GET ", "POST ", "GET|PUT ", "HEAD "])
    let host = dice.pick(["", "", "", "//x", "//*.y", "//z.y", "//x:81", "//*.y:80"])
    let end = dice.pick(["", "/**", "/"])
    let path = segments.map { "/" + $0 }.joined() + end
    return try RoutePattern(parsing: method + host + (path.isEmpty ? "/" : path))
  }

  struct Request {
    var method: [UInt8]
    var host: [UInt8]
    var path: [UInt8]
    var description: String { [method, host, path].map { text($0) }.joined(separator: " ") }
  }

  static func request(_ dice: inout Dice) -> Request {
    let path = (0..<Int.random(in: 0...4, using: &dice)).map { _ in
      "/" + dice.pick(["a", "b", "ab", "aab", "c", "", "acb"])
    }.joined()
    return Request(
      method: Array(dice.pick(["GET", "HEAD", "POST", "PUT", "X-OWN"]).utf8),
      host: Array(dice.pick(["x", "X:81", "z.y", "Z.y.:80", "w.z.y", "y", ".y", "", "x:82"]).utf8),
      path: Array((path.isEmpty ? dice.pick(["/", "/", "*", ""]) : path).utf8))
  }
}
