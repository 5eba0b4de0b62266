import Testing

@testable import Proxy

struct OutputBufferTests {
  @Test func piecesOfEveryKindStandInOrder() {
    let output = OutputBuffer()
    output.append("HTTP/1.1 " as StaticString)
    output.append(decimal: UInt64(200))
    output.append(byte: 0x20)
    output.append("OK" as String)
    output.append([0x0D, 0x0A] as [UInt8])
    output.append([1, 0x61, 0x62, 2][1..<3])
    output.append([UInt8]())
    #expect(text(output.bytes) == "HTTP/1.1 200 OK\r\nab")
    #expect(output.count == 19)
  }

  @Test(
    arguments: [
      (0, "0"), (9, "9"), (10, "10"), (-1, "-1"), (.max, "9223372036854775807"),
      (.min, "-9223372036854775808"),
    ] as [(Int64, String)])
  func signedNumbersAreWrittenInDecimal(_ value: Int64, _ expected: String) {
    let output = OutputBuffer()
    output.append(decimal: value)
    #expect(text(output.bytes) == expected)
  }

  @Test func numbersOfAllLengthsAreWrittenInDecimal() {
    var values: [UInt64] = [0, .max, .max - 1]
    var power: UInt64 = 1
    for _ in 0..<20 {
      for digit in 1...9 {
        let (value, isOver) = power.multipliedReportingOverflow(by: UInt64(digit))
        if !isOver { values += [value, value - 1, value + 1, value / 3, value / 7 * 5] }
      }
      power = power.multipliedReportingOverflow(by: 10).partialValue
    }
    let output = OutputBuffer(capacity: 1)
    let differing = values.filter { value in
      output.removeAll()
      output.append(decimal: value)
      return text(output.bytes) != "\(value)"
    }
    #expect(differing.isEmpty)
  }

  @Test func theLargestNumberIsWrittenWhole() {
    let output = OutputBuffer()
    output.append(decimal: UInt64.max)
    #expect(text(output.bytes) == "18446744073709551615")
  }

  @Test(arguments: [(0, "0"), (15, "f"), (16, "10"), (65536, "10000")])
  func chunkSizesAreWrittenInHexadecimal(_ value: Int, _ expected: String) {
    let output = OutputBuffer()
    output.append(hexadecimal: value)
    #expect(text(output.bytes) == expected)
  }

  @Test(arguments: [1, 7, 64])
  func growingKeepsWhatIsThere(_ capacity: Int) {
    let output = OutputBuffer(capacity: capacity)
    var expected: [UInt8] = []
    for round in 0..<40 {
      let piece = [UInt8](repeating: UInt8(round), count: round * round)
      output.append(piece)
      output.append(byte: 0xFF)
      expected += piece + [0xFF]
    }
    #expect(Array(output.bytes) == expected)
  }

  @Test func anEmptiedBufferStartsAnew() {
    let output = OutputBuffer(capacity: 4)
    output.append("something longer" as String)
    output.removeAll()
    #expect(output.count == 0)
    #expect(output.bytes.isEmpty)
    output.append("b" as String)
    #expect(text(output.bytes) == "b")
  }
}
