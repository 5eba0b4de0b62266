/// Identities become digests by HMAC-SHA256, under a secret that outlives the store's content.
import CachePolicy
import Foundation
import Testing

@testable import Backends

struct IdentitySecretTests {
  struct Vector: Sendable, CustomTestStringConvertible {
    var name: String
    var key: [UInt8]
    var data: [UInt8]
    var digest: String
    var testDescription: String { name }
  }

  /// RFC 4231 §4.
  static let vectors = [
    Vector(
      name: "case 1", key: [UInt8](repeating: 0x0b, count: 20), data: Array("Hi There".utf8),
      digest: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
    Vector(
      name: "case 2: a short key", key: Array("Jefe".utf8),
      data: Array("what do ya want for nothing?".utf8),
      digest: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
    Vector(
      name: "case 3", key: [UInt8](repeating: 0xaa, count: 20),
      data: [UInt8](repeating: 0xdd, count: 50),
      digest: "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
    Vector(
      name: "case 4", key: Array(1...25), data: [UInt8](repeating: 0xcd, count: 50),
      digest: "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
    Vector(
      name: "case 6: a key longer than a block", key: [UInt8](repeating: 0xaa, count: 131),
      data: Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
      digest: "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
    Vector(
      name: "nothing under nothing", key: [], data: [],
      digest: "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"),
  ]

  @Test(arguments: vectors) func theKnownAnswersHold(_ vector: Vector) {
    let digest = vector.key.withUnsafeBytes { key in
      vector.data.withUnsafeBytes { IdentityDigest(key: key, data: $0) }
    }
    let text = digest.bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    #expect(text == vector.digest)
    #expect(digest.hexPrefix == vector.digest.prefix(16))
    var key: [UInt8] = [1]
    digest.append(to: &key)
    #expect(key == [1] + digest.bytes && digest.bytes.count == IdentityDigest.byteCount)
  }

  private func digest(_ fixture: StoreFixture, _ identity: String = "Bearer x") -> IdentityDigest {
    Array(identity.utf8).withUnsafeBytes { fixture.store.identityDigest($0) }
  }
  private func path(_ folder: TemporaryFolder) -> String { folder.path + "/identity-secret" }
  private func mode(_ folder: TemporaryFolder) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path(folder))[.posixPermissions] as? Int
  }

  @Test func identitiesDifferAndSoDoStores() throws {
    let first = try StoreFixture()
    let second = try StoreFixture()
    #expect(digest(first) == digest(first) && digest(first) != digest(first, "Bearer y"))
    #expect(digest(first) != digest(second))
  }

  @Test func theSecretIsItsOwnersAndStays() throws {
    let folder = TemporaryFolder()
    let first = try StoreFixture(folder: folder)
    let before = digest(first)
    first.close()
    #expect(try mode(folder) == 0o600)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path(folder))).count == 32)
    let second = try StoreFixture(folder: folder)
    #expect(digest(second) == before && second.messages.all.isEmpty)
  }

  @Test func theSecretOutlivesTheStoresContent() throws {
    let folder = TemporaryFolder()
    let first = try StoreFixture(folder: folder)
    let before = digest(first)
    let keySecret = first.store.keySecret
    first.close()
    try Data(repeating: 7, count: 10_000).write(
      to: URL(fileURLWithPath: folder.path + "/data.mdb"))
    let second = try StoreFixture(folder: folder)
    #expect(second.messages.all.count == 1)
    #expect(digest(second) == before && second.store.keySecret != keySecret)
  }

  @Test(arguments: [0o644, 0o660, 0o602, 0o700]) func aWiderModeIsNarrowedWithAWarning(
    _ wider: Int
  ) throws {
    let folder = TemporaryFolder()
    let first = try StoreFixture(folder: folder)
    let before = digest(first)
    first.close()
    chmod(path(folder), mode_t(wider))
    let second = try StoreFixture(folder: folder)
    #expect(try mode(folder) == 0o600)
    #expect(second.messages.all.count == 1 && digest(second) == before)
  }

  @Test(arguments: [0, 31, 33, 5000]) func aSecretOfAnotherLengthIsSetAside(
    _ count: Int
  ) throws {
    let folder = TemporaryFolder()
    let first = try StoreFixture(folder: folder)
    let before = digest(first)
    first.putInline("a", "x")
    first.close()
    let damaged = Data(repeating: 7, count: count)
    try damaged.write(to: URL(fileURLWithPath: path(folder)))
    chmod(path(folder), 0o600)
    let second = try StoreFixture(folder: folder)
    #expect(second.messages.all.count == 1)
    #expect(second.messages.all.first?.contains("identity-secret.damaged") == true)
    #expect(
      try Data(contentsOf: URL(fileURLWithPath: path(folder) + ".damaged")) == damaged)
    let after = digest(second)
    #expect(after != before && second.bodies("a") == [0: "x"])
    second.close()
    let third = try StoreFixture(folder: folder)
    #expect(digest(third) == after && third.messages.all.isEmpty)
  }

  @Test func whatAKilledStartLeftIsNoSecret() throws {
    let folder = TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: folder.path, withIntermediateDirectories: false)
    try Data([1, 2, 3]).write(to: URL(fileURLWithPath: path(folder) + ".new"))
    let fixture = try StoreFixture(folder: folder)
    #expect(fixture.messages.all.isEmpty)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path(folder))).count == 32)
    #expect(!FileManager.default.fileExists(atPath: path(folder) + ".new"))
  }

  @Test func aSecretThatCannotBeReadIsAnErrorAndNotAnotherSecret() throws {
    let folder = TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: path(folder), withIntermediateDirectories: true)
    #expect(throws: StoreError.self) { try StoreFixture(folder: folder) }
  }

  @Test func aPipeInTheSecretsPlaceIsAnErrorAndNotWaitedFor() throws {
    let folder = TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: folder.path, withIntermediateDirectories: false)
    #expect(mkfifo(path(folder), 0o644) == 0)
    #expect(throws: StoreError.self) { try StoreFixture(folder: folder) }
    // What is not ours is left as it is.
    #expect(try mode(folder) == 0o644)
  }
}
