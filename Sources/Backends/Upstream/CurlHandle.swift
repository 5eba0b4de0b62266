internal import CCurl
internal import CachePolicy

/// One libcurl easy handle with an endpoint's settings, used for one transfer after another.
///
/// Settings that do not change are set once; `prepare` sets what differs from request to request.
/// Owned by `CurlClient`'s pools and touched on its loop alone.
final class CurlHandle {
  enum Use {
    case none
    case transfer(CurlTransfer)
    /// It makes a connection that others use; they are told its descriptor.
    case connecting((Result<Int32, OriginError>) -> Void)
  }

  let easy: UnsafeMutableRawPointer
  let endpoint: OriginEndpoint
  /// What it does now; libcurl's callbacks come through here.
  var use = Use.none
  private var isPlainGet = true
  private var targetBuffer: [CChar] = []
  /// What goes before the path in the request line: a proxy is told the whole URL (RFC 9112 §3.2.2),
  /// where it does not carry the connection on as it is.
  private let targetPrefix: [UInt8]

  /// `connectsOnly`: it makes connections and sends nothing. nil when libcurl is out of memory.
  init?(endpoint: OriginEndpoint, client: CurlClient, connectsOnly: Bool = false) {
    guard let made = curl_easy_init() else { return nil }
    easy = made
    self.endpoint = endpoint
    let forwards = endpoint.proxy?.hasPrefix("http") == true && endpoint.url.hasPrefix("http:")
    targetPrefix = forwards ? Array(endpoint.url.utf8) : []
    configure(endpoint, client)
    if connectsOnly { set(CURLOPT_CONNECT_ONLY, 1) }
  }

  deinit { curl_easy_cleanup(easy) }

  private func configure(_ endpoint: OriginEndpoint, _ client: CurlClient) {
    let this = Unmanaged.passUnretained(self).toOpaque()
    set(CURLOPT_PRIVATE, pointer: this)
    set(CURLOPT_URL, string: endpoint.url)
    set(CURLOPT_PATH_AS_IS, 1)
    set(CURLOPT_FOLLOWLOCATION, 0)
    set(CURLOPT_HTTP09_ALLOWED, 0)
    set(CURLOPT_NETRC, 0)
    set(CURLOPT_NOSIGNAL, 1)
    set(CURLOPT_NOPROGRESS, 1)
    set(CURLOPT_TCP_NODELAY, 1)
    // Waiting for a connection that may turn out to carry many requests pays only where ALPN tells
    // soon. In clear text libcurl would know it from the first answer alone, and one slow answer
    // would hold up every request behind it.
    set(CURLOPT_PIPEWAIT, endpoint.url.hasPrefix("https:") ? 1 : 0)
    set(CURLOPT_BUFFERSIZE, CurlClient.receiveBufferBytes)
    set(CURLOPT_CONNECTTIMEOUT_MS, Int(endpoint.connectTimeoutMilliseconds))
    // What a proxy says to CONNECT is no answer of the origin's.
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
    set(CURLOPT_PROTOCOLS_STR, string: "http,https")
    // An empty string switches off the proxies that the environment names.
    set(CURLOPT_PROXY, string: endpoint.proxy ?? "")
    set(CURLOPT_NOPROXY, string: endpoint.proxy == nil ? "*" : "")
    larder_curl_set_data(easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
      CurlHandle.transfer(context)?.received(headerLine: bytes, size * count) ?? 0
    }
    set(CURLOPT_HEADERDATA, pointer: this)
    larder_curl_set_data(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
      CurlHandle.transfer(context)?.received(body: bytes, size * count) ?? 0
    }
    set(CURLOPT_WRITEDATA, pointer: this)
    larder_curl_set_data(easy, CURLOPT_READFUNCTION) { bytes, size, count, context in
      CurlHandle.transfer(context)?.wantsBody(bytes, size * count) ?? Int(CURL_READFUNC_ABORT)
    }
    set(CURLOPT_READDATA, pointer: this)
    larder_curl_set_before_request(easy) { context, _, _, remotePort, localPort in
      guard let transfer = CurlHandle.transfer(context) else { return CURL_PREREQFUNC_OK }
      let mayGoOut = transfer.mayGoOut(localPort, remotePort)
      return mayGoOut ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
    }
    set(CURLOPT_PREREQDATA, pointer: this)
    client.observeSockets(of: self)
  }

  static func of(_ context: UnsafeMutableRawPointer?) -> CurlHandle {
    // SAFETY: the context is the handle that set it; the pool keeps it alive while it has an easy.
    Unmanaged<CurlHandle>.fromOpaque(context!).takeUnretainedValue()
  }

  private static func transfer(_ context: UnsafeMutableRawPointer?) -> CurlTransfer? {
    guard case .transfer(let transfer) = of(context).use else { return nil }
    return transfer
  }

  /// The descriptor of the connection that it has made, in a copy that is the caller's; nil: there
  /// is none.
  func takeConnection() -> Int32? {
    var descriptor: curl_socket_t = -1
    larder_curl_get_socket(easy, CURLINFO_ACTIVESOCKET, &descriptor)
    guard descriptor >= 0 else { return nil }
    return duplicateDescriptor(descriptor)
  }

  /// Sets what this request needs: target, fields, method and body.
  func prepare(_ request: OriginRequest) {
    targetBuffer.removeAll(keepingCapacity: true)
    targetBuffer.reserveCapacity(targetPrefix.count + request.target.count + 1)
    for byte in targetPrefix { targetBuffer.append(CChar(bitPattern: byte)) }
    for byte in request.target { targetBuffer.append(CChar(bitPattern: byte)) }
    targetBuffer.append(0)
    targetBuffer.withUnsafeBufferPointer {
      _ = larder_curl_set_string(easy, CURLOPT_REQUEST_TARGET, $0.baseAddress)
    }
    set(CURLOPT_HTTPHEADER, pointer: request.list)
    let isPlain = request.method == .get && request.body == nil
    if isPlain && isPlainGet { return }
    isPlainGet = isPlain
    // A method that must not be sent twice does not ride on a connection that may be dead: libcurl
    // would quietly send it again there. With a body libcurl cannot rewind, it fails instead.
    let isRepeatable = request.method.isIdempotent || request.body != nil
    set(CURLOPT_FRESH_CONNECT, isRepeatable ? 0 : 1)
    set(CURLOPT_NOBODY, 0)
    set(CURLOPT_UPLOAD, 0)
    set(CURLOPT_HTTPGET, 1)
    larder_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, nil)
    if isPlain { return }
    if let body = request.body {
      set(CURLOPT_UPLOAD, 1)
      larder_curl_set_offset(easy, CURLOPT_INFILESIZE_LARGE, curl_off_t(body.length ?? -1))
    } else if request.method == .head {
      set(CURLOPT_NOBODY, 1)
      return
    }
    set(CURLOPT_CUSTOMREQUEST, string: String(decoding: request.methodToken, as: UTF8.self))
  }

  private func set(_ option: CURLoption, _ value: Int) {
    let code = larder_curl_set_long(easy, option, value)
    invariant(code == CURLE_OK, "libcurl takes a numeric option")
  }

  private func set(_ option: CURLoption, string: String) {
    let code = larder_curl_set_string(easy, option, string)
    invariant(code == CURLE_OK, "libcurl takes a text option")
  }

  private func set(_ option: CURLoption, pointer: UnsafeMutableRawPointer?) {
    larder_curl_set_pointer(easy, option, pointer)
  }
}
