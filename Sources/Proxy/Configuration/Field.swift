internal import CachePolicy

/// One row of the table that describes policies.json: name, shape, bounds, default, words.
///
/// The row is all there is to know about a field: the decoding, the JSON Schema, the reference in
/// docs/policies.md and the printing of `larder config` are made of it, so that they cannot say
/// different things. A row is made by one of the functions below, which tie the shape to the way
/// its value is read and written; its default is read from a fresh value of the target.
struct Field<Target>: Sendable {
  var description: FieldDescription
  /// Reads the field's value into the target, or reports why not.
  var assign: @Sendable (JSONNode, String, inout Target, inout FieldDecoder) -> Void
  /// The target's value as the file has it; nil: the target says nothing of it.
  var render: @Sendable (Target, RenderingContext) -> OrderedJSON?
}

/// The fields of one object of the file.
struct Section<Target>: Sendable {
  /// Its title in the reference, and its name among the schema's definitions.
  let title: String
  /// Where it stands: ``, `upstreams.NAME`, `routes[]`.
  let path: String
  let summary: String
  let fields: [Field<Target>]
  /// Which of the fields have a meaning for this target; the others are not printed.
  private let isMeaningful: @Sendable (Target, FieldDescription) -> Bool
  private let indices: [String: Int]

  init(
    title: String, path: String, summary: String, fields: [Field<Target>],
    isMeaningful: @escaping @Sendable (Target, FieldDescription) -> Bool = { _, _ in true }
  ) {
    self.title = title
    self.path = path
    self.summary = summary
    self.fields = fields
    self.isMeaningful = isMeaningful
    indices = Dictionary(
      uniqueKeysWithValues: fields.enumerated().map { ($1.description.name, $0) })
  }

  func field(named name: String) -> Field<Target>? { indices[name].map { fields[$0] } }

  /// The target as the file would have it, every field that it says anything of.
  func rendered(_ target: Target, _ context: RenderingContext) -> [(String, OrderedJSON)] {
    fields.compactMap { field in
      guard isMeaningful(target, field.description) else { return nil }
      let name = field.description.name
      return field.render(target, context.inside(name)).map { (name, $0) }
    }
  }
}

typealias FieldPath<Target, Value> = any WritableKeyPath<Target, Value> & Sendable

extension Field {
  static func boolean(
    _ name: String, _ keyPath: FieldPath<Target, Bool?>, isInitially fallback: Bool,
    example: String? = nil, _ summary: String
  ) -> Field {
    custom(
      name, keyPath, .boolean, defaultText: "\(fallback)", example: example, summary,
      render: { value, _ in value.map(OrderedJSON.boolean) },
      read: { decoder, node, path in decoder.boolean(node, path) })
  }

  static func integer(
    _ name: String, _ keyPath: FieldPath<Target, Int>, _ range: ClosedRange<Int>,
    from fresh: Target, defaultText: String? = nil, example: String? = nil, _ summary: String
  ) -> Field {
    custom(
      name, keyPath, .integer(range), defaultText: defaultText ?? "\(fresh[keyPath: keyPath])",
      example: example, summary, render: { value, _ in .integer(value) },
      read: { decoder, node, path in decoder.integer(node, path, range) })
  }

  static func optionalInteger(
    _ name: String, _ keyPath: FieldPath<Target, Int?>, _ range: ClosedRange<Int>,
    example: String, _ summary: String
  ) -> Field {
    custom(
      name, keyPath, .integer(range), example: example, summary,
      render: { value, _ in value.map(OrderedJSON.integer) },
      read: { decoder, node, path in decoder.integer(node, path, range) })
  }

  static func duration(
    _ name: String, _ keyPath: FieldPath<Target, Int64>, _ range: ClosedRange<Int64>,
    from fresh: Target, _ summary: String
  ) -> Field {
    custom(
      name, keyPath, .duration(range),
      defaultText: "\"\(Quantity.text(milliseconds: fresh[keyPath: keyPath]))\"", summary,
      render: { value, _ in .duration(milliseconds: value) },
      read: { decoder, node, path in decoder.milliseconds(node, path, range) })
  }

  static func optionalDuration(
    _ name: String, _ keyPath: FieldPath<Target, Int64?>, _ range: ClosedRange<Int64>,
    example: String, _ summary: String
  ) -> Field {
    custom(
      name, keyPath, .duration(range), example: example, summary,
      render: { value, _ in value.map(OrderedJSON.duration(milliseconds:)) },
      read: { decoder, node, path in decoder.milliseconds(node, path, range) })
  }

  /// A size that the target keeps as a signed count of bytes.
  static func size(
    _ name: String, _ keyPath: FieldPath<Target, Int>, _ range: ClosedRange<UInt64>,
    from fresh: Target, _ summary: String
  ) -> Field {
    custom(
      name, keyPath, .size(range),
      defaultText: "\"\(Quantity.text(bytes: UInt64(fresh[keyPath: keyPath])))\"", summary,
      render: { value, _ in .size(bytes: UInt64(value)) },
      read: { decoder, node, path in decoder.bytes(node, path, range).map { Int($0) } })
  }

  static func size(
    _ name: String, _ keyPath: FieldPath<Target, UInt64>, _ range: ClosedRange<UInt64>,
    from fresh: Target, _ summary: String
  ) -> Field {
    custom(
      name, keyPath, .size(range),
      defaultText: "\"\(Quantity.text(bytes: fresh[keyPath: keyPath]))\"", summary,
      render: { value, _ in .size(bytes: value) },
      read: { decoder, node, path in decoder.bytes(node, path, range) })
  }

  /// A word out of an enumeration.
  static func choice<Value: RawRepresentable & CaseIterable & Sendable>(
    _ name: String, _ keyPath: FieldPath<Target, Value>, initially fallback: Value,
    _ summary: String
  ) -> Field where Value.RawValue == String {
    let words = Value.allCases.map(\.rawValue)
    return custom(
      name, keyPath, .choice(words), defaultText: "\"\(fallback.rawValue)\"", summary,
      render: { value, _ in .text(value.rawValue) },
      read: { decoder, node, path in
        decoder.choice(node, path, among: words).flatMap(Value.init(rawValue:))
      })
  }

  /// A field whose value the given functions read and write.
  static func custom<Value>(
    _ name: String, _ keyPath: FieldPath<Target, Value>, _ shape: FieldShape,
    defaultText: String? = nil, isRequired: Bool = false, example: String? = nil,
    secrecy: Secrecy = .open, _ summary: String,
    render: @escaping @Sendable (Value, RenderingContext) -> OrderedJSON?,
    read: @escaping @Sendable (inout FieldDecoder, JSONNode, String) -> Value?
  ) -> Field {
    Field(
      description: FieldDescription(
        name: name, shape: shape, defaultText: defaultText, isRequired: isRequired,
        summary: summary, example: example, secrecy: secrecy),
      assign: { node, path, target, decoder in
        if let value = read(&decoder, node, path) { target[keyPath: keyPath] = value }
      },
      render: { target, context in
        render(target[keyPath: keyPath], context.with(secrecy))
      })
  }

  /// An object of its own.
  static func section<Value>(
    _ name: String, _ keyPath: FieldPath<Target, Value>, isRequired: Bool = false,
    _ section: Section<Value>
  ) -> Field {
    Field(
      description: FieldDescription(
        name: name, shape: .section(section.title), isRequired: isRequired,
        summary: section.summary),
      assign: { node, path, target, decoder in
        decoder.decode(node, path, section, into: &target[keyPath: keyPath])
      },
      render: { target, context in
        let members = section.rendered(target[keyPath: keyPath], context)
        return members.isEmpty ? nil : .object(members)
      })
  }

  /// An object of its own that the target may do without.
  static func optionalSection<Value: Sendable>(
    _ name: String, _ keyPath: FieldPath<Target, Value?>, from fresh: Value,
    example: String? = nil, _ section: Section<Value>
  ) -> Field {
    Field(
      description: FieldDescription(
        name: name, shape: .section(section.title), summary: section.summary, example: example),
      assign: { node, path, target, decoder in
        guard case .object = node.value else {
          _ = decoder.object(node, path)
          return
        }
        var value = fresh
        decoder.decode(node, path, section, into: &value)
        target[keyPath: keyPath] = value
      },
      render: { target, context in
        target[keyPath: keyPath].map { .object(section.rendered($0, context)) }
      })
  }

  /// The same field of a larger target.
  func lifted<Outer>(_ keyPath: FieldPath<Outer, Target>) -> Field<Outer> {
    Field<Outer>(
      description: description,
      assign: { node, path, target, decoder in
        assign(node, path, &target[keyPath: keyPath], &decoder)
      },
      render: { target, context in render(target[keyPath: keyPath], context) })
  }

  /// The same field, where it has a meaning for some strategies only.
  func needing(_ need: StrategyNeed) -> Field {
    var field = self
    field.description.need = need
    return field
  }

  /// The same field, where routes do not take it from `defaults`.
  func notInherited() -> Field {
    var field = self
    field.description.isInherited = false
    return field
  }
}
