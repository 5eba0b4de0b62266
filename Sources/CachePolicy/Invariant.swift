/// Stops the process with a message when the program itself is wrong.
///
/// For programmer's errors only; bad input is an error value. `precondition` loses its message in
/// release builds, and a crash without words helps nobody.
@inlinable
public func invariant(
  _ condition: @autoclosure () -> Bool, _ message: @autoclosure () -> StaticString,
  file: StaticString = #fileID, line: UInt = #line
) {
  if !condition() {
    fatalError("invariant broken: \(message())", file: file, line: line)
  }
}
