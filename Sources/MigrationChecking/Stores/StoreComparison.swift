// Two stores of one version, row by row: what came of the same rows by two ways. Keys are compared too, because both
// ways keep them. SQLite compares; nothing is read into memory.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage

/// Where two stores differ.
package struct StoreDisagreement: Sendable, Hashable {
  package let entity: String
  /// nil where rows themselves differ.
  package let property: String?
  /// Rows, values or pairs that differ.
  package let count: Int64
}

/// Compares two stores.
struct StoreComparison {
  let schema: StoreSchema

  /// Every place where the two differ, by entity and property; empty where they hold the same.
  func differences(_ first: FilePath, _ second: FilePath) throws(SQLiteError) -> [StoreDisagreement] {
    // The two are closed, and nobody else knows them: no lock is needed, and no side file is made.
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
    // Time is no content: what is derived from the moment of the migration differs in every run.
    let moments = Set(schema.derivations.filter { $0.isMoment }.map(\.column))
    let columns = table.columns.dropFirst(3).filter { !moments.contains($0.name) }
    let differing = columns.map { column in
      let quoted = SQLiteIdentifier.quoted(column.name)
      return "coalesce(sum(a.\(quoted) IS NOT b.\(quoted)), 0)"
    }
    let list = (["coalesce(sum(a.Z_ENT IS NOT b.Z_ENT), 0)"] + differing).joined(separator: ", ")
    let counts =
      try connection.rows("SELECT \(list) FROM main.\(name) AS a JOIN other.\(name) AS b USING (Z_PK)") { row in
        (0...columns.count).map { row.integer(at: Int32(clamping: $0)) }
      }.first ?? []
    var lonely: Int64 = 0
    for (here, there) in [("main", "other"), ("other", "main")] {
      lonely +=
        try connection.integer(
          "SELECT count(*) FROM \(here).\(name) WHERE Z_PK NOT IN (SELECT Z_PK FROM \(there).\(name))") ?? 0
    }
    var found: [StoreDisagreement] = []
    let rows = lonely + (counts.first ?? 0)
    if rows > 0 { found.append(StoreDisagreement(entity: table.rootEntity, property: nil, count: rows)) }
    for (column, count) in zip(columns, counts.dropFirst()) where count > 0 {
      let (entity, property) = owner(of: column, in: table)
      found.append(StoreDisagreement(entity: entity, property: property, count: count))
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

  /// The entity and the property that a column is for.
  private func owner(of column: SchemaColumn, in table: EntityTable) -> (String, String) {
    switch column.role {
    case .attribute(let owner, let name), .toOne(let owner, let name), .discriminator(let owner, let name),
      .orderKey(let owner, let name), .owner(let owner, let name):
      (owner, name)
    case .primaryKey, .entityNumber, .saveCount: (table.rootEntity, column.name)
    }
  }
}

extension SchemaDerivation {
  /// Does the value depend on the moment at which it is made?
  fileprivate var isMoment: Bool {
    if case .other(let expression) = kind { expression.contains("now(") } else { false }
  }
}
