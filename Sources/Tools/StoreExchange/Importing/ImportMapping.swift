// The mapping of an import: which columns of which files become which attributes and relationships. It is written by
// hand, so everything that has no meaning is refused, with its line.

import Diagnostics
import Expressions
import ManagedObjectModel
import SystemPackage
import TOMLDocuments

extension HopdError.Code {
  /// The mapping of an import has a mistake, or contradicts the model.
  package static let importMappingInvalid = HopdError.Code("import-mapping-invalid", exit: .dataError)
}

/// The mapping of an import.
package struct ImportMapping {
  /// Objects of one entity from the rows of one file or table.
  struct Objects {
    let place: Place
    let entity: String
    let source: DataSource
    /// The columns that identify an object in the data; empty if no relationship refers to it.
    let key: [String]
    /// Whether rows with the key of an earlier row are left out.
    let isDistinct: Bool
    /// Whether the key is a number that the object has as its primary key.
    let keepsKeys: Bool
    let dates: ImportedDates
    let filter: PredicateNode?
    /// A column, or an expression, by the name of the attribute.
    let columns: [String: Text]
    let relationships: [String: Reference]
  }

  /// A text of the mapping with its place.
  struct Text {
    let text: String
    let place: Place
  }

  /// Keys of a relationship's targets.
  struct Reference {
    let place: Place
    /// The columns of the key.
    let columns: [String]
    /// What separates the keys of several targets in one cell.
    let separator: String?
    /// The column with the place in the ordered relationship at the other end.
    let position: String?
  }

  /// Pairs of one relationship from the rows of one file or table.
  struct Pairs {
    let place: Place
    let entity: String
    let relationship: String
    let source: DataSource
    let owner: [String]
    let target: [String]
    let position: String?
    let inversePosition: String?
  }

  /// Objects that the store has, to which relationships may refer.
  struct Existing {
    let place: Place
    let entity: String
    /// The attributes that identify an object.
    let key: [String]
  }

  let file: FilePath
  fileprivate(set) var objects: [Objects] = []
  fileprivate(set) var pairs: [Pairs] = []
  fileprivate(set) var existing: [Existing] = []

  /// Reads the mapping in a file.
  init(at file: FilePath) throws(HopdError) {
    guard let text = try TOMLFile.text(of: file, called: "mapping", code: .importMappingInvalid) else {
      throw HopdError(.notFound, "no such file", at: Place(file: file), hint: "pass --mapping FILE.hopimport.toml")
    }
    try self.init(text: text, file: file)
  }

  /// Reads a mapping; `file` is named in errors.
  package init(text: String, file: FilePath) throws(HopdError) {
    var reader = ImportMappingReader(try TOMLNode(toml: text, file: file, code: .importMappingInvalid), file)
    self = try reader.mapping()
  }

  fileprivate init(file: FilePath) { self.file = file }
}

/// Reads the tables of a mapping, and collects every mistake.
private struct ImportMappingReader {
  private let root: TOMLNode
  private let file: FilePath
  private var mistakes: [HopdError] = []

  private static let objectKeys: Set<String> = [
    "entity", "from", "delimiter", "encoding", "key", "distinct_by", "keeps_keys", "dates", "filter", "columns",
    "relationships",
  ]
  private static let pairKeys: Set<String> = [
    "relationship", "from", "delimiter", "encoding", "owner", "target", "position", "inverse_position",
  ]

  init(_ root: TOMLNode, _ file: FilePath) {
    self.root = root
    self.file = file
  }

  mutating func mapping() throws(HopdError) -> ImportMapping {
    var mapping = ImportMapping(file: file)
    let top = table(root, "", known: ["import", "pairs", "existing"])
    for node in tables(top["import"], "import") {
      if let objects = objects(node) { mapping.objects.append(objects) }
    }
    for node in tables(top["pairs"], "pairs") {
      if let pairs = pairs(node) { mapping.pairs.append(pairs) }
    }
    for node in tables(top["existing"], "existing") {
      if let existing = existing(node) { mapping.existing.append(existing) }
    }
    if mapping.objects.isEmpty, mistakes.isEmpty {
      mistake("no [[import]]", root, "", "write one [[import]] for each entity with objects")
    }
    guard let first = mistakes.first else { return mapping }
    throw mistakes.count == 1
      ? first
      : HopdError(
        .importMappingInvalid, "the mapping has \(mistakes.count) mistakes", at: Place(file: file), reasons: mistakes)
  }

  // MARK: Errors

  private mutating func mistake(_ message: String, _ node: TOMLNode, _ key: String, _ hint: String? = nil) {
    mistakes.append(
      HopdError(.importMappingInvalid, message, at: node.place(key: key.isEmpty ? nil : key), hint: hint))
  }

  private mutating func table(_ node: TOMLNode, _ key: String, known: Set<String>?) -> [String: TOMLNode] {
    guard case .table(let entries) = node.value else {
      mistake("`\(key)` is \(node.kind), not a table", node, key)
      return [:]
    }
    if let known {
      for (name, entry) in entries.sorted(by: { $0.key < $1.key }) where !known.contains(name) {
        let near = NearestName.among(known, to: name)
        mistake(
          "`\(name.printableLine)` is not a key here", entry, key,
          near.map { "use '\($0)'" } ?? "use one of: \(known.sorted().joined(separator: ", "))")
      }
    }
    return entries
  }

  private mutating func tables(_ node: TOMLNode?, _ key: String) -> [TOMLNode] {
    guard let node else { return [] }
    guard case .array(let elements) = node.value else {
      mistake("`\(key)` is \(node.kind), not an array of tables", node, key, "write [[\(key)]]")
      return []
    }
    return elements
  }

  private mutating func string(_ entries: [String: TOMLNode], _ name: String, _ key: String) -> String? {
    guard let node = entries[name] else { return nil }
    guard case .string(let text) = node.value, !text.isEmpty else {
      mistake("`\(name)` is not a text", node, "\(key).\(name)")
      return nil
    }
    return text
  }

  /// A text, or an array of texts.
  private mutating func strings(_ entries: [String: TOMLNode], _ name: String, _ key: String) -> [String] {
    guard let node = entries[name] else { return [] }
    if case .string(let text) = node.value, !text.isEmpty { return [text] }
    if case .array(let elements) = node.value {
      let texts = elements.compactMap { element -> String? in
        if case .string(let text) = element.value, !text.isEmpty { text } else { nil }
      }
      if texts.count == elements.count, !texts.isEmpty { return texts }
    }
    mistake("`\(name)` is neither a column nor an array of columns", node, "\(key).\(name)")
    return []
  }

  private mutating func required(
    _ entries: [String: TOMLNode], _ name: String, _ node: TOMLNode, _ key: String, _ what: String
  ) -> String? {
    if entries[name] == nil { mistake("`\(name)` is not set", node, key, "write \(name) = \"…\", \(what)") }
    return string(entries, name, key)
  }

  // MARK: Tables

  private mutating func source(
    _ entries: [String: TOMLNode], _ node: TOMLNode, _ key: String
  ) -> DataSource? {
    guard let name = required(entries, "from", node, key, "a file of the data, or a table of its database") else {
      return nil
    }
    var delimiter: UInt8?
    if let text = string(entries, "delimiter", key), let entry = entries["delimiter"] {
      delimiter = text == "tab" ? 0x09 : text.utf8.count == 1 ? text.utf8.first : nil
      if delimiter == nil || "\"\r\n".utf8.contains(delimiter ?? 0) {
        mistake("`delimiter` is not one character of ASCII", entry, "\(key).delimiter", "write \";\", or \"tab\"")
      }
    }
    var encoding: TextEncoding?
    if let text = string(entries, "encoding", key), let entry = entries["encoding"] {
      encoding = TextEncoding(rawValue: text)
      if encoding == nil {
        let known = TextEncoding.allCases.map(\.rawValue).joined(separator: ", ")
        mistake("`encoding` is unknown", entry, "\(key).encoding", "write one of: \(known)")
      }
    }
    return DataSource(name: name, delimiter: delimiter, encoding: encoding)
  }

  private mutating func objects(_ node: TOMLNode) -> ImportMapping.Objects? {
    let key = "import"
    let entries = table(node, key, known: Self.objectKeys)
    let entity = required(entries, "entity", node, key, "the name of an entity")
    guard let source = source(entries, node, key), let entity else { return nil }
    let distinct = strings(entries, "distinct_by", key)
    let own = strings(entries, "key", key)
    if !distinct.isEmpty, !own.isEmpty, distinct != own, let entry = entries["distinct_by"] {
      mistake("`distinct_by` and `key` name different columns", entry, key, "remove `key`: distinct_by is the key")
    }
    var keeps = false
    if let entry = entries["keeps_keys"] {
      if case .boolean(let flag) = entry.value {
        keeps = flag
      } else {
        mistake("`keeps_keys` is not a boolean", entry, key)
      }
      if keeps, own.count != 1 { mistake("`keeps_keys` needs one column as `key`", entry, key) }
    }
    return ImportMapping.Objects(
      place: node.place(key: key), entity: entity, source: source, key: own.isEmpty ? distinct : own,
      isDistinct: !distinct.isEmpty, keepsKeys: keeps, dates: dates(entries, key), filter: filter(entries, key),
      columns: columns(entries, key), relationships: relationships(entries, key))
  }

  private mutating func dates(_ entries: [String: TOMLNode], _ key: String) -> ImportedDates {
    guard let text = string(entries, "dates", key), let entry = entries["dates"] else { return .iso }
    switch text {
    case "iso": return .iso
    case "unix": return .unix(1)
    case "unix-ms": return .unix(0.001)
    case "reference": return .reference
    default:
      if !DatePattern.isValid(text) {
        mistake(
          "`dates` is not a date format", entry, "\(key).dates",
          "write iso, unix, unix-ms, reference, or a pattern as %d.%m.%Y")
      }
      return .pattern(text)
    }
  }

  private mutating func filter(_ entries: [String: TOMLNode], _ key: String) -> PredicateNode? {
    guard let text = string(entries, "filter", key), let entry = entries["filter"] else { return nil }
    do {
      return try ExpressionParser.predicate(text, at: entry.place(key: "\(key).filter"))
    } catch {
      mistakes.append(error)
      return nil
    }
  }

  private mutating func columns(_ entries: [String: TOMLNode], _ key: String) -> [String: ImportMapping.Text] {
    guard let node = entries["columns"] else { return [:] }
    var columns: [String: ImportMapping.Text] = [:]
    let path = "\(key).columns"
    let known = table(node, path, known: nil)
    for (name, entry) in known.sorted(by: { $0.key < $1.key }) {
      guard let text = string(known, name, path) else { continue }
      columns[name] = ImportMapping.Text(text: text, place: entry.place(key: "\(path).\(name)"))
    }
    return columns
  }

  private mutating func relationships(
    _ entries: [String: TOMLNode], _ key: String
  ) -> [String: ImportMapping.Reference] {
    guard let node = entries["relationships"] else { return [:] }
    var references: [String: ImportMapping.Reference] = [:]
    let path = "\(key).relationships"
    let known = table(node, path, known: nil)
    for (name, entry) in known.sorted(by: { $0.key < $1.key }) {
      let place = entry.place(key: "\(path).\(name)")
      guard case .table = entry.value else {
        let columns = strings(known, name, path)
        if !columns.isEmpty {
          references[name] = ImportMapping.Reference(place: place, columns: columns, separator: nil, position: nil)
        }
        continue
      }
      let parts = table(entry, "\(path).\(name)", known: ["column", "separator", "position"])
      let columns = strings(parts, "column", "\(path).\(name)")
      if columns.isEmpty { mistake("`column` is not set", entry, "\(path).\(name)") }
      references[name] = ImportMapping.Reference(
        place: place, columns: columns, separator: string(parts, "separator", "\(path).\(name)"),
        position: string(parts, "position", "\(path).\(name)"))
    }
    return references
  }

  private mutating func existing(_ node: TOMLNode) -> ImportMapping.Existing? {
    let entries = table(node, "existing", known: ["entity", "key"])
    let entity = required(entries, "entity", node, "existing", "the name of an entity")
    let key = strings(entries, "key", "existing")
    if entries["key"] == nil { mistake("`key` is not set", node, "existing", "write key = \"…\", an attribute") }
    guard let entity, !key.isEmpty else { return nil }
    return ImportMapping.Existing(place: node.place(key: "existing"), entity: entity, key: key)
  }

  private mutating func pairs(_ node: TOMLNode) -> ImportMapping.Pairs? {
    let key = "pairs"
    let entries = table(node, key, known: Self.pairKeys)
    let name = required(entries, "relationship", node, key, "as Book.authors")
    guard let source = source(entries, node, key), let name else { return nil }
    let parts = name.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, !parts.contains("") else {
      mistake("`relationship` is not of the form Entity.relationship", node, key)
      return nil
    }
    let (owner, target) = (strings(entries, "owner", key), strings(entries, "target", key))
    for (name, columns) in [("owner", owner), ("target", target)] where columns.isEmpty && entries[name] == nil {
      mistake("`\(name)` is not set", node, key, "write \(name) = \"…\", the column of its key")
    }
    return ImportMapping.Pairs(
      place: node.place(key: key), entity: parts[0], relationship: parts[1], source: source, owner: owner,
      target: target, position: string(entries, "position", key),
      inversePosition: string(entries, "inverse_position", key))
  }
}
