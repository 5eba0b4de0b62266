#if os(Linux)
  import Backends
  import Testing

  /// Memory that was freed and is kept by the allocator goes back when it is told to.
  @Suite struct HeapMemoryTests {
    private static let blockBytes = 16 * 1024
    private static let burstBytes = 256 * 1024 * 1024

    /// Much, so that what other tests allocate and free meanwhile does not count.
    @Test func whatABurstLeavesBehindGoesBack() throws {
      var blocks: [UnsafeMutableRawPointer] = []
      for _ in 0..<Self.burstBytes / Self.blockBytes {
        let block = UnsafeMutableRawPointer.allocate(byteCount: Self.blockBytes, alignment: 16)
        block.initializeMemory(as: UInt8.self, repeating: 1, count: Self.blockBytes)
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
      #expect(freed.usedBytes < held.usedBytes - Self.burstBytes / 2)
      #expect(freed.keptBytes > Self.burstBytes / 2)
      HeapMemory.giveBack()
      let returned = try #require(HeapMemory.read())
      #expect(returned.ownBytes < freed.ownBytes - Self.burstBytes / 2)
      #expect(returned.keptBytes < Self.burstBytes / 2)
    }
  }
#endif
