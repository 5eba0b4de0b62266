internal import CMapGuard
internal import CUV
internal import CachePolicy

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Whoever owns a stream and is told what happens on it. All calls come on the stream's loop.
public protocol TCPStreamOwner: AnyObject {
  /// Bytes came in. They lie in the loop's read buffer and are gone when the call returns.
  func streamDidRead(_ bytes: UnsafeRawBufferPointer)
  /// The peer will send no more.
  func streamDidReachEnd()
  /// Everything that had been queued is with the kernel.
  func streamDidDrain()
  /// The connection broke. The owner closes the stream.
  func streamDidFail()
  /// The stream is closed; nothing more is called.
  func streamDidClose()
}

/// One TCP connection on a loop, a client's or one to an origin: reads into the loop's buffer, writes straight from the
/// caller's memory, and copies only what the kernel did not take at once.
public final class TCPStream {
  private let handle: UnsafeMutablePointer<uv_tcp_t>
  // SAFETY: a loop closes its streams before it ends.
  private unowned(unsafe) let loop: EventLoop
  /// Told what happens. Not kept alive: whoever sets it sets it back to nil before it goes.
  public unowned(unsafe) var owner: (any TCPStreamOwner)?
  private var isClosed = false
  private let descriptor: Int32
  /// Reads are wanted. A connection that broke while it was read from is read from no more.
  public private(set) var isReading = false
  private var isShutDown = false
  /// Whether what is written may lie in the store's map: not on the way to an origin.
  var carriesStoredBytes = true
  /// Bytes that are queued behind the kernel's own buffer.
  public private(set) var queuedBytes = 0

  /// Of the queued bytes, those that the kernel has not taken yet.
  public var remainingBytes: Int { Int(uv_stream_get_write_queue_size(stream)) }

  /// Takes over a connected, non-blocking descriptor; where nil is returned it is the caller's still.
  public init?(loop: EventLoop, descriptor: Int32) {
    self.loop = loop
    self.descriptor = descriptor
    handle = .allocate(capacity: 1)
    uv_tcp_init(loop.handle, handle)
    guard uv_tcp_open(handle, descriptor) == 0 else {
      handle.withMemoryRebound(to: uv_handle_t.self, capacity: 1) { handle in
        uv_close(handle) { UnsafeMutableRawPointer($0!).deallocate() }
      }
      return nil
    }
    uv_tcp_nodelay(handle, 1)
    handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
  }

  private var stream: UnsafeMutablePointer<uv_stream_t> {
    // SAFETY: a uv_tcp_t begins with the fields of a uv_stream_t.
    UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_stream_t.self)
  }

  private static func of(_ data: UnsafeMutableRawPointer?) -> TCPStream {
    // SAFETY: `data` is the stream that retained itself until its close callback.
    Unmanaged<TCPStream>.fromOpaque(data!).takeUnretainedValue()
  }

  public func startReading() {
    guard !isClosed, !isReading else { return }
    isReading = true
    uv_read_start(
      stream,
      { handle, _, buffer in
        let stream = TCPStream.of(handle!.pointee.data)
        buffer!.pointee.base = stream.loop.readBuffer
        buffer!.pointee.len = EventLoop.readBufferBytes
      },
      { handle, count, buffer in
        TCPStream.of(handle!.pointee.data).didRead(count, buffer!)
      })
  }

  /// Whether bytes, an end or an error wait to be read, as the kernel knows now.
  public var hasInput: Bool { !isClosed && Backends.hasInput(descriptor) }

  public func stopReading() {
    guard !isClosed, isReading else { return }
    isReading = false
    uv_read_stop(stream)
  }

  private func didRead(_ count: Int, _ buffer: UnsafePointer<uv_buf_t>) {
    guard !isClosed else { return }
    if count > 0 {
      owner?.streamDidRead(UnsafeRawBufferPointer(start: buffer.pointee.base, count: count))
    } else if count == Int(UV_EOF.rawValue) {
      stopReading()
      owner?.streamDidReachEnd()
    } else if count < 0 {
      stopReading()
      owner?.streamDidFail()
    }
  }

  /// Offers pieces to the kernel and returns how many bytes it took; 0 when it takes none now, nil
  /// when the connection is broken. Nothing is kept: what was not taken is the caller's.
  public func tryWrite(_ pieces: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> Int? {
    guard !isClosed else { return nil }
    guard queuedBytes == 0 else { return 0 }
    return withUnsafeTemporaryAllocation(of: uv_buf_t.self, capacity: pieces.count) { buffers in
      var used = 0
      for piece in pieces where piece.count > 0 {
        buffers[used] = TCPStream.buffer(piece)
        used += 1
      }
      guard used > 0 else { return 0 }
      let status = writeGuarded(buffers.baseAddress, UInt32(used))
      if status >= 0 { return Int(status) }
      return status == UV_EAGAIN.rawValue ? 0 : nil
    }
  }

  private var mapVisitor: OpaquePointer? { carriesStoredBytes ? loop.mapVisitor : nil }

  /// Writes, unless the store's map is damaged that the loop's turn has read: what is to go out may
  /// be a page of zeros by now.
  @inline(__always)
  private func writeGuarded(_ buffers: UnsafePointer<uv_buf_t>?, _ count: UInt32) -> Int32 {
    guard let visitor = mapVisitor else { return uv_try_write(stream, buffers, count) }
    guard map_visitor_begin_output(visitor) else { return UV_EFAULT.rawValue }
    let status = uv_try_write(stream, buffers, count)
    // The kernel may meet a lost page before anybody else.
    map_visitor_end_output(visitor, status == UV_EFAULT.rawValue)
    return status
  }

  private static func buffer(_ piece: UnsafeRawBufferPointer) -> uv_buf_t {
    uv_buf_init(
      UnsafeMutablePointer(mutating: piece.baseAddress!.assumingMemoryBound(to: CChar.self)),
      UInt32(piece.count))
  }

  /// Copies pieces, less the first `skipping` bytes, behind what is queued; `streamDidDrain` tells
  /// when the kernel has them all. False: what was to be copied was lost meanwhile, nothing is queued,
  /// and the connection is to be broken.
  public func queue(
    copying pieces: UnsafeBufferPointer<UnsafeRawBufferPointer>, skipping: Int = 0
  ) -> Bool {
    guard !isClosed else { return true }
    let total = pieces.reduce(0) { $0 + $1.count } - skipping
    guard total > 0 else { return true }
    let write = PendingWrite(stream: self, byteCount: total)
    var toSkip = skipping
    var offset = 0
    for piece in pieces where piece.count > 0 {
      if toSkip >= piece.count {
        toSkip -= piece.count
        continue
      }
      let rest = UnsafeRawBufferPointer(rebasing: piece[toSkip...])
      toSkip = 0
      // SAFETY: the copies add up to `byteCount`, the size of the allocation.
      write.bytes.advanced(by: offset).copyMemory(from: rest.baseAddress!, byteCount: rest.count)
      offset += rest.count
    }
    if let visitor = mapVisitor, map_visitor_is_refused(visitor) { return false }
    queuedBytes += total
    write.start(on: stream)
    return true
  }

  fileprivate func writeFinished(_ byteCount: Int, status: Int32) {
    queuedBytes -= byteCount
    guard !isClosed else { return }
    if status < 0 {
      owner?.streamDidFail()
    } else if queuedBytes == 0 {
      owner?.streamDidDrain()
    }
  }

  /// Sends FIN after what is queued; reading goes on.
  public func shutDown() {
    guard !isClosed, !isShutDown else { return }
    isShutDown = true
    let request = UnsafeMutablePointer<uv_shutdown_t>.allocate(capacity: 1)
    let status = uv_shutdown(request, stream) { request, _ in request!.deallocate() }
    if status != 0 { request.deallocate() }
  }

  /// Closes the connection; what is queued and not yet with the kernel is lost.
  public func close() {
    guard !isClosed else { return }
    isClosed = true
    handle.withMemoryRebound(to: uv_handle_t.self, capacity: 1) { uv_close($0, TCPStream.didClose) }
  }

  /// Closes the connection by RST, so that the peer sees an error and not an orderly end.
  public func reset() {
    guard !isClosed else { return }
    // libuv refuses where the sending side was shut down: then the peer has had its orderly end.
    guard uv_tcp_close_reset(handle, TCPStream.didClose) == 0 else { return close() }
    isClosed = true
  }

  private static let didClose: uv_close_cb = { handle in
    let data = handle!.pointee.data!
    let stream = Unmanaged<TCPStream>.fromOpaque(data).takeRetainedValue()
    UnsafeMutableRawPointer(handle!).deallocate()
    stream.owner?.streamDidClose()
  }
}

/// A copied write that libuv carries out; alive until its callback.
private final class PendingWrite {
  let stream: TCPStream
  let byteCount: Int
  let bytes: UnsafeMutableRawPointer
  private let request: UnsafeMutablePointer<uv_write_t>

  init(stream: TCPStream, byteCount: Int) {
    self.stream = stream
    self.byteCount = byteCount
    bytes = .allocate(byteCount: byteCount, alignment: 16)
    request = .allocate(capacity: 1)
  }

  deinit {
    bytes.deallocate()
    request.deallocate()
  }

  func start(on handle: UnsafeMutablePointer<uv_stream_t>) {
    request.pointee.data = Unmanaged.passRetained(self).toOpaque()
    var buffer = uv_buf_init(bytes.assumingMemoryBound(to: CChar.self), UInt32(byteCount))
    let status = uv_write(request, handle, &buffer, 1) { request, status in
      // SAFETY: `data` is the write that retained itself until this callback.
      let write = Unmanaged<PendingWrite>.fromOpaque(request!.pointee.data).takeRetainedValue()
      write.stream.writeFinished(write.byteCount, status: status)
    }
    if status != 0 {
      Unmanaged.passUnretained(self).release()
      stream.writeFinished(byteCount, status: status)
    }
  }
}
