internal import CachePolicy

/// The rows of `key`: what of a request tells copies apart beyond its address.
enum KeyFields {
  static let section = Section<KeyRecipe>(
    title: "key", path: "routes[].key",
    summary: "What of a request tells copies apart, beside its upstream, authority and path.",
    fields: [
      .custom(
        "query", \.query, .keyQuery, defaultText: "\"all\"", example: "[\"base\", \"symbols\"]",
        "Which of the query's parameters count: all, none, or those named. The origin is sent all "
          + "of them.",
        render: { value, _ in
          switch value {
          case .all: .text("all")
          case .none: .text("none")
          case .names(let names): .texts(names)
          }
        },
        read: { decoder, node, path in decoder.keyQuery(node, path) }),
      .custom(
        "ignoreQuery", \.ignoreQuery, .list(of: "patterns"), defaultText: "[]",
        example: "[\"utm_*\", \"fbclid\"]",
        "Parameters that do not count, as patterns in which `*` stands for any characters.",
        render: { value, _ in .texts(value) },
        read: { decoder, node, path in
          decoder.names(node, path, of: "parameter names", expected: "a parameter's name")
        }),
      Field(
        description: FieldDescription(
          name: "sortQuery", shape: .boolean, defaultText: "false",
          summary: "Whether the parameters' order does not count.", example: "true"),
        assign: { node, path, target, decoder in
          if let value = decoder.boolean(node, path) { target.sortQuery = value }
        },
        render: { target, _ in .boolean(target.sortQuery) }),
      .custom(
        "headers", \.headers, .headerNames, defaultText: "[]", example: "[\"Accept-Language\"]",
        "Request fields whose values count. They reach the origin, whatever kind they are.",
        render: { value, _ in .texts(value) },
        read: { decoder, node, path in decoder.requestFieldNames(node, path) }),
      .custom(
        "cookies", \.cookies, .list(of: "cookie names"), defaultText: "[]",
        example: "[\"region\"]", "Cookies whose values count.",
        render: { value, _ in .texts(value) },
        read: { decoder, node, path in decoder.cookieNames(node, path) }),
    ])
}
