internal import CCurl
public import CachePolicy

/// A request to an origin, ready to be sent: built by the repository, carried out by `OriginClient`.
///
/// It is put together as it goes on the wire in HTTP/1.1; libcurl is given the same lines as a list.
public final class OriginRequest {
  public let endpoint: OriginEndpoint
  public let method: Method
  /// The method's token as the client sent it.
  public let methodToken: [UInt8]
  /// Path and query exactly as they go on the wire.
  public let target: [UInt8]
  /// The body, with its length where it is known; nil: the request has none.
  public let body: (source: any OriginBodySource, length: Int64?)?
  /// The request line and the field lines, Host first, each with its CR LF.
  private var head: [UInt8] = []
  private let fieldsStart: Int
  /// The empty line is there.
  private var headIsWhole = false
  /// What libcurl is given: see `makeList`.
  private(set) var list: UnsafeMutablePointer<curl_slist>?

  public init(
    endpoint: OriginEndpoint, method: Method, methodToken: [UInt8], target: [UInt8],
    body: (source: any OriginBodySource, length: Int64?)? = nil
  ) {
    self.endpoint = endpoint
    self.method = method
    self.methodToken = methodToken
    self.target = target
    self.body = body
    head.reserveCapacity(methodToken.count + target.count + 512)
    head.append(contentsOf: methodToken)
    head.append(UInt8(ascii: " "))
    head.append(contentsOf: target)
    OriginRequest.append(" HTTP/1.1\r\n", to: &head)
    fieldsStart = head.count
  }

  deinit { curl_slist_free_all(list) }

  /// Adds a field line after those already there; Host comes first. Neither part holds CR, LF or
  /// NUL: both come out of a parser that refuses them.
  public func addField(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    head.append(contentsOf: name)
    head.append(UInt8(ascii: ":"))
    head.append(UInt8(ascii: " "))
    head.append(contentsOf: value)
    head.append(0x0D)
    head.append(0x0A)
  }

  public func addField(_ name: StaticString, _ value: String) {
    var value = value
    value.withUTF8 { bytes in
      addField(
        name: UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount),
        value: UnsafeRawBufferPointer(bytes))
    }
  }

  /// The whole head as HTTP/1.1 has it on the wire, the body's framing included (RFC 9112 §6).
  func withHead<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    if !headIsWhole {
      headIsWhole = true
      if let requestBody = self.body {
        if let length = requestBody.length {
          addField("Content-Length", String(length))
        } else {
          addField("Transfer-Encoding", "chunked")
        }
      }
      OriginRequest.append("\r\n", to: &head)
    }
    return head.withUnsafeBytes(body)
  }

  private static func append(_ text: StaticString, to bytes: inout [UInt8]) {
    bytes.append(
      contentsOf: UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Makes libcurl's list of the lines, with those that keep it from adding fields of its own.
  ///
  /// All lines behind Host go into one item: libcurl sends items verbatim, and looks through them
  /// for some twenty names a request, which with an item a line costs more than sending them. Host
  /// is for itself, since libcurl writes it out twice.
  func makeList() {
    var lines = head[fieldsStart...]
    guard let end = lines.firstIndex(of: 0x0D) else { return }
    lines[end] = 0
    lines[lines.endIndex - 2] = 0
    lines.withUnsafeBytes { bytes in
      let text = bytes.baseAddress!.assumingMemoryBound(to: CChar.self)
      append(text)
      let next = end - fieldsStart + 2
      if next < bytes.count { append(text + next) }
    }
    append("Accept:")
    // For one connection, and of no standard (RFC 9112 §C.2.2).
    if endpoint.proxy != nil { append("Proxy-Connection:") }
    if let body {
      append("Expect:")
      if body.length == nil { append("Transfer-Encoding: chunked") }
    }
  }

  private func append(_ line: UnsafePointer<CChar>) {
    list = curl_slist_append(list, line) ?? list
  }
}
