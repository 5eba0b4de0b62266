/// `larder schema` and `larder version`: commands that only print.
public enum SchemaCommand {
  /// Returns the exit status, 0. `print` adds the line end.
  public static func run(reference: Bool, print: (String) -> Void) -> Int32 {
    let text = reference ? ConfigurationReference.text : ConfigurationSchema.text
    print(String(text.dropLast()))
    return 0
  }
}

public enum VersionCommand {
  /// Raised with each entry of CHANGELOG.md.
  public static let version = "0.1.0"

  /// Returns the exit status, 0.
  public static func run(print: (String) -> Void) -> Int32 {
    print("larder \(version)")
    return 0
  }
}
