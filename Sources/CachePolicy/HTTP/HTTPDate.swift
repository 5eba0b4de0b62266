/// The three date formats of HTTP (RFC 9110 §5.6.7), as whole seconds since 1970 UTC.
///
/// Reading is strict: names of days, months and the zone may be in any case, everything else is
/// as the grammar has it. What is not a date gives nil, and whoever asked then takes the careful
/// way (an unreadable Expires has passed, RFC 9111 §5.3). Writing is always IMF-fixdate. Called by
/// Freshness, Validation and the encoders.
public enum HTTPDate {
  /// The length of every IMF-fixdate.
  public static let textBytes = 29

  /// Reads a date. `nowSeconds` gives the century to the two-digit year of RFC 850: a date more
  /// than 50 years ahead is the past one with the same two digits.
  public static func parse(_ span: Span<UInt8>, nowSeconds: Int64) -> Int64? {
    guard span.count >= 24 else { return nil }
    if span[3] == 0x2C { return parseFixdate(span) }
    if span[3] == 0x20 { return parseASCTime(span) }
    return parseRFC850(span, nowSeconds: nowSeconds)
  }

  /// `Sun, 06 Nov 1994 08:49:37 GMT`
  private static func parseFixdate(_ span: Span<UInt8>) -> Int64? {
    guard span.count == textBytes, weekday(span, 0) != nil, span[4] == 0x20, span[7] == 0x20,
      span[11] == 0x20, span[16] == 0x20, isGMT(span, 25),
      let day = number(span, 5, 2), let month = month(span, 8), let year = number(span, 12, 4),
      let time = timeOfDay(span, 17)
    else { return nil }
    return seconds(year: year, month: month, day: day, time: time)
  }

  /// `Sun Nov  6 08:49:37 1994`
  private static func parseASCTime(_ span: Span<UInt8>) -> Int64? {
    guard span.count == 24, weekday(span, 0) != nil, span[7] == 0x20, span[10] == 0x20,
      span[19] == 0x20, let month = month(span, 4), let time = timeOfDay(span, 11),
      let day = span[8] == 0x20 ? number(span, 9, 1) : number(span, 8, 2),
      let year = number(span, 20, 4)
    else { return nil }
    return seconds(year: year, month: month, day: day, time: time)
  }

  /// `Sunday, 06-Nov-94 08:49:37 GMT`
  private static func parseRFC850(_ span: Span<UInt8>, nowSeconds: Int64) -> Int64? {
    var comma = 0
    while comma < span.count, span[comma] != 0x2C { comma += 1 }
    guard span.count == comma + 24, let index = weekday(span, 0) else { return nil }
    guard ASCII.equalsIgnoringCase(span.extracting(0..<comma), longWeekdays[index]) else {
      return nil
    }
    let start = comma + 1
    guard span[start] == 0x20, span[start + 3] == 0x2D, span[start + 7] == 0x2D,
      span[start + 10] == 0x20, isGMT(span, start + 19),
      let day = number(span, start + 1, 2), let month = month(span, start + 4),
      let shortYear = number(span, start + 8, 2), let time = timeOfDay(span, start + 11)
    else { return nil }
    let today = civil(days: nowSeconds.flooredDivision(by: 86_400))
    let limit =
      daysSince1970(year: today.year + 50, month: today.month, day: today.day) * 86_400
      + nowSeconds.flooredRemainder(by: 86_400)
    let century = today.year - today.year % 100
    for year in [century + 100 + shortYear, century + shortYear, century - 100 + shortYear] {
      let found = seconds(year: year, month: month, day: day, time: time)
      if let found, found <= limit { return found }
    }
    return nil
  }

  // MARK: Writing

  /// Appends the IMF-fixdate of this second; years beyond 0...9999 are held at the ends.
  public static func format(_ seconds: Int64, into output: inout [UInt8]) {
    let start = output.count
    for _ in 0..<textBytes { output.append(0) }
    var span = output.mutableSpan
    write(seconds, into: &span, at: start)
  }

  /// Writes the `textBytes` of an IMF-fixdate to `start` and what follows it; allocates nothing.
  public static func write(
    _ seconds: Int64, into output: inout MutableSpan<UInt8>, at start: Int = 0
  ) {
    let held = min(max(seconds, -62_167_219_200), 253_402_300_799)
    let days = held.flooredDivision(by: 86_400)
    let time = Int(held.flooredRemainder(by: 86_400))
    let date = civil(days: days)
    let weekday = Int((days + 4).flooredRemainder(by: 7))
    for offset in 0..<textBytes { output[start + offset] = letter(pattern, offset) }
    for offset in 0..<3 {
      output[start + offset] = letter(weekdayNames, weekday * 3 + offset)
      output[start + 8 + offset] = letter(monthNames, (date.month - 1) * 3 + offset)
    }
    writeTwoDigits(date.day, &output, start + 5)
    writeTwoDigits(date.year / 100, &output, start + 12)
    writeTwoDigits(date.year % 100, &output, start + 14)
    writeTwoDigits(time / 3600, &output, start + 17)
    writeTwoDigits(time / 60 % 60, &output, start + 20)
    writeTwoDigits(time % 60, &output, start + 23)
  }

  private static func writeTwoDigits(
    _ value: Int, _ output: inout MutableSpan<UInt8>, _ index: Int
  ) {
    output[index] = 0x30 + UInt8(value / 10)
    output[index + 1] = 0x30 + UInt8(value % 10)
  }

  // MARK: Pieces

  private static let pattern: StaticString = "___, __ ___ ____ __:__:__ GMT"
  private static let weekdayNames: StaticString = "SunMonTueWedThuFriSat"
  private static let monthNames: StaticString = "JanFebMarAprMayJunJulAugSepOctNovDec"
  private static let longWeekdays: [StaticString] = [
    "sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday",
  ]

  private static func letter(_ names: StaticString, _ index: Int) -> UInt8 {
    precondition(index < names.utf8CodeUnitCount)
    // SAFETY: a StaticString literal lives for the whole program, and the index was checked.
    return unsafe names.utf8Start[index]
  }

  private static func weekday(_ span: Span<UInt8>, _ start: Int) -> Int? {
    nameIndex(span, start, in: weekdayNames)
  }

  /// 1 to 12.
  private static func month(_ span: Span<UInt8>, _ start: Int) -> Int? {
    nameIndex(span, start, in: monthNames).map { $0 + 1 }
  }

  private static func nameIndex(_ span: Span<UInt8>, _ start: Int, in names: StaticString) -> Int? {
    guard start + 3 <= span.count else { return nil }
    let first = ASCII.lowercased(span[start])
    let second = ASCII.lowercased(span[start + 1])
    let third = ASCII.lowercased(span[start + 2])
    for index in 0..<names.utf8CodeUnitCount / 3 {
      // The third letter tells most names apart.
      guard ASCII.lowercased(letter(names, index * 3 + 2)) == third else { continue }
      if ASCII.lowercased(letter(names, index * 3)) == first,
        ASCII.lowercased(letter(names, index * 3 + 1)) == second
      {
        return index
      }
    }
    return nil
  }

  private static func isGMT(_ span: Span<UInt8>, _ start: Int) -> Bool {
    span.count == start + 4 && span[start] == 0x20
      && ASCII.equalsIgnoringCase(span.extracting(start + 1..<start + 4), "gmt")
  }

  private static func number(_ span: Span<UInt8>, _ start: Int, _ digits: Int) -> Int? {
    guard start + digits <= span.count else { return nil }
    var value = 0
    for index in start..<start + digits {
      guard ASCII.isDigit(span[index]) else { return nil }
      value = value * 10 + Int(span[index] - 0x30)
    }
    return value
  }

  /// `08:49:37` as seconds of the day; a leap second (60) counts as the second after 59.
  private static func timeOfDay(_ span: Span<UInt8>, _ start: Int) -> Int? {
    guard start + 8 <= span.count, span[start + 2] == 0x3A, span[start + 5] == 0x3A,
      let hour = number(span, start, 2), let minute = number(span, start + 3, 2),
      let second = number(span, start + 6, 2), hour < 24, minute < 60, second <= 60
    else { return nil }
    return hour * 3600 + minute * 60 + second
  }

  private static func seconds(year: Int, month: Int, day: Int, time: Int) -> Int64? {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let isShort = month == 4 || month == 6 || month == 9 || month == 11
    let daysInMonth = month == 2 ? (leap ? 29 : 28) : isShort ? 30 : 31
    guard (1...daysInMonth).contains(day) else { return nil }
    return daysSince1970(year: year, month: month, day: day) * 86_400 + Int64(time)
  }

  /// Days of the Gregorian calendar, counted in eras of 400 years that begin in March.
  private static func daysSince1970(year: Int, month: Int, day: Int) -> Int64 {
    let shifted = Int64(month <= 2 ? year - 1 : year)
    let era = shifted.flooredDivision(by: 400)
    let yearOfEra = shifted - era * 400
    let dayOfYear = Int64((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1)
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func civil(days: Int64) -> (year: Int, month: Int, day: Int) {
    let shifted = days + 719_468
    let era = shifted.flooredDivision(by: 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let day = Int(dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    let month = Int(shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9)
    return (Int(yearOfEra + era * 400) + (month <= 2 ? 1 : 0), month, day)
  }
}

extension Int64 {
  /// Division that rounds down, also below zero.
  func flooredDivision(by divisor: Int64) -> Int64 {
    let quotient = self / divisor
    return self % divisor < 0 ? quotient - 1 : quotient
  }

  func flooredRemainder(by divisor: Int64) -> Int64 {
    self - flooredDivision(by: divisor) * divisor
  }
}
