// The rows that a hop writes, as parts of a statement instead of its text: the statement is made from it, and so is
// what is known of the rows without asking for it.

import PersistentStore
import SQLite

/// Rows of one table of the destination, each made from one row of a table of the source.
package struct Insertion: Sendable, Hashable {
  /// A column with its value.
  package struct Column: Sendable, Hashable {
    /// The name in the destination's table, not quoted.
    package let name: String
    /// An expression over `tables`.
    package let value: SQLExpression

    /// Creates a column.
    package init(_ name: String, _ value: SQLExpression) {
      self.name = name
      self.value = value
    }
  }

  /// The destination's table.
  package let table: String
  /// The columns with values; all others stay NULL.
  package let columns: [Column]
  /// "table AS alias" in the order of joining; the first one, "… AS s", has the range key.
  package let tables: [SQLExpression]
  /// The source table under `s`, not quoted.
  package let sourceTable: String
  /// The conditions that select its rows.
  package let conditions: [SQLExpression]
  /// The entity numbers of the source rows, if they belong to one entity.
  package var numbers: Set<Int64> = []
  /// The destination numbers whose objects are all rows of a source number, with that number.
  package var whole: [Int64: Int64] = [:]
  /// The key by which rows are read in ranges, as `s."Z_PK"`, and the table that has it.
  package let rangeKey: String
  package let driver: SourceTables.Driver
  /// Whether a row may occur several times. The statement then keeps it once, which needs the rows before it.
  package var mayRepeat = false
  /// The text after the SELECT.
  package var suffix = ""

  /// Returns the columns in the order of their table, with NULL for omitted ones between them: SQLite then makes the
  /// record from the values in place, without copying them.
  static func inOrder(_ columns: [Column], of table: EntityTable?) -> [Column] {
    let order = table?.columns.map(\.name) ?? []
    let known = Dictionary(columns.map { ($0.name, $0) }) { first, _ in first }
    guard known.count == columns.count, Set(order).isSuperset(of: known.keys),
      let last = order.lastIndex(where: { known[$0] != nil })
    else { return columns }
    return order[...last].map { known[$0] ?? Column($0, .null) }
  }

  /// Returns the statement that inserts the rows of a range, ?1 to ?2, into a schema.
  package func statement(into schema: String) -> String {
    let names = columns.map { SQLiteIdentifier.quoted($0.name) }.joined(separator: ", ")
    let all = ["\(rangeKey) BETWEEN ?1 AND ?2"] + conditions
    let statement: SQLExpression =
      "INSERT INTO \(SQLiteIdentifier.quoted(schema)).\(SQLiteIdentifier.quoted(table)) (\(names))"
      + " SELECT \(columns.map(\.value).joined(separator: ", ")) FROM \(tables.joined(separator: " CROSS JOIN "))"
      + " WHERE \(all.joined(separator: " AND "))\(suffix)"
    return statement.text
  }
}
