// Reads the history tables of a store. Their texts run again in the staged store, so only texts that are understood to
// the last character are accepted: a list of plain columns. All others are reported, never run.

import Diagnostics
import SQLite

extension HopdError.Code {
  /// History tables, or reserved numbers, differ from those that Core Data makes.
  package static let historyNotUnderstood = HopdError.Code("history-not-understood", exit: .dataError)
}

extension HistoryLayout {
  /// The history found in a store.
  package struct Finding: Sendable {
    /// The layout; nil if the store keeps no history.
    package var layout: HistoryLayout?
    /// Rows per table.
    package var rows: [Table: Int64] = [:]
    /// The parts that cannot be kept; each is a refusal.
    package var errors: [HopdError] = []
    /// Indexes that are left out.
    package var warnings: [HopdError] = []
  }

  /// Whether a table of that name belongs to history.
  package static func isHistory(table: String) -> Bool { Table(rawValue: table) != nil }

  /// Reads the history of a store.
  package static func read(from reader: StoreReader) throws(SQLiteError) -> Finding {
    var finding = Finding()
    let objects = try reader.schemaObjects()
    let numbers = try reader.primaryKeys().filter(\.isReserved).filter { entry in
      Table.allCases.contains { $0.number == entry.number && $0.entityName == entry.name && entry.parent == 0 }
    }
    var layout = HistoryLayout(tables: [:], indexes: [], numbers: [])
    for object in objects where object.type == "table" {
      guard let table = Table(rawValue: object.name) else { continue }
      guard let statement = HistoryStatement(table: table, text: object.sql ?? "") else {
        finding.errors.append(notUnderstood("the history table \(object.name) is not as Core Data makes it"))
        continue
      }
      layout.tables[table] = statement
      finding.rows[table] = try reader.connection.integer("SELECT count(*) FROM \(reader.qualified(object.name))") ?? 0
    }
    for object in objects where object.type == "index" && isHistory(table: object.table) {
      guard let text = object.sql else { continue }
      if let statement = HistoryStatement(index: object.name, on: object.table, text: text) {
        layout.indexes.append(statement)
      } else {
        finding.warnings.append(
          HopdError(
            .indexLeftOut, "the index \(object.name) on \(object.table) is not as Core Data makes it; it is left out"))
      }
    }
    for entry in numbers {
      // Z_MAX never decreases, and is never less than a key in use (docs/formats/store-layout.md, "Primary keys").
      var mark = entry.highWaterMark
      if let table = Table.allCases.first(where: { $0.number == entry.number }), layout.tables[table] != nil {
        mark = max(
          mark, try reader.connection.integer("SELECT max(Z_PK) FROM \(reader.qualified(table.rawValue))") ?? 0)
      }
      layout.numbers.append(
        PrimaryKeyEntry(number: entry.number, name: entry.name, parent: entry.parent, highWaterMark: mark))
    }
    if finding.errors.isEmpty { finding.errors += layout.contradictions(rows: finding.rows) }
    if !layout.tables.isEmpty || !layout.numbers.isEmpty { finding.layout = layout }
    return finding
  }

  /// The inconsistencies: a table is missing, or a table with rows has no row in Z_PRIMARYKEY.
  ///
  /// Core Data makes the tables with the store, and their rows of Z_PRIMARYKEY with the first save that is recorded:
  /// empty tables need none (docs/formats/history-and-cloudkit.md, "History tables").
  private func contradictions(rows: [Table: Int64]) -> [HopdError] {
    if tables.isEmpty { return [] }
    var errors: [HopdError] = []
    for table in [Table.change, .transaction] where tables[table] == nil {
      errors.append(HistoryLayout.notUnderstood("the history table \(table.rawValue) is missing beside the others"))
    }
    for table in Table.allCases where tables[table] != nil && !numbers.contains(where: { $0.number == table.number }) {
      guard let count = rows[table], count > 0 else { continue }
      errors.append(
        HistoryLayout.notUnderstood(
          "Z_PRIMARYKEY has no row \(table.number) \(table.entityName) for the history table \(table.rawValue), "
            + "which has \(count) rows"))
    }
    return errors
  }

  private static func notUnderstood(_ message: String) -> HopdError {
    HopdError(
      .historyNotUnderstood, message,
      hint: "open the store once with its app, which repairs its history, or migrate it there")
  }

  /// Returns the layout with the texts that Core Data of a framework version makes, as far as they are known.
  package func asMade(byFramework version: Int64) -> HistoryLayout {
    let made = HistoryLayout.made(byFramework: version, tombstones: tombstoneCount)
    var copy = self
    copy.tables = made.tables
    if !made.indexes.isEmpty { copy.indexes = made.indexes }
    return copy
  }
}

extension HistoryStatement {
  /// Parses a table's text; nil unless it is a list of plain columns with all that history needs.
  init?(table: HistoryLayout.Table, text: String) {
    self.init(plainTable: table.rawValue, text: text)
    guard table.essentialColumns.isSubset(of: columnNames) else { return nil }
  }

  /// Parses a table's text; nil unless it is a list of plain columns after a Z_PK.
  init?(plainTable name: String, text: String) {
    guard let (rest, body) = HistoryStatement.parts(text, kind: .table, name: name) else { return nil }
    var names: Set<String> = []
    for (index, column) in body.split(separator: ",", omittingEmptySubsequences: false).enumerated() {
      let words = column.split(separator: " ").map(String.init)
      guard let name = words.first, words.allSatisfy(HistoryStatement.isWord), names.insert(name).inserted else {
        return nil
      }
      // The key is the rowid, and no other column is constrained.
      let isKey = Array(words.dropFirst()) == ["INTEGER", "PRIMARY", "KEY"]
      guard index == 0 ? name == "Z_PK" && isKey : words.count == 2 else { return nil }
    }
    self.init(kind: .table, name: name, table: name, rest: rest)
  }

  /// Parses an index's text; nil unless it is a list of plain columns, each with an optional collation and direction.
  init?(index name: String, on table: String, text: String) {
    for kind in [Kind.index, .uniqueIndex] {
      guard let (rest, body) = HistoryStatement.parts(text, kind: kind, name: name, on: table) else { continue }
      let columns = body.split(separator: ",", omittingEmptySubsequences: false)
      guard
        columns.allSatisfy({ column in
          let words = column.split(separator: " ").map(String.init)
          return !words.isEmpty && words.allSatisfy(HistoryStatement.isWord)
        })
      else { return nil }
      self.init(kind: kind, name: name, table: table, rest: rest)
      return
    }
    return nil
  }

  /// The text from the name on, and the text between its parentheses; nil unless the text is `CREATE … name [ON table]
  /// ( … )` and ends there.
  private static func parts(_ text: String, kind: Kind, name: String, on table: String? = nil) -> (String, String)? {
    guard text.hasPrefix(kind.rawValue), isWord(name) else { return nil }
    let rest = String(text.dropFirst(kind.rawValue.count))
    for written in [name, "\"\(name)\""] where rest.hasPrefix(written) {
      var tail = rest.dropFirst(written.count)
      if let table {
        guard let on = [" ON \(table) ", " ON \"\(table)\" "].first(where: { tail.hasPrefix($0) }) else { return nil }
        tail = tail.dropFirst(on.count)
      }
      while tail.first == " " { tail = tail.dropFirst() }
      guard tail.first == "(", tail.last == ")", tail.count > 2 else { return nil }
      let body = String(tail.dropFirst().dropLast())
      return body.utf8.allSatisfy({ SQLiteIdentifier.isPlain($0) || " ,".utf8.contains($0) }) ? (rest, body) : nil
    }
    return nil
  }

  private static func isWord(_ text: String) -> Bool { !text.isEmpty && text.utf8.allSatisfy(SQLiteIdentifier.isPlain) }
}
