// Derived attributes: the column with the value, the source of its computation, and the triggers that update it. Two
// kinds have a known form: counts over a to-many with one key column on the other side, and the value of a to-one's
// target (docs/formats/store-layout.md, "Derived attributes"; docs/decisions/0013).

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

  /// Creates a trigger from its text in sqlite_master; nil unless the text is one statement for this trigger.
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
    /// The value of `targetColumn` in the row of `targetTable` whose Z_PK the object's `keyColumn` contains.
    case value(targetTable: String, targetColumn: String, keyColumn: String)
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

  /// Whether it is a count, which is 0 for an object without children.
  package var isCount: Bool { if case .count = kind { true } else { false } }
  /// Whether hopd computes it.
  package var isComputed: Bool { if case .other = kind { false } else { true } }

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

  /// The statement that computes the column of all rows. Before it, rows without children must have 0 in a count.
  ///
  /// It reads the children once, and finds each target by its key.
  package func fillStatement(in schema: String) -> String? {
    let prefix = SQLiteIdentifier.quoted(schema) + "."
    let start =
      "UPDATE \(prefix)\(SQLiteIdentifier.quoted(table)) SET \(SQLiteIdentifier.quoted(column)) ="
    func own(_ column: String) -> String { SQLiteIdentifier.quoted(table) + "." + SQLiteIdentifier.quoted(column) }
    switch kind {
    case .count(let childTable, let childColumn):
      let key = SQLiteIdentifier.quoted(childColumn)
      return
        "\(start) c.n FROM (SELECT \(key) AS k, count(*) AS n"
        + " FROM \(prefix)\(SQLiteIdentifier.quoted(childTable)) WHERE \(key) IS NOT NULL GROUP BY \(key)) AS c"
        + " WHERE c.k = \(own("Z_PK")) AND \(own("Z_ENT")) IN (\(numbers.map(String.init).joined(separator: ", ")))"
    case .value(let targetTable, let targetColumn, let keyColumn):
      return
        "\(start) (SELECT t.\(SQLiteIdentifier.quoted(targetColumn)) FROM"
        + " \(prefix)\(SQLiteIdentifier.quoted(targetTable)) AS t WHERE t.\"Z_PK\" = \(own(keyColumn)))"
    case .other: return nil
    }
  }

  /// The triggers in Core Data's order, with Core Data's texts.
  package var triggers: [SchemaTrigger] {
    switch kind {
    case .count(let childTable, let childColumn): countTriggers(childTable, childColumn)
    case .value(let targetTable, let targetColumn, let keyColumn): valueTriggers(targetTable, targetColumn, keyColumn)
    case .other: []
    }
  }

  private func bare(_ name: String) -> String { SQLiteIdentifier.bareIfPossible(name) }

  /// The call that notifies Core Data of the new value, for the rows that a filter appended to it selects.
  private func select(_ function: String) -> String {
    "SELECT \(function)(\(SQLiteIdentifier.literal(table)), Z_ENT, Z_PK, \(SQLiteIdentifier.literal(attribute)),"
      + " \(bare(column))) FROM \(bare(table))"
  }

  /// The four triggers of the target's value, with the texts of fw 1030 to 1522. No target needs a trigger for its
  /// deletion: Core Data empties the key first.
  private func valueTriggers(_ targetTable: String, _ targetColumn: String, _ keyColumn: String) -> [SchemaTrigger] {
    func trigger(
      on table: String, _ suffix: String, _ event: String, _ value: String, _ filter: String
    ) -> SchemaTrigger {
      SchemaTrigger(
        name: "Z_DA_\(table)_\(entity)_\(attribute)_\(suffix)", on: table, event: event, when: "",
        body: "UPDATE \(bare(self.table)) SET \(bare(column)) = \(value) \(filter); "
          + select(event == "INSERT" ? SchemaTrigger.insertFunction : SchemaTrigger.updateFunction) + " \(filter);")
    }
    let (key, target) = (bare(keyColumn), bare(targetColumn))
    let found = "(SELECT \(target) FROM \(bare(targetTable)) WHERE Z_PK = NEW.\(key))"
    let (row, owners) = ("WHERE Z_PK = NEW.Z_PK", "WHERE \(key) = NEW.Z_PK")
    return [
      trigger(on: table, "SOURCE_INSERT", "INSERT", found, row),
      trigger(on: table, "SOURCE_UPDATE", "UPDATE OF \(key)", found, row),
      trigger(on: targetTable, "PARAMETER_INSERT", "INSERT", "NEW.\(target)", owners),
      trigger(on: targetTable, "PARAMETER_UPDATE", "UPDATE OF \(target)", "NEW.\(target)", owners),
    ]
  }

  /// The five triggers of a count, with the texts of fw 1044 and 1344.
  private func countTriggers(_ childTable: String, _ childColumn: String) -> [SchemaTrigger] {
    guard let low = numbers.first, let high = numbers.last else { return [] }
    let (parent, value, key) = (bare(table), bare(column), bare(childColumn))
    let guardOfRow = isGuarded ? " AND \(low) <= Z_ENT AND Z_ENT <= \(high)" : ""
    func parameter(_ suffix: String, _ event: String, _ row: String, _ change: String) -> SchemaTrigger {
      let filter = "WHERE Z_PK = \(row).\(key)\(guardOfRow)"
      return SchemaTrigger(
        name: "Z_DA_\(childTable)_\(entity)_\(attribute)_PARAMETER_\(suffix)", on: childTable, event: event,
        when: " WHEN (\(row).\(key) NOT NULL)",
        body: "UPDATE \(parent) SET \(value) = \(change) \(filter); \(select(SchemaTrigger.updateFunction)) \(filter);")
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
