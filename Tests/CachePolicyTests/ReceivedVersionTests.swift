import CachePolicy
import Testing

struct ReceivedVersionTests {
  /// RFC 9110 §7.6.3.
  @Test func aVersionIsKeptAsAFlagBesideOthers() {
    for version in ReceivedVersion.allCases {
      var flags: StoredFlags = [.noCache, .receivedByHTTP10, .receivedByHTTP2]
      flags.receivedVersion = version
      #expect(flags.receivedVersion == version)
      #expect(flags.contains(.noCache))
    }
    #expect(StoredFlags([]).receivedVersion == .http11)
    #expect(ReceivedVersion.allCases.map { "\($0.text)" } == ["1.0", "1.1", "2.0"])
  }
}
