internal import CachePolicy

/// The rows of `tests`: a request, what the origin would answer, and what must hold.
enum TestFields {
  static let section = Section<PolicyTest>(
    title: "tests", path: "tests[]",
    summary: "A request and what must come of it. `larder check` runs it, and so does each start.",
    fields: [
      Field(
        description: FieldDescription(
          name: "request", shape: .request, isRequired: true,
          summary: "Method and target; the target is a path with its query, or an absolute URL.",
          example: "\"GET /articles/7\"", secrecy: .fromEnvironment),
        assign: { node, path, target, decoder in
          guard
            let text = decoder.text(node, path, expected: "a request such as \"GET /articles/7\""),
            let request = decoder.checked(
              node, path, { () throws(ValueError) in try AddressParsing.request(text) })
          else { return }
          (target.method, target.target) = request
        },
        render: { target, context in
          context.with(.fromEnvironment).text("\(target.method) \(target.target)")
        }),
      fieldLines(
        "headers", \.headers, example: "{ \"Authorization\": \"Bearer a\" }",
        "The request's fields."),
      .optionalSection(
        "given", \.given, from: PolicyTest.Given(),
        example: "{ \"status\": 200, \"headers\": { \"Cache-Control\": \"max-age=60\" } }", given),
      .section("expect", \.expect, isRequired: true, expect),
    ])

  static let given = Section<PolicyTest.Given>(
    title: "tests.given", path: "tests[].given", summary: "What the origin would answer.",
    fields: [
      .custom(
        "status", \.status, .integer(200...599), defaultText: "200", example: "404",
        "The answer's status.", render: { value, _ in .integer(Int(value)) },
        read: { decoder, node, path in decoder.integer(node, path, 200...599).map { UInt16($0) } }),
      fieldLines(
        "headers", \.headers, example: "{ \"Cache-Control\": \"max-age=60\" }",
        "The answer's fields."),
    ])

  static let expect = Section<PolicyTest.Expectation>(
    title: "tests.expect", path: "tests[].expect",
    summary: "What must hold; at least one of these.",
    fields: [
      text(
        "route", \.route, example: "\"article\"",
        "The name of the route that takes the request; `(default)` or `(none)` where none does."),
      .custom(
        "strategy", \.strategy, .choice(Strategy.allCases.map(\.name)),
        example: "\"cache-first\"", "The strategy.",
        render: { value, _ in value.map { .text($0.name) } },
        read: { decoder, node, path in
          decoder.choice(node, path, among: Strategy.allCases.map(\.name))
            .flatMap(Strategy.init(name:))
        }),
      .optionalDuration(
        "ttl", \.timeToLiveMilliseconds, PolicyDraft.lifetimeRange, example: "\"1m\"",
        "How long the answer is fresh; with `given`, what comes of its words."),
      optionalBoolean("stores", \.stores, example: "true", "Whether the answer is stored."),
      text(
        "key", \.key, example: "\"base=USD&symbols=EUR\"", "The query part of the key, as text."),
      text(
        "upstreamUrl", \.upstreamURL, example: "\"https://api.example.com/v2/articles/7\"",
        "What the origin is asked for."),
      optionalBoolean(
        "perUser", \.perUser, example: "true", "Whether copies are each user's own."),
      .custom(
        "tags", \.tags, .list(of: "tags"), example: "[\"article:7\"]", "The copy's tags.",
        render: { value, _ in value.map(OrderedJSON.texts) },
        read: { decoder, node, path in
          decoder.names(node, path, of: "tags", expected: "a tag")
        }),
    ])

  static func decode(
    _ node: JSONNode, _ path: String, _ decoder: inout FieldDecoder
  ) -> [PolicyTest] {
    guard let elements = decoder.list(node, path, of: "tests") else { return [] }
    return elements.enumerated().map { index, element in
      var test = PolicyTest(
        path: "\(path)[\(index)]", line: element.place.line, column: element.place.column,
        method: "", target: "")
      let before = decoder.findings.count
      decoder.decode(element, test.path, section, into: &test)
      if decoder.findings.count == before, test.expect == PolicyTest.Expectation() {
        let names = expect.fields.map(\.description.name).joined(separator: ", ")
        let place = decoder.places["\(test.path).expect"]?.value ?? element.place
        decoder.report(at: place, "\(test.path).expect", "names at least one of \(names)")
      }
      return test
    }
  }

  // MARK: Rows

  private static func text(
    _ name: String, _ keyPath: FieldPath<PolicyTest.Expectation, String?>, example: String,
    _ summary: String
  ) -> Field<PolicyTest.Expectation> {
    .custom(
      name, keyPath, .text, example: example, secrecy: .fromEnvironment, summary,
      render: { value, context in value.map { context.text($0) } },
      read: { decoder, node, path in decoder.text(node, path) })
  }

  private static func optionalBoolean(
    _ name: String, _ keyPath: FieldPath<PolicyTest.Expectation, Bool?>, example: String,
    _ summary: String
  ) -> Field<PolicyTest.Expectation> {
    .custom(
      name, keyPath, .boolean, example: example, summary,
      render: { value, _ in value.map(OrderedJSON.boolean) },
      read: { decoder, node, path in decoder.boolean(node, path) })
  }

  private static func fieldLines<Target>(
    _ name: String, _ keyPath: FieldPath<Target, [PolicyTest.HeaderLine]>, example: String,
    _ summary: String
  ) -> Field<Target> {
    .custom(
      name, keyPath, .fieldLines, defaultText: "{}", example: example, secrecy: .fromEnvironment,
      summary,
      render: { lines, context in
        .object(
          lines.map { line in
            (line.name, context.inside(line.name).text(line.value))
          })
      },
      read: { decoder, node, path in decoder.fieldLines(node, path) })
  }
}

extension FieldDecoder {
  mutating func fieldLines(_ node: JSONNode, _ path: String) -> [PolicyTest.HeaderLine]? {
    guard let members = object(node, path) else { return nil }
    var lines: [PolicyTest.HeaderLine] = []
    for member in members {
      let memberPath = Self.join(path, member.key)
      if !FieldNameRules.isToken(member.key) {
        report(at: member.keyPlace, memberPath, "\"\(member.key)\" is no field name")
      }
      guard let value = text(member.value, memberPath) else { continue }
      // RFC 9110 §5.5: no control but the tab.
      if value.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) {
        report(at: member.value.place, memberPath, "a field's value holds no control character")
      }
      lines.append(PolicyTest.HeaderLine(name: member.key, value: value))
    }
    return lines
  }
}
