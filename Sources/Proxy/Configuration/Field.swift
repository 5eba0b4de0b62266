internal import CachePolicy

/// One row of the table that describes policies.json: name, shape, bounds, default, words.
///
/// The row is all there is to know about a field: the decoding, the JSON Schema and the reference
/// in docs/policies.md are made of it, so that they cannot say different things. A row is made by
/// one of the functions below, which tie the shape to the way its value is read; its default is
/// read from a fresh value of the target.
struct Field<Target>: Sendable {
  var description: FieldDescription
  /// Reads the field's value into the target, or reports why not.
  var assign: @Sendable (JSONNode, String, inout Target, inout FieldDecoder) -> Void
}

/// What the schema and the reference need of a field.
struct FieldDescription: Sendable, Equatable {
  var name: String
  var shape: FieldShape
  /// As text of the file, quotes included; nil: there is none.
  var defaultText: String?
  var isRequired = false
  /// One line.
  var summary: String
  /// As text of the file; nil: the default serves as one, or none is needed.
  var example: String?
}

/// What kind of value a field takes, with its bounds.
enum FieldShape: Sendable, Equatable {
  case text
  case integer(ClosedRange<Int>)
  /// In milliseconds.
  case duration(ClosedRange<Int64>)
  case size(ClosedRange<UInt64>)
  case choice([String])
  /// A list out of these.
  case words([String])
  /// One `address:port`, or a list of them.
  case addresses
  case upstreamURL
  case proxyURL
  case name
  case upstreamName
  case pattern
  case headerNames
  /// A duration, or an object of `default`, `min` and `max`.
  case timeToLive(ClosedRange<Int64>)
  /// An object from `404` or `5xx` to a duration.
  case negative(ClosedRange<Int64>)
  /// An object described by the section of this title.
  case section(String)
  /// An object from names to objects of this section.
  case sectionByName(String)
  /// A list of objects of this section.
  case sectionList(String)
  /// Named by the design, not carried out yet: always an error.
  case unsupported
}

/// The fields of one object of the file.
struct Section<Target>: Sendable {
  /// Its title in the reference, and its name among the schema's definitions.
  var title: String
  /// Where it stands: ``, `upstreams.NAME`, `routes[]`.
  var path: String
  var summary: String
  var fields: [Field<Target>]
}

/// A section without its target, for the schema and the reference.
struct SectionDescription: Sendable {
  var title: String
  var path: String
  var summary: String
  var fields: [FieldDescription]

  init<Target>(_ section: Section<Target>) {
    title = section.title
    path = section.path
    summary = section.summary
    fields = section.fields.map(\.description)
  }
}

typealias FieldPath<Target, Value> = any WritableKeyPath<Target, Value> & Sendable

extension Field {
  static func integer(
    _ name: String, _ keyPath: FieldPath<Target, Int>, _ range: ClosedRange<Int>,
    from fresh: Target, defaultText: String? = nil, example: String? = nil, _ summary: String
  ) -> Field {
    Field(
      description: FieldDescription(
        name: name, shape: .integer(range),
        defaultText: defaultText ?? "\(fresh[keyPath: keyPath])", summary: summary,
        example: example)
    ) { node, path, target, decoder in
      if let value = decoder.integer(node, path, range) { target[keyPath: keyPath] = value }
    }
  }

  static func duration(
    _ name: String, _ keyPath: FieldPath<Target, Int64>, _ range: ClosedRange<Int64>,
    from fresh: Target, _ summary: String
  ) -> Field {
    Field(
      description: FieldDescription(
        name: name, shape: .duration(range),
        defaultText: "\"\(Quantity.text(milliseconds: fresh[keyPath: keyPath]))\"",
        summary: summary)
    ) { node, path, target, decoder in
      if let value = decoder.milliseconds(node, path, range) { target[keyPath: keyPath] = value }
    }
  }

  static func optionalDuration(
    _ name: String, _ keyPath: FieldPath<Target, Int64?>, _ range: ClosedRange<Int64>,
    example: String, _ summary: String
  ) -> Field {
    Field(
      description: FieldDescription(
        name: name, shape: .duration(range), summary: summary, example: example)
    ) { node, path, target, decoder in
      if let value = decoder.milliseconds(node, path, range) { target[keyPath: keyPath] = value }
    }
  }

  /// A size that the target keeps as a signed count of bytes.
  static func size(
    _ name: String, _ keyPath: FieldPath<Target, Int>, _ range: ClosedRange<UInt64>,
    from fresh: Target, _ summary: String
  ) -> Field {
    Field(
      description: FieldDescription(
        name: name, shape: .size(range),
        defaultText: "\"\(Quantity.text(bytes: UInt64(fresh[keyPath: keyPath])))\"",
        summary: summary)
    ) { node, path, target, decoder in
      if let value = decoder.bytes(node, path, range) { target[keyPath: keyPath] = Int(value) }
    }
  }

  static func size(
    _ name: String, _ keyPath: FieldPath<Target, UInt64>, _ range: ClosedRange<UInt64>,
    from fresh: Target, _ summary: String
  ) -> Field {
    Field(
      description: FieldDescription(
        name: name, shape: .size(range),
        defaultText: "\"\(Quantity.text(bytes: fresh[keyPath: keyPath]))\"", summary: summary)
    ) { node, path, target, decoder in
      if let value = decoder.bytes(node, path, range) { target[keyPath: keyPath] = value }
    }
  }

  /// A field whose value the given function reads.
  static func custom<Value>(
    _ name: String, _ keyPath: FieldPath<Target, Value>, _ shape: FieldShape,
    defaultText: String? = nil, isRequired: Bool = false, example: String? = nil,
    _ summary: String,
    read: @escaping @Sendable (inout FieldDecoder, JSONNode, String) -> Value?
  ) -> Field {
    Field(
      description: FieldDescription(
        name: name, shape: shape, defaultText: defaultText, isRequired: isRequired,
        summary: summary, example: example)
    ) { node, path, target, decoder in
      if let value = read(&decoder, node, path) { target[keyPath: keyPath] = value }
    }
  }

  /// An object of its own.
  static func section<Value>(
    _ name: String, _ keyPath: FieldPath<Target, Value>, _ section: Section<Value>
  ) -> Field {
    Field(
      description: FieldDescription(
        name: name, shape: .section(section.title), summary: section.summary)
    ) { node, path, target, decoder in
      decoder.decode(node, path, section, into: &target[keyPath: keyPath])
    }
  }

  /// A field that the design names and this version refuses: never passed over in silence, because
  /// a route that asks for copies of each user's own and does not get them would leak.
  static func unsupported(_ name: String, _ summary: String) -> Field {
    Field(
      description: FieldDescription(name: name, shape: .unsupported, summary: summary)
    ) { _, path, _, decoder in
      decoder.reportUnsupported(path)
    }
  }

  /// The same field of a larger target.
  func lifted<Outer>(_ keyPath: FieldPath<Outer, Target>) -> Field<Outer> {
    Field<Outer>(description: description) { node, path, target, decoder in
      assign(node, path, &target[keyPath: keyPath], &decoder)
    }
  }
}
