/// One connection of `load`: at most one request under way, and where its answer is.
internal import CUV

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

final class LoadConnection {
  // SAFETY: the load owns its connections and outlives them.
  private unowned(unsafe) let load: Load
  private let number: Int
  private var socket: LoopbackConnection?
  private var poll: UnsafeMutablePointer<uv_poll_t>?
  private var descriptor: Int32 = -1
  /// Reads the first answer; nil: it is whole.
  private var first: ResponseReader? = ResponseReader()
  /// Of the running answer, once its head is read.
  private var remainingBytes = 0
  /// The beginning of a head that came in parts.
  private var headPart: [UInt8] = []

  init(_ load: Load, number: Int) {
    self.load = load
    self.number = number
  }

  /// Connects, anew where there was a connection, and sends a request.
  func open(_ loop: UnsafeMutablePointer<uv_loop_t>) {
    do {
      let socket = try LoopbackConnection(port: load.port, number: number)
      self.socket = socket
      descriptor = socket.descriptor
    } catch {
      return load.fail("a connection cannot be made")
    }
    // Where as many connect at once as the listener holds, the kernel tries again after a second.
    var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    _ = waitFor(&polled)
    first = ResponseReader()
    remainingBytes = 0
    headPart = []
    let poll = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
    self.poll = poll
    uv_poll_init(loop, poll, descriptor)
    poll.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    uv_poll_start(poll, Int32(UV_READABLE.rawValue)) { poll, _, _ in
      // SAFETY: the load keeps its connections until the process ends.
      Unmanaged<LoadConnection>.fromOpaque(poll!.pointee.data).takeUnretainedValue().isReadable()
    }
    send()
  }

  private func close() {
    guard let poll else { return }
    self.poll = nil
    uv_poll_stop(poll)
    // SAFETY: a uv_poll_t begins with the fields of a uv_handle_t.
    poll.withMemoryRebound(to: uv_handle_t.self, capacity: 1) { handle in
      uv_close(handle) { UnsafeMutableRawPointer($0!).deallocate() }
    }
    socket = nil
  }

  private func send() {
    let request = load.nextRequest()
    let count = transmit(descriptor, request.baseAddress, request.count)
    if count != request.count { load.fail("a request does not go out") }
  }

  private func isReadable() {
    let buffer = load.buffer
    let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
    if count > 0 {
      take(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    } else if count == 0 {
      let isBetweenAnswers = remainingBytes == 0 && headPart.isEmpty && first == nil
      close()
      guard isBetweenAnswers else { return load.fail("the server ended a connection") }
      load.hasEnded(self)
    } else if errno != EAGAIN {
      load.fail("a connection broke")
    }
  }

  private func take(_ bytes: UnsafeRawBufferPointer) {
    if first != nil { return takeFirst(bytes) }
    if remainingBytes > 0 {
      remainingBytes -= bytes.count
      guard remainingBytes >= 0 else { return load.fail("more than one answer") }
    } else if headPart.isEmpty {
      takeHead(bytes)
      if !headPart.isEmpty { return }
    } else {
      headPart.append(contentsOf: bytes)
      let whole = headPart
      headPart = []
      whole.withUnsafeBytes { takeHead($0) }
      if !headPart.isEmpty { return }
    }
    guard remainingBytes == 0, load.failure == nil else { return }
    load.answered()
    send()
  }

  /// Keeps what it is given where the head is not whole.
  private func takeHead(_ bytes: UnsafeRawBufferPointer) {
    guard let head = HeadSearch(bytes) else {
      headPart.append(contentsOf: bytes)
      return
    }
    guard let bodyBytes = load.bodyBytes(of: head) else { return }
    remainingBytes = head.headBytes + bodyBytes - bytes.count
    if remainingBytes < 0 { load.fail("more than one answer") }
  }

  private func takeFirst(_ bytes: UnsafeRawBufferPointer) {
    guard var reader = first else { return }
    guard let taken = try? reader.consume(bytes), taken == bytes.count else {
      return load.fail("an answer that cannot be read")
    }
    first = reader
    guard reader.isComplete else { return }
    first = nil
    load.answeredFirst(reader)
    send()
  }
}

private func waitFor(_ polled: inout pollfd) -> Int32 { poll(&polled, 1, 10_000) }

private func transmit(_ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int) -> Int {
  send(descriptor, start, count, 0)
}
