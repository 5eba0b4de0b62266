internal import Backends
internal import CachePolicy

/// The rest of a long body, or of several parts of one, on its way from the store to one client,
/// turn by turn.
///
/// Holds a pin, so that the chunks stay where they are, and no transaction: each turn looks its
/// chunks up anew, and a slow client holds back nothing but itself.
final class CopyStream: ConnectionExchange {
  /// How much one turn writes to one client, so that the others are served too.
  private static let bytesPerTurnMax = 4 * 1024 * 1024

  private let connection: Connection
  private let repository: Repository
  private let entryID: UInt64
  private var position: UInt64 = 0
  private var end: UInt64 = 0
  /// Body bytes written, of all parts.
  private var bodyBytesWritten: UInt64 = 0
  /// Where several parts are sent: what stands between them; nil: the end is that of the answer.
  private var multipart: MultipartByteRanges?
  private var partNumber = 0
  private var isOver = false

  /// Takes over a pin of the entry.
  init(_ connection: Connection, _ repository: Repository, _ entryID: UInt64) {
    self.connection = connection
    self.repository = repository
    self.entryID = entryID
  }

  deinit { repository.services.store.unpin(entryID: entryID) }

  var isComplete: Bool { position == end && multipart == nil }

  /// Writes the head and as much of the body's range as fits, within the caller's transaction.
  /// False: the body's beginning is missing or damaged, and nothing was written.
  func writeFirst(
    _ head: UnsafeRawBufferPointer, _ fields: UnsafeRawBufferPointer, _ range: Range<UInt64>
  ) -> Bool {
    position = range.lowerBound
    end = range.upperBound
    return writeChunks(after: [head, fields])
  }

  /// The same with the head and several parts.
  func writeFirst(_ head: OutputBuffer, of multipart: MultipartByteRanges) -> Bool {
    self.multipart = multipart
    position = multipart.parts[0].lowerBound
    end = multipart.parts[0].upperBound
    head.append(multipart.delimiter(before: 0))
    return writeChunks(after: [head.bytes])
  }

  private func cut() {
    isOver = true
    repository.services.log.error("a stored body is damaged; the client's answer was cut")
    connection.abortAnswer()
  }

  /// Carries on after the first write, as the connection's exchange.
  func start() {
    guard !isOver else { return }
    connection.exchange = self
    if !connection.hasQueuedOutput { connection.worker.loop.later { [self] in clientTookAll() } }
  }

  func clientTookAll() {
    guard !isOver else { return }
    let bytesWrittenBefore = bodyBytesWritten
    while !isComplete, !connection.hasQueuedOutput {
      repository.reader.begin()
      let isSound = writeMore()
      repository.reader.end()
      guard isSound else {
        cut()
        return
      }
      if bodyBytesWritten - bytesWrittenBefore >= CopyStream.bytesPerTurnMax, !isComplete {
        if !connection.hasQueuedOutput {
          connection.worker.loop.later { [self] in clientTookAll() }
        }
        return
      }
    }
    if isComplete {
      isOver = true
      connection.endAnswer()
    }
  }

  /// Writes on in this part, or begins the next, or ends the last. False: a chunk is missing or
  /// damaged.
  private func writeMore() -> Bool {
    guard let multipart, position == end else { return writeChunks(after: []) }
    partNumber += 1
    let delimiter = multipart.delimiter(before: partNumber)
    return delimiter.withUnsafeBytes { bytes in
      guard partNumber < multipart.parts.count else {
        self.multipart = nil
        connection.writeAll(bytes)
        repository.count(bytesToClient: bytes.count)
        return true
      }
      position = multipart.parts[partNumber].lowerBound
      end = multipart.parts[partNumber].upperBound
      return writeChunks(after: [bytes])
    }
  }

  /// False: a chunk is missing or damaged.
  private func writeChunks(after heads: [UnsafeRawBufferPointer]) -> Bool {
    let chunkBytes = UInt64(repository.services.chunkBytes)
    return withUnsafeTemporaryAllocation(
      of: UnsafeRawBufferPointer.self, capacity: CopyServing.chunksPerWrite + heads.count
    ) { pieces in
      var count = 0
      for head in heads {
        pieces[count] = head
        count += 1
      }
      var next = position
      while next < end, count < pieces.count {
        let index = next / chunkBytes
        let from = next - index * chunkBytes
        guard let chunk = repository.reader.chunk(entryID: entryID, index: UInt32(index)),
          from < chunk.count
        else { return false }
        let upTo = min(UInt64(chunk.count), end - index * chunkBytes)
        pieces[count] = UnsafeRawBufferPointer(rebasing: chunk[Int(from)..<Int(upTo)])
        count += 1
        next = index * chunkBytes + upTo
      }
      let all = UnsafeBufferPointer(rebasing: pieces[0..<count])
      var taken = connection.write(all)
      if taken < heads.count {
        connection.writeAll(UnsafeBufferPointer(rebasing: all[taken..<heads.count]))
        taken = heads.count
      }
      for index in 0..<taken {
        repository.count(bytesToClient: all[index].count)
        guard index >= heads.count else { continue }
        position += UInt64(all[index].count)
        bodyBytesWritten += UInt64(all[index].count)
      }
      return true
    }
  }

  func requestBodyArrived(_ bytes: UnsafeRawBufferPointer) {}
  func requestBodyEnded() {}
  func clientLeft() { isOver = true }
}
