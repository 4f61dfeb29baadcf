// The clean schema as SQL text.

import ManagedObjectModel
import PersistentStore
import SQLite

/// Writes the statements of a clean schema.
struct CleanStatements {
  let schema: CleanSchema
  let options: ExportOptions
  /// Whether a rule becomes a constraint; one that the objects break does not.
  var keeps: (CleanTable, CleanRule) -> Bool = { _, _ in true }

  private func quoted(_ name: String) -> String { SQLiteIdentifier.quoted(name) }

  /// Every statement of the schema.
  var all: [String] {
    schema.tables.map { create($0) } + schema.joins.map { create($0) } + indexes().map(\.statement) + views()
  }

  /// The columns of a table that are never NULL.
  func required(in table: CleanTable) -> Set<String> {
    Set(CleanRule.all(of: table, options: options).filter { $0.isNotNull && keeps(table, $0) }.map(\.column))
  }

  /// Returns the statement of a table, for an attached database or for none.
  func create(_ table: CleanTable, in database: String? = nil) -> String {
    let rules = CleanRule.all(of: table, options: options).filter { keeps(table, $0) }
    let required = required(in: table)
    var parts = ["\(quoted(table.keyColumn)) INTEGER PRIMARY KEY"]
    if let column = table.entityColumn { parts.append("\(quoted(column)) TEXT NOT NULL") }
    for column in table.columns {
      var part = "\(quoted(column.name)) \(type(of: column))"
      if required.contains(column.name) { part += " NOT NULL" }
      if case .reference(let root, let rule) = column.content, let target = self.table(of: root) {
        part += reference(to: target, action(rule, isRequired: required.contains(column.name)))
      }
      parts.append(part)
    }
    parts += rules.filter { !$0.isNotNull }.map { rule in
      "CHECK (\(rule.condition({ quoted($0.name) }, quoted(table.entityColumn ?? ""))))"
    }
    return "CREATE TABLE \(SQLiteIdentifier.prefix(database))\(quoted(table.name)) (\n  "
      + parts.joined(separator: ",\n  ") + "\n)"
  }

  /// Returns the statement of the table of a many-to-many relationship.
  func create(_ join: CleanJoin, in database: String? = nil) -> String {
    let ends = [join.owner, join.target].map { end in
      "\(quoted(end.column)) INTEGER NOT NULL" + (table(of: end.root).map { reference(to: $0, "CASCADE") } ?? "")
    }
    let places = [join.position, join.inversePosition].compactMap { $0.map { "\(quoted($0)) INTEGER" } }
    let key = "PRIMARY KEY (\(quoted(join.owner.column)), \(quoted(join.target.column)))"
    return "CREATE TABLE \(SQLiteIdentifier.prefix(database))\(quoted(join.name)) (\n  "
      + (ends + places + [key]).joined(separator: ",\n  ") + "\n)"
  }

  /// An index of a clean table.
  struct Index {
    let name: String
    /// The name of the table.
    let on: String
    /// The table of entities; nil for the table of a many-to-many relationship.
    let table: CleanTable?
    let columns: [String]
    let isUnique: Bool
    let statement: String
  }

  /// Returns the indexes that foreign keys need to be found from their targets, and those of uniqueness constraints.
  func indexes(in database: String? = nil) -> [Index] {
    var names = UniqueNames(
      schema.tables.map(\.name) + schema.tables.flatMap(\.views).map(\.name) + schema.joins.map(\.name))
    func index(_ name: String, _ table: CleanTable?, _ columns: [String], isUnique: Bool) -> Index {
      let full = names.take("\(name)_\(columns.joined(separator: "_"))\(isUnique ? "_unique" : "_index")")
      return Index(
        name: full, on: name, table: table, columns: columns, isUnique: isUnique,
        statement: "CREATE \(isUnique ? "UNIQUE " : "")INDEX \(SQLiteIdentifier.prefix(database))\(quoted(full))"
          + " ON \(quoted(name)) (\(columns.map(quoted).joined(separator: ", ")))")
    }
    var found: [Index] = []
    for table in schema.tables {
      for column in table.columns {
        if case .reference = column.content { found.append(index(table.name, table, [column.name], isUnique: false)) }
      }
      for columns in uniqueColumns(of: table) { found.append(index(table.name, table, columns, isUnique: true)) }
    }
    return found + schema.joins.map { index($0.name, nil, [$0.target.column], isUnique: false) }
  }

  /// The columns of the uniqueness constraints of a table's entities.
  private func uniqueColumns(of table: CleanTable) -> [[String]] {
    var known: [[String]] = []
    for entity in table.entities {
      for constraint in entity.constraints {
        let columns = constraint.compactMap { name in
          table.columns.first { $0.property == name && $0.entities.contains(entity.entity.name) }?.name
        }
        if columns.count == constraint.count, !columns.isEmpty, !known.contains(columns) { known.append(columns) }
      }
    }
    return known
  }

  /// Returns the statements of the views of the entities below the roots.
  func views(in database: String? = nil) -> [String] {
    schema.tables.flatMap { table in
      table.views.map { view in
        let entity = quoted(table.entityColumn ?? "")
        let columns = view.columns.map { name, place in
          let column = quoted(table.columns[place].name)
          return quoted(name) == column ? column : "\(column) AS \(quoted(name))"
        }
        let names = view.entities.map(SQLiteIdentifier.literal).joined(separator: ", ")
        return "CREATE VIEW \(SQLiteIdentifier.prefix(database))\(quoted(view.name)) AS SELECT "
          + ([quoted(table.keyColumn), entity] + columns).joined(separator: ", ")
          + " FROM \(quoted(table.name)) WHERE \(entity) IN (\(names))"
      }
    }
  }

  /// Returns the table of a root entity.
  func table(of root: String) -> CleanTable? { schema.tables.first { $0.stored.rootEntity == root } }

  /// What deleting the target of a reference does.
  func action(of column: CleanColumn, isRequired: Bool) -> String? {
    if case .reference(_, let rule) = column.content { action(rule, isRequired: isRequired) } else { nil }
  }

  /// The foreign keys are checked at the end of a transaction, so that objects that refer to each other can be inserted
  /// in any order.
  private func reference(to table: CleanTable, _ action: String) -> String {
    " REFERENCES \(quoted(table.name)) (\(quoted(table.keyColumn))) ON DELETE \(action) DEFERRABLE INITIALLY DEFERRED"
  }

  private func action(_ rule: Relationship.DeleteRule, isRequired: Bool) -> String {
    switch rule {
    case .cascade: "CASCADE"
    case .deny: "RESTRICT"
    case .noAction: "NO ACTION"
    case .nullify: isRequired ? "NO ACTION" : "SET NULL"
    }
  }

  /// The declared type of a column. Only texts are converted by it, and only to what the column's type means anyway.
  private func type(of column: CleanColumn) -> String {
    guard case .attribute(let attribute) = column.content else { return "INTEGER" }
    return switch attribute.type.form {
    case .integer, .boolean: "INTEGER"
    case .real: "REAL"
    case .decimal: "NUMERIC"
    case .date: options.dates == .iso ? "TEXT" : "REAL"
    case .string, .uri, .transformable: "TEXT"
    case .uuid: options.uuids == .text ? "TEXT" : "BLOB"
    case .binary, .other: "BLOB"
    }
  }
}
