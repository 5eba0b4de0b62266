#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Writes a line on standard output, past every buffer: whoever reads a pipe sees it at once.
func printLine(_ text: String) { writeLine(text, to: 1) }

/// Writes a line on standard error.
func printError(_ text: String) { writeLine(text, to: 2) }

private func writeLine(_ text: String, to descriptor: Int32) {
  var line = text + "\n"
  line.withUTF8 { bytes in
    var rest = UnsafeRawBufferPointer(bytes)
    while !rest.isEmpty {
      let written = write(descriptor, rest.baseAddress, rest.count)
      guard written > 0 else { return }
      rest = UnsafeRawBufferPointer(rebasing: rest[written...])
    }
  }
}
