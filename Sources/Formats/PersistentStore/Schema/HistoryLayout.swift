// The tables of persistent history (docs/formats/history-and-cloudkit.md, "History tables"): ACHANGE, ATRANSACTION,
// ATRANSACTIONSTRING, their indexes and their rows in Z_PRIMARYKEY. They belong to no entity of the model, so
// `StoreSchemaBuilder` does not compute them: a migration keeps them as found. `HistoryLayout+Reading` reads them from
// a store.

import Diagnostics
import ManagedObjectModel
import SQLite

/// The history tables of a store, without rows.
package struct HistoryLayout: Sendable, Hashable {
  /// One of the three tables.
  package enum Table: String, Sendable, Hashable, CaseIterable {
    /// One row per object inserted, updated or deleted.
    case change = "ACHANGE"
    /// One row per save.
    case transaction = "ATRANSACTION"
    /// Names that transactions refer to by number; from fw 973 on.
    case transactionString = "ATRANSACTIONSTRING"

    /// Its entity in Z_PRIMARYKEY and in each of its rows (docs/formats/store-layout.md, "Reserved entity numbers").
    package var number: Int64 {
      switch self {
      case .change: 16001
      case .transaction: 16002
      case .transactionString: 16003
      }
    }

    /// Z_NAME of that entity: the table's name without its A; tables of a model begin with Z instead.
    package var entityName: String { String(rawValue.dropFirst()) }

    /// The columns that the table must have.
    var essentialColumns: Set<String> {
      switch self {
      case .change: ["Z_PK", "Z_ENT", "ZCHANGETYPE", "ZENTITY", "ZENTITYPK", "ZTRANSACTIONID"]
      case .transaction: ["Z_PK", "Z_ENT", "ZTIMESTAMP"]
      case .transactionString: ["Z_PK", "Z_ENT", "ZNAME"]
      }
    }
  }

  /// The existing tables, in the order of `Table`.
  package var tables: [Table: HistoryStatement]
  /// Indexes on them, in the store's order.
  package var indexes: [HistoryStatement]
  /// Their rows of Z_PRIMARYKEY, with the highest key ever assigned.
  package var numbers: [PrimaryKeyEntry]

  /// Tables and indexes of CloudKit's mirroring, which are kept unchanged; their numbers are among `numbers`.
  package var mirroring: [HistoryStatement] = []

  /// The first framework version that is known to number the names of a transaction in ATRANSACTIONSTRING; 851 lacks
  /// it.
  package static let stringsSince: Int64 = 973

  /// Returns the tables as Core Data of a framework version creates them, with that many tombstone columns.
  ///
  /// Texts are those of stores of fw 973 to 1522; of older ones the columns are known and the indexes are not, so none
  /// are made (docs/formats/history-and-cloudkit.md, "History tables").
  package static func made(byFramework version: Int64, tombstones: Int) -> HistoryLayout {
    let hasStrings = version >= stringsSince
    var layout = HistoryLayout(tables: [:], indexes: [], numbers: [])
    for table in Table.allCases where hasStrings || table != .transactionString {
      let columns = columns(of: table, hasStrings: hasStrings, tombstones: tombstones).joined(separator: ", ")
      layout.tables[table] = HistoryStatement(
        kind: .table, name: table.rawValue, table: table.rawValue, rest: "\(table.rawValue) ( \(columns) )")
      layout.numbers.append(PrimaryKeyEntry(number: table.number, name: table.entityName, parent: 0, highWaterMark: 0))
    }
    if hasStrings { layout.indexes = madeIndexes }
    return layout
  }

  private static func columns(of table: Table, hasStrings: Bool, tombstones: Int) -> [String] {
    let strings = ["ZAUTHORTS INTEGER", "ZBUNDLEIDTS INTEGER", "ZCONTEXTNAMETS INTEGER", "ZPROCESSIDTS INTEGER"]
    let own =
      switch table {
      case .change:
        ["ZCHANGETYPE INTEGER", "ZENTITY INTEGER", "ZENTITYPK INTEGER", "ZTRANSACTIONID INTEGER", "ZCOLUMNS BLOB"]
          + (0..<max(0, tombstones)).map { "\(tombstoneColumn($0)) BLOB" }
      case .transaction:
        (hasStrings ? strings : []) + [
          "ZTIMESTAMP FLOAT", "ZAUTHOR VARCHAR", "ZBUNDLEID VARCHAR", "ZCONTEXTNAME VARCHAR", "ZPROCESSID VARCHAR",
          "ZQUERYGEN BLOB",
        ]
      case .transactionString: ["ZNAME VARCHAR"]
      }
    return ["Z_PK INTEGER PRIMARY KEY", "Z_ENT INTEGER", "Z_OPT INTEGER"] + own
  }

  private static var madeIndexes: [HistoryStatement] {
    let plain: [(Table, String)] = [
      (.change, "ZTRANSACTIONID"), (.transaction, "ZAUTHORTS"), (.transaction, "ZBUNDLEIDTS"),
      (.transaction, "ZCONTEXTNAMETS"), (.transaction, "ZPROCESSIDTS"),
    ]
    let named: [(HistoryStatement.Kind, String, Table, String)] = [
      (.index, "Z_TRANSACTION_TransactionAuthorIndex", .transaction, "ZAUTHOR"),
      (.index, "Z_TRANSACTION_TransactionTimestampIndex", .transaction, "ZTIMESTAMP"),
      (.uniqueIndex, "Z_TRANSACTIONSTRING_UNIQUE_NAME", .transactionString, "ZNAME"),
    ]
    return plain.map { table, column in
      index(.index, "\(table.rawValue)_\(column)_INDEX", table, column)
    } + named.map { kind, name, table, column in index(kind, name, table, "\(column) COLLATE BINARY ASC") }
  }

  private static func index(
    _ kind: HistoryStatement.Kind, _ name: String, _ table: Table, _ column: String
  ) -> HistoryStatement {
    HistoryStatement(
      kind: kind, name: name, table: table.rawValue, rest: "\(name) ON \(table.rawValue) (\(column))")
  }

  /// The columns with keys of a history table's rows, each with its own table.
  package func references(to table: Table) -> [(column: String, table: String)] {
    switch table {
    case .change: []
    case .transaction: tables[.change] == nil ? [] : [("ZTRANSACTIONID", Table.change.rawValue)]
    case .transactionString:
      (tables[.transaction]?.stringColumns ?? []).map { ($0, Table.transaction.rawValue) }
    }
  }

  /// Returns a table of this layout, and then its indexes.
  package func statements(of table: Table) -> [HistoryStatement] {
    (tables[table].map { [$0] } ?? []) + indexes.filter { $0.table == table.rawValue }
  }

  // MARK: Tombstones

  /// ZTOMBSTONE0, ZTOMBSTONE1 …: values that a deleted object leaves in its change.
  static func tombstoneColumn(_ index: Int) -> String { "ZTOMBSTONE\(index)" }

  /// The number of tombstone columns that a model needs: the largest number of attributes, own and inherited, that an
  /// entity preserves after deletion. That is assumed (docs/formats/history-and-cloudkit.md, "History tables").
  package static func tombstoneCount(of model: ManagedObjectModel) -> Int {
    model.entities.map { entity in
      model.allAttributes(of: entity).values.reduce(0) { $0 + ($1.preservesAfterDeletion ? 1 : 0) }
    }.max() ?? 0
  }

  /// Number of tombstone columns in ACHANGE.
  package var tombstoneCount: Int {
    (tables[.change]?.columnNames ?? []).reduce(0) { $0 + ($1.hasPrefix("ZTOMBSTONE") ? 1 : 0) }
  }

  /// Returns the layout for a store of `model`: ACHANGE gets the tombstone columns that it lacks, and keeps those it
  /// has.
  ///
  /// A missing column would make Core Data's next insert fail; one too many stays NULL. The remainder is verbatim.
  package func widened(for model: ManagedObjectModel) -> HistoryLayout {
    guard let change = tables[.change] else { return self }
    let present = Set(change.columnNames)
    let missing = (0..<HistoryLayout.tombstoneCount(of: model)).map(HistoryLayout.tombstoneColumn)
      .filter { !present.contains($0) }
    var copy = self
    copy.tables[.change] = change.appending(columns: missing.map { "\($0) BLOB" })
    return copy
  }

  /// The statements in Core Data's order: tables, then indexes.
  package var statements: [HistoryStatement] {
    Table.allCases.compactMap { tables[$0] } + mirroring.filter { $0.kind == .table } + indexes
      + mirroring.filter { $0.kind != .table }
  }
}

/// A statement of history with its unchanged text from sqlite_master.
package struct HistoryStatement: Sendable, Hashable, SchemaPart {
  /// The kind of object that a statement creates.
  package enum Kind: String, Sendable, Hashable {
    case table = "CREATE TABLE "
    case index = "CREATE INDEX "
    case uniqueIndex = "CREATE UNIQUE INDEX "
  }

  /// The kind of object that it creates.
  package let kind: Kind
  /// Name of the table or index.
  package let name: String
  /// The table that it creates or that its index is on.
  package let table: String
  /// The text from the name on.
  let rest: String

  package func createStatement(in schema: String?) -> String { kind.rawValue + SQLiteIdentifier.prefix(schema) + rest }

  /// Names of a table's columns.
  package var columnNames: [String] {
    columnDefinitions.compactMap { $0.split(separator: " ").first.map(String.init) }
  }

  /// Columns of ATRANSACTION with numbers of strings.
  package var stringColumns: [String] { columnNames.filter { $0.hasSuffix("TS") } }

  /// A table's columns, each with its type.
  package var columnDefinitions: [String] {
    guard kind == .table, let body = rest.split(separator: "(", maxSplits: 1).last else { return [] }
    return body.split { $0 == "," || $0 == ")" }.map { $0.split(separator: " ").joined(separator: " ") }
      .filter { !$0.isEmpty }
  }

  /// Returns the table with more columns at its end, in the text's own style.
  func appending(columns: [String]) -> HistoryStatement {
    guard kind == .table, !columns.isEmpty else { return self }
    let end = rest.hasSuffix(" )") ? " )" : ")"
    return HistoryStatement(
      kind: kind, name: name, table: table,
      rest: String(rest.dropLast(end.count)) + ", " + columns.joined(separator: ", ") + end)
  }
}

// Reads the history tables of a store. Their texts run again in the staged store, so only texts that are understood to
// the last character are accepted: a list of plain columns. All others are reported, never run.

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
            .indexLeftOut, "the index \(object.name) on \(object.table) differs from Core Data's; it is ignored"))
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
      errors.append(
        HistoryLayout.notUnderstood(
          "the history table \(table.rawValue) is missing next to the others", hint: HistoryLayout.repairHint))
    }
    for table in Table.allCases where tables[table] != nil && !numbers.contains(where: { $0.number == table.number }) {
      guard let count = rows[table], count > 0 else { continue }
      errors.append(
        HistoryLayout.notUnderstood(
          "Z_PRIMARYKEY has no row \(table.number) \(table.entityName) for the history table \(table.rawValue), "
            + "which has \(count) rows", hint: HistoryLayout.repairHint))
    }
    return errors
  }

  private static let repairHint =
    "run `hopctl migrate STORE --repair`, which makes what no row needs; or open the store once with its app"

  private static func notUnderstood(
    _ message: String,
    hint: String = "open the store once with its app, which repairs its history, or migrate it there"
  ) -> HopdError {
    HopdError(.historyNotUnderstood, message, hint: hint)
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
