internal import Backends
internal import CachePolicy

/// What a connection writes: straight from the caller's memory as far as the kernel takes it, and put
/// together where the answers to pipelined requests follow each other.
extension Connection {
  /// Writes pieces in order. Returns how many were taken: a piece that the kernel took in part is
  /// completed from a copy, the pieces behind it are the caller's to write after `clientTookAll`.
  /// At least one is taken when nothing is queued.
  func write(_ pieces: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> Int {
    guard !isBroken, phase != .closed else { return pieces.count }
    if hold(pieces) { return pieces.count }
    guard stream.queuedBytes == 0 else { return 0 }
    guard var taken = stream.tryWrite(pieces) else {
      breakLater()
      return pieces.count
    }
    for index in pieces.indices {
      let piece = pieces[index]
      if taken >= piece.count {
        taken -= piece.count
        continue
      }
      guard
        stream.queue(
          copying: UnsafeBufferPointer(rebasing: pieces[index...index]), skipping: taken)
      else {
        breakLater()
        return pieces.count
      }
      lastQueuedBytes = stream.queuedBytes
      waitFor(.write, worker.limits.bodyStallMilliseconds)
      return index + 1
    }
    return pieces.count
  }

  /// Keeps a copy of small pieces while more requests are at hand. False: they are to be written
  /// now, and what was kept before them has been.
  private func hold(_ pieces: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> Bool {
    let held = worker.held
    guard isConsuming, followingBytes > 0 || held.count > 0, stream.queuedBytes == 0 else {
      return false
    }
    var count = 0
    for piece in pieces { count += piece.count }
    guard held.count + count <= worker.limits.heldOutputBytes else {
      flushHeld()
      return false
    }
    for piece in pieces { held.append(piece) }
    return true
  }

  func flushHeld() {
    let held = worker.held
    guard isConsuming, held.count > 0 else { return }
    withUnsafePointer(to: held.bytes) { bytes in
      let piece = UnsafeBufferPointer(start: bytes, count: 1)
      guard let taken = stream.tryWrite(piece) else { return breakLater() }
      guard taken < held.count else { return }
      guard stream.queue(copying: piece, skipping: taken) else { return breakLater() }
      lastQueuedBytes = stream.queuedBytes
      waitFor(.write, worker.limits.bodyStallMilliseconds)
    }
    held.removeAll()
  }

  /// Writes all pieces, queueing what the kernel does not take.
  func writeAll(_ pieces: UnsafeBufferPointer<UnsafeRawBufferPointer>) {
    let taken = write(pieces)
    guard taken < pieces.count, !isBroken, phase != .closed else { return }
    if !stream.queue(copying: UnsafeBufferPointer(rebasing: pieces[taken...])) { breakLater() }
  }

  /// Writes a run of bytes, queueing what the kernel does not take.
  func writeAll(_ bytes: UnsafeRawBufferPointer) {
    guard !isBroken, phase != .closed, bytes.count > 0 else { return }
    withUnsafePointer(to: bytes) { writeAll(UnsafeBufferPointer(start: $0, count: 1)) }
  }

  private func breakLater() {
    guard !isBroken else { return }
    isBroken = true
    worker.loop.later { [weak self] in self?.close() }
  }
}
