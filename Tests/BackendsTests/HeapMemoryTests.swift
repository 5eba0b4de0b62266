#if os(Linux)
  import Backends
  import Testing

  /// Memory that was freed and is kept by the allocator goes back when it is told to.
  @Suite struct HeapMemoryTests {
    private static let blockBytes = 16 * 1024
    private static let burstBytes = 64 * 1024 * 1024

    /// In a process of its own: others allocate and free all the time.
    @Test func whatABurstLeavesBehindGoesBack() async {
      await #expect(processExitsWith: .success) { try Self.burst() }
    }

    private static func burst() throws {
      var blocks: [UnsafeMutableRawPointer] = []
      for _ in 0..<burstBytes / blockBytes {
        let block = UnsafeMutableRawPointer.allocate(byteCount: blockBytes, alignment: 16)
        block.initializeMemory(as: UInt8.self, repeating: 1, count: blockBytes)
        blocks.append(block)
      }
      let held = try #require(HeapMemory.read())
      // A few of them stay: by these an arena keeps all the others.
      let staying = Set(stride(from: 0, to: blocks.count, by: 64))
      for (index, block) in blocks.enumerated() where !staying.contains(index) {
        block.deallocate()
      }
      defer { for index in staying { blocks[index].deallocate() } }
      let freed = try #require(HeapMemory.read())
      #expect(freed.usedBytes < held.usedBytes - burstBytes / 2)
      #expect(freed.keptBytes > burstBytes / 2)
      HeapMemory.giveBack()
      let returned = try #require(HeapMemory.read())
      #expect(returned.ownBytes < freed.ownBytes - burstBytes / 2)
      #expect(returned.keptBytes < burstBytes / 2)
    }
  }
#endif
