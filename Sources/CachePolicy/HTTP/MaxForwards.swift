/// How far a request may still go (RFC 9110 §7.6.2): counts for OPTIONS alone here, since TRACE is
/// refused; other methods may ignore the field. Called before a request is passed on.
public enum MaxForwards: Sendable, Equatable {
  /// The field is absent, malformed, or the method's to ignore: it goes on as it came.
  case unlimited
  /// No further: the request is answered here.
  case reached
  /// What the field says when the request goes on.
  case remaining(Int64)

  public init(_ fields: Fields, method: Method) {
    guard method == .options, let value = fields.first(.maxForwards) else {
      self = .unlimited
      return
    }
    let digits = Array(value)
    guard let count = ASCII.deltaSeconds(digits.span) else {
      self = .unlimited
      return
    }
    self = count == 0 ? .reached : .remaining(count - 1)
  }
}
