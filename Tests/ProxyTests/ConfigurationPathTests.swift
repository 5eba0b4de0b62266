import Testing

@testable import Proxy

/// Where a relative store path leads.
struct ConfigurationPathTests {
  @Test(arguments: [
    ("larder-data", "policies.json", "larder-data"),
    ("larder-data", "/etc/larder/policies.json", "/etc/larder/larder-data"),
    ("data", "conf/policies.json", "conf/data"),
    ("/var/lib/larder", "/etc/larder/policies.json", "/var/lib/larder"),
  ])
  func relativeStorePathsAreTakenFromTheFilesFolder(
    _ path: String, _ file: String, _ expected: String
  ) {
    #expect(ConfigurationLoader.resolved(path, besides: file) == expected)
  }
}
