import Testing

@testable import Proxy

@Suite struct QuantityTests {
  @Test(
    arguments: [
      ("0s", 0), ("1ms", 1), ("800ms", 800), ("2s", 2_000), ("15m", 900_000), ("1h30m", 5_400_000),
      ("1h", 3_600_000), ("30d", 2_592_000_000), ("1d2h3m4s5ms", 93_784_005), ("90s", 90_000),
      ("007s", 7_000), ("1m1ms", 60_001),
    ] as [(String, Int64)])
  func durationIsRead(text: String, milliseconds: Int64) throws {
    #expect(try Quantity.milliseconds(text) == milliseconds)
    // What is printed reads back as the same.
    #expect(try Quantity.milliseconds(Quantity.text(milliseconds: milliseconds)) == milliseconds)
  }

  @Test(arguments: [
    "", "15", "m", "15 m", " 15m", "15m ", "-1s", "+1s", "1.5h", "1w", "1M", "1H", "15mm", "1h30",
    "30m1h", "1s1s", "1ms1s", "١s", "1h-30m", "9223372036854775807s", "99999999999999999999s",
    "106751991168d",
  ])
  func durationIsRefused(text: String) {
    #expect(throws: ValueError.self) { try Quantity.milliseconds(text) }
  }

  @Test(
    arguments: [
      (0, "0s"), (1, "1ms"), (1_500, "1s500ms"), (75_000, "1m15s"), (86_400_000, "1d"),
      (5_400_000, "1h30m"),
    ] as [(Int64, String)])
  func durationIsPrinted(milliseconds: Int64, text: String) {
    #expect(Quantity.text(milliseconds: milliseconds) == text)
  }

  @Test(
    arguments: [
      ("0B", 0), ("1B", 1), ("1KB", 1_000), ("1KiB", 1_024), ("64MiB", 67_108_864),
      ("1MB", 1_000_000), ("1GB", 1_000_000_000), ("1GiB", 1_073_741_824),
      ("2TB", 2_000_000_000_000), ("1TiB", 1_099_511_627_776), ("1500B", 1_500),
    ] as [(String, UInt64)])
  func sizeIsRead(text: String, bytes: UInt64) throws {
    #expect(try Quantity.bytes(text) == bytes)
    #expect(try Quantity.bytes(Quantity.text(bytes: bytes)) == bytes)
  }

  @Test(arguments: [
    "", "64", "MiB", "64 MiB", "-1B", "1.5GiB", "1kb", "1K", "1M", "1GIB", "1GiB1B",
    "99999999999999999999B", "16777216TiB",
  ])
  func sizeIsRefused(text: String) {
    #expect(throws: ValueError.self) { try Quantity.bytes(text) }
  }
}

@Suite struct SuggestionTests {
  @Test(
    arguments: [
      ("ttll", "ttl"), ("TTL", "ttl"), ("tll", "ttl"), ("statle", nil), ("upstraem", "upstream"),
      ("staleIfErorr", "staleIfError"), ("xyz", nil), ("", nil), ("keeps", "keep"),
    ] as [(String, String?)])
  func nearestWordIsFound(word: String, expected: String?) {
    let known = ["ttl", "upstream", "strategy", "staleIfError", "keep"]
    #expect(Suggestion.nearest(to: word, among: known) == expected)
  }
}

@Suite struct EnvironmentExpansionTests {
  static let environment = ["A": "one", "B_2": "two", "EMPTY": "", "NESTED": "${A}"]

  private func expand(_ text: String) throws(ValueError) -> String {
    try EnvironmentExpansion.expand(EnvironmentExpansion.parts(text), Self.environment).text
  }

  @Test(arguments: [
    ("plain", "plain"), ("", ""), ("$A $ {A} $", "$A $ {A} $"), ("${A}", "one"),
    ("x${A}y${B_2}z", "xoneytwoz"), ("${A:-other}", "one"), ("${NO:-other}", "other"),
    ("${NO:-}", ""), ("${EMPTY}", ""), ("${EMPTY:-other}", "other"), ("${NO:-a:-b}", "a:-b"),
    ("${NESTED}", "${A}"), ("${NO:-{x}", "{x"),
  ])
  func stringIsExpanded(text: String, expected: String) throws {
    #expect(try expand(text) == expected)
  }

  @Test(arguments: ["${NO}", "${", "${A", "${}", "${1A}", "${A B}", "${A-x}", "${:-x}", "x${A"])
  func stringIsRefused(text: String) {
    #expect(throws: ValueError.self) {
      try expand(text)
    }
  }
}
