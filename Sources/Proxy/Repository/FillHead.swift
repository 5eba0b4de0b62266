internal import Backends
internal import CachePolicy

/// What a fill knows of its answer once the head is there, as those who follow it need it.
extension Fill {
  /// The head as readers need it. Made once, before the first body byte.
  final class Head: Sendable {
    let status: UInt16
    let fields: Fields
    /// The status line and the field lines without Content-Length, as they go out.
    let encoded: [UInt8]
    /// The lines that `private="…"` or `no-cache="…"` name: for the first client alone.
    let ownFields: Fields
    let contentLength: UInt64?
    let version: ReceivedVersion
    /// nil: it is being stored.
    let notStored: NotStoredReason?
    /// What it varies on, of the request that brought it; nil: on everything.
    let varyBlock: [UInt8]?
    /// Whether others than its first client may have it.
    let isShareable: Bool
    /// What purges know the copy by; nil: it cannot be stored for them.
    let tags: [[UInt8]]?
    /// The Age to send where `fields` have lost the origin's own, in milliseconds.
    let ageMilliseconds: Int64?

    init(
      status: UInt16, fields: Fields, encoded: [UInt8], ownFields: Fields,
      contentLength: UInt64?, version: ReceivedVersion,
      notStored: NotStoredReason?, varyBlock: [UInt8]?, isShareable: Bool, tags: [[UInt8]]?,
      ageMilliseconds: Int64?
    ) {
      self.status = status
      self.fields = fields
      self.encoded = encoded
      self.ownFields = ownFields
      self.contentLength = contentLength
      self.version = version
      self.notStored = notStored
      self.varyBlock = varyBlock
      self.isShareable = isShareable
      self.tags = tags
      self.ageMilliseconds = ageMilliseconds
    }
  }
}
