// Filtered counts: ordinary attributes with the number of a relationship's objects for which a condition holds.
// Triggers keep them; the condition is in the attribute's user info (docs/formats/store-layout.md, "Filtered counts").

import ManagedObjectModel
import SQLite

/// An attribute that triggers keep at the number of a relationship's objects for which a condition holds.
package struct SchemaFilteredCount: Sendable, Hashable {
  /// One comparison of the condition, as ZHIDDEN == 0.
  struct Comparison: Sendable, Hashable {
    let column: String
    let operation: String
    let number: String
  }

  /// Entity that declares the attribute: one without parent.
  package let entity: String
  package let attribute: String
  /// The table and column of the value.
  package let table: String
  package let column: String
  /// The table of the objects that are counted.
  let countedTable: String
  /// The column that joins both: of the own table for a to-one, otherwise of the table of the objects that are counted.
  let keyColumn: String
  let isToOne: Bool
  let condition: [Comparison]

  /// The key of an attribute's user info that has the condition.
  static let userInfoKey = "NSTriggerKey"

  private func bare(_ name: String) -> String { SQLiteIdentifier.bareIfPossible(name) }

  /// The condition for the columns of a row: NEW, OLD, or an alias.
  private func holds(_ row: String) -> String {
    condition.map { "\(row)\(bare($0.column)) \($0.operation) \($0.number)" }.joined(separator: " AND ")
  }

  // MARK: Values

  /// The statements that count again for all rows.
  package func fillStatements(in schema: String) -> [String] {
    func qualified(_ name: String) -> String { SQLiteIdentifier.quoted(schema) + "." + SQLiteIdentifier.quoted(name) }
    let own = SQLiteIdentifier.quoted(table)
    let start = "UPDATE \(qualified(table)) SET \(SQLiteIdentifier.quoted(column)) ="
    if isToOne {
      return [
        "\(start) (SELECT count(*) FROM \(qualified(countedTable)) AS c"
          + " WHERE c.\"Z_PK\" = \(own).\(SQLiteIdentifier.quoted(keyColumn)) AND \(holds("c.")))"
      ]
    }
    return [
      "\(start) 0",
      "\(start) c.n FROM (\(counts(of: qualified(countedTable)))) AS c WHERE c.k = \(own).\"Z_PK\"",
    ]
  }

  /// The statement that counts the rows, and those with another value; `qualified` returns the name of a table.
  package func comparison(qualified: (String) -> String) -> String {
    let value = "s.\(SQLiteIdentifier.quoted(column))"
    if isToOne {
      return
        "SELECT count(*), total(\(value) IS NOT (c.Z_PK IS NOT NULL)) FROM \(qualified(table)) AS s LEFT JOIN"
        + " \(qualified(countedTable)) AS c ON c.Z_PK = s.\(SQLiteIdentifier.quoted(keyColumn)) AND \(holds("c."))"
    }
    return
      "SELECT count(*), total(\(value) IS NOT ifnull(c.n, 0)) FROM \(qualified(table)) AS s LEFT JOIN"
      + " (\(counts(of: qualified(countedTable)))) AS c ON c.k = s.Z_PK"
  }

  private func counts(of counted: String) -> String {
    let key = SQLiteIdentifier.quoted(keyColumn)
    return "SELECT \(key) AS k, count(*) AS n FROM \(counted) WHERE \(key) IS NOT NULL AND \(holds("")) GROUP BY \(key)"
  }

  // MARK: Triggers

  /// The seven triggers in Core Data's order, with the texts of fw 973 to 1522.
  package var triggers: [SchemaTrigger] { isToOne ? toOneTriggers : toManyTriggers }

  private func trigger(
    _ suffix: String, _ event: String, on fired: String, when: String, set: String, where filter: String,
    notify call: String
  ) -> SchemaTrigger? {
    let name = "ZT_\(table)_\(column)_\(countedTable)_\(suffix)"
    let (own, value) = (bare(table), bare(column))
    return SchemaTrigger(
      name: name, table: fired,
      text: "\(SchemaTrigger.start)\(bare(name)) AFTER \(event) ON \(bare(fired)) \(when)BEGIN UPDATE \(own) SET"
        + " \(value) = \(set) WHERE \(filter); SELECT \(SchemaTrigger.filteredCountFunction)("
        + "\(SQLiteIdentifier.literal(table)), Z_ENT, Z_PK, \(SQLiteIdentifier.literal(column)), \(value)) FROM \(own)"
        + " WHERE \(call); END")
  }

  private var increment: String { "IFNULL(\(bare(column)),0) + 1" }
  private var decrement: String { "MAX(0,IFNULL(\(bare(column)),0) - 1)" }
  /// A change of what the condition reads.
  private var change: (event: String, test: String) {
    let columns = condition.map { bare($0.column) }
    return (
      "UPDATE OF " + columns.joined(separator: ", "),
      columns.map { "NEW.\($0) != OLD.\($0)" }.joined(separator: " OR ")
    )
  }

  /// The test that a key came to refer to another object.
  private func came(_ key: String) -> String {
    "((NEW.\(key) IS NOT NULL AND OLD.\(key) IS NULL) OR (NEW.\(key) != OLD.\(key)))"
  }

  private var toOneTriggers: [SchemaTrigger] {
    let (key, own, row) = (bare(keyColumn), "Z_PK = NEW.Z_PK", "FOR EACH ROW ")
    let (change, test) = change
    func count(_ join: String) -> String {
      "(SELECT COUNT(Z_PK) FROM \(bare(countedTable)) WHERE \(join) AND (\(holds(""))))"
    }
    return [
      trigger(
        "INSERT_INCREMENT", "INSERT", on: countedTable, when: row + "WHEN \(holds("NEW.")) ", set: increment,
        where: "NEW.Z_PK = \(key)", notify: "\(key) = NEW.Z_PK"),
      trigger(
        "UPDATE_INCREMENT", change, on: countedTable, when: row + "WHEN (\(holds("NEW."))) AND (\(test)) ",
        set: increment, where: "NEW.Z_PK = \(key)", notify: "\(key) = NEW.Z_PK"),
      trigger(
        "UPDATE_DECREMENT", change, on: countedTable, when: row + "WHEN (\(holds("OLD."))) AND (\(test)) ",
        set: decrement, where: "OLD.Z_PK = \(key)", notify: "\(key) = NEW.Z_PK"),
      trigger(
        "DELETE_DECREMENT", "DELETE", on: countedTable, when: row + "WHEN \(holds("OLD.")) ", set: decrement,
        where: "OLD.Z_PK = \(key)", notify: "\(key) = OLD.Z_PK"),
      trigger(
        "\(table)_INSERT_INCREMENT", "INSERT", on: table, when: row, set: count("(Z_PK = NEW.\(key))"), where: own,
        notify: own),
      trigger(
        "\(keyColumn)_UPDATE_TO_NULL", "UPDATE OF \(key)", on: table,
        when: "WHEN (NEW.\(key) IS NULL AND OLD.\(key) IS NOT NULL) ", set: "0", where: own, notify: own),
      trigger(
        "\(keyColumn)_UPDATE_INCREMENT", "UPDATE OF \(key)", on: table, when: "WHEN \(came(key)) ",
        set: count("Z_PK = NEW.\(key)"), where: own, notify: own),
    ].compactMap(\.self)
  }

  private var toManyTriggers: [SchemaTrigger] {
    let (key, own, row) = (bare(keyColumn), "Z_PK = NEW.Z_PK", "FOR EACH ROW ")
    let (change, test) = change
    let left = "((OLD.\(key) IS NOT NULL AND NEW.\(key) IS NULL) OR (NEW.\(key) != OLD.\(key)))"
    return [
      trigger(
        "INSERT_INCREMENT", "INSERT", on: countedTable, when: row + "WHEN \(holds("NEW.")) ", set: increment,
        where: "NEW.\(key) = Z_PK", notify: "Z_PK = NEW.\(key)"),
      trigger(
        "UPDATE_INCREMENT", change, on: countedTable,
        when: row + "WHEN (\(holds("NEW."))) AND (\(test)) AND (NEW.\(key) == OLD.\(key)) ", set: increment,
        where: "NEW.\(key) = Z_PK", notify: "Z_PK = NEW.\(key)"),
      trigger(
        "UPDATE_DECREMENT", change, on: countedTable,
        when: row + "WHEN (\(holds("OLD."))) AND (\(test)) AND (OLD.\(key) == NEW.\(key)) ", set: decrement,
        where: "OLD.\(key) = Z_PK", notify: "Z_PK = NEW.\(key)"),
      trigger(
        "DELETE_DECREMENT", "DELETE", on: countedTable, when: row + "WHEN \(holds("OLD.")) ", set: decrement,
        where: "OLD.\(key) = Z_PK", notify: "Z_PK = OLD.\(key)"),
      trigger(
        "\(table)_INSERT_INCREMENT", "INSERT", on: table, when: row,
        set: "(SELECT COUNT(Z_PK) FROM \(bare(countedTable)) WHERE (\(key) = NEW.Z_PK) AND (\(holds(""))))", where: own,
        notify: own),
      trigger(
        "\(keyColumn)_UPDATE_INCREMENT", "UPDATE OF \(key)", on: countedTable,
        when: "WHEN (\(holds("NEW."))) AND \(came(key)) ", set: increment, where: "Z_PK = NEW.\(key)",
        notify: "Z_PK = NEW.\(key)"),
      trigger(
        "\(keyColumn)_UPDATE_DECREMENT", "UPDATE OF \(key)", on: countedTable,
        when: "WHEN (\(holds("OLD."))) AND \(left) ", set: decrement, where: "Z_PK = OLD.\(key)",
        notify: "Z_PK = OLD.\(key)"),
    ].compactMap(\.self)
  }
}

extension StoreSchemaBuilder {
  /// Returns the filtered counts of the model, each after those that its condition reads. A condition of a form that no
  /// store shows gives none, and so do conditions that read one another.
  func filteredCounts() -> [SchemaFilteredCount] {
    var waiting = tables.flatMap { table in
      (model.entity(named: table.rootEntity)?.attributes ?? [])
        .sorted { Entity.caseInsensitiveOrder($0.name, $1.name) }
        .compactMap { filteredCount($0, in: table) }
    }
    var ordered: [SchemaFilteredCount] = []
    while let next = waiting.firstIndex(where: { count in
      !waiting.contains { read in
        read.table == count.countedTable && count.condition.contains { $0.column == read.column }
      }
    }) {
      ordered.append(waiting.remove(at: next))
    }
    return ordered
  }

  private func filteredCount(_ attribute: Attribute, in table: EntityTable) -> SchemaFilteredCount? {
    guard let text = attribute.userInfo[SchemaFilteredCount.userInfoKey], !attribute.isTransient, !attribute.isDerived,
      let entity = model.entity(named: table.rootEntity), let column = columnName(entity, attribute.name),
      let found = FilteredCountCondition(text),
      let relationship = model.allRelationships(of: entity)[found.relationship],
      let destination = model.entity(named: relationship.destinationEntityName),
      let counted = tables.first(where: { $0.entities.contains(destination.name) })
    else { return nil }
    let (key, isToOne): (String, Bool)
    switch inheritedStorage(found.relationship, in: entity) {
    case .toOne(let columns, _): (key, isToOne) = (columns.key, true)
    case .members(let columns): (key, isToOne) = (columns.key, false)
    case .owned, .join, nil: return nil
    }
    let condition = found.comparisons.compactMap { comparison in
      inheritedColumn(comparison.attribute, in: destination).map {
        SchemaFilteredCount.Comparison(column: $0, operation: comparison.operation, number: comparison.number)
      }
    }
    guard condition.count == found.comparisons.count else { return nil }
    return SchemaFilteredCount(
      entity: entity.name, attribute: attribute.name, table: table.name, column: column, countedTable: counted.name,
      keyColumn: key, isToOne: isToOne, condition: condition)
  }
}
