// hop.lock: the shipped versions, as a file in the app's repository. It is TOML with one line for each entity, sorted,
// so that a change of a shipped version appears as one changed line in a review.

import Diagnostics
import ManagedObjectModel
import SystemPackage
import TOMLDocuments

extension HopdError.Code {
  /// A hop.lock that cannot be read.
  package static let lockInvalid = HopdError.Code("lock-invalid", exit: .configuration)
}

/// The content of a hop.lock.
package struct LockFile: Sendable, Hashable {
  package let models: [ShippedModel]

  /// Creates a lock of models.
  package init(models: [ShippedModel]) { self.models = models }

  /// Returns the model of that name.
  package func model(named name: String) -> ShippedModel? { models.first { $0.name == name } }

  // MARK: Writing

  /// The file's text.
  package var text: String {
    var lines = [
      "# The versions of the app's models that have shipped. `hopctl check` fails when one of them changes.",
      "# Written by `hopctl check --freeze`; only the lines allowed_drops are for editing.", "", "format = 1",
    ]
    for model in models.sorted(by: { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }) {
      lines += ["", "[[model]]", "name = \(TOMLText.quoted(model.name))"]
      for (version, parts) in model.allowedDrops.sorted(by: { $0.key < $1.key }) {
        lines += parts.sorted { $0.key < $1.key }.map { LockFile.allowance(of: $0.key, in: version, because: $0.value) }
      }
      for version in model.versions {
        lines += ["", "[[model.version]]", "name = \(TOMLText.quoted(version.name))"]
        lines += version.entities.map(LockFile.line)
      }
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// Returns the line that lets data go: `allowed_drops."Library 4"."Book.shelfMark" = "why"`.
  static func allowance(of part: String, in version: String, because reason: String) -> String {
    "allowed_drops.\(TOMLText.key(version)).\(TOMLText.key(part)) = \(TOMLText.quoted(reason))"
  }

  /// Returns the line of one entity: `entity.Book = ["hash", "layout", "author: to-one to Author, optional", …]`.
  private static func line(_ entity: ShippedEntity) -> String {
    let values = [entity.hash, entity.layout] + entity.parts
    return "entity.\(TOMLText.key(entity.name)) = [\(values.map(TOMLText.quoted).joined(separator: ", "))]"
  }

  // MARK: Reading

  /// The hint for an unreadable file.
  private static let again = "restore it from the repository, or remove it and create a new one with --freeze"

  /// Reads a file; returns nil if it does not exist.
  package static func read(_ file: FilePath) throws(HopdError) -> LockFile? {
    guard let text = try TOMLFile.text(of: file, called: "lock file", code: .lockInvalid) else { return nil }
    return try LockFile(text: text, of: file)
  }

  /// Reads a text; `file` is its path.
  package init(text: String, of file: FilePath) throws(HopdError) {
    let document: TOMLNode
    do throws(HopdError) {
      document = try TOMLNode(toml: text, file: file, code: .lockInvalid)
    } catch {
      var error = error
      error.hint = Self.again
      throw error
    }
    guard case .table(let top) = document.value, case .integer(1)? = top["format"]?.value else {
      throw HopdError(.lockInvalid, "this is not a lock file of format 1", at: Place(file: file), hint: Self.again)
    }
    models = try Self.array(top["model"], "model").map { node throws(HopdError) in
      let table = try Self.table(node)
      let versions = try Self.array(table["version"], "version").map(Self.version)
      return ShippedModel(
        name: try Self.string(table["name"], "name", node), versions: versions,
        allowedDrops: try Self.allowedDrops(table["allowed_drops"]))
    }
  }

  private static func allowedDrops(_ node: TOMLNode?) throws(HopdError) -> [String: [String: String]] {
    var drops: [String: [String: String]] = [:]
    guard let node else { return drops }
    for (version, parts) in try table(node) {
      for (part, reason) in try table(parts) {
        drops[version, default: [:]][part] = try string(reason, "the reason of \(part)", parts)
      }
    }
    return drops
  }

  private static func version(_ node: TOMLNode) throws(HopdError) -> ShippedVersion {
    let table = try table(node)
    var entities: [ShippedEntity] = []
    if let node = table["entity"] {
      for (name, line) in try Self.table(node).sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
        let values = try array(line, name).map { value throws(HopdError) in try string(value, name, line) }
        guard values.count >= 2 else { throw invalid(line, "the line of \(name) has no hash and layout") }
        entities.append(
          ShippedEntity(name: name, hash: values[0], layout: values[1], parts: Array(values.dropFirst(2))))
      }
    }
    return ShippedVersion(name: try string(table["name"], "name", node), entities: entities)
  }

  private static func table(_ node: TOMLNode) throws(HopdError) -> [String: TOMLNode] {
    guard case .table(let table) = node.value else { throw invalid(node, "a table is missing here") }
    return table
  }

  private static func array(_ node: TOMLNode?, _ key: String) throws(HopdError) -> [TOMLNode] {
    guard let node else { return [] }
    guard case .array(let items) = node.value else { throw invalid(node, "\(key) is not an array") }
    return items
  }

  private static func string(_ node: TOMLNode?, _ key: String, _ parent: TOMLNode) throws(HopdError) -> String {
    guard let node, case .string(let text) = node.value else { throw invalid(node ?? parent, "\(key) is not a text") }
    return text
  }

  private static func invalid(_ node: TOMLNode, _ message: String) -> HopdError {
    HopdError(.lockInvalid, message, at: node.place(key: nil), hint: again)
  }
}
