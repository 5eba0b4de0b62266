import Foundation
import Support
import Testing

#if os(Linux)
  private let releaseBuild = ProcessInfo.processInfo.environment["LARDER_RELEASE_BUILD"]

  /// What an answer from the store costs in calls of the allocator: none, once everything is warm.
  ///
  /// Counted in a process of its own, whose allocator is that of Tests/CountingAllocator. Of a release
  /// build alone, in the folder that $LARDER_RELEASE_BUILD names: others allocate what the optimizer
  /// takes away.
  @Suite(
    .serialized,
    .enabled(
      if: releaseBuild != nil, "script/test sets LARDER_RELEASE_BUILD"))
  struct AllocationScenarios {
    private static let batch = 200
    private static let batches = 10

    /// How often the process has asked for memory.
    private static func count(_ file: String) throws -> Int {
      let bytes = try Data(contentsOf: URL(filePath: file))
      return bytes.withUnsafeBytes { Int($0.loadUnaligned(as: Int64.self)) }
    }

    /// `allowed`: calls a hit. A body in chunks has an object that sends what the socket does not take.
    @Test(
      arguments: [
        ("a small body", "/small", [String](), 0), ("a body in chunks", "/large", [], 1),
        ("a copy that varies", "/varied", ["Accept-Language: de, en;q=0.5"], 0),
        ("not modified", "/small", ["If-None-Match: \"1\""], 0),
      ], [1, 16])
    func aHitAllocatesNothing(
      _ row: (name: String, path: String, fields: [String], allowed: Int), _ pipelined: Int
    ) throws {
      let (folder, origin) = (try TemporaryFolder(), try ScriptedOrigin())
      defer { origin.stop() }
      origin.on("/small", .text(String(repeating: "x", count: 1024), "ETag: \"1\""))
      origin.on("/large", .bytes(testBytes(100_000, seed: 3)))
      origin.on("/varied", .text("v", "Vary: Accept-Language"))
      let file = folder.path + "/allocations"
      try Data(count: 8).write(to: URL(filePath: file))
      let build = try #require(releaseBuild)
      let larder = try LarderProcess(
        policies: ProcessScenarios.policies("cache-first"), origin: origin, folder: folder,
        environment: [
          "LD_PRELOAD": build + "/libCountingAllocator.so", "COUNTED_ALLOCATIONS": file,
        ], executable: build + "/larder")
      let client = try larder.connect()
      func ask(_ count: Int) throws {
        for _ in 0..<count / pipelined {
          for _ in 0..<pipelined { client.send("GET", row.path, row.fields) }
          for _ in 0..<pipelined { #expect(try client.readAnswer().cacheStatus.isHit) }
        }
      }
      _ = try client.get(row.path, row.fields)
      _ = try larder.waitForStatistics { $0.store.entries == 1 }
      try ask(Self.batch)
      // The process has other things to do now and then: the least of many batches is the hits' own.
      var least = Int.max
      for _ in 0..<Self.batches {
        let before = try Self.count(file)
        try ask(Self.batch)
        least = min(least, try Self.count(file) - before)
      }
      #expect(try Self.count(file) > 1000, "nothing was counted")
      #expect(
        least < Self.batch * row.allowed + Self.batch / 10,
        "\(row.name): \(least) calls in \(Self.batch) hits")
      larder.terminate()
    }
  }
#endif
