/// `transfers`: libcurl's multi interface alone, as a client: what any proxy that fetches by it pays
/// at least.
///
/// Driven by libuv and through the module maps that the proxy's origin side uses: handles and
/// connections are used again, a socket's watcher stays from transfer to transfer, each transfer
/// has a header list and a target of its own. Nothing is done with the answers but to count them.
internal import CCurl
internal import CUV

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Keeps `--connections` transfers under way for `--seconds` and prints transfers a second and this
/// process's time for each. Exit status 1: one failed, or its answer was not as the first.
func makeTransfers(_ options: Options) throws(UsageError) -> Int32 {
  let port = try options.requiredPort()
  curl_global_init(Int(CURL_GLOBAL_DEFAULT))
  let transfers = Transfers(options, port: port)
  transfers.run()
  if let failure = transfers.failure {
    complain("LoadTool: \(failure)")
    return 1
  }
  transfers.printResult()
  return 0
}

/// All transfers, on one loop and one multi handle.
private final class Transfers {
  private let multi = curl_multi_init()!
  private let loop: UnsafeMutablePointer<uv_loop_t> = uv_default_loop()
  private let curlTimer = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
  private let endTimer = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
  private let timeLimitMilliseconds: Int64
  private var transfers: [Transfer] = []
  /// By descriptor.
  private var watchers: [Int32: Watcher] = [:]
  private var wantedTimerMilliseconds = -1
  private let targetPrefix: String
  /// Whether each transfer has a target of its own.
  private let targetsDiffer: Bool
  private var targetNumber = 0
  private var count = 0
  private var firstBodyBytes: Int?
  private var began = (monotonic: UInt64(0), processor: UInt64(0))
  private var ended = (monotonic: UInt64(0), processor: UInt64(0))
  private(set) var failure: String?

  init(_ options: Options, port: UInt16) {
    timeLimitMilliseconds = options.timeLimitMilliseconds
    targetsDiffer = options.hasPrefix
    // Never the same twice, whoever asked before.
    targetPrefix = targetsDiffer ? "\(options.prefix)\(monotonicNanoseconds())-" : options.path
    uv_timer_init(loop, curlTimer)
    uv_timer_init(loop, endTimer)
    let this = Unmanaged.passUnretained(self).toOpaque()
    curlTimer.pointee.data = this
    endTimer.pointee.data = this
    larder_curl_multi_set_pointer(multi, CURLMOPT_SOCKETDATA, this)
    larder_curl_multi_set_pointer(multi, CURLMOPT_TIMERDATA, this)
    larder_curl_multi_set_socket_callback(multi) { _, descriptor, what, context, _ in
      Transfers.of(context).libcurlWants(what, on: descriptor)
      return 0
    }
    larder_curl_multi_set_timer_callback(multi) { _, milliseconds, context in
      Transfers.of(context).wantedTimerMilliseconds = milliseconds
      return 0
    }
    for _ in 0..<options.connectionCount {
      transfers.append(
        Transfer(url: "http://127.0.0.1:\(port)", authority: options.authority, context: this))
    }
  }

  private static func of(_ context: UnsafeMutableRawPointer?) -> Transfers {
    // SAFETY: the command keeps it until the loop has ended.
    Unmanaged<Transfers>.fromOpaque(context!).takeUnretainedValue()
  }

  func run() {
    uv_timer_start(
      endTimer, { timer in uv_stop(Transfers.of(timer!.pointee.data).loop) },
      UInt64(timeLimitMilliseconds), 0)
    began = (monotonicNanoseconds(), processorNanoseconds())
    for transfer in transfers { begin(transfer) }
    act(on: CURL_SOCKET_TIMEOUT, 0)
    uv_run(loop, UV_RUN_DEFAULT)
    ended = (monotonicNanoseconds(), processorNanoseconds())
  }

  func printResult() {
    let seconds = Double(ended.monotonic - began.monotonic) / 1e9
    let microseconds = Double(ended.processor - began.processor) / 1e3
    printFigures([
      ("transfers", "\(count)"),
      ("bytes", "\(firstBodyBytes ?? 0)"),
      ("transfers-per-second", "\(Int(Double(count) / max(seconds, 0.001)))"),
      ("processor-nanoseconds-per-transfer", "\(Int(microseconds * 1e3 / Double(max(1, count))))"),
    ])
  }

  private func fail(_ reason: String) {
    if failure == nil { failure = reason }
    uv_stop(loop)
  }

  private func begin(_ transfer: Transfer) {
    targetNumber += 1
    transfer.prepare(target: targetsDiffer ? "\(targetPrefix)\(targetNumber)" : targetPrefix)
    curl_multi_add_handle(multi, transfer.easy)
  }

  // MARK: libcurl

  fileprivate func act(on descriptor: Int32, _ events: Int32) {
    var running: Int32 = 0
    curl_multi_socket_action(multi, descriptor, events, &running)
    collectFinished()
    var turns = 0
    while wantedTimerMilliseconds == 0, turns < 4 {
      wantedTimerMilliseconds = -1
      turns += 1
      curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running)
      collectFinished()
    }
    if wantedTimerMilliseconds < 0 {
      uv_timer_stop(curlTimer)
    } else {
      uv_timer_start(
        curlTimer,
        { timer in
          let transfers = Transfers.of(timer!.pointee.data)
          transfers.wantedTimerMilliseconds = -1
          transfers.act(on: CURL_SOCKET_TIMEOUT, 0)
        }, UInt64(wantedTimerMilliseconds), 0)
    }
  }

  private func collectFinished() {
    var remaining: Int32 = 0
    while failure == nil, let message = curl_multi_info_read(multi, &remaining) {
      guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else {
        continue
      }
      let code = message.pointee.data.result
      guard code == CURLE_OK else { return fail(String(cString: curl_easy_strerror(code))) }
      var context: UnsafeMutableRawPointer?
      larder_curl_get_pointer(easy, CURLINFO_PRIVATE, &context)
      let transfer = Transfer.of(context)
      var status = 0
      larder_curl_get_long(easy, CURLINFO_RESPONSE_CODE, &status)
      guard status == 200 else { return fail("status \(status)") }
      guard firstBodyBytes ?? transfer.bodyBytes == transfer.bodyBytes else {
        return fail("an answer of another length")
      }
      firstBodyBytes = transfer.bodyBytes
      count += 1
      curl_multi_remove_handle(multi, easy)
      begin(transfer)
    }
  }

  // MARK: Sockets

  private func libcurlWants(_ what: Int32, on descriptor: Int32) {
    // Between transfers the watcher stays: the next one wants the same.
    guard what != CURL_POLL_REMOVE else { return }
    var events: Int32 = 0
    if what & CURL_POLL_IN != 0 { events |= Int32(UV_READABLE.rawValue) }
    if what & CURL_POLL_OUT != 0 { events |= Int32(UV_WRITABLE.rawValue) }
    let watcher = watchers[descriptor] ?? watch(descriptor)
    if watcher.events == events { return }
    watcher.events = events
    uv_poll_start(watcher.handle, events) { handle, status, events in
      var ready: Int32 = status < 0 ? CURL_CSELECT_ERR : 0
      if events & Int32(UV_READABLE.rawValue) != 0 { ready |= CURL_CSELECT_IN }
      if events & Int32(UV_WRITABLE.rawValue) != 0 { ready |= CURL_CSELECT_OUT }
      // SAFETY: a watcher is kept until its handle is stopped.
      let watcher = Unmanaged<Watcher>.fromOpaque(handle!.pointee.data).takeUnretainedValue()
      watcher.transfers.act(on: watcher.descriptor, ready)
    }
  }

  private func watch(_ descriptor: Int32) -> Watcher {
    let made = Watcher(self, loop, descriptor)
    watchers[descriptor] = made
    return made
  }

  /// libcurl closes a socket: its watcher goes first.
  fileprivate func closeSocket(_ descriptor: Int32) {
    watchers.removeValue(forKey: descriptor)?.close()
    close(descriptor)
  }

  fileprivate static let closesSocket:
    @convention(c) (UnsafeMutableRawPointer?, curl_socket_t) -> Int32 = { context, descriptor in
      Transfers.of(context).closeSocket(descriptor)
      return 0
    }
}

/// What watches one of libcurl's sockets.
private final class Watcher {
  unowned let transfers: Transfers
  let descriptor: Int32
  let handle = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
  var events: Int32 = 0

  init(_ transfers: Transfers, _ loop: UnsafeMutablePointer<uv_loop_t>, _ descriptor: Int32) {
    self.transfers = transfers
    self.descriptor = descriptor
    uv_poll_init(loop, handle, descriptor)
    handle.pointee.data = Unmanaged.passUnretained(self).toOpaque()
  }

  func close() {
    uv_poll_stop(handle)
    // SAFETY: a uv_poll_t begins with the fields of a uv_handle_t.
    handle.withMemoryRebound(to: uv_handle_t.self, capacity: 1) { handle in
      uv_close(handle) { UnsafeMutableRawPointer($0!).deallocate() }
    }
  }
}

/// One easy handle and its present transfer.
private final class Transfer {
  let easy = curl_easy_init()!
  private(set) var bodyBytes = 0
  private let authority: String
  private var fields: UnsafeMutablePointer<curl_slist>?

  init(url: String, authority: String, context: UnsafeMutableRawPointer) {
    self.authority = authority
    let this = Unmanaged.passUnretained(self).toOpaque()
    larder_curl_set_pointer(easy, CURLOPT_PRIVATE, this)
    larder_curl_set_string(easy, CURLOPT_URL, url)
    larder_curl_set_string(easy, CURLOPT_PROXY, "")
    larder_curl_set_string(easy, CURLOPT_NOPROXY, "*")
    for (option, value) in [
      (CURLOPT_PATH_AS_IS, 1), (CURLOPT_NOSIGNAL, 1), (CURLOPT_NOPROGRESS, 1),
      (CURLOPT_TCP_NODELAY, 1), (CURLOPT_BUFFERSIZE, 32 * 1024),
    ] {
      larder_curl_set_long(easy, option, value)
    }
    larder_curl_set_data(easy, CURLOPT_WRITEFUNCTION) { _, size, count, context in
      Transfer.of(context).bodyBytes += size * count
      return size * count
    }
    larder_curl_set_pointer(easy, CURLOPT_WRITEDATA, this)
    larder_curl_set_close_socket(easy, Transfers.closesSocket)
    larder_curl_set_pointer(easy, CURLOPT_CLOSESOCKETDATA, context)
  }

  static func of(_ context: UnsafeMutableRawPointer?) -> Transfer {
    // SAFETY: the transfers are kept until the process ends.
    Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue()
  }

  /// A target and a header list as a proxy passes them on: new for each.
  func prepare(target: String) {
    bodyBytes = 0
    curl_slist_free_all(fields)
    fields = curl_slist_append(nil, "Host: \(authority)")
    larder_curl_set_pointer(easy, CURLOPT_HTTPHEADER, fields)
    larder_curl_set_string(easy, CURLOPT_REQUEST_TARGET, target)
  }
}
