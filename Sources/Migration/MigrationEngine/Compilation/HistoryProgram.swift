// The rows of persistent history in the last store of a chain: copied from the original store, or changed in place in a
// copy of its file. Steps like those of entities, with chunks and checkpoints. The bookkeeping that completes the hop
// writes the mark of the migration, so it is written once (docs/decisions/0057).

import MigrationPlanning
import PersistentStore
import SQLite

/// The steps that carry history over.
struct HistoryProgram {
  let carry: HistoryCarry
  /// The tables of the last store.
  let layout: HistoryLayout
  /// The schema of the original store.
  let original: String
  /// The schema of the last store.
  let destination: String

  /// The function that converts ZCOLUMNS for an entity number of the store.
  private static let function = "HOPD_HISTORY_COLUMNS"

  /// Returns nil for a hop whose store gets no rows of history.
  init?(_ hop: Hop, original: String, destination: String) {
    guard let carry = hop.history, let layout = hop.destinationSchema.history else { return nil }
    (self.carry, self.layout, self.original, self.destination) = (carry, layout, original, destination)
  }

  /// Registers the functions that the statements call.
  func registerFunctions(on connection: Connection) throws(SQLiteError) {
    guard !carry.columns.isEmpty else { return }
    let changes = carry.columns
    try connection.registerFailingFunction(Self.function, argumentCount: 2) { values in
      guard case .integer(let number)? = values.first, case .blob(let bytes)? = values.last,
        let change = changes[number]
      else { return values.last ?? .null }
      return .blob(change.value(of: bytes))
    }
  }

  // MARK: A written store

  /// Returns the program of a hop with the tables, rows and indexes of history, in Core Data's order: after the
  /// bookkeeping.
  func appended(to program: HopProgram, bookkeeping: [String]) -> HopProgram {
    var result = program
    result.steps += bookkeeping.map { .table(HopProgram.StatementStep(subject: "bookkeeping", .schema, text: $0)) }
    func schemaStep(_ statement: HistoryStatement) -> HopProgram.StatementStep {
      HopProgram.StatementStep(subject: statement.name, .schema, text: statement.createStatement(in: destination))
    }
    result.steps += layout.statements.filter { $0.kind == .table }.map { .table(schemaStep($0)) }
    result.steps += HistoryLayout.Table.allCases.compactMap { copy($0) }
    result.steps += layout.mirroring.filter { $0.kind == .table }.map { copy(mirroring: $0) }
    result.steps += layout.statements.filter { $0.kind != .table }.map { .index(schemaStep($0)) }
    result.makesBookkeeping = true
    result.hasHistory = true
    return result
  }

  private func copy(_ table: HistoryLayout.Table) -> HopProgram.Step? {
    guard let columns = carry.sourceColumns[table], !columns.isEmpty else { return nil }
    var values = columns.map { (name: $0, value: SQLiteIdentifier.quoted($0)) }
    if table == .change {
      let changed = changedColumns
      values = values.map { column in changed.first { $0.name == column.name } ?? column }
      values += changed.filter { column in !columns.contains(column.name) }
    }
    var condition = ""
    if table == .change, !carry.removed.isEmpty {
      condition = " AND \"ZENTITY\" NOT IN (\(carry.removed.map(String.init).joined(separator: ", ")))"
    }
    let source = qualified(table, in: original)
    return .chunks(
      HopProgram.ChunkStep(
        rowsOf: table.rawValue, over: source,
        "INSERT INTO \(qualified(table, in: destination)) "
          + "(\(values.map { SQLiteIdentifier.quoted($0.name) }.joined(separator: ", "))) "
          + "SELECT \(values.map(\.value).joined(separator: ", ")) FROM \(source) "
          + "WHERE \"Z_PK\" >= ?1 AND \"Z_PK\" <= ?2\(condition)"))
  }

  /// The rows of a mirroring table. Its unique indexes are created after all rows, so numbers may be exchanged.
  private func copy(mirroring table: HistoryStatement) -> HopProgram.Step {
    let name = SQLiteIdentifier.quoted(table.name)
    let (source, target) = (
      "\(SQLiteIdentifier.quoted(original)).\(name)", "\(SQLiteIdentifier.quoted(destination)).\(name)"
    )
    let entity = MirroringLayout.entityColumn
    let numbers = carry.mirroring?.numbers ?? [:]
    let values = table.columnNames.map { column -> String in
      guard column == entity, !numbers.isEmpty else { return SQLiteIdentifier.quoted(column) }
      let cases = numbers.sorted { $0.key < $1.key }.map { "WHEN \($0.key) THEN \($0.value)" }
      return "CASE \(SQLiteIdentifier.quoted(entity)) \(cases.joined(separator: " ")) "
        + "ELSE \(SQLiteIdentifier.quoted(entity)) END"
    }
    var condition = ""
    if let removed = carry.mirroring?.removed, !removed.isEmpty, table.columnNames.contains(entity) {
      let list = removed.map(String.init).joined(separator: ", ")
      condition = " AND (\(SQLiteIdentifier.quoted(entity)) IN (\(list))) IS NOT TRUE"
    }
    return .chunks(
      HopProgram.ChunkStep(
        rowsOf: table.name, over: source,
        "INSERT INTO \(target) (\(table.columnNames.map(SQLiteIdentifier.quoted).joined(separator: ", "))) "
          + "SELECT \(values.joined(separator: ", ")) FROM \(source) "
          + "WHERE \"Z_PK\" >= ?1 AND \"Z_PK\" <= ?2\(condition)"))
  }

  // MARK: A copy of the file

  /// Returns the program that alters a copy, with the changes of the history in it.
  func altering(_ program: HopProgram) -> HopProgram {
    var result = program
    result.hasHistory = true
    let numbers = Set(carry.numbers.keys).union(carry.columns.keys).union(carry.tombstones.keys).sorted()
    guard !numbers.isEmpty else { return result }
    let table = qualified(.change, in: destination)
    let values = changedColumns.map { "\(SQLiteIdentifier.quoted($0.name)) = \($0.value)" }
    result.steps.append(
      .chunks(
        HopProgram.ChunkStep(
          rowsOf: HistoryLayout.Table.change.rawValue, over: table,
          "UPDATE \(table) SET \(values.joined(separator: ", ")) WHERE \"Z_PK\" >= ?1 AND \"Z_PK\" <= ?2 "
            + "AND \"ZENTITY\" IN (\(numbers.map(String.init).joined(separator: ", ")))")))
    return result
  }

  // MARK: Values

  private func qualified(_ table: HistoryLayout.Table, in schema: String) -> String {
    SQLiteIdentifier.quoted(schema) + "." + SQLiteIdentifier.quoted(table.rawValue)
  }

  /// The columns of ACHANGE that are not copied unchanged.
  private var changedColumns: [(name: String, value: String)] {
    var changed: [(name: String, value: String)] = []
    if !carry.numbers.isEmpty {
      let cases = carry.numbers.sorted { $0.key < $1.key }.map { "WHEN \($0.key) THEN \($0.value)" }
      changed.append(("ZENTITY", "CASE \"ZENTITY\" \(cases.joined(separator: " ")) ELSE \"ZENTITY\" END"))
    }
    if !carry.columns.isEmpty {
      let numbers = carry.columns.keys.sorted().map(String.init).joined(separator: ", ")
      changed.append(
        (
          "ZCOLUMNS",
          "CASE WHEN \"ZCOLUMNS\" IS NOT NULL AND \"ZENTITY\" IN (\(numbers)) "
            + "THEN \(Self.function)(\"ZENTITY\", \"ZCOLUMNS\") ELSE \"ZCOLUMNS\" END"
        ))
    }
    let known = Set(carry.sourceColumns[.change] ?? [])
    for place in 0..<(carry.tombstones.values.map(\.count).max() ?? 0) {
      let name = "ZTOMBSTONE\(place)"
      let before = known.contains(name) ? SQLiteIdentifier.quoted(name) : "NULL"
      let cases = carry.tombstones.sorted { $0.key < $1.key }.compactMap { number, moves -> String? in
        guard moves.indices.contains(place), moves[place] != place else { return nil }
        let value = moves[place].map { SQLiteIdentifier.quoted("ZTOMBSTONE\($0)") } ?? "NULL"
        return "WHEN \(number) THEN \(value)"
      }
      guard !cases.isEmpty else { continue }
      changed.append((name, "CASE \"ZENTITY\" \(cases.joined(separator: " ")) ELSE \(before) END"))
    }
    return changed
  }
}

extension HistoryMark {
  /// Writes the transaction into the store of `schema`, with that time in seconds since 2001.
  func write(_ connection: Connection, schema: String, layout: HistoryLayout, at time: Double) throws(SQLiteError) {
    let prefix = SQLiteIdentifier.quoted(schema) + "."
    for text in texts {
      try connection.run(
        "INSERT INTO \(prefix)ATRANSACTIONSTRING (Z_PK, Z_ENT, ZNAME) VALUES (?, ?, ?)",
        [.integer(text.key), .integer(HistoryLayout.Table.transactionString.number), .text(text.text)])
    }
    var values: [(String, SQLiteValue)] = [
      ("Z_PK", .integer(transaction)), ("Z_ENT", .integer(HistoryLayout.Table.transaction.number)),
      ("ZTIMESTAMP", .real(time)),
    ]
    if let authorKey, let programKey {
      values += [
        ("ZAUTHORTS", .integer(authorKey)), ("ZBUNDLEIDTS", .integer(programKey)),
        ("ZPROCESSIDTS", .integer(programKey)),
      ]
    } else {
      values += [("ZAUTHOR", .text(author)), ("ZBUNDLEID", .text(program)), ("ZPROCESSID", .text(program))]
    }
    let known = Set(layout.tables[.transaction]?.columnNames ?? [])
    values = values.filter { known.contains($0.0) }
    try connection.run(
      "INSERT INTO \(prefix)ATRANSACTION (\(values.map(\.0).joined(separator: ", "))) "
        + "VALUES (\(values.map { _ in "?" }.joined(separator: ", ")))", values.map(\.1))
  }
}
