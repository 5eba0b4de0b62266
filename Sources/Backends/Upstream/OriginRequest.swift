internal import CCurl
public import CachePolicy

/// A request to an origin, ready to be sent: built by the repository, carried out by `CurlClient`.
///
/// Fields are handed over line by line and become one item of libcurl's list.
public final class OriginRequest {
  public let endpoint: OriginEndpoint
  public let method: Method
  /// The method's token as the client sent it.
  public let methodToken: [UInt8]
  /// Path and query exactly as they go on the wire.
  public let target: [UInt8]
  /// The body, with its length where it is known; nil: the request has none.
  public let body: (source: any OriginBodySource, length: Int64?)?
  /// The field lines as they go on the wire, Host first, each with its CR LF.
  private var lines: [UInt8] = []
  /// What libcurl is given: see `seal`.
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
  }

  deinit { curl_slist_free_all(list) }

  /// Adds a field line after those already there; Host comes first. Neither part holds CR, LF or
  /// NUL: both come out of a parser that refuses them.
  public func addField(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    if lines.isEmpty { lines.reserveCapacity(512) }
    lines.append(contentsOf: name)
    lines.append(UInt8(ascii: ":"))
    lines.append(UInt8(ascii: " "))
    lines.append(contentsOf: value)
    lines.append(0x0D)
    lines.append(0x0A)
  }

  public func addField(_ name: StaticString, _ value: String) {
    var value = value
    value.withUTF8 { bytes in
      addField(
        name: UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount),
        value: UnsafeRawBufferPointer(bytes))
    }
  }

  /// Makes libcurl's list of the lines, with those that keep it from adding fields of its own.
  ///
  /// All lines behind Host go into one item: libcurl sends items verbatim, and looks through them
  /// for some twenty names a request, which with an item a line costs more than sending them. Host
  /// is for itself, since libcurl writes it out twice.
  func seal() {
    guard let end = lines.firstIndex(of: 0x0D) else { return }
    lines[end] = 0
    lines[lines.count - 2] = 0
    lines.withUnsafeBytes { bytes in
      let text = bytes.baseAddress!.assumingMemoryBound(to: CChar.self)
      append(text)
      if end + 2 < bytes.count { append(text + end + 2) }
    }
    append("Accept:")
    if let body {
      append("Expect:")
      if body.length == nil { append("Transfer-Encoding: chunked") }
    }
  }

  private func append(_ line: UnsafePointer<CChar>) {
    list = curl_slist_append(list, line) ?? list
  }
}
