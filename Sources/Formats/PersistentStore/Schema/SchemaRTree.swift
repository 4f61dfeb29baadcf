// R-Tree fetch indexes. Their form is reported and was never seen in a store (docs/formats/store-layout.md, "R-Tree
// indexes"), so a schema has them by rule, and a store gets them only if another store of the same app confirms the
// rule. Photos' R-Trees of locations have a form of their own: they are explained, and not made.

import SQLite

/// The table of an R-Tree fetch index, or of a location.
package struct SchemaRTree: Sendable, Hashable, SchemaPart {
  /// One indexed attribute.
  package struct Dimension: Sendable, Hashable {
    /// Name of the attribute.
    package let attribute: String
    /// Its column in the entity's table.
    package let column: String
  }

  /// Table name, as Z_Place_byLocation, or Z_RT_Asset_boundedByRect for a location.
  package let name: String
  /// Entity that declares the index or attribute, and the name of that.
  package let entity: String
  package let index: String
  /// The table whose rows are indexed.
  package let table: String
  /// Z_ENT of the entities whose rows are indexed.
  package let numbers: [Int64]
  package let dimensions: [Dimension]
  /// Whether it belongs to a transient attribute that Photos marks as a location.
  package var isLocation = false

  /// The key of the user info by which Photos marks a transient attribute as a location, with the attributes' names.
  static let locationKey = "_NSLocationAttributeDerivedComponents"

  /// The suffixes of the tables in which SQLite keeps an R-Tree (sqlite.org/rtree.html).
  private static let shadowSuffixes = ["_node", "_parent", "_rowid"]

  /// Returns the names of the tables in which SQLite keeps an R-Tree of that name.
  package static func shadowTables(of name: String) -> [String] { shadowSuffixes.map { name + $0 } }

  /// Z_PK, then the least and the greatest value per attribute.
  package var columns: [String] {
    ["Z_PK"]
      + dimensions.flatMap { dimension in
        let stem = "Z" + dimension.attribute.uppercased()
        return [stem + "_MIN", stem + "_MAX"]
      }
  }

  /// The statement that Core Data is reported to run; for a location, the one that it runs.
  package func createStatement(in schema: String?) -> String {
    let type = isLocation ? " FLOAT" : ""
    let parts = ["Z_PK INTEGER PRIMARY KEY"] + columns.dropFirst().map { SQLiteIdentifier.bareIfPossible($0) + type }
    return "CREATE VIRTUAL TABLE \(SQLiteIdentifier.prefix(schema))\(SQLiteIdentifier.bareIfPossible(name)) USING RTREE"
      + " (\(parts.joined(separator: ", ")))"
  }

  /// SQL for the rows of the table that the index contains: those of its entities that have every value.
  package var rowCondition: String {
    (["\"Z_ENT\" IN (\(numbers.map(String.init).joined(separator: ", ")))"]
      + dimensions.map { SQLiteIdentifier.quoted($0.column) + " IS NOT NULL" }).joined(separator: " AND ")
  }

  /// The statement that fills the table: the least and the greatest value of a point are the value itself.
  package func fillStatement(in schema: String) -> String {
    let prefix = SQLiteIdentifier.quoted(schema) + "."
    let values = dimensions.flatMap { [SQLiteIdentifier.quoted($0.column), SQLiteIdentifier.quoted($0.column)] }
    return "INSERT INTO \(prefix)\(SQLiteIdentifier.quoted(name))"
      + " (\(columns.map(SQLiteIdentifier.quoted).joined(separator: ", ")))"
      + " SELECT \((["\"Z_PK\""] + values).joined(separator: ", ")) FROM \(prefix)\(SQLiteIdentifier.quoted(table))"
      + " WHERE \(rowCondition)"
  }
}
