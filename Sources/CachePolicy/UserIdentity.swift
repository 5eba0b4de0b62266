/// Whose copies a route keeps apart (`perUser`): what of a request says who the user is.
public enum UserIdentity: Sendable, Equatable {
  /// A request field, its name in lower case.
  case header(String)
  case cookie(String)
}
