/// The one answer that BareServer gives, and the connections that are given it.
///
/// A request is whatever ends in an empty line; bodies are not understood. While an answer waits
/// for the socket, the connection is not read, so a slow client cannot queue up answers.
internal import CUV

/// The answer's bytes and the buffer that all reads share: one loop, one thread.
final class ConstantAnswer {
  let bytes: UnsafeMutableRawBufferPointer
  let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)

  /// `bodyBytes` nil: a 304, which has no body.
  init(bodyBytes: Int?) {
    let status = bodyBytes == nil ? "304 Not Modified" : "200 OK"
    let length = bodyBytes.map { "Content-Length: \($0)\r\n" } ?? ""
    let head =
      "HTTP/1.1 \(status)\r\nContent-Type: application/octet-stream\r\n\(length)"
      + "Cache-Control: max-age=86400\r\nETag: \"constant\"\r\n\r\n"
    let bodyBytes = bodyBytes ?? 0
    bytes = .allocate(byteCount: head.utf8.count + bodyBytes, alignment: 16)
    bytes.initializeMemory(as: UInt8.self, repeating: UInt8(ascii: "b"))
    bytes.copyBytes(from: head.utf8)
  }

  deinit {
    bytes.deallocate()
    readBuffer.deallocate()
  }
}

/// One client; freed by libuv's close callback.
final class AnsweredConnection {
  let answer: ConstantAnswer
  let tcp = UnsafeMutablePointer<uv_tcp_t>.allocate(capacity: 1)
  /// How many bytes of CR LF CR LF the input ends with.
  private var matchedCount = 0
  private var writesPending = 0
  private var isClosing = false

  init(answer: ConstantAnswer) { self.answer = answer }
  deinit { tcp.deallocate() }

  /// Answers each request that ends within `input`.
  func receive(_ input: UnsafeRawBufferPointer) {
    for byte in input {
      let expected: UInt8 = matchedCount & 1 == 0 ? 0x0D : 0x0A
      if byte == expected {
        matchedCount += 1
      } else {
        matchedCount = byte == 0x0D ? 1 : 0
      }
      if matchedCount == 4 {
        matchedCount = 0
        send()
      }
    }
    if writesPending > 0, !isClosing { uv_read_stop(stream(tcp)) }
  }

  private func send() {
    guard !isClosing else { return }
    var rest = UnsafeRawBufferPointer(answer.bytes)
    var buffer = Self.buffer(rest)
    let taken = uv_try_write(stream(tcp), &buffer, 1)
    if taken == rest.count { return }
    if taken < 0 && taken != UV_EAGAIN.rawValue { return close() }
    rest = UnsafeRawBufferPointer(rebasing: rest[max(0, Int(taken))...])
    buffer = Self.buffer(rest)
    let request = UnsafeMutablePointer<uv_write_t>.allocate(capacity: 1)
    // SAFETY: the answer's bytes never change and outlive every connection.
    let status = uv_write(request, stream(tcp), &buffer, 1) { finishWrite($0, status: $1) }
    guard status == 0 else {
      request.deallocate()
      return close()
    }
    writesPending += 1
  }

  func writeFinished(_ status: Int32) {
    writesPending -= 1
    if status < 0 { return close() }
    if writesPending == 0, !isClosing { startReading() }
  }

  func startReading() {
    let status = uv_read_start(
      stream(tcp),
      { handle, _, buffer in provideBuffer(handle, buffer) },
      { handle, count, buffer in consumeRead(handle, count, buffer) })
    if status < 0 { close() }
  }

  func close() {
    guard !isClosing else { return }
    isClosing = true
    // SAFETY: uv_tcp_t begins with uv_handle_t; the retain made at accept is released here, after
    // libuv's last use of the handle.
    let handle = UnsafeMutableRawPointer(tcp).assumingMemoryBound(to: uv_handle_t.self)
    uv_close(handle) { closed in
      guard let data = closed?.pointee.data else { return }
      Unmanaged<AnsweredConnection>.fromOpaque(data).release()
    }
  }

  private static func buffer(_ bytes: UnsafeRawBufferPointer) -> uv_buf_t {
    let base = UnsafeMutableRawPointer(mutating: bytes.baseAddress)
    return uv_buf_init(base?.assumingMemoryBound(to: CChar.self), UInt32(bytes.count))
  }
}

func acceptConnection(_ listener: UnsafeMutablePointer<uv_stream_t>?, status: Int32) {
  guard status == 0, let listener, let data = listener.pointee.data else { return }
  let answer = Unmanaged<ConstantAnswer>.fromOpaque(data).takeUnretainedValue()
  let connection = AnsweredConnection(answer: answer)
  check("uv_tcp_init", uv_tcp_init(listener.pointee.loop, connection.tcp))
  connection.tcp.pointee.data = Unmanaged.passRetained(connection).toOpaque()
  guard uv_accept(listener, stream(connection.tcp)) == 0 else { return connection.close() }
  uv_tcp_nodelay(connection.tcp, 1)
  connection.startReading()
}

private func connection(_ data: UnsafeMutableRawPointer?) -> AnsweredConnection? {
  guard let data else { return nil }
  return Unmanaged<AnsweredConnection>.fromOpaque(data).takeUnretainedValue()
}

private func provideBuffer(
  _ handle: UnsafeMutablePointer<uv_handle_t>?, _ buffer: UnsafeMutablePointer<uv_buf_t>?
) {
  guard let shared = connection(handle?.pointee.data)?.answer.readBuffer else { return }
  buffer?.pointee = uv_buf_init(
    shared.baseAddress?.assumingMemoryBound(to: CChar.self), UInt32(shared.count))
}

private func consumeRead(
  _ handle: UnsafeMutablePointer<uv_stream_t>?, _ count: Int, _ buffer: UnsafePointer<uv_buf_t>?
) {
  guard let connection = connection(handle?.pointee.data) else { return }
  if count < 0 { return connection.close() }
  connection.receive(UnsafeRawBufferPointer(start: buffer?.pointee.base, count: count))
}

private func finishWrite(_ request: UnsafeMutablePointer<uv_write_t>?, status: Int32) {
  guard let request else { return }
  let connection = connection(request.pointee.handle?.pointee.data)
  request.deallocate()
  connection?.writeFinished(status)
}
