internal import CCurl
public import CachePolicy

/// A request to an origin, ready to be sent: built by the repository, carried out by `CurlClient`.
///
/// Fields are handed over line by line and kept in libcurl's own list, so that a request costs one
/// copy of its head.
public final class OriginRequest {
  /// Which of the client's endpoints it goes to.
  public let endpointIndex: Int
  public let method: Method
  /// The method's token as the client sent it.
  public let methodToken: [UInt8]
  /// Path and query exactly as they go on the wire.
  public let target: [UInt8]
  /// The body, with its length where it is known; nil: the request has none.
  public let body: (source: any OriginBodySource, length: Int64?)?
  private(set) var fields: UnsafeMutablePointer<curl_slist>?
  private var hasAccept = false

  public init(
    endpointIndex: Int, method: Method, methodToken: [UInt8], target: [UInt8],
    body: (source: any OriginBodySource, length: Int64?)? = nil
  ) {
    self.endpointIndex = endpointIndex
    self.method = method
    self.methodToken = methodToken
    self.target = target
    self.body = body
  }

  deinit { curl_slist_free_all(fields) }

  /// Adds a field line after those already there.
  public func addField(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    // libcurl sends `Name;` as an empty field and takes `Name:` as an order to leave it out.
    let capacity = name.count + value.count + 3
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: capacity) { line in
      let raw = UnsafeMutableRawBufferPointer(line)
      raw.copyBytes(from: name)
      var end = name.count
      if value.isEmpty {
        line[end] = CChar(bitPattern: UInt8(ascii: ";"))
        end += 1
      } else {
        line[end] = CChar(bitPattern: UInt8(ascii: ":"))
        line[end + 1] = CChar(bitPattern: UInt8(ascii: " "))
        end += 2
        UnsafeMutableRawBufferPointer(rebasing: raw[end...]).copyBytes(from: value)
        end += value.count
      }
      line[end] = 0
      append(line.baseAddress!)
    }
    if name.count == 6, OriginRequest.isAccept(name) { hasAccept = true }
  }

  public func addField(_ name: StaticString, _ value: String) {
    var value = value
    value.withUTF8 { bytes in
      addField(
        name: UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount),
        value: UnsafeRawBufferPointer(bytes))
    }
  }

  /// Ends the list with the lines that keep libcurl from adding fields of its own.
  func seal() {
    if !hasAccept { append("Accept:") }
    if let body {
      append("Expect:")
      if body.length == nil { append("Transfer-Encoding: chunked") }
    }
  }

  private func append(_ line: UnsafePointer<CChar>) {
    fields = curl_slist_append(fields, line) ?? fields
  }

  private static func isAccept(_ name: UnsafeRawBufferPointer) -> Bool {
    let expected: StaticString = "accept"
    for index in 0..<6 where (name[index] | 0x20) != expected.utf8Start[index] { return false }
    return true
  }
}
