// Rows such as apps leave in stores over the years: no value where one is required, a reference to a missing object, a
// value beyond the model's limits. Core Data tolerates them until a migration validates.

import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage

/// Spoils some rows of a sample store.
struct UnhappyRows {
  let schema: StoreSchema

  /// Changes one row of each entity for each kind of fault that it can have.
  func spoil(_ database: FilePath) throws(SQLiteError) {
    let connection = try Connection(path: database, access: .exclusive(keepsLog: false))
    try SchemaTrigger.registerFunctions(on: connection)
    for table in schema.tables {
      for entity in table.entities {
        guard let value = schema.model.entity(named: entity), !value.isAbstract, let number = schema.number(of: entity)
        else { continue }
        var row: Int64 = 1
        for (column, spoilt) in faults(of: value) {
          // Each fault has its own row, from the end: the first rows have the limits.
          try set(column, spoilt, in: table.name, number: number, fromEnd: row, connection)
          row += 1
        }
      }
    }
  }

  /// Returns columns, each with a value that the model forbids.
  private func faults(of entity: Entity) -> [(column: String, value: SQLiteValue)] {
    let lineage = schema.model.lineage(of: entity)
    let unique = Set(lineage.flatMap { $0.uniquenessConstraints.flatMap(\.self) })
    var found: [(String, SQLiteValue)] = []
    for (name, attribute) in schema.model.allAttributes(of: entity).sorted(by: { $0.key < $1.key })
    where !attribute.isDerived && !unique.contains(name) {
      guard let column = schema.column(ofAttribute: name, in: entity.name) else { continue }
      if !attribute.isOptional { found.append((column, .null)) }
      if let beyond = beyond(attribute) { found.append((column, beyond)) }
    }
    for (name, relationship) in schema.model.allRelationships(of: entity).sorted(by: { $0.key < $1.key })
    where !relationship.isToMany && !unique.contains(name) {
      guard let own = schema.storage(ofRelationship: name, in: entity.name)?.ownColumns else { continue }
      found.append((own.key, relationship.isOptional ? .integer(2_000_000_000) : .null))
    }
    return found
  }

  /// Returns a value beyond the bounds of an attribute; nil if it has no bounds.
  private func beyond(_ attribute: Attribute) -> SQLiteValue? {
    switch attribute.type.form {
    case .integer:
      if let maximum = attribute.maximum.flatMap({ Int64($0) }), maximum < 32_000 { return .integer(maximum + 1) }
      return attribute.minimum.flatMap { Int64($0) }.flatMap { $0 > -32_000 ? .integer($0 - 1) : nil }
    case .real, .decimal:
      return attribute.maximum.flatMap { Double($0) }.map { .real($0 + 1) }
    case .string:
      guard let maximum = attribute.maximum.flatMap({ Int($0) }), (0..<100_000).contains(maximum) else { return nil }
      return .text(String(repeating: "x", count: maximum + 1))
    default: return nil
    }
  }

  private func set(
    _ column: String, _ value: SQLiteValue, in table: String, number: Int64, fromEnd: Int64, _ connection: Connection
  ) throws(SQLiteError) {
    let name = SQLiteIdentifier.quoted(table)
    let key = try connection.integer(
      "SELECT Z_PK FROM \(name) WHERE Z_ENT = ? ORDER BY Z_PK DESC LIMIT 1 OFFSET ?",
      [.integer(number), .integer(fromEnd - 1)])
    guard let key else { return }
    try connection.run(
      "UPDATE \(name) SET \(SQLiteIdentifier.quoted(column)) = ? WHERE Z_PK = ?", [value, .integer(key)])
  }
}
