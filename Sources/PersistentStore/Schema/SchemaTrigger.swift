// Derived attributes: the column that holds the value, what it is computed from, and the triggers that keep it. Only
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
  /// The text as sqlite_master holds it.
  package let text: String

  /// Makes a trigger of the text that sqlite_master has for it; nil where that is not one statement for this trigger.
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

  /// The functions that Core Data's triggers call and only its own process knows, with five arguments each.
  package static var functions: [String] { [updateFunction, insertFunction] }
  fileprivate static let updateFunction = "NSCoreDataDATriggerUpdatedAffectedObjectValue"
  fileprivate static let insertFunction = "NSCoreDataDATriggerInsertUpdatedAffectedObjectValue"

  /// Lets a connection write to tables with such triggers: functions of these names that do nothing.
  package static func registerFunctions(on connection: Connection) throws(SQLiteError) {
    for name in functions { try connection.registerNullFunction(name, argumentCount: 5) }
  }
}

/// A derived attribute as a store holds it.
package struct SchemaDerivation: Sendable, Hashable {
  /// What keeps the value.
  package enum Kind: Sendable, Hashable {
    /// The number of rows of `childTable` whose `childColumn` holds the object's Z_PK.
    case count(childTable: String, childColumn: String)
    /// A derivation whose triggers were never seen.
    case other(expression: String)
  }

  /// Entity that declares the attribute.
  package let entity: String
  package let attribute: String
  /// Where the value stands.
  package let table: String
  package let column: String
  /// Z_ENT of the entities that have the attribute, without gaps: an entity and all below it.
  package let numbers: [Int64]
  package let kind: Kind
  /// Do the triggers look at Z_ENT? Seen without for a to-one inverse and a root entity (fw 1344), with for a to-many
  /// without inverse (fw 1044).
  package let isGuarded: Bool

  /// Is it computed by hopd?
  package var isCount: Bool { if case .count = kind { true } else { false } }

  /// Does a trigger of a store belong to this attribute, by its name and table?
  package func owns(trigger name: String, on table: String) -> Bool {
    name.hasPrefix("Z_DA_\(table)_\(entity)_\(attribute)_")
  }

  /// The one of `derivations` that a trigger of a store belongs to: names may begin alike ("page" and "page_count"),
  /// and then the longer one is meant.
  package static func owner(
    ofTrigger name: String, on table: String, among derivations: [SchemaDerivation]
  ) -> SchemaDerivation? {
    derivations.filter { $0.owns(trigger: name, on: table) }
      .max { $0.entity.utf8.count + $0.attribute.utf8.count < $1.entity.utf8.count + $1.attribute.utf8.count }
  }

  /// Puts the counts of all children into the column; rows without children must hold 0 before.
  ///
  /// One pass over the children, which need no index.
  package func fillStatement(in schema: String) -> String? {
    guard case .count(let childTable, let childColumn) = kind else { return nil }
    let prefix = SQLiteIdentifier.quoted(schema) + "."
    let (key, table) = (SQLiteIdentifier.quoted(childColumn), SQLiteIdentifier.quoted(self.table))
    return
      "UPDATE \(prefix)\(table) SET \(SQLiteIdentifier.quoted(column)) = c.n FROM (SELECT \(key) AS k, count(*) AS n"
      + " FROM \(prefix)\(SQLiteIdentifier.quoted(childTable)) WHERE \(key) IS NOT NULL GROUP BY \(key)) AS c"
      + " WHERE c.k = \(table).\"Z_PK\" AND \(table).\"Z_ENT\" IN (\(numbers.map(String.init).joined(separator: ", ")))"
  }

  /// The five triggers of a count in Core Data's order, their texts as Core Data writes them at fw 1044 and 1344.
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
