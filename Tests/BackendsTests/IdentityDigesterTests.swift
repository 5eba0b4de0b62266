import Foundation
import Testing

@testable import Backends

/// Digests that are made beside a store are the store's own.
@Suite struct IdentityDigesterTests {
  private static func folder() throws -> String {
    let url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    return url.path
  }

  @Test func digestIsTheStoresOwnWhileItIsOpen() throws {
    let folder = try Self.folder()
    defer { try? FileManager.default.removeItem(atPath: folder) }  // A left-over is harmless.
    let store = try LMDBStore.open(
      StoreConfiguration(path: folder, maxSizeBytes: 1 << 24), clock: Clock()
    ) { _ in }
    defer { store.close() }
    let digester = try #require(IdentityDigester(folder: folder))
    let identity = Array("Bearer ann".utf8)
    let (own, beside) = identity.withUnsafeBytes {
      (store.identityDigest($0), digester.digest($0))
    }
    #expect(own == beside)
  }

  @Test(arguments: [0, 31, 33])
  func fileOfAnotherLengthIsNoSecretAndStaysAsItIs(count: Int) throws {
    let folder = try Self.folder()
    defer { try? FileManager.default.removeItem(atPath: folder) }  // A left-over is harmless.
    let file = folder + "/identity-secret"
    try Data(repeating: 1, count: count).write(to: URL(filePath: file))
    #expect(IdentityDigester(folder: folder) == nil)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["identity-secret"])
    #expect(try Data(contentsOf: URL(filePath: file)).count == count)
  }

  @Test func folderWithoutASecretHasNone() {
    #expect(IdentityDigester(folder: "/no/such/folder") == nil)
  }
}
