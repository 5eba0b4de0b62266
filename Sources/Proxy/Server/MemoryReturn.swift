/// When memory that the allocator keeps free goes back to the system.
///
/// Looks every few seconds, on the process's main thread, which otherwise waits for signals. Under
/// load a little is left alone, since it is used again at once, and what a burst has left behind
/// goes; in a process that does nothing all of it goes, since that costs nobody anything. Used by
/// ServeCommand.
internal import Backends

struct MemoryReturn {
  static let intervalMilliseconds: Int64 = 5000
  /// What may be kept under load.
  static let keptBytesMax = 8 * 1024 * 1024
  /// What may be kept in a process that does nothing.
  static let keptBytesMaxIdle = 256 * 1024
  /// A process that had less processor time since the last look does nothing.
  static let idleProcessorMilliseconds: Int64 = 50

  /// What is kept that cannot be given back: pieces of pages, and what is not the heap's.
  private var floorBytes = 0
  private var processorMilliseconds: Int64 = 0

  init() {}

  /// Whether to give back, at a look that finds this. `processorMilliseconds`: of the process since
  /// its start.
  mutating func shouldGiveBack(
    _ reading: HeapMemory.Reading, processorMilliseconds: Int64
  ) -> Bool {
    let spentMilliseconds = processorMilliseconds - self.processorMilliseconds
    self.processorMilliseconds = processorMilliseconds
    let isIdle = spentMilliseconds < Self.idleProcessorMilliseconds
    let keptBytes = reading.keptBytes - floorBytes
    return keptBytes > (isIdle ? Self.keptBytesMaxIdle : Self.keptBytesMax)
  }

  /// Notes what is left behind a giving back: to try the same again would be in vain.
  mutating func gaveBack(leaving reading: HeapMemory.Reading) {
    floorBytes = reading.keptBytes
  }

  /// One look, and what follows from it.
  mutating func look() {
    let processorMilliseconds = HeapMemory.processorMilliseconds
    guard let reading = HeapMemory.read(),
      shouldGiveBack(reading, processorMilliseconds: processorMilliseconds)
    else { return }
    HeapMemory.giveBack()
    if let left = HeapMemory.read() { gaveBack(leaving: left) }
  }
}
