// The mapping in a folder of exported CSV or in an exported database: it says what the columns are, and `hopctl import`
// reads the data by it.

import Expressions
import ManagedObjectModel
import TOMLDocuments

/// Writes the mapping of an export.
struct ExportMappingText {
  /// The mapping's name in the folder, by which an import finds it.
  static let fileName = "import.hopimport.toml"

  private let schema: CleanSchema
  private let options: ExportOptions
  private(set) var text: String

  init(schema: CleanSchema, options: ExportOptions) {
    self.schema = schema
    self.options = options
    text = """
      # The columns of this export, for `hopctl import`. An attribute or relationship that no column has may be added by
      # hand.

      """
  }

  /// Returns the mapping of a database with all tables of the schema.
  static func database(_ schema: CleanSchema, options: ExportOptions) -> String {
    var mapping = ExportMappingText(schema: schema, options: options)
    for table in schema.tables {
      for entity in table.entities {
        let columns = table.columns.filter { $0.entities.contains(entity.entity.name) }
        mapping.add(entity, of: table, columns: columns, source: table.name, isTable: true)
      }
    }
    for join in schema.joins { mapping.add(join, source: join.name) }
    return mapping.text
  }

  /// Adds the file of an entity, or with `isTable` the table that it may share with others.
  mutating func add(
    _ entity: CleanEntity, of table: CleanTable, columns: [CleanColumn], source file: String, isTable: Bool = false
  ) {
    header("import", [("entity", entity.entity.name), ("from", file), ("key", table.keyColumn)])
    if isTable, let column = table.entityColumn {
      text += "filter = \(TOMLText.quoted("\(column) == \(ExpressionNode.constant(.string(entity.entity.name)))"))\n"
    }
    text += "keeps_keys = true\n"
    if options.dates == .unix { text += "dates = \"unix\"\n" }
    text += "\n[import.columns]\n"
    for column in columns {
      guard case .attribute(let attribute) = column.content, !attribute.isDerived else { continue }
      text += "\(TOMLText.key(column.property)) = \(TOMLText.quoted(column.name))\n"
    }
    let references = columns.filter { column in
      if case .reference = column.content { !column.isOwner } else { false }
    }
    if !references.isEmpty { text += "\n[import.relationships]\n" }
    for column in references {
      let position = columns.first { other in
        if case .position = other.content { other.property == "\(column.property)_position" } else { false }
      }
      let name = TOMLText.quoted(column.name)
      let value = position.map { "{ column = \(name), position = \(TOMLText.quoted($0.name)) }" } ?? name
      text += "\(TOMLText.key(column.property)) = \(value)\n"
    }
    // The owner of a member is no property of the member.
    for column in columns {
      guard let owner = column.owner else { continue }
      let position = columns.first { $0.property == "\(column.property)_position" }
      pairs("\(owner.entity).\(owner.property)", file, (column.name, table.keyColumn), position?.name, nil)
    }
  }

  /// Adds the file of a many-to-many relationship.
  mutating func add(_ join: CleanJoin, source file: String) {
    let relationship = "\(join.relationship.entity).\(join.relationship.property)"
    pairs(relationship, file, (join.owner.column, join.target.column), join.position, join.inversePosition)
  }

  private mutating func pairs(
    _ relationship: String, _ file: String, _ ends: (owner: String, target: String), _ position: String?,
    _ inverse: String?
  ) {
    header(
      "pairs",
      [
        ("relationship", relationship), ("from", file), ("owner", ends.owner), ("target", ends.target),
        ("position", position), ("inverse_position", inverse),
      ])
  }

  private mutating func header(_ name: String, _ keys: [(String, String?)]) {
    text += "\n[[\(name)]]\n"
    for (key, value) in keys {
      if let value { text += "\(key) = \(TOMLText.quoted(value))\n" }
    }
  }
}
