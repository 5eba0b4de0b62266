/// What a fetch asks an origin about the copies that are stored for its key (RFC 9111 §4.3.1), and
/// which of them the origin's 304 means (§4.3.4).
///
/// Asked about are the copy that the request selects and other variants: the origin may answer that
/// one of those is what this request gets. Which may be, `Vary.differsInNegotiationAlone` tells: an
/// origin whose tags are careless must not hand one user's copy to another, or a compressed one to a
/// client that cannot read it. Made by the repository when a fetch begins, and read when a 304 comes.
public struct ValidationQuestion: Sendable, Equatable {
  /// The copies asked about.
  public private(set) var entryIDs: [UInt64] = []
  /// The value of If-None-Match; empty: it does not go along.
  public private(set) var entityTags: [UInt8] = []
  /// The value of If-Modified-Since; empty: it does not go along.
  public private(set) var lastModified: [UInt8] = []

  /// A copy that could be asked about, or that a 304 could mean.
  public struct Candidate: Sendable, Equatable {
    public var entryID: UInt64
    /// The request could have been answered by it, were it fresh (RFC 9111 §4).
    public var isSelectable: Bool
    /// As stored, empty where there is none.
    public var entityTag: [UInt8]
    public var lastModified: [UInt8]

    public init(
      entryID: UInt64, isSelectable: Bool, entityTag: [UInt8], lastModified: [UInt8]
    ) {
      self.entryID = entryID
      self.isSelectable = isSelectable
      self.entityTag = entityTag
      self.lastModified = lastModified
    }
  }

  /// The question about these copies, the most recent first; nil: there is nothing to ask by.
  ///
  /// The selected copy comes first whatever the length of its tag; of the others at most `tagsMax`
  /// tags in all go along, of `tagBytesMax` bytes together. A selected copy that has a date alone,
  /// or a tag without quotes, is asked about by itself: beside tags the date would not count
  /// (RFC 9110 §13.1.3), and a list with something that is no tag means nothing.
  public init?(about candidates: [Candidate], tagsMax: Int, tagBytesMax: Int) {
    let selected = candidates.first(where: \.isSelectable)
    if let selected {
      lastModified = selected.lastModified
      entityTags = selected.entityTag
      if !lastModified.isEmpty || !entityTags.isEmpty { entryIDs = [selected.entryID] }
      if entityTags.isEmpty, !lastModified.isEmpty { return }
      if !entityTags.isEmpty, EntityTag(entityTags.span) == nil { return }
    }
    var tags: [[UInt8]] = entityTags.isEmpty ? [] : [entityTags]
    for candidate in candidates where candidate.entryID != selected?.entryID {
      let tag = candidate.entityTag
      // Several representations may share a weak tag at one time (RFC 9110 §8.8.1): it cannot say
      // which variant is meant.
      guard let read = EntityTag(tag.span), candidate.isSelectable || !read.isWeak else { continue }
      if !tags.contains(tag) {
        guard tags.count < tagsMax, entityTags.count + 2 + tag.count <= tagBytesMax else {
          continue
        }
        if !tags.isEmpty { entityTags += [0x2C, 0x20] }
        entityTags += tag
        tags.append(tag)
      }
      entryIDs.append(candidate.entryID)
    }
    if entryIDs.isEmpty { return nil }
  }

  /// Makes a request ask this: our conditions in place of the client's, and of the whole, not of a
  /// range.
  public func apply(to request: inout Fields) {
    Validation.removeClientConditions(&request)
    request.remove(.ifRange)
    request.remove(.range)
    if !entityTags.isEmpty { request.appendKnown(.ifNoneMatch, value: entityTags.span) }
    if !lastModified.isEmpty { request.appendKnown(.ifModifiedSince, value: lastModified.span) }
  }

  // MARK: The answer

  /// What a 304 means, as indexes of candidates.
  public struct Confirmed: Sendable, Equatable {
    /// The copy that answers the request.
    public var answer: Int
    /// The copies to bring up to date. Empty where the answer is a copy that the request does not
    /// select: of those that do, the 304 says nothing.
    public var updated: [Int]

    public init(answer: Int, updated: [Int]) {
      self.answer = answer
      self.updated = updated
    }
  }

  /// Which copies the origin's 304 means, of those that are stored when it comes, the most recent
  /// first; nil: none of them, and the whole answer is needed.
  ///
  /// A strong tag means every copy with it (RFC 9111 §4.3.4); a weak one, and a date, the most recent
  /// one with it. A strong tag that matches a weak one alone counts as weak: that is how servers
  /// answer that compress what they send. Without validators the 304 means the one copy that was
  /// asked about. Only a strong tag can mean a copy that the request does not select.
  public func confirmed(by notModified: Fields, among candidates: [Candidate]) -> Confirmed? {
    let all = notModified.bytes.span
    let tag = all.extracting(notModified.firstValueRange(of: .eTag))
    if !tag.isEmpty {
      if let strong = Self.meant(candidates, { EntityTag.equalStrongly($0.entityTag.span, tag) }) {
        return strong
      }
      return Self.mostRecent(candidates) {
        $0.isSelectable
          && (EntityTag.list(tag, hasWeakly: $0.entityTag.span)
            // An origin that sends no quotes gets its own bytes back, and means them.
            || entryIDs.contains($0.entryID) && ASCII.equals(tag, $0.entityTag.span))
      }
    }
    let date = all.extracting(notModified.firstValueRange(of: .lastModified))
    if !date.isEmpty {
      let dated = Self.mostRecent(candidates) {
        $0.isSelectable && ASCII.equals(date, $0.lastModified.span)
      }
      if let dated { return dated }
    }
    guard entryIDs.count == 1 else { return nil }
    return Self.mostRecent(candidates) {
      // A date that is not the copy's speaks of another.
      $0.isSelectable && $0.entryID == entryIDs[0] && (date.isEmpty || $0.lastModified.isEmpty)
    }
  }

  private static func meant(
    _ candidates: [Candidate], _ isMeant: (Candidate) -> Bool
  ) -> Confirmed? {
    let found = candidates.indices.filter { isMeant(candidates[$0]) }
    guard let newest = found.first else { return nil }
    let updated = found.filter { candidates[$0].isSelectable }
    return Confirmed(answer: updated.first ?? newest, updated: updated)
  }

  private static func mostRecent(
    _ candidates: [Candidate], _ isMeant: (Candidate) -> Bool
  ) -> Confirmed? {
    meant(candidates, isMeant).map {
      Confirmed(answer: $0.answer, updated: Array($0.updated.prefix(1)))
    }
  }

  // MARK: HEAD

  /// What a 200 to HEAD says of a stored answer to GET (RFC 9111 §4.3.5).
  public enum HeadVerdict: Sendable, Equatable {
    /// It is the same: its fields are brought up to date.
    case same
    /// It is another: it has to be validated before it serves.
    case differs
    /// The HEAD shows none of the validators that the copy has: nothing follows.
    case unknown
  }

  /// `contentLength` is what the HEAD announces; nil: nothing. It counts where both are of one coding:
  /// servers that compress do not for HEAD. Only an answer of 200 is asked about: errors to HEAD say
  /// nothing of the GET (some servers know no HEAD at all).
  public static func head(
    _ head: Fields, contentLength: UInt64?, stored: Fields, bodyLength: UInt64
  ) -> HeadVerdict {
    let isOneCoding = head.combined(.contentEncoding) == stored.combined(.contentEncoding)
    if isOneCoding, let contentLength, contentLength != bodyLength { return .differs }
    let (new, old) = (head.bytes.span, stored.bytes.span)
    var (agrees, isAsked) = (false, false)
    for validator in [KnownField.eTag, .lastModified] {
      let newValue = new.extracting(head.firstValueRange(of: validator))
      let oldValue = old.extracting(stored.firstValueRange(of: validator))
      if !oldValue.isEmpty { isAsked = true }
      guard !newValue.isEmpty else { continue }
      let isEqual =
        ASCII.equals(newValue, oldValue)
        || validator == .eTag && EntityTag.list(newValue, hasWeakly: oldValue)
      if !isEqual { return .differs }
      agrees = true
    }
    // A copy that has no validator is what this way of freshening is for.
    return agrees || isOneCoding && !isAsked ? .same : .unknown
  }
}
