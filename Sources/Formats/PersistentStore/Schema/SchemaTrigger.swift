// Derived attributes: the column with the value, the source of its computation, and the triggers that update it. Only
// counts over a to-many with one key column on the other side have a known form (docs/formats/store-layout.md, "Derived
// attributes"; docs/decisions/0013).

import ManagedObjectModel
import SQLite

/// A trigger of the schema.
package struct SchemaTrigger: Sendable, Hashable {
  /// Trigger name, as Z_DA_ZPAGE_Book_pagesCount_PARAMETER_INSERT.
  package let name: String
  /// The table that fires it.
  package let table: String
  /// The text as in sqlite_master.
  package let text: String

  /// Makes a trigger from its text in sqlite_master; nil unless the text is one statement for this trigger.
  package init?(name: String, table: String, text: String) {
    guard Self.isWhole(text, name: name) else { return nil }
    self.name = name
    self.table = table
    self.text = text
  }

  fileprivate init(name: String, on table: String, event: String, when: String, body: String) {
    self.name = name
    self.table = table
    text =
      "\(Self.start)\(SQLiteIdentifier.bareIfPossible(name)) AFTER \(event) ON "
      + "\(SQLiteIdentifier.bareIfPossible(table)) FOR EACH ROW\(when) BEGIN \(body) END"
  }

  /// The statement for an attached schema; SQLite stores it without the schema name.
  package func createStatement(in schema: String?) -> String {
    Self.start + SQLiteIdentifier.prefix(schema) + text.dropFirst(Self.start.count)
  }

  /// The functions that Core Data's triggers call, with five arguments each; they exist only in Core Data's own
  /// process.
  package static var functions: [String] { [updateFunction, insertFunction, filteredCountFunction] }
  fileprivate static let updateFunction = "NSCoreDataDATriggerUpdatedAffectedObjectValue"
  fileprivate static let insertFunction = "NSCoreDataDATriggerInsertUpdatedAffectedObjectValue"
  static let filteredCountFunction = "NSCoreDataTriggerUpdateAffectedObjectValue"

  /// Registers functions of these names that do nothing, so that a connection can write to tables with such triggers.
  package static func registerFunctions(on connection: Connection) throws(SQLiteError) {
    for name in functions { try connection.registerNullFunction(name, argumentCount: 5) }
  }
}

/// A derived attribute in a store.
package struct SchemaDerivation: Sendable, Hashable {
  /// The way in which the value is computed.
  package enum Kind: Sendable, Hashable {
    /// The number of rows of `childTable` whose `childColumn` contains the object's Z_PK.
    case count(childTable: String, childColumn: String)
    /// A derivation whose triggers were never seen.
    case other(expression: String)
  }

  /// Entity that declares the attribute.
  package let entity: String
  package let attribute: String
  /// The table and column of the value.
  package let table: String
  package let column: String
  /// Z_ENT of the entities that have the attribute, without gaps: an entity and all its descendants.
  package let numbers: [Int64]
  package let kind: Kind
  /// Whether the triggers test Z_ENT. Stores show no test for a to-one inverse and a root entity (fw 1344), and one for
  /// a to-many without inverse (fw 1044).
  package let isGuarded: Bool

  /// Whether hopd computes it.
  package var isCount: Bool { if case .count = kind { true } else { false } }

  /// Whether a trigger of a store belongs to this attribute, by its name and table.
  package func owns(trigger name: String, on table: String) -> Bool {
    name.hasPrefix("Z_DA_\(table)_\(entity)_\(attribute)_")
  }

  /// Returns the one of `derivations` that a trigger of a store belongs to: if names begin alike ("page" and
  /// "page_count"), the longer one.
  package static func owner(
    ofTrigger name: String, on table: String, among derivations: [SchemaDerivation]
  ) -> SchemaDerivation? {
    derivations.filter { $0.owns(trigger: name, on: table) }
      .max { $0.entity.utf8.count + $0.attribute.utf8.count < $1.entity.utf8.count + $1.attribute.utf8.count }
  }

  /// The statement that sets the column to the counts of all children; rows without children must already have 0.
  ///
  /// It reads the children once and needs no index.
  package func fillStatement(in schema: String) -> String? {
    guard case .count(let childTable, let childColumn) = kind else { return nil }
    let prefix = SQLiteIdentifier.quoted(schema) + "."
    let (key, table) = (SQLiteIdentifier.quoted(childColumn), SQLiteIdentifier.quoted(self.table))
    return
      "UPDATE \(prefix)\(table) SET \(SQLiteIdentifier.quoted(column)) = c.n FROM (SELECT \(key) AS k, count(*) AS n"
      + " FROM \(prefix)\(SQLiteIdentifier.quoted(childTable)) WHERE \(key) IS NOT NULL GROUP BY \(key)) AS c"
      + " WHERE c.k = \(table).\"Z_PK\" AND \(table).\"Z_ENT\" IN (\(numbers.map(String.init).joined(separator: ", ")))"
  }

  /// The five triggers of a count in Core Data's order, with Core Data's texts at fw 1044 and 1344.
  package var triggers: [SchemaTrigger] {
    guard case .count(let childTable, let childColumn) = kind, let low = numbers.first, let high = numbers.last else {
      return []
    }
    func bare(_ name: String) -> String { SQLiteIdentifier.bareIfPossible(name) }
    let (parent, value, key) = (bare(table), bare(column), bare(childColumn))
    let guardOfRow = isGuarded ? " AND \(low) <= Z_ENT AND Z_ENT <= \(high)" : ""
    func parameter(_ suffix: String, _ event: String, _ row: String, _ change: String) -> SchemaTrigger {
      let filter = "WHERE Z_PK = \(row).\(key)\(guardOfRow)"
      return SchemaTrigger(
        name: "Z_DA_\(childTable)_\(entity)_\(attribute)_PARAMETER_\(suffix)", on: childTable, event: event,
        when: " WHEN (\(row).\(key) NOT NULL)",
        body: "UPDATE \(parent) SET \(value) = \(change) \(filter); \(select(SchemaTrigger.updateFunction)) \(filter);")
    }
    func select(_ function: String) -> String {
      "SELECT \(function)(\(SQLiteIdentifier.literal(table)), Z_ENT, Z_PK, \(SQLiteIdentifier.literal(attribute)),"
        + " \(value)) FROM \(parent)"
    }
    let row = "WHERE Z_PK = NEW.Z_PK"
    return [
      parameter("INSERT", "INSERT", "NEW", "IFNULL(\(value), 0) + 1"),
      parameter("UPDATE_INCREMENT", "UPDATE OF \(key)", "NEW", "\(value) + 1"),
      parameter("UPDATE_DECREMENT", "UPDATE OF \(key)", "OLD", "\(value) - 1"),
      parameter("DELETE", "DELETE", "OLD", "\(value) - 1"),
      SchemaTrigger(
        name: "Z_DA_\(table)_\(entity)_\(attribute)_SOURCE_INSERT", on: table, event: "INSERT",
        when: isGuarded ? " WHEN \(low) <= NEW.Z_ENT AND NEW.Z_ENT <= \(high)" : "",
        body: "UPDATE \(parent) SET \(value) = (SELECT IFNULL(COUNT(\(key)), 0) FROM \(bare(childTable)) WHERE \(key) ="
          + " NEW.Z_PK) \(row); \(select(SchemaTrigger.insertFunction)) \(row);"),
    ]
  }
}
