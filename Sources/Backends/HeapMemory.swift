/// What the process has of memory of its own, what of it is in use, and giving back what is not.
///
/// glibc keeps what was freed: an arena shrinks from its end alone, and one small thing that lives
/// long, allocated while a burst was at its height, keeps the whole of it. Nothing here is called
/// by an event loop: to give back locks one arena after the other, for as long as its free pieces
/// take. Called by Proxy's MemoryReturn. Where the allocator is another one it is left alone.
internal import CUV

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

public enum HeapMemory {
  /// Sizes at one moment, in bytes.
  public struct Reading: Sendable {
    /// Memory of the process's own (`RssAnon`): mapped pages of the store do not count.
    public var ownBytes: Int
    /// What the allocator has given out.
    public var usedBytes: Int

    public init(ownBytes: Int, usedBytes: Int) {
      self.ownBytes = ownBytes
      self.usedBytes = usedBytes
    }

    /// What is neither: free memory that the allocator keeps, and a little that is not its own
    /// (stacks, variables).
    public var keptBytes: Int { max(0, ownBytes - usedBytes) }
  }

  /// nil: the system or its allocator do not tell.
  public static func read() -> Reading? {
    guard larder_heap_is_glibc() != 0, let ownBytes = ownBytes() else { return nil }
    return Reading(ownBytes: ownBytes, usedBytes: Int(larder_heap_used_bytes()))
  }

  /// Gives the system what the allocator keeps free, as far as it makes up whole pages.
  public static func giveBack() { larder_heap_trim() }

  /// Has at most so many arenas made; called while the process has one thread. Threads beyond share
  /// them, and those that look names up come and go by the hundred.
  public static func limitArenas(to count: Int) { larder_heap_limit_arenas(Int32(clamping: count)) }

  /// Processor time of the whole process, in milliseconds.
  public static var processorMilliseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// Resident pages less those that files or other processes share (proc(5), statm).
  private static func ownBytes() -> Int? {
    let descriptor = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    return withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { text in
      let count = readBytes(descriptor, text.baseAddress, text.count)
      guard count > 0 else { return nil }
      let numbers = text[..<count].split(separator: UInt8(ascii: " ")).prefix(3).map { digits in
        digits.reduce(0) { $0 * 10 + Int($1 & 0x0F) }
      }
      guard numbers.count == 3 else { return nil }
      return (numbers[1] - numbers[2]) * sysconf(Int32(_SC_PAGESIZE))
    }
  }
}

/// The system's `read`, which the type's own hides.
private func readBytes(_ descriptor: Int32, _ start: UnsafeMutableRawPointer?, _ count: Int) -> Int
{
  read(descriptor, start, count)
}
