// Compares two stores of one version row by row: the results of two migrations of the same rows. Keys are compared too,
// because both migrations keep them. SQLite compares; nothing is read into memory.

import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite
import SystemPackage

/// A difference between two stores.
package struct StoreDisagreement: Sendable, Hashable {
  package let entity: String
  /// nil if rows themselves differ.
  package let property: String?
  /// Rows, values or pairs that differ.
  package let count: Int64
}

/// Compares two stores.
struct StoreComparison {
  let schema: StoreSchema

  /// Returns all differences, by entity and property; empty if both have the same content.
  func differences(_ first: FilePath, _ second: FilePath) throws(SQLiteError) -> [StoreDisagreement] {
    // No other program has the two files open: no lock is needed, and no side file is made.
    let connection = try Connection(path: first, access: .unlocked)
    try connection.attachUnchanged(second, as: "other", access: .unlocked)
    var found: [StoreDisagreement] = []
    for table in schema.tables { found += try compare(table, connection) }
    for join in schema.joinTables {
      let count = try pairs(join, connection)
      if count > 0 {
        found.append(StoreDisagreement(entity: join.entity, property: join.relationship, count: count))
      }
    }
    try connection.detach("other")
    return found
  }

  private func compare(_ table: EntityTable, _ connection: Connection) throws(SQLiteError) -> [StoreDisagreement] {
    let name = SQLiteIdentifier.quoted(table.name)
    // Times are not compared: a value derived from the time of the migration differs in every run.
    let moments = Set(schema.derivations.filter { $0.isMoment }.map(\.column))
    let columns = table.columns.dropFirst(3).filter { !moments.contains($0.name) }
    let differing = columns.map { column in
      let quoted = SQLiteIdentifier.quoted(column.name)
      return "coalesce(sum(a.\(quoted) IS NOT b.\(quoted)), 0)"
    }
    // Entities of one table share its columns, so the rows of each entity are counted separately.
    let list = (["a.Z_ENT", "coalesce(sum(a.Z_ENT IS NOT b.Z_ENT), 0)"] + differing).joined(separator: ", ")
    let counts =
      try connection.rows(
        "SELECT \(list) FROM main.\(name) AS a JOIN other.\(name) AS b USING (Z_PK) GROUP BY a.Z_ENT"
      ) { row in (0...columns.count + 1).map { row.integer(at: Int32(clamping: $0)) } }
    var rows: Int64 = 0
    for (here, there) in [("main", "other"), ("other", "main")] {
      rows +=
        try connection.integer(
          "SELECT count(*) FROM \(here).\(name) WHERE Z_PK NOT IN (SELECT Z_PK FROM \(there).\(name))") ?? 0
    }
    rows += counts.reduce(0) { $0 + ($1.dropFirst().first ?? 0) }
    var found: [StoreDisagreement] = []
    if rows > 0 { found.append(StoreDisagreement(entity: table.rootEntity, property: nil, count: rows)) }
    for (index, column) in columns.enumerated() {
      var values: [Owner: Int64] = [:]
      for row in counts where row[index + 2] > 0 {
        values[owner(of: column, in: table, number: row[0]), default: 0] += row[index + 2]
      }
      found += values.sorted { $0.key.entity < $1.key.entity }.map { owner, count in
        StoreDisagreement(entity: owner.entity, property: owner.property, count: count)
      }
    }
    return found
  }

  private func pairs(_ join: JoinTable, _ connection: Connection) throws(SQLiteError) -> Int64 {
    let name = SQLiteIdentifier.quoted(join.name)
    let list = join.columns.map(SQLiteIdentifier.quoted).joined(separator: ", ")
    var count: Int64 = 0
    for (here, there) in [("main", "other"), ("other", "main")] {
      count +=
        try connection.integer(
          "SELECT count(*) FROM (SELECT \(list) FROM \(here).\(name) EXCEPT SELECT \(list) FROM \(there).\(name))") ?? 0
    }
    return count
  }

  private struct Owner: Hashable {
    let entity: String
    let property: String
  }

  /// Returns the entity and the property of a column, for rows of the entity with that number.
  private func owner(of column: SchemaColumn, in table: EntityTable, number: Int64) -> Owner {
    let entity = table.entities.first { schema.number(of: $0) == number }
    guard let (owner, property) = column.role.property else {
      return Owner(entity: table.rootEntity, property: column.name)
    }
    // A column that sibling entities share is named after one of them; for this row it belongs to the row's entity.
    let declarer = entity.flatMap { schema.model.entity(named: $0) }.flatMap {
      schema.model.declaringEntity(of: property, in: $0)?.name
    }
    return Owner(entity: declarer ?? owner, property: property)
  }
}

extension SchemaDerivation {
  /// Whether the value depends on the time at which it is computed.
  fileprivate var isMoment: Bool {
    if case .other(let expression) = kind { expression.contains("now(") } else { false }
  }
}
