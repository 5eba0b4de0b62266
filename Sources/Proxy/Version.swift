/// The version of this program, as `larder version`, the ready line and the stats say it.
public enum Version {
  public static let current = "0.1.0"
}
