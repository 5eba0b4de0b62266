import CachePolicy
import Testing

struct HTTPDateTests {
  @Test(
    arguments: [
      ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
      ("sun, 06 NOV 1994 08:49:37 gmt", 784_111_777),
      ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777), ("Sun Nov  6 08:49:37 1994", 784_111_777),
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
      ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
      ("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800),
      ("Sun Nov 16 08:49:37 1994", 784_975_777), ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
      ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
      ("Tue, 19 Jan 2038 03:14:08 GMT", 2_147_483_648),
      ("Thu, 18 AUG 2050 02:01:18 gMt", 2_544_400_878),
      ("THURSDAY, 18-aug-50 02:01:18 gmt", 2_544_400_878),
      ("thu AUG 18 02:01:18 2050", 2_544_400_878),
    ] as [(String, Int64)])
  func theThreeFormatsAreRead(_ value: String, _ seconds: Int64) {
    let bytes = Array(value.utf8)
    #expect(HTTPDate.parse(bytes.span, nowSeconds: noonSeconds) == seconds)
  }

  @Test(arguments: [
    "", "0", "-1", "Sun", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37",
    "Sun, 06 Nov 1994 08:49:37 GMT ", "Sun,  06 Nov 1994 08:49:37 GMT",
    "Sun, 6 Nov 1994 08:49:37 GMT", "Sun 06 Nov 1994 08:49:37 GMT", "Xyz, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nvo 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT",
    "Sun, 29 Feb 1900 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
    "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 Nov 1994 8:49:37 GMT",
    "Sun, 06 Nov 1994 08.49.37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
    "Sun, 06-Nov-1994 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT",
    "Sonday, 06-Nov-94 08:49:37 GMT", "Sunday 06-Nov-94 08:49:37 GMT",
    "Sun Nov 6 08:49:37 1994", "Sun Nov  6 08:49:37 1994 GMT", "Sun Nov  6 08:49:37 94  ",
    "Sun, 06 Nov 1994 08:49:37 EST", "Sun, 06 Nov 1994 08:49:37 +0000",
    "Sun, 06  Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994  08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37  GMT", "Sun,06 Nov 1994 08:49:37 GMT ",
    "Sunday,  6-Nov-94 08:49:37 GMT", "Sunday, 06-Nov-94 8:49:37 GMT",
    "Sunday, 06 Nov 94 08:49:37 GMT", "Sunday, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06-Nov-94 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 UTC", "Sun Nov 06 8:49:37 1994 ",
    "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
    "\"Sun, 06 Nov 1994 08:49:37 GMT\"", "784111777784111777784111777",
    "Sun, 06 Nov +994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 +000",
  ])
  func anythingElseIsNoDate(_ value: String) {
    let bytes = Array(value.utf8)
    #expect(HTTPDate.parse(bytes.span, nowSeconds: noonSeconds) == nil)
  }

  @Test(
    arguments: [
      ("exactly 50 years ahead", "Tuesday, 01-Jan-74 00:00:00 GMT", 1_704_067_200, 3_281_990_400),
      ("one second more", "Tuesday, 01-Jan-74 00:00:01 GMT", 1_704_067_200, 126_230_401),
      ("this century", "Monday, 01-Jan-24 00:00:00 GMT", 1_704_067_200, 1_704_067_200),
      ("the last one", "Friday, 31-Dec-99 23:59:59 GMT", 1_704_067_200, 946_684_799),
      ("the next one", "Friday, 01-Jan-10 00:00:00 GMT", 3_313_526_400, 4_417_977_600),
    ] as [(String, String, Int64, Int64)])
  func aTwoDigitYearIsAtMostFiftyYearsAhead(
    _ name: String, _ value: String, _ now: Int64, _ seconds: Int64
  ) {
    let bytes = Array(value.utf8)
    #expect(HTTPDate.parse(bytes.span, nowSeconds: now) == seconds)
  }

  @Test(
    arguments: [
      (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
      (-1, "Wed, 31 Dec 1969 23:59:59 GMT"), (951_868_799, "Tue, 29 Feb 2000 23:59:59 GMT"),
      (Int64.max, "Fri, 31 Dec 9999 23:59:59 GMT"), (Int64.min, "Sat, 01 Jan 0000 00:00:00 GMT"),
    ] as [(Int64, String)])
  func writingGivesAFixdate(_ seconds: Int64, _ value: String) {
    #expect(date(seconds) == value)
  }

  @Test func whatIsWrittenIsReadBack() {
    for step in 0..<4000 as Range<Int64> {
      let seconds = step * 40_000_003 - 62_167_219_200
      let bytes = Array(date(seconds).utf8)
      #expect(HTTPDate.parse(bytes.span, nowSeconds: 0) == seconds)
    }
  }
}
