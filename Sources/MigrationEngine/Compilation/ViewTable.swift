// The rows that a hop inserts into one table, as one SELECT with the same values. It is one SELECT and not several
// under UNION ALL, as far as possible: SQLite then flattens the view, and a look-up by key stays one.

import PersistentStore
import SQLite

/// The view of one table of a hop's destination.
struct ViewTable: Sendable {
  /// The name of the destination's table.
  let table: String
  /// The columns in order, with the affinities of their declared types.
  let columns: [(name: String, affinity: ColumnAffinity)]
  /// Whether it is a join table, without keys of its own.
  let isJoin: Bool
  /// All insertions into the table.
  let rows: [Insertion]

  /// The reason why a view cannot show the table; nil if it can.
  var obstacle: String? {
    guard let first = rows.first else { return nil }
    if rows.contains(where: \.mayRepeat) { return "pairs of \(table) may come several times, and are kept once" }
    if rows.contains(where: { $0.driver != first.driver || $0.sourceTable != first.sourceTable }) {
      return "rows of \(table) come from several tables"
    }
    if !isJoin, rows.count > 1, rows.contains(where: { $0.tables.count > 1 || $0.numbers.count != 1 }) {
      return "rows of \(table) are put together in several ways"
    }
    return nil
  }

  /// Returns the view's SELECT; `affinities` are those of the columns of the row under `s`.
  func select(affinities: [String: ColumnAffinity]) -> SQLExpression {
    guard let first = rows.first else {
      let nothing =
        columns.map { "NULL AS \(SQLiteIdentifier.quoted($0.name))" as SQLExpression } + keyColumn(.null)
      return "SELECT \(nothing.joined(separator: ", ")) WHERE 0"
    }
    if isJoin {
      return rows.map { select([$0], first: $0, affinities) }.joined(separator: " UNION ALL ")
    }
    return select(rows, first: first, affinities)
  }

  private func keyColumn(_ value: SQLExpression) -> [SQLExpression] {
    isJoin ? ["\(value) AS \(SQLiteIdentifier.quoted(SourceTables.rangeColumn))"] : []
  }

  private func select(_ rows: [Insertion], first: Insertion, _ affinities: [String: ColumnAffinity]) -> SQLExpression {
    let values = columns.map { column -> SQLExpression in
      "\(value(of: column, in: rows, affinities)) AS \(SQLiteIdentifier.quoted(column.name))"
    }
    // Each of several insertions reads rows of other entities in the same table.
    let conditions =
      rows.count == 1
      ? first.conditions
      : ["(\(rows.map { "(\($0.conditions.joined(separator: " AND ")))" as SQLExpression }.joined(separator: " OR ")))"]
    return "SELECT \((values + keyColumn("\(first.rangeKey)")).joined(separator: ", "))"
      + " FROM \(first.tables.joined(separator: " CROSS JOIN "))"
      + (conditions.isEmpty ? "" : " WHERE \(conditions.joined(separator: " AND "))")
  }

  private func value(
    of column: (name: String, affinity: ColumnAffinity), in rows: [Insertion], _ affinities: [String: ColumnAffinity]
  ) -> SQLExpression {
    let values = rows.map { row in
      row.columns.first { $0.name == column.name }.map { stored($0, as: column.affinity, affinities) } ?? .null
    }
    guard let first = values.first, values.contains(where: { $0 != first }) else { return values.first ?? .null }
    let arms = zip(rows, values).flatMap { row, value in
      row.numbers.sorted().map { "WHEN \($0) THEN \(value)" as SQLExpression }
    }
    return "CASE \(SQLExpression.column("Z_ENT")) \(arms.joined(separator: " ")) END"
  }

  /// Returns the value as the column would store it.
  private func stored(
    _ column: Insertion.Column, as affinity: ColumnAffinity, _ affinities: [String: ColumnAffinity]
  ) -> SQLExpression {
    if column.isExact || column.value.isNull { return column.value }
    if let carried = column.value.column(of: "s"), let before = affinities[carried],
      affinity.keeps(valuesOf: before)
    {
      return column.value
    }
    return affinity.stored(column.value)
  }

  /// The source of the rows; nil for a table without rows, which is its own driver.
  var origin: SourceTables.Origin? {
    guard let first = rows.first else { return nil }
    var carried: [String: String] = [:]
    var present: Set<String> = []
    for column in columns {
      let values = Set(rows.map { row in row.columns.first { $0.name == column.name }?.value })
      if values.count == 1, let value = values.first, let value, let name = value.column(of: "s") {
        carried[column.name] = name
      } else if values.allSatisfy({ $0?.isConstant ?? false }) {
        present.insert(column.name)
      }
    }
    let whole = rows.map(\.whole).reduce(into: [:]) { all, one in all.merge(one) { first, _ in first } }
    let numbers: Set<Int64> = rows.reduce(into: []) { $0.formUnion($1.numbers) }
    // Rows of a number that two insertions read would occur twice.
    let isTakenOnce = rows.reduce(0) { $0 + $1.numbers.count } == numbers.count
    return SourceTables.Origin(
      table: first.sourceTable, driver: first.driver, carried: carried, present: present, numbers: numbers,
      whole: isTakenOnce ? whole : [:])
  }

  /// The columns whose values are computed by a function that may fail.
  var failing: [String] {
    columns.map(\.name).filter { name in
      rows.contains { row in row.columns.contains { $0.name == name && $0.value.mayFail } }
    }
  }

  /// Whether selecting the rows calls a function that may fail.
  var filterMayFail: Bool { rows.contains { $0.conditions.mayFail } }
}

extension ViewTable {
  /// Returns the tables of a layout with a program's insertions into each.
  static func all(of layout: StoreSchema, rows: [Insertion]) -> [ViewTable] {
    let byTable = Dictionary(grouping: rows, by: \.table)
    let entities = layout.tables.map { table in
      ViewTable(
        table: table.name,
        columns: table.columns.map { ($0.name, ColumnAffinity(declaredType: $0.declaredType)) }, isJoin: false,
        rows: byTable[table.name] ?? [])
    }
    let joins = layout.joinTables.map { join in
      ViewTable(
        table: join.name, columns: join.columns.map { ($0, .integer) }, isJoin: true, rows: byTable[join.name] ?? [])
    }
    return entities + joins
  }

  /// Returns the affinities of all columns of a layout's tables, by table.
  static func affinities(of layout: StoreSchema) -> [String: [String: ColumnAffinity]] {
    let tables = all(of: layout, rows: []).map { table in
      (table.table, Dictionary(table.columns.map { ($0.name, $0.affinity) }) { first, _ in first })
    }
    return Dictionary(tables) { _, last in last }
  }
}
