/// A value of policies.json with the place where it stands.
///
/// Numbers stay text: the only numbers of the file are small integers, and an error quotes what was
/// written. Made by `JSONReader`, taken apart by `FieldDecoder`.
struct JSONNode {
  var place: SourcePlace
  var value: JSONValue
}

indirect enum JSONValue {
  case null
  case boolean(Bool)
  case number(String)
  case text(String)
  case list([JSONNode])
  case object([JSONMember])
  /// Reported already by the reader; whoever meets it says nothing more.
  case invalid

  /// With its article, for "expected …, got a number".
  var kind: String {
    switch self {
    case .null: "null"
    case .boolean: "a boolean"
    case .number: "a number"
    case .text: "a string"
    case .list: "a list"
    case .object: "an object"
    case .invalid: "an invalid value"
    }
  }
}

struct JSONMember {
  var key: String
  var keyPlace: SourcePlace
  var value: JSONNode
}
