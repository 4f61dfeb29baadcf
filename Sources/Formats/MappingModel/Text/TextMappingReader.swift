// Reads TOML into a text mapping. Unlike in a configuration, an unknown key is an error: a mapping with a misspelt key
// would run, and lose the data that the key was to carry.

import Diagnostics
import Expressions
import PropertyLists
import TOMLDocuments

/// Reads the tables of one file and collects every mistake.
struct TextMappingReader {
  private(set) var mistakes = TextMistakes(.textMappingInvalid)

  /// Keys by the table that holds them.
  enum Keys {
    static let document = ["mapping", "entity"]
    static let mapping = ["source", "destination", "model"]
    static let entity = [
      "name", "source", "destination", "filter", "policy", "user_info", "copy", "skip", "attributes", "relationships",
      "distinct_by", "deduplicate_by", "keep", "expand",
    ]
    static let relationship = ["mapping", "objects", "key", "relationship", "entity", "attribute"]
    static let keep = ["latest"]
  }

  // MARK: Tables

  /// `[mapping]`.
  mutating func header(_ root: TOMLNode) -> (model: String?, source: String, destination: String) {
    let top = mistakes.table(root, "", known: Keys.document) ?? [:]
    guard let node = top["mapping"] else {
      mistakes.add(
        "no [mapping]", at: root, "", "write [mapping] with source and destination, two names of versions")
      return (nil, "", "")
    }
    guard let entries = mistakes.table(node, "mapping", known: Keys.mapping) else { return (nil, "", "") }
    var versions: [String: String] = [:]
    for key in ["source", "destination"] {
      if entries[key] == nil {
        mistakes.add("`\(key)` is not set", at: node, "mapping.\(key)", "write \(key) = \"…\", the name of a version")
      }
      versions[key] = mistakes.string(entries, key, in: "mapping")?.value
    }
    return (
      mistakes.string(entries, "model", in: "mapping")?.value, versions["source"] ?? "", versions["destination"] ?? ""
    )
  }

  /// All `[[entity]]`.
  mutating func entities(_ root: TOMLNode) -> [TextEntityMapping] {
    guard case .table(let top) = root.value, let node = top["entity"] else {
      mistakes.add("no [[entity]]", at: root, "", "write one [[entity]] for each entity that is carried")
      return []
    }
    guard case .array(let elements) = node.value else {
      mistakes.add("`entity` must be an array of tables, not \(node.kind)", at: node, "entity", "write [[entity]]")
      return []
    }
    return elements.compactMap { entity($0) }
  }

  private mutating func entity(_ node: TOMLNode) -> TextEntityMapping? {
    guard case .table(let entries) = node.value else {
      mistakes.add("`entity` holds \(node.kind), not a table", at: node, "entity", "write [[entity]]")
      return nil
    }
    func plain(_ key: String) -> String? {
      if case .string(let text)? = entries[key]?.value, !text.isEmpty { text } else { nil }
    }
    let path =
      "entity."
      + TextEntityMapping.title(name: plain("name"), source: plain("source"), destination: plain("destination"))
    _ = mistakes.table(node, path, known: Keys.entity)
    if entries["source"] == nil, entries["destination"] == nil {
      mistakes.add(
        "it has neither a source nor a destination", at: node, path,
        "write source = \"…\" and destination = \"…\", two names of entities")
    }
    return TextEntityMapping(
      place: node.place(key: path), name: mistakes.string(entries, "name", in: path),
      source: mistakes.string(entries, "source", in: path),
      destination: mistakes.string(entries, "destination", in: path),
      filter: filter(entries, in: path), policy: mistakes.string(entries, "policy", in: path)?.value,
      userInfo: userInfo(entries, in: path), copies: boolean(entries, "copy", in: path),
      skipped: skipped(entries, in: path), attributes: attributes(entries, in: path),
      relationships: relationships(entries, in: path), grouping: grouping(entries, in: path))
  }

  private mutating func filter(_ entries: [String: TOMLNode], in path: String) -> Located<SourceFilter>? {
    guard let text = mistakes.string(entries, "filter", in: path) else { return nil }
    do {
      return Located(value: try SourceFilter(text: text.value, at: text.place), place: text.place)
    } catch {
      mistakes.add(error)
      return nil
    }
  }

  private mutating func skipped(_ entries: [String: TOMLNode], in path: String) -> [Located<String>] {
    guard let node = entries["skip"] else { return [] }
    guard case .array(let elements) = node.value else {
      mistakes.add(
        "`skip` must be an array of names, not \(node.kind)", at: node, "\(path).skip", "write skip = [\"…\"]")
      return []
    }
    return elements.compactMap { element in
      guard case .string(let name) = element.value, !name.isEmpty else {
        mistakes.add(
          "`skip` holds \(element.kind) that is not a name", at: element, "\(path).skip", "write skip = [\"…\"]")
        return nil
      }
      return Located(value: name, place: element.place(key: "\(path).skip"))
    }
  }

  private mutating func attributes(
    _ entries: [String: TOMLNode], in path: String
  ) -> [(name: String, value: Located<ExpressionNode>)] {
    // A table named after a composite may hold its elements.
    let named = properties(entries, "attributes", in: path).flatMap { name, node -> [(String, TOMLNode)] in
      guard case .table(let elements) = node.value, !elements.isEmpty else { return [(name, node)] }
      return elements.sortedByBytes(of: \.key).map { ("\(name).\($0.key)", $0.value) }
    }
    return named.compactMap { name, node in
      let key = "\(path).attributes.\(name)"
      let value: ExpressionNode? =
        switch node.value {
        case .integer(let value): .constant(.integer(value))
        case .real(let value): .constant(.double(value))
        case .boolean(let value): .constant(.boolean(value))
        default: expression(node, key)
        }
      return value.map { (name, Located(value: $0, place: node.place(key: key))) }
    }
  }

  private mutating func relationships(
    _ entries: [String: TOMLNode], in path: String
  ) -> [(name: String, value: Located<PropertyValue>)] {
    properties(entries, "relationships", in: path).compactMap { name, node in
      let key = "\(path).relationships.\(name)"
      return relationship(node, key).map { (name, Located(value: $0, place: node.place(key: key))) }
    }
  }

  private mutating func relationship(_ node: TOMLNode, _ key: String) -> PropertyValue? {
    guard case .table = node.value else { return expression(node, key).map { .expression($0) } }
    guard let entries = mistakes.table(node, key, known: Keys.relationship) else { return nil }
    let forms: Set<Set<String>> = [
      ["mapping", "objects"], ["relationship", "objects"], ["mapping", "key"], ["entity", "attribute", "key"],
    ]
    let known = Set(entries.keys).intersection(Keys.relationship)
    guard forms.contains(known) else {
      // Unknown keys were reported already.
      if known.count == entries.count {
        mistakes.add(
          "`\(key.split(separator: ".").last ?? "")` must be one of the four forms of a relationship", at: node, key,
          "write \"$source.…\", { mapping = …, objects = … }, { relationship = …, objects = … }, "
            + "{ mapping = …, key = … } or { entity = …, attribute = …, key = … }")
      }
      return nil
    }
    let mapping = mistakes.string(entries, "mapping", in: key)?.value
    let objects = entries["objects"].flatMap { expression($0, "\(key).objects") }
    if let objects, let mapping { return .expression(.destinationInstances(.entityMapping(mapping), objects)) }
    if let objects, let name = mistakes.string(entries, "relationship", in: key)?.value {
      return .expression(.destinationInstances(.sourceRelationship(name), objects))
    }
    guard let keyNode = entries["key"] else { return nil }
    if let mapping {
      let keys = expressions(keyNode, "\(key).key")
      return keys.isEmpty ? nil : .grouped(mapping: mapping, keys: keys)
    }
    guard let entity = mistakes.string(entries, "entity", in: key)?.value,
      let attribute = mistakes.string(entries, "attribute", in: key)?.value,
      let value = expression(keyNode, "\(key).key")
    else { return nil }
    return .matching(entity: entity, attribute: attribute, key: value)
  }

  private mutating func grouping(_ entries: [String: TOMLNode], in path: String) -> Located<TextGrouping>? {
    let kinds = ["distinct_by", "deduplicate_by", "expand"].filter { entries[$0] != nil }
    let keep = keepRule(entries, in: path)
    guard let kind = kinds.first, let node = entries[kind] else {
      if let node = entries["keep"] {
        mistakes.add(
          "`keep` says which of several source objects speaks for them, and nothing groups them here", at: node,
          "\(path).keep", "add distinct_by or deduplicate_by, or remove it")
      }
      return nil
    }
    let place = node.place(key: "\(path).\(kind)")
    if kinds.count > 1 {
      mistakes.add(
        "\(kinds.joined(separator: " and ")) exclude each other", at: node, "\(path).\(kind)", "keep one of them")
    }
    if kind == "expand" {
      if let node = entries["keep"] {
        mistakes.add("`keep` means nothing with `expand`", at: node, "\(path).keep", "remove it")
      }
      return expression(node, "\(path).expand").map { Located(value: .expand($0), place: place) }
    }
    let keys = expressions(node, "\(path).\(kind)")
    guard !keys.isEmpty else { return nil }
    return Located(
      value: kind == "distinct_by" ? .distinctBy(keys, keep: keep) : .deduplicate(by: keys, keep: keep), place: place)
  }

  private mutating func keepRule(_ entries: [String: TOMLNode], in path: String) -> KeepRule {
    guard let node = entries["keep"] else { return .lowest }
    switch node.value {
    case .string("lowest"): return .lowest
    case .string("highest"): return .highest
    case .table(let rule):
      _ = mistakes.table(node, "\(path).keep", known: Keys.keep)
      if let latest = rule["latest"], let value = expression(latest, "\(path).keep.latest") { return .latest(value) }
      if rule["latest"] != nil { return .lowest }
    default: break
    }
    mistakes.add(
      "`keep` must be \"lowest\", \"highest\" or { latest = … }", at: node, "\(path).keep",
      "write keep = { latest = \"$source.…\" } for the greatest value of an expression")
    return .lowest
  }

  private mutating func userInfo(_ entries: [String: TOMLNode], in path: String) -> [String: PropertyListValue] {
    guard let node = entries["user_info"] else { return [:] }
    guard case .table(let values) = node.value else {
      mistakes.add(
        "`user_info` must be a table, not \(node.kind)", at: node, "\(path).user_info", "write { name = \"value\" }")
      return [:]
    }
    var result: [String: PropertyListValue] = [:]
    for (key, value) in values.sorted(by: { $0.key < $1.key }) {
      result[key] = propertyList(value, "\(path).user_info.\(key)")
    }
    return result
  }

  /// Recursion is bounded: `TOMLReader` refuses deep nesting.
  private mutating func propertyList(_ node: TOMLNode, _ key: String) -> PropertyListValue? {
    switch node.value {
    case .string(let value): return .string(value)
    case .integer(let value): return .integer(value)
    case .real(let value): return .real(value)
    case .boolean(let value): return .boolean(value)
    case .array(let elements): return .array(elements.compactMap { propertyList($0, key) })
    case .table(let entries):
      return .dictionary(
        entries.reduce(into: [:]) { result, entry in
          result[entry.key] = propertyList(entry.value, "\(key).\(entry.key)")
        })
    case .other:
      mistakes.add("a policy cannot be given \(node.kind)", at: node, key, "write a string")
      return nil
    }
  }

  // MARK: Values

  private mutating func properties(
    _ entries: [String: TOMLNode], _ key: String, in path: String
  ) -> [(String, TOMLNode)] {
    guard let node = entries[key] else { return [] }
    guard case .table(let values) = node.value else {
      mistakes.add(
        "`\(key)` must be a table, not \(node.kind)", at: node, "\(path).\(key)", "write { property = \"…\" }")
      return []
    }
    return values.sortedByBytes(of: \.key).map { ($0.key, $0.value) }
  }

  private mutating func boolean(_ entries: [String: TOMLNode], _ key: String, in path: String) -> Bool? {
    guard let node = entries[key] else { return nil }
    if case .boolean(let flag) = node.value { return flag }
    mistakes.add("`\(key)` must be true or false, not \(node.kind)", at: node, "\(path).\(key)", "write \(key) = true")
    return nil
  }

  private mutating func expression(_ node: TOMLNode, _ key: String) -> ExpressionNode? {
    guard case .string(let text) = node.value else {
      mistakes.add(
        "this must be an expression in a string, not \(node.kind)", at: node, key,
        "write \"$source.…\"; a constant text is written with quotes of its own: \"'text'\"")
      return nil
    }
    do {
      return try ExpressionParser.expression(text, at: node.place(key: key))
    } catch {
      mistakes.add(error)
      return nil
    }
  }

  /// Returns one expression, or an array of them; empty if one is wrong.
  private mutating func expressions(_ node: TOMLNode, _ key: String) -> [ExpressionNode] {
    guard case .array(let elements) = node.value else { return expression(node, key).map { [$0] } ?? [] }
    let nodes = elements.compactMap { expression($0, key) }
    if elements.isEmpty { mistakes.add("this is empty", at: node, key, "write \"$source.…\"") }
    return nodes.count == elements.count ? nodes : []
  }
}
